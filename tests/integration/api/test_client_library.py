"""The client library against the real orchestrator: what it asks is taken, and what is answered becomes its types."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.integration.api.conftest import KEY
from tests.integration.api.running import RunningApi
from tests.integration.api.test_event_stream_server import served
from tests.sources import put_source_of

from graticule.client import ApiProblem, AsyncClient, Client, calls
from graticule.core.exchange import Approval, PlatformStatus, PlatformSubmission, Rejection, UrlModeChange
from graticule.core.models.engine import EventType
from graticule.core.models.platform import ClientRole, DataType, UrlMode
from graticule.core.refusals import Refusal
from graticule.core.states import ApprovalState, ClearanceState, JobStatus, ProcessingState
from graticule.core.worker_command import missing_worker
from graticule.repositories.operations import ProcessState
from graticule.services.jobs import Submission

ECHO = Submission(workflow_id="echo_test", input_params={}, idempotency_key="k-1")
SUBMISSION = PlatformSubmission(
    platform_id="ddh",
    platform_refs={"dataset_id": "0038272", "resource_id": "dem"},
    version_label="2026-03",
    data_type=DataType.RASTER,
    container_name="bronze",
    file_name="ddh/dem/europe.tif",
)


def client_of(api: RunningApi, key: str = KEY) -> AsyncClient:
    return AsyncClient("http://orchestrator", api_key=key, transport=httpx.ASGITransport(api.app))


@pytest.fixture
async def client(api: RunningApi) -> AsyncIterator[AsyncClient]:
    async with client_of(api) as made:
        yield made


async def listed(client: AsyncClient, call: Any) -> list[Any]:
    return [item async for item in client.pages(call)]


async def test_a_job_from_its_submission_to_its_end(api: RunningApi, client: AsyncClient) -> None:
    submitted = await client.send(calls.submit_job(ECHO))
    assert submitted.created
    assert submitted.warnings == (missing_worker("functionapp-tasks"),)
    job_id = submitted.job.job_id
    again = await client.send(calls.submit_job(ECHO))
    assert (again.job.job_id, again.created) == (job_id, False)
    task = await api.task(job_id, "echo_handler")
    await api.report(task.task_id, output={"echoed_params": {}})
    await api.ended(job_id)
    job = await client.send(calls.get_job(job_id))
    assert (job.status, job.progress.percent) == (JobStatus.COMPLETED, 100)
    nodes = await listed(client, calls.list_job_nodes(job_id))
    node = await client.send(calls.get_job_node(job_id, "echo_handler"))
    assert [attempt.task_id for attempt in node.attempts] == [task.task_id]
    assert {each.node_id for each in nodes} >= {"echo_handler"}
    assert {each.node_id for each in (await client.send(calls.get_job_timeline(job_id))).items} >= {"echo_handler"}


async def test_lists_are_read_page_by_page(api: RunningApi, client: AsyncClient) -> None:
    made = [await api.submit("echo_test") for _ in range(3)]
    assert [job.job_id for job in await listed(client, calls.list_jobs(limit=1))] == made[::-1]
    assert await listed(client, calls.list_jobs(status=JobStatus.FAILED)) == []
    events = await listed(client, calls.list_job_events(made[0], event_type=[EventType.JOB_CREATED], limit=1))
    assert [event.event_type for event in events] == [EventType.JOB_CREATED]


async def test_a_job_is_cancelled_and_what_is_refused_is_told(api: RunningApi, client: AsyncClient) -> None:
    job_id = await api.submit("echo_test")
    assert (await client.send(calls.cancel_job(job_id))).job_id == job_id
    await api.ended(job_id)
    with pytest.raises(ApiProblem) as conflict:
        await client.send(calls.retry_job(job_id))
    assert (conflict.value.status, conflict.value.code) == (409, "conflict")
    with pytest.raises(ApiProblem) as unknown:
        await client.send(calls.get_job("nonsense"))
    assert (unknown.value.status, unknown.value.code) == (404, "not_found")
    with pytest.raises(ApiProblem) as wrong:
        await client.send(calls.list_jobs(limit=0))
    assert [fault.loc for fault in wrong.value.errors] == [["query", "limit"]]


async def test_a_wrong_key_is_told_as_such(api: RunningApi) -> None:
    async with client_of(api, "another") as stranger:
        with pytest.raises(ApiProblem) as found:
            await stranger.send(calls.list_jobs())
    assert (found.value.status, found.value.code) == (401, "unauthenticated")


async def test_what_operators_look_at(api: RunningApi, client: AsyncClient) -> None:
    await api.run_echo()
    orchestrators = await client.send(calls.list_orchestrators())
    assert [each.state for each in orchestrators.items] == [ProcessState.ALIVE]
    for nothing in (calls.list_queues(), calls.list_workers(stopped=True), calls.list_dead_letters()):
        assert await listed(client, nothing) == []
    assert (await client.send(calls.get_statistics())).completed_24h == 1
    for trouble in (calls.list_stuck(), calls.list_failed(), calls.list_attempts()):
        assert await listed(client, trouble) == []
    assert [each.completed_24h for each in await listed(client, calls.list_load())] == [1]
    assert [each.jobs for each in await listed(client, calls.list_durations())] == [1]


async def test_workflows_are_read_and_checked(client: AsyncClient) -> None:
    workflows = await client.send(calls.list_workflows())
    assert "echo_test" in {each.workflow_id for each in workflows.items}
    workflow = await client.send(calls.get_workflow("echo_test"))
    assert "echo_handler" in workflow.graph["nodes"]  # type: ignore[operator]
    found = await client.send(calls.validate_workflow("workflow_id: [broken"))
    assert (found.valid, found.graph) == (False, None)
    assert found.problems
    assert len((await client.send(calls.reload_workflows())).items) == len(workflows.items)


async def test_clients_are_added_use_their_key_and_are_shut_out(api: RunningApi, client: AsyncClient) -> None:
    added = await client.send(calls.add_client("anna", display_name="Anna", roles=[ClientRole.OPERATOR]))
    assert added.key not in repr(added)
    async with client_of(api, added.key) as anna:
        await anna.send(calls.list_jobs())
        with pytest.raises(ApiProblem) as refused:
            await anna.send(calls.list_clients())
        assert refused.value.status == 403
    assert [each.client_id for each in await listed(client, calls.list_clients())] == ["anna"]
    rotated = await client.send(calls.rotate_client("anna"))
    assert rotated.key != added.key
    assert (await client.send(calls.disable_client("anna"))).is_active is False
    assert (await client.send(calls.enable_client("anna"))).is_active is True
    assert (await client.send(calls.get_client("anna"))).display_name == "Anna"


async def test_platforms_are_added_and_changed(client: AsyncClient) -> None:
    new = calls.add_platform("atlas", display_name="Atlas", required_refs=["sheet"], version_ref="release")
    assert (await client.send(new)).platform_id == "atlas"
    changed = await client.send(calls.change_platform("atlas", is_active=False))
    assert (changed.is_active, changed.required_refs) == (False, ["sheet"])
    assert "atlas" not in {each.platform_id for each in await listed(client, calls.list_platforms())}
    assert "atlas" in {each.platform_id for each in await listed(client, calls.list_platforms(inactive=True))}
    assert (await client.send(calls.get_platform("ddh"))).version_ref == "version_id"


async def test_data_from_its_submission_to_its_removal(api: RunningApi, client: AsyncClient) -> None:
    put_source_of(api.home / "storage", SUBMISSION.model_dump())
    receipt = await client.send(calls.submit_data(SUBMISSION, idempotency_key="k-1"))
    again = await client.send(calls.submit_data(SUBMISSION, idempotency_key="k-1"))
    assert again.request_id == receipt.request_id
    assert [missing_worker("functionapp-tasks") in each.warnings for each in (receipt, again)] == [True, True]
    status = await client.send(calls.get_status(str(receipt.request_id)))
    assert isinstance(status, PlatformStatus)
    assert (status.asset_id, status.version.label) == (receipt.asset_id, "2026-03")
    (asset,) = await listed(client, calls.list_assets(refs={"dataset_id": "0038272"}, platform="ddh"))
    assert asset.newest_version.approval_state is ApprovalState.PENDING_REVIEW
    assert (await listed(client, calls.list_dataset({"dataset_id": "0038272"})))[0].asset_id == asset.asset_id
    with pytest.raises(ApiProblem) as refused:
        await client.send(calls.approve(asset.asset_id, Approval(clearance_level=ClearanceState.OUO)))
    assert refused.value.code == Refusal.NOT_PROCESSED
    assert refused.value.current
    changed = await client.send(calls.change_url_mode(asset.asset_id, UrlModeChange(url_mode=UrlMode.ALL_VERSIONS)))
    assert (changed.changed, changed.asset.url_mode) == (True, UrlMode.ALL_VERSIONS)
    with pytest.raises(ApiProblem):
        await client.send(calls.reject(asset.asset_id, Rejection(reason="x", expected_version=99)))
    (version,) = await listed(client, calls.list_asset_versions(asset.asset_id))
    assert version == await client.send(calls.get_asset_version(asset.asset_id, 0))
    assert version.processing_state in {ProcessingState.QUEUED, ProcessingState.PROCESSING}
    assert await listed(client, calls.list_asset_revisions(asset.asset_id)) == []
    history = await listed(client, calls.list_asset_history(asset.asset_id, limit=1))
    assert EventType.ASSET_VERSION_ADDED in {event.event_type for event in history}


async def test_commands_and_callbacks(client: AsyncClient) -> None:
    commands = await listed(client, calls.list_commands())
    assert "cache.invalidate" in {each.name for each in commands}
    done = await client.send(calls.run_command("cache.invalidate", {"all": True}))
    assert (done.command, done.outcome) == ("cache.invalidate", "changed")
    assert await listed(client, calls.list_deliveries()) == []
    with pytest.raises(ApiProblem) as unknown:
        await client.send(calls.redeliver(12))
    assert unknown.value.status == 404


def followed(address: str, job_id: str) -> list[Any]:
    """Follow a job as a program does that has no event loop."""
    with Client(address, api_key=KEY) as client:
        before = client.send(calls.get_job(job_id))
        events = list(client.events(job_id))
        after = client.send(calls.get_job(job_id))
    assert before.job_id == after.job_id == job_id
    return [*events, after.status]


async def test_the_synchronous_client_follows_a_job_over_a_real_connection(api: RunningApi) -> None:
    async with served(api) as (address, _):
        job_id = await api.submit("echo_test")
        following = asyncio.create_task(asyncio.to_thread(followed, address, job_id))
        task = await api.task(job_id, "echo_handler")
        await api.report(task.task_id, output={"echoed_params": {"text": "a\u2028b"}})
        async with asyncio.timeout(30):
            *events, status = await following
    assert status is JobStatus.COMPLETED
    assert [events[0].event_type, events[-1].event_type] == [EventType.JOB_CREATED, EventType.JOB_COMPLETED]
    assert [event.event_id for event in events] == sorted(event.event_id for event in events)


async def test_the_asynchronous_client_goes_on_after_the_event_that_it_has(api: RunningApi) -> None:
    job_id = await api.run_echo()
    async with served(api) as (address, _), AsyncClient(address, api_key=KEY) as client:
        events = [event async for event in client.events(job_id)]
        rest = [event async for event in client.events(job_id, after=events[1].event_id or 0)]
    assert rest == events[2:]
