"""The pool of child processes in which `def` handlers run.

A child is started when one is needed, used for one task at a time and kept for the next. One that crashed or
had to be killed is replaced; what it was running has failed that attempt, and nothing else is harmed.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graticule.config import secret_variables
from graticule.core import json_codec
from graticule.core.errors import GraticuleError
from graticule.core.log_format import LogFormat
from graticule.core.trace_context import current_traceparent
from graticule.handlers.context import Checkpoint, Checkpoints
from graticule.handlers.registry import RegisteredHandler
from graticule.identity import IDENTITY_VARIABLES, access_token
from graticule.logs import get_logger
from graticule.storage.options import AZURE_SCOPE
from graticule.storage.place import StoragePlace
from graticule.storage.temporary_folders import new_folder, remove_folder, remove_lost_folders
from graticule.telemetry import adopt, is_tracing
from graticule.worker.child_frames import ProgressFrame, ResultFrame, SavedPhase, SpanFrame, json_object
from graticule.worker.frames import BrokenFrame, encoded, read_frame
from graticule.worker.outcome import Outcome, failed
from graticule.worker.process_output import OutputLog
from graticule.worker.run import Run
from graticule.worker.staging import TaskStaging

START_SECONDS: Final = 60
# A child is one of as many as there are processors: libraries of linear algebra must not start as many threads each.
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
FEW_THREADS: Final = {"TOKIO_WORKER_THREADS": "2"}  # obstore's: each takes of the memory that a handler may have
SMALL_RESERVE: Final = {"MIMALLOC_ARENA_RESERVE": "16MiB"}  # Arrow's: it takes 1 GiB of the same at its first array
TASKS_PER_CHILD: Final = 500  # then a fresh one: libraries leak
SPANS_PER_TASK: Final = 500
_LAST_WORDS_SECONDS: Final = 0.5  # what a process sent before its end arrives within this

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What a child process is told when it starts."""

    storage: StoragePlace
    log_level: str = "INFO"
    log_format: LogFormat = LogFormat.CONSOLE


class ChildEnded(Exception):
    """The process ended before it gave a result."""


