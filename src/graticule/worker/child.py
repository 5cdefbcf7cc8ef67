"""The child process that runs `def` handlers, one after the other, for a worker that it ends with.

The handler runs in the main thread. A second thread reads what the worker sends, so that a handler that
polls `ctx.cancelled` sees it at once; when the worker is gone the process ends.
"""

import faulthandler
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.log_format import LogFormat
from graticule.core.trace_context import continued, parse_traceparent
from graticule.embedded.parent_death import end_with
from graticule.handlers.context import Checkpoint, CheckpointNotSaved, ProcessContext, Signals
from graticule.handlers.registry import RegisteredHandler, find_handler
from graticule.logs import bound, configure_logging, get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.place import StoragePlace
from graticule.telemetry import is_tracing
from graticule.telemetry.recording import RecordedSpan, RecordingTracer
from graticule.telemetry.spans import record_with
from graticule.worker.child_identity import LentCredential
from graticule.worker.child_staging import RelayedStaging
from graticule.worker.frames import receive_frame, send_frame
from graticule.worker.outcome import (
    InvalidParams,
    NotJson,
    Outcome,
    document,
    failed,
    outcome_of,
    outcome_of_error,
    trace_of,
    validated,
)

PROGRESS_SECONDS: Final = 0.25  # the worker throttles further
_MEBIBYTE: Final = 1024 * 1024
MAX_KEPT_BYTES: Final = 512 * _MEBIBYTE  # from one task to the next, which may take its own limit beyond that

_log = get_logger("graticule.worker.child")  # not "__main__", which it is


@dataclass(frozen=True, slots=True)
class Order:
    """A task to run, as the worker sent it."""

    header: dict[str, Any]
    params: dict[str, JsonValue]


