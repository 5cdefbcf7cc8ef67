"""The live stream over HTTP."""

import asyncio

import httpx
import pytest
from tests.integration.api.running import RunningApi
from tests.integration.api.test_bootstrap_access import problem_of

ECHO_TRACE = ["job_created", "node_ready", "node_dispatched", "job_started", "node_completed", "job_completed"]


async def test_the_stream_of_a_job_tells_it_as_it_happens_and_ends_with_it(api: RunningApi) -> None:
    job_id = await api.submit("echo_test")
    async with api.stream(f"/api/v1/jobs/{job_id}/events/stream") as source:
        assert source.status == 200
        assert source.headers["content-type"].startswith("text/event-stream")
        assert source.headers["x-accel-buffering"] == "no"
        task = await api.task(job_id, "echo_handler")
        await api.report(task.task_id, output={})
        heard = await source.rest()
    assert [each.event for each in heard] == [*ECHO_TRACE, "end"]
    stored = await api.get(f"/api/v1/jobs/{job_id}/events")
    assert [each.json for each in heard[:-1]] == stored["items"]
    assert [each.id for each in heard[:-1]] == [str(event["event_id"]) for event in stored["items"]]


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_client_that_comes_back_is_given_what_it_missed(api: RunningApi, by_header: bool) -> None:
    job_id = await api.run_echo()
    ids = [event["event_id"] for event in (await api.get(f"/api/v1/jobs/{job_id}/events"))["items"]]
    path = f"/api/v1/jobs/{job_id}/events/stream"
    async with (
        api.stream(f"{path}?after=0", last_event_id=str(ids[2])) if by_header else api.stream(f"{path}?after={ids[2]}")
    ) as source:
        heard = await source.rest()
    assert [each.id for each in heard] == [*map(str, ids[3:]), None]
    async with api.stream(path, last_event_id=str(ids[-1])) as source:
        assert [each.event for each in await source.rest()] == ["end"]


async def test_the_stream_of_all_gives_every_job_from_now_on(api: RunningApi) -> None:
    await api.run_echo()
    async with api.stream("/api/v1/events/stream") as source:
        assert await source.chunks.get() == "retry: 1000\n\n"
        events = source.events()
        first, second = await api.run_echo(), await api.run_echo()
        async with asyncio.timeout(30):
            heard = [await anext(events) for _ in range(2 * len(ECHO_TRACE))]
    assert {each.json["job_id"] for each in heard} == {first, second}
    ids = [int(each.id or 0) for each in heard]
    assert ids == sorted(set(ids))


async def test_the_streams_end_when_the_server_begins_to_stop(api: RunningApi) -> None:
    job_id = await api.submit("echo_test")
    async with api.stream(f"/api/v1/jobs/{job_id}/events/stream") as one, api.stream("/api/v1/events/stream") as every:
        api.app.state.stopping.set()
        assert "end" not in [each.event for each in await one.rest()]
        assert await every.rest() == []


async def test_a_stream_of_no_job_is_refused_before_it_begins(admin_client: httpx.AsyncClient) -> None:
    problem_of(await admin_client.get("/api/v1/jobs/none/events/stream"), 404, "not_found")


@pytest.mark.parametrize("last", ["x", "-1", "1.5", str(2**63)])
async def test_a_last_event_id_that_is_none_is_refused(admin_client: httpx.AsyncClient, last: str) -> None:
    answer = await admin_client.get("/api/v1/events/stream", headers={"Last-Event-ID": last})
    problem_of(answer, 422, "invalid_input")