class ProcessPool:
    """Runs tasks in up to `size` child processes, and in one more while long tasks hold them all."""

    def __init__(self, size: int, settings: ChildSettings) -> None:
        self.size = size
        self._settings = settings
        self._free = asyncio.Semaphore(size + 1)
        self._at_work = 0
        self._idle: list[ChildProcess] = []
        self._has_started_one = False

    async def run(
        self, run: Run, handler: RegisteredHandler, checkpoints: Checkpoints, staging: TaskStaging
    ) -> Outcome:
        """Run a task; when this is cancelled, its process is killed."""
        async with self._free, staging:  # what the process has left open is undone when it has ended
            try:
                child = await self._child()
            except (OSError, ChildEnded) as error:
                return failed(f"No process could be started for the handler: {error}.")
            self._at_work += 1
            try:
                outcome = await child.execute(run, handler, checkpoints, staging)
            except (ChildEnded, BrokenFrame) as error:
                return failed(await child.obituary(error))
            finally:
                self._at_work -= 1
                await self._keep_or_end(child)
        return outcome

    async def close(self) -> None:
        """End the processes that wait for work; those at work end when their run is cancelled."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.kill() for child in idle))

    async def _child(self) -> "ChildProcess":
        """Give a process that waits for work, or start one; those that ended while they waited are passed over."""
        while self._idle:
            child = self._idle.pop()
            if child.is_fit:
                return child
            await asyncio.shield(child.kill())
        if not self._has_started_one:
            self._has_started_one = True
            await asyncio.to_thread(remove_lost_folders)
        return await ChildProcess.start(self._settings)

    async def _keep_or_end(self, child: "ChildProcess") -> None:
        if child.is_fit and self._at_work + len(self._idle) < self.size:
            self._idle.append(child)
        else:
            await asyncio.shield(child.kill())


class ChildProcess:
    """One child process, seen from the worker."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, folder: Path
    ) -> None:
        self._lends_identity = False
        self._process = process
        self._folder = folder
        self._reader = reader
        self._writer = writer
        self._log = OutputLog()
        self._tasks_left = TASKS_PER_CHILD
        self._spans_left = 0
        self._is_busy = False
        self._coming: asyncio.Task[tuple[dict[str, Any], bytes]] | None = None  # the next frame
        self._printed = asyncio.create_task(self._log.drain(_output_of(process)))
        self._exit = asyncio.create_task(process.wait())
        self._exit.add_done_callback(self._end_of_stream)

    @classmethod
    async def start(cls, settings: ChildSettings) -> "ChildProcess":
        """Start a process and wait until it can take a task."""
        folder = new_folder()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await _spawn(theirs.fileno(), folder)
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            remove_folder(folder)
            raise
        child = cls(process, reader, writer, folder)
        try:
            async with asyncio.timeout(START_SECONDS):
                await child._greet(settings)
        except BaseException as error:
            await asyncio.shield(child.kill())
            if isinstance(error, TimeoutError | BrokenFrame):
                raise ChildEnded(f"it was not ready after {START_SECONDS} s") from None
            raise
        return child

    @property
    def is_fit(self) -> bool:
        """Whether it can take another task: it lives, and has said nothing since the last one ended."""
        is_quiet = self._coming is None or not self._coming.done()
        return not self._is_busy and self._tasks_left > 0 and not self._exit.done() and is_quiet

    async def execute(
        self, run: Run, handler: RegisteredHandler, checkpoints: Checkpoints, staging: TaskStaging
    ) -> Outcome:
        """Run one task and answer what its handler asks meanwhile."""
        self._is_busy = True
        self._tasks_left -= 1
        self._spans_left = SPANS_PER_TASK
        self._log.begin(run.message.task_id)
        self._send(_order(run, handler), json_codec.encode(run.message.params))
        run.begin(run.message.timeout_seconds)
        run.on_signal = lambda: self._send(_signals(run))
        while True:
            header, body = await self._receive()
            if header.get("task_id") != run.message.task_id:
                raise BrokenFrame
            if header["kind"] == "result":
                return self._outcome(run, ResultFrame.of(header), body)
            if header["kind"] == "staging":
                await self._answer(staging.answer(header, body))
            else:
                await self._serve(run, checkpoints, header, body)

    async def obituary(self, error: Exception) -> str:
        """Tell how the process ended, or why it has to."""
        if isinstance(error, BrokenFrame):
            return "The handler's process sent something that is not a result; it was ended."
        await asyncio.wait({self._exit}, timeout=_LAST_WORDS_SECONDS)
        if not self._exit.done():
            return "The handler's process closed its connection to the worker; it was ended."
        status = self._exit.result()
        if status >= 0:
            return f"The handler's process ended with exit status {status} before it gave a result."
        name = signal.Signals(-status).name
        hint = " (out of memory?)" if -status == signal.SIGKILL else ""
        return f"The handler's process crashed: it was ended by {name}{hint}."

    async def kill(self) -> None:
        """End the process and all that it has started, and wait for that; what it left in files goes with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._exit
        await asyncio.to_thread(remove_folder, self._folder)
        if self._coming is not None:
            self._coming.cancel()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        _, waiting = await asyncio.wait({self._printed}, timeout=_LAST_WORDS_SECONDS)
        for task in waiting:  # something that the handler has started elsewhere keeps the pipe open
            task.cancel()

    async def _greet(self, settings: ChildSettings) -> None:
        self._lends_identity = settings.storage.needs_identity
        hello = {
            "kind": "hello",
            "path": sys.path,
            "storage": settings.storage.told(),
            "log_level": settings.log_level,
            "log_format": settings.log_format.value,
            "is_tracing": is_tracing(),
        }
        self._send(hello)
        await self._receive()

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        if not self._writer.is_closing():
            self._writer.write(encoded(header, body))

    async def _receive(self) -> tuple[dict[str, Any], bytes]:
        coming, self._coming = self._coming or self._next_frame(), None
        try:
            return await coming
        except (asyncio.IncompleteReadError, OSError):
            raise ChildEnded("it ended while it started") from None

    def _next_frame(self) -> "asyncio.Task[tuple[dict[str, Any], bytes]]":
        coming = asyncio.create_task(read_frame(self._reader))
        coming.add_done_callback(lambda read: read.cancelled() or read.exception())  # nobody may ask for it
        return coming

    def _end_of_stream(self, _: "asyncio.Task[int]") -> None:
        """Read no further once the process is gone: what it has started may hold the socket open."""
        asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, self._reader.feed_eof)

    async def _serve(self, run: Run, checkpoints: Checkpoints, header: dict[str, Any], body: bytes) -> None:
        if header["kind"] == "progress":
            run.note_progress(ProgressFrame.of(header).plain())
        elif header["kind"] == "span" and is_tracing():
            self._note_span(SpanFrame.of(header))
        elif header["kind"] == "load":
            await self._answer(_loaded(checkpoints))
        elif header["kind"] == "save":
            await self._answer(_saved(checkpoints, body))
        elif header["kind"] == "token" and self._lends_identity:
            await self._answer(asyncio.to_thread(_lent_token))
        else:
            raise BrokenFrame

    def _note_span(self, told: SpanFrame) -> None:
        """Make a span of the child's part of the trace; a handler that makes very many loses some."""
        self._spans_left -= 1
        if self._spans_left >= 0:
            adopt(told.recorded())

    async def _answer(self, asked: Any) -> None:
        try:
            self._send({"kind": "answer"}, await asked)
        except GraticuleError as error:
            self._send({"kind": "answer", "error": str(error), "code": error.code})
        await self._until_read()

    async def _until_read(self) -> None:
        """Wait until the child takes its answers: what it only asks for would pile up here."""
        try:
            await self._writer.drain()
        except OSError:
            raise ChildEnded("it closed its connection") from None

    def _outcome(self, run: Run, told: ResultFrame, body: bytes) -> Outcome:
        """Give how the task ended; only a child that has told it well is free for the next."""
        outcome = told.outcome(body)
        if (progress := told.last_progress()) is not None:
            run.note_progress(progress)
        run.on_signal = None
        if told.is_worn:
            self._tasks_left = 0
        self._is_busy = False
        self._coming = self._next_frame()
        return outcome


