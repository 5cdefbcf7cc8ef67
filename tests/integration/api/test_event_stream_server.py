"""The live stream through the real server: events arrive at once, and an open stream does not hold up a stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from tests.integration.api.running import KEY, RunningApi

from graticule.http.server import _configuration, _Lifespan, _Server, listen


@asynccontextmanager
async def served(api: RunningApi) -> AsyncIterator[tuple[str, _Server]]:
    """Serve an application that is started already, on a port of its own."""
    ready = asyncio.Event()
    configuration = _configuration(_Lifespan(api.app))
    configuration.lifespan = "off"
    with listen("127.0.0.1", 0) as listening:
        server = _Server(configuration, api.app, ready.set)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with asyncio.timeout(30):
                await ready.wait()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", server
        finally:
            server.should_exit = True
            async with asyncio.timeout(30):
                await serving


async def test_events_arrive_as_they_happen_and_a_stop_of_the_server_ends_the_stream(api: RunningApi) -> None:
    job_id = await api.submit("echo_test")
    headers = {"X-API-Key": KEY}
    async with (
        served(api) as (address, server),
        httpx.AsyncClient(base_url=address, headers=headers, verify=False) as client,
    ):
        path = f"/api/v1/jobs/{job_id}/events/stream"
        async with client.stream("GET", path, timeout=30) as answer:
            lines = answer.aiter_lines()
            heard = [line async for line in _until(lines, "event: job_started")]
            assert "event: job_created" in heard
            server.should_exit = True
            async with asyncio.timeout(5):  # less than the server gives requests that are under way
                rest = [line async for line in lines]
    assert "event: end" not in rest


async def test_a_client_that_goes_leaves_nothing_behind(api: RunningApi) -> None:
    async with served(api) as (address, _), httpx.AsyncClient(base_url=address, verify=False) as client:
        async with client.stream("GET", "/api/v1/events/stream", headers={"X-API-Key": KEY}, timeout=30) as answer:
            assert await anext(answer.aiter_lines()) == "retry: 1000"
            assert api.app.state.events._hub is not None
        async with asyncio.timeout(20):
            await _at_rest(api)


async def _until(lines: AsyncIterator[str], last: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line == last:
            return


async def _at_rest(api: RunningApi) -> None:
    """Wait until the hub is gone; that a client went is noticed a moment later, without a signal."""
    while api.app.state.events._hub is not None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
