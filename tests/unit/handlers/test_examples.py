"""The example handlers, called as a worker calls them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers import Checkpoint, HandlerContext, HandlerResult, ProcessContext, handlers
from graticule.handlers.context import Signals
from graticule.logs import get_logger
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import validated


class Saved:
    """Checkpoints in memory, for both kinds of handlers."""

    def __init__(self) -> None:
        self.last: Checkpoint | None = None

    def load(self) -> Checkpoint | None:
        return self.last

    def save(self, phase: str, data: Mapping[str, Any] | None = None, artifacts: Sequence[str] = ()) -> None:
        self.last = Checkpoint(phase, dict(data or {}), tuple(artifacts))


def context(name: str, params: dict[str, Any], **changes: Any) -> dict[str, Any]:
    handler = handlers()[name]
    return {
        "task_id": TaskId("t"),
        "job_id": JobId("j"),
        "node_id": NodeId("n"),
        "retry_count": 0,
        "params": validated(handler.params, params),
        "logger": get_logger("test"),
        "signals": Signals(),
        "report_progress": lambda _: None,
        "storage": LocalStorage(Path("unused")),
        "checkpoint": Saved(),
        **changes,
    }


async def run(handler_name: str, changes: dict[str, Any] | None = None, /, **params: Any) -> HandlerResult:
    handler = handlers()[handler_name]
    given = context(handler_name, params, **(changes or {}))
    result = (
        await handler.function(HandlerContext(**given))
        if handler.is_async
        else handler.function(ProcessContext(**given))
    )
    assert isinstance(result, HandlerResult)
    return result


async def test_echo() -> None:
    assert (await run("echo", a=1)).output == {"echoed_params": {"a": 1}}


async def test_hello_world() -> None:
    assert (await run("hello_world")).output == {"message": "Hello, World!"}
    assert (await run("hello_world", name="Zoë")).output == {"message": "Hello, Zoë!"}


async def test_sleep_tells_its_progress_and_sees_a_cancel_and_a_shutdown() -> None:
    told: list[Any] = []
    assert (await run("sleep", {"report_progress": told.append}, seconds=0.05)).output == {"slept_seconds": 0.05}
    assert told == [{"done": 0.0, "total": 0.05, "percent": 0.0}]
    assert (await run("sleep", {"signals": Signals(cancelled=True)}, seconds=9)).error_message == "cancelled"
    assert (await run("sleep", {"signals": Signals(shutdown_requested=True)}, seconds=9)).is_interrupted


async def test_fail() -> None:
    failed = await run("fail", message="no", retryable=False)
    assert (failed.error_message, failed.retryable) == ("no", False)
    assert (await run("fail")).retryable


@pytest.mark.parametrize(("rate", "fails"), [(0, 0), (1, 200)])
async def test_flaky_echo_never_and_always(rate: float, fails: int) -> None:
    results = [await run("flaky_echo", failure_rate=rate) for _ in range(200)]
    assert sum(result.error_message is not None for result in results) == fails


async def test_flaky_echo_by_its_rate_and_by_its_seed() -> None:
    results = [await run("flaky_echo") for _ in range(1000)]
    assert 100 < sum(result.error_message is not None for result in results) < 300

    async def seeded(attempt: int) -> bool:
        return (await run("flaky_echo", {"retry_count": attempt}, failure_rate=0.5, seed=7)).error_message is None

    once = [await seeded(attempt) for attempt in range(50)]
    assert once == [await seeded(attempt) for attempt in range(50)]
    assert len(set(once)) == 2


async def test_multi_phase_resumes_after_the_last_phase() -> None:
    saved = Saved()
    changes = {"checkpoint": saved}
    assert (await run("multi_phase", changes, phases=2, seconds_per_phase=0)).output == {
        "phases": 2,
        "resumed_from": None,
    }
    assert saved.last == Checkpoint("phase_2", {"completed": 2})
    assert (await run("multi_phase", changes, phases=3, seconds_per_phase=0)).output == {
        "phases": 3,
        "resumed_from": "phase_2",
    }
    stopping = {**changes, "signals": Signals(shutdown_requested=True)}
    assert (await run("multi_phase", stopping, phases=9, seconds_per_phase=0)).is_interrupted


@pytest.mark.parametrize("name", ["size_mb", "file_size_mb"])
@pytest.mark.parametrize(("size", "is_large"), [(100, False), (100.5, True)])
async def test_size_check(name: str, size: float, is_large: bool) -> None:
    assert (await run("size_check", **{name: size})).output == {
        "size_mb": size,
        "file_size_mb": size,
        "is_large": is_large,
    }


async def test_chunk_processor() -> None:
    assert (await run("chunk_processor", chunk=[1, 2], index=4)).output == {
        "chunk": [1, 2],
        "index": 4,
        "processed": True,
    }