async def _spawn(connection: int, folder: Path) -> Process:
    """Start a child in a session of its own: Ctrl-C is for the worker, and a kill takes its programs along.

    It sees to its end with the worker itself: what Python and its libraries would do between fork and exec, for code of
    ours to run there, is more than a process of many threads can stand.
    """
    log = os.dup(2)  # what the child itself has to say goes where the worker's lines go
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "graticule.worker.child",
            str(connection),
            str(log),
            str(os.getpid()),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            pass_fds=(connection, log),
            start_new_session=True,
            env={**child_environment(), "TMPDIR": str(folder)},
        )
    finally:
        os.close(log)


def child_environment() -> dict[str, str]:
    """Give a child the worker's environment without our secrets and our identity: it works on partners' bytes.

    It exports no traces either, for which there may be keys.
    """
    secrets = secret_variables() | IDENTITY_VARIABLES
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() not in secrets and not name.upper().startswith("OTEL_")
    }
    return kept | ONE_THREAD | FEW_THREADS | SMALL_RESERVE


def _output_of(process: Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise RuntimeError("The process was started without a pipe.")
    return process.stdout


def _lent_token() -> bytes:
    """Give a token for the storage: it lets the child do no more there than it is to do."""
    found = access_token(AZURE_SCOPE)
    return json_codec.encode({"token": found.token, "expires_on": found.expires_on})


async def _loaded(checkpoints: Checkpoints) -> bytes:
    return json_codec.encode(_plain(await checkpoints.load()))


async def _saved(checkpoints: Checkpoints, body: bytes) -> bytes:
    given = SavedPhase.of(json_object(body))
    await checkpoints.save(given.phase, given.data, given.artifacts)
    return b"null"


def _plain(found: Checkpoint | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"phase": found.phase, "data": found.data, "artifacts": list(found.artifacts)}


def _order(run: Run, handler: RegisteredHandler) -> dict[str, Any]:
    message = run.message
    return {
        **_signals(run),
        "kind": "run",
        "job_id": message.job_id,
        "node_id": message.node_id,
        "retry_count": message.retry_count,
        "traceparent": current_traceparent(),
        "delivery_count": message.delivery_count,
        "timeout_seconds": message.timeout_seconds,
        "sources": message.sources,
        "handler": handler.name,
        "module": handler.module,
    }


def _signals(run: Run) -> dict[str, Any]:
    return {
        "kind": "signals",
        "task_id": run.message.task_id,
        "cancelled": run.signals.cancelled,
        "shutdown_requested": run.signals.shutdown_requested,
    }
