"""A real process serves, gets signals, and ends as it should."""

import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from graticule.core.errors import ConfigurationError
from graticule.http.server import listen, serve

CHILD = """
import asyncio, signal, sys
from contextlib import asynccontextmanager
from graticule.core.log_format import LogFormat
from graticule.core.errors import ConfigurationError
from graticule.http.application import create_application
from graticule.http.server import serve
from graticule.logs import configure_logging, get_logger

mode = sys.argv[1]
configure_logging("INFO", LogFormat.JSON, "child")
say = get_logger("child").info

@asynccontextmanager
async def lifespan(app):
    say("starting")
    if mode == "hangs":
        await asyncio.Event().wait()
    if mode == "fails":
        raise ConfigurationError("The start failed.")
    yield
    say("closed")
    if mode == "fails late":
        raise ConfigurationError("The end failed.")

app = create_application(process="child", title="Child", checks={}, lifespan=lifespan)

@app.get("/slow")
async def slow():
    say("entered")
    await app.state.stopping.wait()
    return "finished"

@app.get("/stuck")
async def stuck():
    say("entered")
    await asyncio.Event().wait()

before = signal.getsignal(signal.SIGTERM)
try:
    asyncio.run(serve(app, "127.0.0.1", 0, on_ready=lambda: say("ready")))
except ConfigurationError as error:
    say("refused", reason=error.message)
    raise SystemExit(4)
assert signal.getsignal(signal.SIGTERM) is before
say("after")
"""


class Child:
    """The process, and the lines of its log as they come."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.seen: list[str] = []

    async def event(self, name: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            fields: dict[str, Any] = json.loads(line)
            self.seen.append(fields["event"])
            if fields["event"] == name:
                return fields
        pytest.fail(f"no {name!r} in {self.seen}")

    async def serving(self) -> httpx.AsyncClient:
        port = (await self.event("serving"))["port"]
        await self.event("ready")
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}")

    async def end(self) -> int:
        _, rest = await self.process.communicate()
        self.seen += [json.loads(line)["event"] for line in rest.splitlines()]
        return await self.process.wait()


pytestmark = pytest.mark.timeout(30)


@asynccontextmanager
async def started(mode: str = "serves") -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, mode, stderr=PIPE, stdout=PIPE)
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_requests_finish_and_ends_with_status_0(stop: signal.Signals) -> None:
    async with started() as child, await child.serving() as client:
        answer = asyncio.create_task(client.get("/slow"))
        await child.event("entered")
        child.process.send_signal(stop)
        assert (await answer).json() == "finished"
        assert await child.end() == 0
        assert child.seen[-2:] == ["closed", "after"]
        assert "stopping" in child.seen


async def test_answers_do_not_name_the_server() -> None:
    async with started() as child, await child.serving() as client:
        headers = (await client.get("/livez")).headers
        assert "server" not in headers
        assert "date" in headers
        child.process.send_signal(signal.SIGTERM)
        assert await child.end() == 0


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_does_not_wait_for_requests(stop: signal.Signals) -> None:
    async with started() as child, await child.serving() as client:
        answer = asyncio.create_task(client.get("/stuck"))
        await child.event("entered")
        child.process.send_signal(stop)
        await child.event("stopping")
        child.process.send_signal(stop)
        assert await child.end() == 128 + stop
        assert "closed" not in child.seen
        (result,) = await asyncio.gather(answer, return_exceptions=True)
        assert not (isinstance(result, httpx.Response) and result.is_success)


async def test_a_second_signal_ends_a_start_that_hangs() -> None:
    async with started("hangs") as child:
        await child.event("starting")
        child.process.send_signal(signal.SIGINT)
        child.process.send_signal(signal.SIGTERM)
        assert await child.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize(("mode", "reason"), [("fails", "The start failed."), ("fails late", "The end failed.")])
async def test_an_error_of_the_start_or_the_end_reaches_the_caller(mode: str, reason: str) -> None:
    async with started(mode) as child:
        if mode == "fails late":
            await child.event("ready")
            child.process.send_signal(signal.SIGTERM)
        assert (await child.event("refused"))["reason"] == reason
        assert await child.end() == 4


async def test_a_taken_port_is_told_before_anything_is_started() -> None:
    begun = False

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        nonlocal begun
        begun = True
        yield

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError) as refused:
            await serve(FastAPI(lifespan=lifespan), "127.0.0.1", port)
    assert refused.value.message == f"Port {port} on 127.0.0.1 is in use by another program."
    assert "--port" in str(refused.value.hint)
    assert not begun


def test_an_address_of_another_machine_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match=r"Port 8000 on 192\.0\.2\.1 cannot be opened: "):
        listen("192.0.2.1", 8000)


def test_answers_do_not_wait_for_the_client_to_confirm_their_heads() -> None:
    with (
        listen("127.0.0.1", 0) as opened,
        socket.create_connection(opened.getsockname()),
        opened.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
