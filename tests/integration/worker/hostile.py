"""Handlers that do what handlers should not do, and some that a test needs."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graticule.handlers import HandlerContext, HandlerResult, ProcessContext, register_handler
from graticule.telemetry import span

MANY: dict[str, Any] = {"names": ["a"]} | {f"a{number}_{'x' * 200}": 10**30 for number in range(100)}
RUBBISH = bytes(range(256)) * 64 + b"\n\xff\xfe\x00" + b"x" * 100_000


async def until(question: Callable[[], bool]) -> None:
    for _ in range(3000):
        if question():
            return
        await asyncio.sleep(0.02)


def write(ctx: HandlerContext | ProcessContext, text: str) -> None:
    Path(ctx.params["file"]).write_text(text)


@register_handler("test.segfault")
def segfault(ctx: ProcessContext) -> None:
    ctypes.string_at(0)


@register_handler("test.abort")
def abort(ctx: ProcessContext) -> None:
    os.abort()


@register_handler("test.killed")
def killed(ctx: ProcessContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@register_handler("test.traced")
def traced(ctx: ProcessContext) -> str | None:
    with span("gdal.open", path="silver/a.tif"), span("gdal.read", is_odd=float("nan"), **MANY):
        ctx.logger.warning("inside")
    if ctx.params.get("crash"):
        os.abort()
    return ctx.traceparent


@register_handler("test.exit")
def exits(ctx: ProcessContext) -> None:
    os._exit(int(ctx.params.get("status", 3)))


@register_handler("test.sys_exit")
def calls_sys_exit(ctx: ProcessContext) -> None:
    sys.exit(0)


@register_handler("test.async_sys_exit")
async def calls_sys_exit_in_the_loop(ctx: HandlerContext) -> None:
    sys.exit(0)


@register_handler("test.allocate", memory_limit_mb=200)
def allocates(ctx: ProcessContext) -> None:
    kept = []
    while True:
        kept.append(bytearray(10_000_000))


@register_handler("test.within_limit", memory_limit_mb=200)
def within_limit(ctx: ProcessContext) -> int:
    return len(bytearray(50_000_000))


@register_handler("test.never_returns")
def never_returns(ctx: ProcessContext) -> None:
    Path(ctx.params["file"]).write_text(str(os.getpid()))
    while True:
        pass


@register_handler("test.never_returns_async")
async def never_returns_async(ctx: HandlerContext) -> None:
    await asyncio.Event().wait()


@register_handler("test.stubborn")
async def stubborn(ctx: HandlerContext) -> str:
    deadline = time.monotonic() + float(ctx.params["seconds"])
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            ctx.logger.info("not me")
    return "late"


@register_handler("test.cancels_itself")
async def cancels_itself(ctx: HandlerContext) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@register_handler("test.rubbish")
def prints_rubbish(ctx: ProcessContext) -> HandlerResult:
    for _ in range(50):
        os.write(1, RUBBISH)
        os.write(2, RUBBISH)
    return HandlerResult.success({"printed": True}) if ctx.params.get("succeed") else HandlerResult.failure("rubbish")


@register_handler("test.garbage_on_the_link")
def garbage_on_the_link(ctx: ProcessContext) -> None:
    for descriptor in range(3, 100):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, RUBBISH)
    time.sleep(60)


@register_handler("test.closes_everything")
def closes_everything(ctx: ProcessContext) -> None:
    for descriptor in range(3, 100):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as found:
            found.shutdown(socket.SHUT_WR)
    time.sleep(60)


@register_handler("test.huge_message")
def huge_message(ctx: ProcessContext) -> None:
    raise ValueError("\0\ud800" + "x" * 20_000_000)


@register_handler("test.async_huge_message")
async def async_huge_message(ctx: HandlerContext) -> None:
    raise ValueError("\0\ud800" + "x" * 20_000_000)


@register_handler("test.recursion")
def recursion(ctx: ProcessContext) -> Any:
    return recursion(ctx)


@register_handler("test.async_recursion")
async def async_recursion(ctx: HandlerContext) -> Any:
    return await async_recursion(ctx)


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@register_handler("test.unshowable")
async def unshowable(ctx: HandlerContext) -> None:
    raise Unshowable


@register_handler("test.not_json")
async def not_json(ctx: HandlerContext) -> Any:
    values: dict[str, Any] = {
        "object": object(),
        "nan": {"a": [float("nan"), None]},
        "nul": {"a": "b\0"},
        "surrogate": "\ud800",
        "huge_integer": 10**400,
        "key": {1: 2},
        "bytes": b"x",
        "coroutine_like": iter([1]),
    }
    return values[ctx.params["which"]]


@register_handler("test.not_json_process")
def not_json_process(ctx: ProcessContext) -> Any:
    return {"a": object()}


@register_handler("test.large_output")
async def large_output(ctx: HandlerContext) -> str:
    return "x" * int(ctx.params["size"])


@register_handler("test.large_output_process")
def large_output_process(ctx: ProcessContext) -> str:
    return "x" * int(ctx.params["size"])


@register_handler("test.null")
async def gives_nothing(ctx: HandlerContext) -> None:
    return None


@register_handler("test.plain_value")
def plain_value(ctx: ProcessContext) -> Any:
    return {"params": ctx.params, "pid": os.getpid(), "main": threading.current_thread() is threading.main_thread()}


class Declared(BaseModel):
    count: int
    name: str


@register_handler("test.declared", params=Declared)
async def declared(ctx: HandlerContext) -> Any:
    return {"count": ctx.params.count}


@register_handler("test.declared_process", params=Declared)
def declared_process(ctx: ProcessContext) -> Any:
    return {"count": ctx.params.count}


@register_handler("test.waits_for_cancel")
async def waits_for_cancel(ctx: HandlerContext) -> Any:
    await until(lambda: ctx.cancelled)
    write(ctx, "saw it")
    return "ended"


@register_handler("test.waits_for_cancel_process")
def waits_for_cancel_process(ctx: ProcessContext) -> Any:
    Path(ctx.params["file"]).write_text("began")
    while not ctx.cancelled:
        time.sleep(0.02)
    Path(ctx.params["file"]).write_text("saw it")
    return "ended"


@register_handler("test.waits_for_file")
async def waits_for_file(ctx: HandlerContext) -> None:
    await until(Path(ctx.params["file"]).exists)


@register_handler("test.waits_for_file_process")
def waits_for_file_process(ctx: ProcessContext) -> None:
    while not Path(ctx.params["file"]).exists():
        time.sleep(0.02)


@register_handler("test.progress")
async def reports_progress(ctx: HandlerContext) -> Any:
    began, number = time.monotonic(), 0
    while time.monotonic() - began < float(ctx.params["seconds"]):
        number += 1
        ctx.progress(number, 1_000_000, "counting")
        await asyncio.sleep(0.001)
    return number


@register_handler("test.progress_process")
def reports_progress_process(ctx: ProcessContext) -> Any:
    began, number = time.monotonic(), 0
    while time.monotonic() - began < float(ctx.params["seconds"]):
        for _ in range(100):
            number += 1
            ctx.progress(number, 1_000_000, "counting")
        time.sleep(0.005)  # some ten thousand calls a second are enough, and need no processor of their own
    return number


@register_handler("test.checkpoint")
async def checkpoint(ctx: HandlerContext) -> Any:
    found = await ctx.checkpoint.load()
    if found is None:
        await ctx.storage.put("scratch/artifact.bin", b"1")
        await ctx.checkpoint.save("first", {"n": 1}, ["scratch/artifact.bin"])
        return HandlerResult.failure("after the first phase")
    return {"phase": found.phase, "data": found.data, "artifacts": list(found.artifacts)}


@register_handler("test.checkpoint_process")
def checkpoint_process(ctx: ProcessContext) -> Any:
    found = ctx.checkpoint.load()
    if found is None:
        ctx.storage.put("scratch/artifact.bin", b"1")
        assert ctx.storage.exists("scratch/artifact.bin")
        assert ctx.storage.get("scratch/artifact.bin") == b"1"
        ctx.checkpoint.save("first", {"n": 1}, ["scratch/artifact.bin"])
        os._exit(1)
    return {"phase": found.phase, "data": found.data, "artifacts": list(found.artifacts)}


@register_handler("test.bad_checkpoint")
def bad_checkpoint(ctx: ProcessContext) -> None:
    ctx.checkpoint.save("x" * 1000)


@register_handler("test.leaves_a_program")
def leaves_a_program(ctx: ProcessContext) -> None:
    started = subprocess.Popen(["sleep", "60"])
    Path(ctx.params["file"]).write_text(str(started.pid))
    time.sleep(60)


@register_handler("test.interrupted_for_nothing")
async def interrupted_for_nothing(ctx: HandlerContext) -> HandlerResult:
    return HandlerResult.interrupted()


@register_handler("test.saves_at_shutdown")
async def saves_at_shutdown(ctx: HandlerContext) -> HandlerResult:
    await until(lambda: ctx.shutdown_requested)
    await ctx.checkpoint.save("at_shutdown")
    return HandlerResult.interrupted()


def copied(*values: int) -> bytes:
    """Write rows of one number each, as a binary COPY reads them."""
    rows = b"".join(struct.pack("!hiq", 1, 8, value) for value in values)
    return b"PGCOPY\n\xff\r\n\x00" + bytes(8) + rows + b"\xff\xff"


@register_handler("test.sends_a_frame")
def sends_a_frame(ctx: ProcessContext) -> None:
    """Say something to the worker that is not what a child says."""
    staging: Any = ctx.staging
    staging._link._link.send({"task_id": ctx.task_id, **ctx.params["frame"]}, b"{}")
    time.sleep(60)


@register_handler("test.talks_on")
def talks_on(ctx: ProcessContext) -> int:
    """End, and say something more when it is at rest."""
    file = Path(ctx.params["file"])

    def talk() -> None:
        while not file.exists():
            time.sleep(0.01)
        ctx.progress(1)
        file.unlink()

    threading.Thread(target=talk, daemon=True).start()
    return os.getpid()


@register_handler("test.loads")
def loads(ctx: ProcessContext) -> Any:
    """Load a chunk, and say so in a file before what comes then."""
    assert ctx.staging is not None
    given = ctx.params
    if (done := ctx.staging.loaded(given["chunk"])) is not None:
        return {**done, "again": True}
    with ctx.staging.chunk(given["chunk"], given.get("columns", ["n"])) as rows:
        for value in given["values"]:
            rows.write(copied(value))
        rows.result = {"rows": len(given["values"])}
        written: Any = rows
        written.wait()
        AFTERWARDS[given.get("then", "commit")](ctx)
    return rows.result


def waits_forever(ctx: ProcessContext) -> None:
    Path(ctx.params["file"]).write_text(str(os.getpid()))
    while True:
        time.sleep(0.02)


def waits_until_it_may_end(ctx: ProcessContext) -> None:
    Path(ctx.params["file"]).write_text("began")
    while not (ctx.cancelled or Path(ctx.params["go"]).exists()):
        time.sleep(0.02)


def fails(ctx: ProcessContext) -> None:
    raise ValueError("in the middle")


def loads_another(ctx: ProcessContext) -> None:
    assert ctx.staging is not None
    with ctx.staging.chunk(9, ["n"]) as rows:
        rows.write(copied(9))


def ends_in_the_middle_of_a_stream(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link._ask({"do": "write", "is_last": False}, copied(8)[:25])


def sends_too_much(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link._ask({"do": "write", "is_last": False}, bytes(5 * 1024 * 1024))


def sends_too_many(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    for value in range(100):
        link.send(copied(value))


def keeps_what_is_too_deep(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link._ask({"do": "commit"}, b'{"a": ' + b"[" * 1000 + b"]" * 1000 + b"}")


def keeps_too_much(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link._ask({"do": "commit"}, b'{"a": "' + b"x" * 100_000 + b'"}')


def sends_rubbish(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link._ask({"do": "begin", "chunk": "1; DROP TABLE x"})


def writes_much(ctx: ProcessContext) -> None:
    link: Any = ctx.staging
    link.send(copied(*range(400_000)))


AFTERWARDS: dict[str, Callable[[ProcessContext], None]] = {
    "commit": lambda _: None,
    "wait": waits_forever,
    "wait for the signal": waits_until_it_may_end,
    "fail": fails,
    "crash": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "another": loads_another,
    "half a stream": ends_in_the_middle_of_a_stream,
    "a huge piece": sends_too_much,
    "a huge chunk": sends_too_many,
    "a huge result": keeps_too_much,
    "a deep result": keeps_what_is_too_deep,
    "much": writes_much,
    "rubbish": sends_rubbish,
}


@register_handler("test.slow")
def slow(ctx: ProcessContext) -> None:
    time.sleep(ctx.params["seconds"])
