"""The examples of docs/how-to/client.md run, and print what the page says."""

import asyncio

import pytest
from tests.integration.api.conftest import KEY
from tests.integration.api.running import RunningApi
from tests.integration.api.test_event_stream_server import served
from tests.unit.docs.examples import ran
from tests.unit.docs.pages import blocks, page

from graticule.core.ids import JobId

PAGE = page("client.md")
PROGRAMS, PRINTED = blocks(PAGE, "python"), blocks(PAGE, "text")


async def test_the_examples_of_jobs_print_what_is_said(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(api) as (address, _), api.stream("/api/v1/events/stream") as source:
        monkeypatch.setenv("GRATICULE_API_URL", address)
        monkeypatch.setenv("GRATICULE_API_KEY", KEY)
        first = asyncio.create_task(asyncio.to_thread(ran, PROGRAMS[0]))
        created = await anext(source.events())
        task = await api.task(JobId(created.json["job_id"]), "echo_handler")
        await api.report(task.task_id, output={"echoed_params": {}})
        async with asyncio.timeout(30):
            assert await first == PRINTED[0]
            assert await asyncio.to_thread(ran, PROGRAMS[1]) == PRINTED[1]
