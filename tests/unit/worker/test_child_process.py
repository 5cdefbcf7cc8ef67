"""The worker's side of the link to a child process."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import Checkpoint, ProcessContext
from graticule.handlers.registry import BUILT_IN, handlers
from graticule.messaging.protocol import TaskMessage
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.worker import child as child_module
from graticule.worker.child import Child, Link, Order, Progress, TaskLink
from graticule.worker.frames import encoded, receive_frame
from graticule.worker.pool import ChildProcess, _order, child_environment
from graticule.worker.run import Run

ASKS = 50
# A child has no settings, and their secrets are not for it; nor does it export the spans that it records.
NEEDLESS = {"graticule.config", "pydantic_settings", "opentelemetry"}


def test_a_child_does_without_the_settings_and_without_opentelemetry() -> None:
    modules = ", ".join(("sys", "graticule.worker.child", *BUILT_IN))
    code = f"import {modules}; print(sorted({NEEDLESS} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"


def test_arrow_takes_little_of_the_memory_that_a_handler_may_have() -> None:
    """What it only reserves counts against the limit of a task that is the first in its process."""
    code = "from graticule.worker.child import _address_space as taken; import pyarrow; before = taken()"
    told = [sys.executable, "-c", f"{code}; pyarrow.array(range(10)); print(taken() - before)"]
    printed = subprocess.run(told, env=child_environment(), capture_output=True, text=True, check=True).stdout
    assert int(printed) < 400_000_000


class Checkpoints:
    """Gives a large checkpoint, and counts how often."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.count = 0

    async def load(self) -> Checkpoint:
        self.count += 1
        self.asked.set()
        return Checkpoint("a", {"text": "x" * 1_000_000}, ())


@pytest.fixture
async def linked(tmp_path: Path) -> AsyncIterator[tuple[ChildProcess, socket.socket]]:
    """Give a child process of which the test is the other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    process = await asyncio.create_subprocess_exec("sleep", "60", stdout=PIPE, start_new_session=True)
    child = ChildProcess(process, *await asyncio.open_connection(sock=ours), tmp_path)
    yield child, theirs
    theirs.close()
    await child.kill()


async def test_what_a_child_left_in_files_goes_with_it(
    linked: tuple[ChildProcess, socket.socket], tmp_path: Path
) -> None:
    (tmp_path / "half").write_bytes(b"of an upload")
    await linked[0].kill()
    assert not await asyncio.to_thread(tmp_path.exists)


class SignedStorage(LocalStorage):
    """A storage that remembers for how long what it names can be read."""

    seconds = 0

    def read_for(self, seconds: int) -> None:
        self.seconds = seconds


def test_a_source_can_be_read_for_as_long_as_its_task_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "reads", {}, "q", timeout_seconds=86_400)
    storage, seen = SignedStorage(tmp_path), []

    def reads(_: ProcessContext) -> dict[str, Any]:
        seen.append(storage.seconds)
        return {}

    handler = replace(handlers()["echo"], name="reads", function=reads)
    monkeypatch.setattr(child_module, "find_handler", lambda *_: handler)
    ours, theirs = socket.socketpair()
    with ours, theirs, BlockingStorage(storage) as blocking:
        link = Link(ours)
        order, of_task = Order(_order(Run(message, None, in_process=True), handler), {}), TaskLink(link, "t")
        outcome, _ = Child(link, blocking)._run(order, of_task, Progress(of_task))
    assert (outcome.error_message, seen) == (None, [86_400])


def test_a_child_that_keeps_much_memory_ends_after_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next task may take its limit beyond what its process has: it gets a fresh one."""
    kept: list[bytes] = []

    def keeps(_: ProcessContext) -> dict[str, Any]:
        if kept:
            raise MemoryError
        kept.append(b"x" * 64_000_000)
        return {}

    handler = replace(handlers()["echo"], name="keeps", function=keeps)
    monkeypatch.setattr(child_module, "find_handler", lambda *_: handler)
    monkeypatch.setattr(child_module, "MAX_KEPT_BYTES", child_module._kept_bytes() + 48_000_000)
    run = Run(TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "keeps", {}, "q"), None, in_process=True)
    ours, theirs = socket.socketpair()
    with ours, theirs, BlockingStorage(LocalStorage(tmp_path)) as blocking:
        link = Link(ours)
        for _ in range(2):
            link.orders.put(Order(_order(run, handler), {}))
        Child(link, blocking).serve()
        told, _ = receive_frame(theirs)
    assert (told["status"], told["is_worn"], link.orders.qsize()) == ("completed", True, 1)


async def test_a_child_that_reads_no_answer_is_given_no_more(linked: tuple[ChildProcess, socket.socket]) -> None:
    child, theirs = linked
    run = Run(TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "echo", {}, "q"), None, in_process=True)
    checkpoints: Any = Checkpoints()
    nothing: Any = None
    running = asyncio.create_task(child.execute(run, handlers()["echo"], checkpoints, nothing))
    theirs.send(encoded({"kind": "load", "task_id": "t"}) * ASKS)
    await checkpoints.asked.wait()
    await asyncio.wait({running}, timeout=0.2)
    assert checkpoints.count == 1, "answers that nobody reads stay in the memory of the worker"
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    run.over()
