"""A handler tried without a worker, a queue or a database: for the tests of those who write handlers.

    trial = Trial(tmp_path)
    result = trial.run("hello_world", name="Ada")
    assert result.output == {"message": "Hello, Ada!"}

It runs in the process of the test, `def` handlers too: a debugger and a coverage tool see it. What only a worker can
do is not tried: timeouts, memory limits, retries, staging tables, and that the output is JSON.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from graticule.core.errors import NotFound
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import Checkpoint, HandlerContext, ProcessContext, Signals
from graticule.handlers.registry import RegisteredHandler, handlers
from graticule.handlers.result import HandlerResult
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage


class Trial:
    """A folder as the storage, and what handlers that are run one after the other leave behind.

    All runs are attempts of one node: the next one finds the checkpoint that the last one has saved.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.signals = Signals()
        self.checkpoint: Checkpoint | None = None
        self.progress: list[dict[str, JsonValue]] = []

    def run(self, name: str, **params: Any) -> HandlerResult:
        """Run a handler; parameters that do not fit its model raise a `ValidationError`."""
        handler = _known(name)
        given = params if handler.params is None else handler.params.model_validate(params)
        ended = asyncio.run(self._awaited(handler, given)) if handler.is_async else self._called(handler, given)
        return ended if isinstance(ended, HandlerResult) else HandlerResult.success(ended)

    async def _awaited(self, handler: RegisteredHandler, params: Any) -> Any:
        checkpoint = _Awaited(_Kept(self))
        storage = LocalStorage(self.folder)
        return await handler.function(
            HandlerContext(**self._task(handler, params), storage=storage, checkpoint=checkpoint)
        )

    def _called(self, handler: RegisteredHandler, params: Any) -> Any:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            return handler.function(
                ProcessContext(**self._task(handler, params), storage=storage, checkpoint=_Kept(self))
            )

    def _task(self, handler: RegisteredHandler, params: Any) -> dict[str, Any]:
        return {
            "task_id": TaskId("task"),
            "job_id": JobId("job"),
            "node_id": NodeId("node"),
            "retry_count": 0,
            "params": params,
            "logger": get_logger(f"graticule.handlers.{handler.name}"),
            "signals": self.signals,
            "report_progress": self.progress.append,
        }


def _known(name: str) -> RegisteredHandler:
    found = handlers().get(name)
    if found is None:
        raise NotFound(f"There is no handler {name!r}: its package is not installed here, or cannot be imported.")
    return found


class _Kept:
    """The checkpoint of a trial, as a `def` handler sees it."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""
        found = self._trial.checkpoint
        if found is None or not all((self._trial.folder / artifact).is_file() for artifact in found.artifacts):
            return None
        return found

    def save(self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()) -> None:
        """Keep a phase, in place of the one before."""
        self._trial.checkpoint = Checkpoint(phase, dict(data or {}), tuple(artifacts))


class _Awaited:
    """The same, as an `async def` handler sees it."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""
        return self._kept.load()

    async def save(
        self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()
    ) -> None:
        """Keep a phase, in place of the one before."""
        self._kept.save(phase, data, artifacts)