class Link:
    """The child's end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.signals = Signals()
        self._connection = connection
        self._replies: queue.SimpleQueue[tuple[dict[str, Any], bytes]] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._task_id: str | None = None

    def send(self, header: dict[str, Any], body: bytes | memoryview = b"") -> None:
        """Send a frame."""
        with self._sending:
            send_frame(self._connection, header, body)

    def ask(self, header: dict[str, Any], body: bytes | memoryview = b"") -> tuple[dict[str, Any], bytes]:
        """Send a frame and wait for the answer; of two threads that ask, one waits for the other's."""
        with self._asking:
            self.send(header, body)
            return self._replies.get()

    def ask_for_task(self, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Ask for something that the task at hand needs."""
        return self.ask({**header, "task_id": self._task_id})

    def send_span(self, recorded: RecordedSpan) -> None:
        """Hand a span on to the worker at once: this process may not live to do so later."""
        self.send({"kind": "span", "task_id": self._task_id, **asdict(recorded)})

    def listen(self) -> None:
        """Take what the worker sends, in a thread of its own; the end of the worker is the end of everything."""
        try:
            while True:
                self._take(*receive_frame(self._connection))
        except Exception:
            os._exit(0)

    def _take(self, header: dict[str, Any], body: bytes) -> None:
        if header["kind"] == "run":
            self._task_id = header["task_id"]
            self.signals = Signals(header["cancelled"], header["shutdown_requested"])
            self.orders.put(Order(header, json_codec.decode(body)))
        elif header["kind"] == "answer":
            self._replies.put((header, body))
        elif header["task_id"] == self._task_id:
            self.signals.cancelled = header["cancelled"]
            self.signals.shutdown_requested = header["shutdown_requested"]


class TaskLink:
    """The link as one task uses it: each frame says which task it belongs to."""

    def __init__(self, link: Link, task_id: str) -> None:
        self._link = link
        self._task_id = task_id

    def send(self, header: dict[str, Any], body: bytes | memoryview = b"") -> None:
        """Send a frame."""
        self._link.send({**header, "task_id": self._task_id}, body)

    def ask(self, header: dict[str, Any], body: bytes | memoryview = b"") -> tuple[dict[str, Any], bytes]:
        """Send a frame and wait for the answer."""
        return self._link.ask({**header, "task_id": self._task_id}, body)


class RelayedCheckpoints:
    """Checkpoints by way of the worker, which holds the lease."""

    def __init__(self, link: TaskLink) -> None:
        self._link = link

    def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""
        header, body = self._link.ask({"kind": "load"})
        if header.get("error"):
            raise CheckpointNotSaved(header["error"])
        found = json_codec.decode(body)
        return None if found is None else Checkpoint(found["phase"], found["data"], tuple(found["artifacts"]))

    def save(self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()) -> None:
        """Keep a phase, in place of the one before; `artifacts` are the stored files that it relies on."""
        try:
            body = document({"phase": phase, "data": dict(data or {}), "artifacts": list(artifacts)})
        except NotJson as error:
            raise CheckpointNotSaved(f"The data of the phase {phase!r} is not JSON: {error}.") from None
        header, _ = self._link.ask({"kind": "save"}, body)
        if header.get("error"):
            raise CheckpointNotSaved(header["error"])


class Progress:
    """Sends what a handler tells of its progress, a few times a second at most, and keeps the last."""

    def __init__(self, link: TaskLink) -> None:
        self._link = link
        self._sent = 0.0
        self.last: dict[str, JsonValue] | None = None

    def __call__(self, told: dict[str, JsonValue]) -> None:
        """Take what the handler told."""
        self.last = told
        if time.monotonic() - self._sent >= PROGRESS_SECONDS:
            self._sent, self.last = time.monotonic(), None
            self._link.send({"kind": "progress", "progress": told})


class Child:
    """Runs the tasks that come over the link."""

    def __init__(self, link: Link, storage: BlockingStorage) -> None:
        self._link = link
        self._storage = storage

    def serve(self) -> None:
        """Run tasks until the worker ends, or until this process is worn out."""
        while True:
            order = self._link.orders.get()
            link = TaskLink(self._link, order.header["task_id"])
            progress = Progress(link)
            with bound(**{name: order.header[name] for name in ("task_id", "job_id", "node_id")}), self._trace(order):
                outcome, is_worn = self._run(order, link, progress)
            is_worn = is_worn or _kept_bytes() > MAX_KEPT_BYTES
            link.send(_result(outcome, progress.last, is_worn), outcome.output or b"")
            if is_worn:
                return

    def _trace(self, order: Order) -> AbstractContextManager[None]:
        """Be where the worker is in the trace: below its span, if it records one."""
        place = parse_traceparent(order.header["traceparent"])
        return continued(place and replace(place, is_ours=is_tracing()))

    def _run(self, order: Order, link: TaskLink, progress: Progress) -> tuple[Outcome, bool]:
        try:
            handler = find_handler(order.header["handler"], order.header["module"])
            if handler is None:
                return failed(f"The child process knows no handler {order.header['handler']!r}."), False
            self._storage.read_for(order.header["timeout_seconds"])  # a source may be read until the task's end
            context = self._context(order, handler, link, progress)
            with memory_limit(handler.memory_limit_mb):
                return outcome_of(handler.function(context)), False
        except InvalidParams as error:
            return failed(str(error), retryable=False), False
        except BaseException as error:
            _log.warning("the handler raised", handler=order.header["handler"], exception=trace_of(error))
            # Memory that ran out once is in pieces; the next task gets a fresh process.
            return outcome_of_error(error), isinstance(error, MemoryError)

    def _context(self, order: Order, handler: RegisteredHandler, link: TaskLink, progress: Progress) -> ProcessContext:
        header = order.header
        return ProcessContext(
            task_id=header["task_id"],
            job_id=header["job_id"],
            node_id=header["node_id"],
            retry_count=header["retry_count"],
            traceparent=header["traceparent"],
            delivery_count=header["delivery_count"],
            params=validated(handler.params, order.params),
            logger=get_logger(f"graticule.handlers.{handler.name}"),
            signals=self._link.signals,
            report_progress=progress,
            storage=self._storage.limited_to(header["sources"]),
            checkpoint=RelayedCheckpoints(link),
            staging=RelayedStaging(link),
        )


@contextmanager
def memory_limit(megabytes: int | None) -> Iterator[None]:
    """Let the process take no more than this beyond what it has now."""
    if megabytes is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + megabytes * _MEBIBYTE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    return _pages()[0] * resource.getpagesize()


def _kept_bytes() -> int:
    """Return how much memory the process has for itself, without what it has mapped of files."""
    _, resident, shared, *_ = _pages()
    return (resident - shared) * resource.getpagesize()


def _pages() -> list[int]:
    return [int(count) for count in Path("/proc/self/statm").read_text(encoding="ascii").split()]


def _result(outcome: Outcome, progress: dict[str, JsonValue] | None, is_worn: bool) -> dict[str, Any]:
    return {
        "kind": "result",
        "status": outcome.status.value,
        "has_output": outcome.output is not None,
        "error_message": outcome.error_message,
        "retryable": outcome.retryable,
        "metrics": outcome.metrics,
        "is_interrupted": outcome.is_interrupted,
        "progress": progress,
        "is_worn": is_worn,
    }


def main() -> None:
    """Serve the worker whose socket and log were handed over by number."""
    connection, log, worker = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    end_with(worker, signal.SIGKILL)
    for descriptor in (connection, log):
        os.set_inheritable(descriptor, False)  # not for the programs that a handler starts
    faulthandler.enable()
    with socket.socket(fileno=connection) as opened, open(log, "w", encoding="utf-8") as stream:
        hello, _ = receive_frame(opened)
        sys.path[:] = hello["path"]
        configure_logging(hello["log_level"], LogFormat(hello["log_format"]), "worker", stream)
        link = Link(opened)
        if hello["is_tracing"]:
            record_with(RecordingTracer(link.send_span))
        link.send({"kind": "ready"})
        threading.Thread(target=link.listen, daemon=True).start()
        place = StoragePlace.model_validate(hello["storage"])
        lent = LentCredential(link.ask_for_task) if place.needs_identity else None
        with BlockingStorage(place.opened(lent=lent)) as storage:
            Child(link, storage).serve()


if __name__ == "__main__":
    main()
