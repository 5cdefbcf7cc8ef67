"""What each repository's own questions answer."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW, OWNER

from graticule.core.errors import NotFound
from graticule.core.ids import AssetId, JobId, NodeId, OwnerId, PlatformId, WorkerId, WorkflowId
from graticule.core.models import TABLES, AssetRevision, LayerCatalog, Orchestrator, Worker
from graticule.core.states import JobStatus
from graticule.repositories.assets import AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.callbacks import CallbackRepository
from graticule.repositories.clients import ClientRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.deployments import DeploymentRepository
from graticule.repositories.events import EventRepository
from graticule.repositories.job_views import JobFilter, JobViews
from graticule.repositories.jobs import JobRepository
from graticule.repositories.layers import LayerCatalogRepository
from graticule.repositories.messages import MessageRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.operator_views import OperatorViews
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.processes import OrchestratorRepository, WorkerRepository
from graticule.repositories.requests import RequestRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import TaskRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.schema.ddl import fingerprint

JOB = JobId("job")
SECOND = timedelta(seconds=1)


async def _all_pages(connection: Connection, limit: int, **filters: Any) -> list[str]:
    found: list[str] = []
    before = None
    while page := await JobViews(connection).jobs(JobFilter(**filters), before, limit):
        assert len(page) <= limit
        found += [job.job_id for job in page]
        before = (page[-1].created_at, page[-1].job_id)
    return found


async def test_paging_gives_each_job_once_newest_first_also_when_times_are_equal(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    made = [rows.job(f"job-{number:02}", created_at=NOW + SECOND * (number // 9)) for number in range(30)]
    await jobs.insert_many(made)
    expected = [job.job_id for job in sorted([*made, rows.job()], key=lambda job: (job.created_at, job.job_id))][::-1]
    for limit in (1, 2, 4, 9, 31, 100):
        assert await _all_pages(with_job, limit) == expected


async def test_paging_filters_by_status_and_workflow(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    await jobs.insert_many(
        [
            rows.job(f"job-{number}", workflow_id=f"flow_{number % 2}", status=("running", "pending")[number // 4])
            for number in range(8)
        ]
    )
    flow = WorkflowId("flow_1")
    assert await _all_pages(with_job, 3, status=JobStatus.RUNNING) == ["job-3", "job-2", "job-1", "job-0"]
    assert await _all_pages(with_job, 3, workflow_id=flow) == ["job-7", "job-5", "job-3", "job-1"]
    assert await _all_pages(with_job, 1, workflow_id=flow, status=JobStatus.RUNNING) == ["job-3", "job-1"]
    assert await _all_pages(with_job, 3, status=JobStatus.CANCELLED) == []


async def test_a_job_is_found_by_its_idempotency_key(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    made = await jobs.insert(rows.job("keyed", idempotency_key="key'"))
    assert await jobs.find_by_idempotency_key("key'") == made
    assert await jobs.find_by_idempotency_key("other") is None


async def test_static_nodes_and_the_children_of_a_fan_out_are_listed_apart_in_order(with_job: Connection) -> None:
    nodes = NodeRepository(with_job)
    await nodes.insert_many(
        [rows.node(f"split__{number}", parent_node_id="split", fan_out_index=number) for number in reversed(range(12))]
    )
    await nodes.insert(rows.node("split"))
    assert [node.node_id for node in await nodes.of_job(JOB)] == ["node", "split"]
    children = await nodes.of_job(JOB, NodeId("split"))
    assert [node.fan_out_index for node in children] == list(range(12))


async def test_results_are_given_in_order_of_arrival(with_job: Connection) -> None:
    results = ResultRepository(with_job)
    for number in range(5):
        await results.insert(rows.result(output=number))
    await results.insert(rows.result(output=5, processed_at=NOW))
    await results.insert(rows.result(job_id="another"))
    assert [result.output for result in await results.unprocessed(JOB)] == [0, 1, 2, 3, 4]
    assert [result.output for result in await results.unprocessed(JOB, limit=2)] == [0, 1]


async def test_tasks_of_a_job_and_dead_letters(with_job: Connection) -> None:
    tasks = TaskRepository(with_job)
    await tasks.insert(rows.task("b", created_at=NOW))
    await tasks.insert(rows.task("a", created_at=LATER))
    for number, queue in enumerate(["x", "y", "x"]):
        dead = {"status": "dead", "dead_reason": "r", "queue": queue, "created_at": NOW + SECOND * number}
        await tasks.insert(rows.task(f"dead-{number}", **dead))
    assert [task.task_id for task in await tasks.of_job(JOB)] == ["b", "dead-0", "dead-1", "dead-2", "a"]
    assert [task.task_id for task in await tasks.dead()] == ["dead-2", "dead-1", "dead-0"]
    assert [task.task_id for task in await tasks.dead("x", limit=1)] == ["dead-2"]


async def test_dead_messages(with_job: Connection) -> None:
    messages = MessageRepository(with_job)
    await messages.insert(rows.message("alive"))
    for number, queue in enumerate(["x", "y"]):
        dead = {"status": "dead", "dead_reason": "r", "queue": queue, "created_at": NOW + SECOND * number}
        await messages.insert(rows.message(f"dead-{number}", **dead))
    assert [message.message_id for message in await messages.dead()] == ["dead-1", "dead-0"]
    assert [message.message_id for message in await messages.dead("x")] == ["dead-0"]


async def test_events_are_given_in_order_after_the_one_that_was_seen(with_job: Connection) -> None:
    events = EventRepository(with_job)
    numbers = [(await events.insert(rows.event(asset_id=ASSET))).event_id or 0 for _ in range(4)]
    await events.insert_many([rows.event(job_id="another"), rows.event(job_id=None)])
    assert [event.event_id for event in await events.of_job(JOB)] == numbers
    assert [event.event_id for event in await events.of_job(JOB, after=numbers[1])] == numbers[2:]
    assert [event.event_id for event in await events.of_asset(ASSET, after=numbers[0], limit=2)] == numbers[1:3]


async def test_events_go_to_the_partition_of_their_month_in_utc_and_the_rest_to_the_default_one(
    with_job: Connection,
) -> None:
    now = datetime.now(UTC)
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)
    times = {
        first: f"dag_job_events_{first:%Y_%m}",
        following - timedelta(microseconds=1): f"dag_job_events_{first:%Y_%m}",
        following: f"dag_job_events_{following:%Y_%m}",
        first - timedelta(microseconds=1): "dag_job_events_default",
        datetime(1999, 12, 31, tzinfo=UTC): "dag_job_events_default",
        datetime(2999, 1, 1, tzinfo=UTC): "dag_job_events_default",
    }
    await with_job.execute("SET timezone = 'Pacific/Auckland'")
    await EventRepository(with_job).insert_many([rows.event(created_at=at) for at in times])
    query = "SELECT created_at, tableoid::regclass::text AS partition FROM dagapp.dag_job_events"
    found = {row["created_at"]: row["partition"] for row in await (await with_job.execute(query)).fetchall()}
    assert found == {at: f"dagapp.{partition}" for at, partition in times.items()}
    assert len(await EventRepository(with_job).of_job(JOB)) == len(times)


async def test_a_workflow_is_kept_once_and_its_versions_are_listed_newest_first(connection: Connection) -> None:
    workflows = WorkflowRepository(connection)
    assert await workflows.keep(rows.workflow(name="first"))
    assert not await workflows.keep(rows.workflow(name="again"))
    assert await workflows.keep(rows.workflow(workflow_hash="1" * 64, created_at=LATER))
    versions = await OperatorViews(connection).workflow_versions(WorkflowId("flow"), 50)
    assert [each.workflow_hash for each in versions] == ["1" * 64, rows.HASH]
    assert (await workflows.get(workflow_hash=rows.HASH)).name == "first"


async def test_the_registry_is_seeded_and_a_partner_can_be_closed_and_opened(connection: Connection) -> None:
    platforms = PlatformRepository(connection)
    assert [platform.platform_id for platform in await platforms.all()] == ["arcgis", "ddh", "geonode"]
    ddh = await platforms.get(platform_id="ddh")
    assert (ddh.required_refs, ddh.optional_refs, ddh.version_ref) == (["dataset_id", "resource_id"], [], "version_id")
    closed = await platforms.change(ddh.model_copy(update={"is_active": False, "updated_at": NOW}))
    assert (closed.is_active, closed.updated_at) == (False, NOW)
    assert [platform.platform_id for platform in await platforms.all()] == ["arcgis", "geonode"]
    assert len(await platforms.all(with_inactive=True)) == 3
    assert await platforms.change(ddh) == ddh
    with pytest.raises(NotFound, match="There is no platform nobody"):
        await platforms.change(ddh.model_copy(update={"platform_id": "nobody"}))


async def test_versions_and_revisions_are_listed_in_order(with_job: Connection) -> None:
    versions, revisions = AssetVersionRepository(with_job), AssetRevisionRepository(with_job)
    for ordinal in (10, 2):
        await versions.insert(rows.version(ordinal, **rows.APPROVED))
    await versions.insert(rows.version(0, deleted_at=NOW, deleted_by="x"))
    assert [version.version_ordinal for version in await versions.of_asset(ASSET)] == [0, 2, 10]
    values: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 2, "created_at": NOW, "superseded_at": NOW}
    for revision in (2, 1):
        states: dict[str, Any] = {"approval_state": "approved", "clearance_state": "ouo"}
        await revisions.insert(AssetRevision(**values, **states, revision=revision))
    assert [each.revision for each in await revisions.of_version(ASSET, 2)] == [1, 2]
    assert await revisions.of_version(AssetId("f" * 32), 2) == []


async def test_requests_are_found_by_the_partners_own_key(connection: Connection) -> None:
    requests = RequestRepository(connection)
    old = await requests.insert(rows.request(UUID(int=1), idempotency_key="k"))
    new = await requests.insert(rows.request(UUID(int=2), created_at=LATER, platform_id="arcgis", idempotency_key="k"))
    assert await requests.find_by_idempotency_key(PlatformId("ddh"), "k") == old
    assert await requests.find_by_idempotency_key(PlatformId("arcgis"), "k") == new
    assert await requests.find_by_idempotency_key(PlatformId("geonode"), "k") is None


async def test_an_active_client_is_found_by_the_hash_of_its_key(connection: Connection) -> None:
    clients = ClientRepository(connection)
    active = await clients.insert(rows.client("b", key_hash="1" * 64))
    closed = await clients.insert(rows.client("a", key_hash="2" * 64, is_active=False))
    assert await clients.find_by_key_hash("1" * 64) == active
    assert await clients.find_by_key_hash("2" * 64) is None
    assert await clients.all() == [closed, active]


async def test_a_catalogue_entry_is_shown_replaced_and_withdrawn(with_job: Connection) -> None:
    await AssetVersionRepository(with_job).insert(rows.version())
    layers = LayerCatalogRepository(with_job)
    values: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 0, "published_at": NOW}
    for entry in (LayerCatalog(**values, entry={"a": 1}), LayerCatalog(**values, entry={"b": 2}, is_external=True)):
        await layers.publish(entry)
        assert await layers.get(asset_id=ASSET, version_ordinal=0) == entry
    assert await layers.withdraw(ASSET, 0)
    assert not await layers.withdraw(ASSET, 0)


async def test_due_callbacks_are_taken_by_one_sender_only(pool: Database, with_job: Connection) -> None:
    await JobRepository(with_job).insert_many([rows.job(f"j{number}") for number in range(5)])
    callbacks = CallbackRepository(with_job)
    given: list[dict[str, Any]] = [{}, {"next_attempt_at": LATER}, {"delivered_at": NOW}, {"given_up_at": NOW}]
    given += [{"next_attempt_at": NOW - SECOND}]
    for number, values in enumerate(given):
        await callbacks.insert(rows.callback(job_id=f"j{number}", **values))
    held_until = LATER + SECOND
    async with pool.connection() as sender, sender.transaction():
        assert [each.job_id for each in await CallbackRepository(sender).claim(NOW, held_until, 1)] == ["j4"]
        assert [each.job_id for each in await callbacks.claim(NOW, held_until, 9)] == ["j0"]
    assert [each.job_id for each in await callbacks.claim(LATER, held_until, 9)] == ["j1"]
    assert await callbacks.next_due() == held_until
    assert {each.job_id for each in await callbacks.claim(held_until, held_until, 9)} == {"j0", "j1", "j4"}


async def test_processes_beat_until_they_stop(connection: Connection) -> None:
    process: dict[str, Any] = {"hostname": "h", "process_id": 1, "program_version": "1", "heartbeat_at": NOW}
    orchestrators, workers = OrchestratorRepository(connection), WorkerRepository(connection)
    worker = WorkerId("w")
    for number in (2, 1):
        started = {"started_at": NOW + SECOND * number}
        await orchestrators.insert(Orchestrator(owner_id=OwnerId(f"o{number}"), lock_key=1, **process, **started))
    await workers.insert(Worker(worker_id=worker, queues=["q"], concurrency=1, started_at=NOW, **process))
    assert [each.owner_id for each in await orchestrators.running()] == ["o1", "o2"]
    assert await orchestrators.beat(OwnerId("o1"))
    assert (await orchestrators.get(owner_id="o1")).heartbeat_at > LATER  # by the database's clock
    assert await workers.beat(worker)
    assert (await workers.running())[0].heartbeat_at > LATER
    assert await orchestrators.stop(OwnerId("o1"), LATER)
    assert not await orchestrators.stop(OwnerId("o1"), LATER)
    assert not await orchestrators.beat(OwnerId("o1"))
    assert await workers.stop(worker)
    assert not await workers.stop(worker)
    assert not await workers.beat(worker)
    assert [each.owner_id for each in await orchestrators.running()] == ["o2"]
    assert await workers.running() == []
    assert await orchestrators.rejoin(OwnerId("o1"))
    assert len(await orchestrators.running()) == 2
    assert not await orchestrators.beat(OWNER)
    assert not await orchestrators.rejoin(OWNER)


async def test_a_deployment_is_known_by_its_fingerprint(connection: Connection) -> None:
    deployments = DeploymentRepository(connection)
    assert await deployments.is_deployed(fingerprint(TABLES))
    assert not await deployments.is_deployed("0" * 64)
