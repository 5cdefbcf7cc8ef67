"""The statements of a step: whoever does not hold the job, or read another state, writes nothing at all."""

import asyncio
from datetime import datetime, timedelta
from itertools import product
from typing import Any, LiteralString

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows
from tests.integration.repositories.rows import LATER, NASTY, NESTED, NOW, OWNER

from graticule.core.channels import EVENTS, owner_channel, queue_channel
from graticule.core.errors import Conflict, InvalidInput, StaleVersion, Unavailable
from graticule.core.ids import JobId, OwnerId
from graticule.core.models import TABLES
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus, ResultStatus
from graticule.dag.state import NOT_LOADED
from graticule.repositories import step_parts
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.step_parts import Part
from graticule.repositories.steps import JobRow, StepRepository, document
from graticule.repositories.tasks import TaskRepository

JOB, OTHER_JOB = JobId("job"), JobId("other")
STRANGERS = {
    "another owner": (OwnerId("orchestrator-2"), 1),
    "an older term": (OWNER, 0),
    "a later term": (OWNER, 2),
}
OUTDATED: dict[str, Any] = {**STRANGERS, "an older picture": (OWNER, 1, NOW - timedelta(microseconds=1))}
ENDED = {"completed", "failed", "cancelled", "skipped"}
NODE_ROW: dict[str, Any] = {
    "job_id": "job",
    "node_id": "node",
    "before": "pending",
    "status": "ready",
    "retry_count": 0,
    "retry_base": 0,
    "output_from": "given",
    "children_total": 0,
    "children_started": 0,
    "children_done": 0,
    "children_failed": 0,
}
CHILD: dict[str, Any] = {"parent_node_id": "split", "fan_out_index": 0, "node_type": NodeType.TASK}
NEW_NODE: dict[str, Any] = {**NODE_ROW, **CHILD, "node_id": "split__9", "status": "pending", "fan_out_index": 9}
NEW_TASK: dict[str, Any] = {
    "job_id": "job",
    "task_id": "job_node_1",
    "node_id": "node",
    "queue": "q",
    "handler": "echo",
    "params": NESTED,
    "retry_count": 1,
    "timeout_seconds": 60,
    "priority": 0,
    "share": "",
}
EVENT: dict[str, Any] = {"job_id": "job", "event_type": "node_ready", "node_id": "node", "data": {"a": NASTY}}
JOB_ROW: dict[str, Any] = {"job_id": "job", "before": "pending", "status": "running"}
PARTS: dict[Part, dict[str, Any]] = {
    Part.NODES: NODE_ROW,
    Part.COMPLETED_CHILDREN: {"job_id": "job", "node_id": "split__0", "before": "dispatched", "result_id": None},
    Part.NEW_NODES: NEW_NODE,
    Part.NEW_TASKS: NEW_TASK,
    Part.EVENTS: EVENT,
    Part.PROCESSED_RESULTS: {"job_id": "job", "result_id": None},
    Part.JOBS: JOB_ROW,
}


@pytest.fixture
async def held(with_job: Connection) -> Connection:
    """Give a connection to a database with a job of OWNER in term 1, its nodes, children, tasks and a result."""
    nodes = NodeRepository(with_job)
    await nodes.insert(
        rows.node("split", node_type=NodeType.FAN_OUT, status="running", children_total=3, children_started=2)
    )
    for index, status in enumerate(("dispatched", "running", "pending")):
        child = {**CHILD, "fan_out_index": index, "status": status, "task_id": f"job_split__{index}_0"}
        await nodes.insert(rows.node(f"split__{index}", **child))
    tasks = TaskRepository(with_job)
    await tasks.insert(rows.task())
    await tasks.insert(
        rows.task("job_split__0_0", node_id="split__0", status="leased", leased_by="w", lease_expires_at=LATER)
    )
    await ResultRepository(with_job).insert(rows.result(task_id="job_split__0_0", node_id="split__0", output=[1]))
    return with_job


async def result_id(connection: Connection) -> int:
    (found,) = await ResultRepository(connection).unprocessed(JOB)
    assert found.result_id is not None
    return found.result_id


async def everything(connection: Connection) -> dict[str, list[str]]:
    """Give all rows of the engine."""
    found = {}
    for table in (model.table.name for model in TABLES if model.table.name.startswith("dag_")):
        cursor = await connection.execute(f"SELECT t::text AS row FROM dagapp.{table} AS t ORDER BY 1")
        found[table] = [row["row"] for row in await cursor.fetchall()]
    return found


def as_read(job_id: JobId = JOB, epoch: int = 1, updated_at: datetime = NOW) -> JobRow:
    """Give the row of a job as a step has read it."""
    return JobRow(job_id, epoch, updated_at, rows.HASH, JobStatus.PENDING)


async def write(
    connection: Connection,
    parts: dict[Part, list[dict[str, Any]]],
    owner: OwnerId = OWNER,
    epoch: int = 1,
    updated_at: datetime = NOW,
) -> None:
    """Write as a step does, without a transaction around it."""
    await StepRepository(connection, owner).write([as_read(JOB, epoch, updated_at)], parts, LATER)


async def part_row(connection: Connection, part: Part) -> dict[str, Any]:
    row = PARTS[part]
    return {**row, "result_id": await result_id(connection)} if "result_id" in row else row


# The fence


@pytest.mark.parametrize("stranger", OUTDATED)
@pytest.mark.parametrize("part", PARTS)
async def test_a_stranger_writes_no_part_of_a_step(held: Connection, part: Part, stranger: str) -> None:
    row, before = await part_row(held, part), await everything(held)
    with pytest.raises(StaleVersion):
        await write(held, {part: [row]}, *OUTDATED[stranger])
    assert await everything(held) == before
    await write(held, {part: [row]})
    assert await everything(held) != before


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("what", ["remove_children", "abandon_children"])
async def test_a_stranger_neither_removes_nor_abandons(held: Connection, what: str, stranger: str) -> None:
    async def act(owner: OwnerId, epoch: int) -> None:
        row = {"job_id": JOB, "owner_epoch": epoch, "parent_node_id": "split", "error_message": "why"}
        steps = StepRepository(held, owner)
        await (steps.remove_children([row]) if what == "remove_children" else steps.abandon_children([row], LATER))

    before = await everything(held)
    await act(*STRANGERS[stranger])
    assert await everything(held) == before
    await act(OWNER, 1)
    assert await everything(held) != before


async def test_another_owner_or_term_withdraws_no_task(held: Connection) -> None:
    before = await everything(held)
    for task_id in ("job_node_0", None):
        mine = {"job_id": JOB, "owner_epoch": 1, "task_id": task_id}
        await StepRepository(held, OwnerId("orchestrator-2")).withdraw_tasks([mine])
        await StepRepository(held, OWNER).withdraw_tasks([{**mine, "owner_epoch": 2}])
    assert await everything(held) == before


async def test_one_row_that_cannot_be_written_takes_all_others_back(held: Connection) -> None:
    good = {part: [await part_row(held, part)] for part in PARTS}
    before = await everything(held)
    for part in (Part.NODES, Part.COMPLETED_CHILDREN, Part.JOBS):
        spoiled = {**good, part: [{**good[part][0], "before": "failed"}]}
        with pytest.raises(StaleVersion):
            await write(held, spoiled)
        assert await everything(held) == before
    await write(held, good)


async def test_one_job_that_was_changed_keeps_the_whole_batch_from_being_written(held: Connection) -> None:
    await JobRepository(held).insert(rows.job("other", owner_id=OWNER, owner_epoch=2))
    before = await everything(held)
    for part in (Part.JOBS, Part.EVENTS, Part.NEW_TASKS, Part.NEW_NODES):
        with pytest.raises(StaleVersion):
            await StepRepository(held, OWNER).write([as_read(), as_read(OTHER_JOB)], {part: [PARTS[part]]}, LATER)
    assert await everything(held) == before


async def test_a_node_is_written_only_in_the_status_that_was_read(held: Connection) -> None:
    nodes = NodeRepository(held)
    for number, (real, read) in enumerate(product(NodeStatus, NodeStatus)):
        node = await nodes.insert(rows.node(f"n{number}", **_ended(real)))
        row = {**NODE_ROW, "node_id": node.node_id, "before": read, "status": "running"}
        if real is read:
            await write(held, {Part.NODES: [row]})
            assert (await nodes.get(job_id=JOB, node_id=node.node_id)).status is NodeStatus.RUNNING
        else:
            with pytest.raises(StaleVersion):
                await write(held, {Part.NODES: [row]})
            assert await nodes.get(job_id=JOB, node_id=node.node_id) == node


async def test_a_job_is_written_only_in_the_status_that_was_read(held: Connection) -> None:
    jobs = JobRepository(held)
    for number, (real, read) in enumerate(product(JobStatus, JobStatus)):
        job = await jobs.insert(rows.job(f"j{number}", owner_id=OWNER, owner_epoch=1, **_ended(real)))
        row = {"job_id": job.job_id, "before": read, "status": "running"}
        steps = StepRepository(held, OWNER)
        if real is read:
            await steps.write([as_read(job.job_id)], {Part.JOBS: [row]}, LATER)
            assert (await jobs.get(job_id=job.job_id)).status is JobStatus.RUNNING
        else:
            with pytest.raises(StaleVersion):
                await steps.write([as_read(job.job_id)], {Part.JOBS: [row]}, LATER)
            assert await jobs.get(job_id=job.job_id) == job


def _ended(status: str) -> dict[str, Any]:
    """Give what a row in this state must have."""
    reason = {"error_message": "why"} if status == "failed" else {}
    return {"status": status, "ended_at": NOW, **reason} if status in ENDED else {"status": status}


async def test_a_result_is_marked_once(held: Connection) -> None:
    row = await part_row(held, Part.PROCESSED_RESULTS)
    await write(held, {Part.PROCESSED_RESULTS: [row]})
    before = await everything(held)
    with pytest.raises(StaleVersion):
        await write(held, {Part.PROCESSED_RESULTS: [row]})
    assert await everything(held) == before


async def test_a_task_id_that_was_used_is_refused(held: Connection) -> None:
    before = await everything(held)
    with pytest.raises(Conflict):
        await write(held, {Part.NEW_TASKS: [{**NEW_TASK, "task_id": "job_node_0"}], Part.EVENTS: [EVENT]})
    assert await everything(held) == before


@pytest.mark.parametrize("part", [Part.NODES, Part.JOBS])
async def test_a_failure_without_a_reason_is_refused(held: Connection, part: Part) -> None:
    before = await everything(held)
    with pytest.raises(Conflict):
        await write(held, {part: [{**PARTS[part], "status": "failed", "ended_at": LATER}]})
    assert await everything(held) == before


# The lock


async def test_a_held_job_can_neither_be_taken_nor_cancelled_nor_written(pool: Database, held: Connection) -> None:
    async with pool.connection() as step, step.transaction():
        await StepRepository(step, OWNER).hold([as_read()])
        await held.execute("SET lock_timeout = '100ms'")
        for statement in (
            "UPDATE dagapp.dag_jobs SET owner_epoch = owner_epoch + 1",
            "UPDATE dagapp.dag_jobs SET cancel_requested_at = now()",
        ):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await held.execute(statement)
        with pytest.raises(Unavailable):
            await StepRepository(held, OWNER).hold([as_read()])
    await StepRepository(held, OWNER).hold([as_read()])


@pytest.mark.parametrize("stranger", OUTDATED)
async def test_a_job_that_is_not_as_it_was_read_is_not_held(held: Connection, stranger: str) -> None:
    owner, *version = OUTDATED[stranger]
    with pytest.raises(StaleVersion):
        await StepRepository(held, owner).hold([as_read(JOB, *version)])


@pytest.mark.parametrize("part", PARTS)
async def test_a_write_waits_for_whoever_holds_the_job_and_sees_what_it_did(
    pool: Database, held: Connection, part: Part
) -> None:
    row = await part_row(held, part)
    async with pool.connection() as other, other.transaction():
        await other.execute("UPDATE dagapp.dag_jobs SET cancel_requested_at = now(), updated_at = now()")
        writing = asyncio.create_task(write(held, {part: [row]}))
        await waiting_for_a_lock(other)
    with pytest.raises(StaleVersion):
        await writing


# What is read


async def test_the_static_nodes_and_the_new_results_of_each_job_are_read(held: Connection) -> None:
    await JobRepository(held).insert(rows.job("other", owner_id=OWNER, owner_epoch=1))
    await NodeRepository(held).insert(rows.node("node", job_id="other"))
    results = ResultRepository(held)
    for output in ("a", "b", "c"):
        await results.insert(rows.result(output=output, progress=NESTED, metrics={"m": 1}, checkpoint="p"))
    await results.insert(rows.result(job_id="other", status=ResultStatus.RUNNING))
    await results.insert(rows.result(output="old", processed_at=NOW))
    steps = StepRepository(held, OWNER)
    found = await steps.read([JOB, OTHER_JOB], {}, 3)
    snapshot, reported = found[JOB]
    assert (snapshot.job.job_id, snapshot.job.owner_epoch, snapshot.job.status) == (JOB, 1, JobStatus.PENDING)
    assert sorted(snapshot.nodes) == ["node", "split"]
    assert [each.output for each in reported] == [NOT_LOADED, "a", "b"]  # the first is a child's
    assert (reported[1].progress, reported[1].metrics, reported[1].checkpoint) == (NESTED, {"m": 1}, "p")
    assert [each.status for each in found[OTHER_JOB][1]] == [ResultStatus.RUNNING]


async def test_only_the_owners_jobs_are_read(held: Connection) -> None:
    jobs = JobRepository(held)
    await jobs.insert(rows.job("free"))
    await jobs.insert(rows.job("foreign", owner_id="orchestrator-2", owner_epoch=1))
    named = [JobId(name) for name in ("job", "free", "foreign", "nowhere")]
    assert [*await StepRepository(held, OWNER).read(named, {}, 10)] == [JOB]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE dagapp.dag_jobs SET updated_at = updated_at + interval '1 microsecond'",
        "UPDATE dagapp.dag_jobs SET owner_epoch = owner_epoch + 1",
        None,
    ],
)
async def test_what_is_known_of_a_job_is_read_again_only_when_the_job_was_changed(
    held: Connection, change: LiteralString | None
) -> None:
    steps = StepRepository(held, OWNER)
    known = {JOB: (await steps.read([JOB], {}, 10))[JOB][0]}
    if change is not None:
        await held.execute(change)
    (read, results) = (await steps.read([JOB], known, 10))[JOB]
    assert (read is known[JOB]) is (change is None)
    assert read.nodes == known[JOB].nodes
    assert len(results) == 1  # which is read in any case


async def test_a_node_is_read_as_it_was_written(held: Connection) -> None:
    written = {
        **NODE_ROW,
        "status": "running",
        "retry_count": 3,
        "retry_base": 2,
        "task_id": "job_node_3",
        "worker_id": "w",
        "error_message": NASTY,
        "progress": NESTED,
        "input_params": NESTED,
        "output": NESTED,
        "ready_at": NOW,
        "dispatched_at": NOW + timedelta(microseconds=1),
        "started_at": LATER,
        "deadline_at": LATER + timedelta(days=1),
    }
    await write(held, {Part.NODES: [written]})
    steps = StepRepository(held, OWNER)
    state = (await steps.read([JOB], {}, 10))[JOB][0].nodes["node"]
    compared = set(written) - {"job_id", "before", "output_from", "output"}
    assert {name: getattr(state, name) for name in compared} == {name: written[name] for name in compared}
    assert (await steps.outputs(JOB, ["node"]))["node"].output == NESTED


async def test_children_are_read_by_name_and_those_that_failed_apart(held: Connection) -> None:
    steps = StepRepository(held, OWNER)
    found = await steps.children({JOB: ["split__0", "split__2", "split__77", "node"], OTHER_JOB: ["split__0"]})
    assert {"split__0", "split__2"} <= set(found[JOB])
    assert "split__77" not in found[JOB]
    assert OTHER_JOB not in found or not found[OTHER_JOB]
    assert await steps.failed_children(JOB) == {}
    await steps.abandon_children(
        [{"job_id": JOB, "owner_epoch": 1, "parent_node_id": "split", "error_message": "e"}], LATER
    )
    assert sorted(await steps.failed_children(JOB)) == ["split__0", "split__1"]


async def test_the_highest_count_of_each_fan_outs_children(held: Connection) -> None:
    await held.execute("UPDATE dagapp.dag_nodes SET retry_count = 4 WHERE node_id = 'split__1'")
    assert await StepRepository(held, OWNER).last_retry_counts(JOB) == {"split": 4}


# What is written


async def test_a_childs_output_is_copied_from_its_result(held: Connection) -> None:
    await write(held, {Part.COMPLETED_CHILDREN: [await part_row(held, Part.COMPLETED_CHILDREN)]})
    child = await NodeRepository(held).get(job_id=JOB, node_id="split__0")
    assert (child.status, child.output, child.ended_at, child.deadline_at) == ("completed", [1], LATER, None)


@pytest.mark.parametrize(("source", "expected"), [("given", "new"), ("kept", "old"), ("result", [1])])
async def test_an_output_is_given_kept_or_copied(held: Connection, source: str, expected: Any) -> None:
    await held.execute("UPDATE dagapp.dag_nodes SET output = '\"old\"' WHERE node_id = 'node'")
    row = {**NODE_ROW, "output_from": source, "output": "new", "result_id": await result_id(held)}
    await write(held, {Part.NODES: [row]})
    assert (await NodeRepository(held).get(job_id=JOB, node_id="node")).output == expected


async def test_a_job_gets_its_times_as_it_moves(held: Connection) -> None:
    jobs, steps = JobRepository(held), StepRepository(held, OWNER)

    async def move(before: str, status: str, now: Any, **more: Any) -> Any:
        row = {"job_id": JOB, "before": before, "status": status, **more}
        read = (await jobs.get(job_id=JOB)).updated_at
        await steps.write([as_read(updated_at=read)], {Part.JOBS: [row]}, now)
        return await jobs.get(job_id=JOB)

    running = await move("pending", "running", NOW)
    assert (running.started_at, running.ended_at, running.updated_at) == (NOW, None, NOW)
    failed = await move("running", "failed", LATER, error_message="why")
    assert (failed.started_at, failed.ended_at, failed.error_message) == (NOW, LATER, "why")
    await held.execute("UPDATE dagapp.dag_jobs SET cancel_requested_at = now()")
    resumed = await move("failed", "running", LATER)
    assert (resumed.started_at, resumed.ended_at, resumed.error_message) == (NOW, None, None)
    assert resumed.cancel_requested_at is None
    done = await move("running", "completed", LATER, result={"r": [1]}, result_ref=None)
    assert (done.ended_at, done.result) == (LATER, {"r": [1]})


async def test_a_task_is_queued_as_it_is_given(held: Connection) -> None:
    await write(held, {Part.NEW_TASKS: [{**NEW_TASK, "priority": 7, "traceparent": "00-x"}]})
    task = await TaskRepository(held).get(task_id="job_node_1")
    assert (task.priority, task.traceparent, task.params, task.status) == (7, "00-x", NESTED, MessageStatus.QUEUED)
    assert task.created_at == LATER
    assert task.available_at > LATER  # by the database's clock, which decides whether it can be claimed


async def test_events_are_in_order_and_keep_every_character(held: Connection) -> None:
    rows_given = [{**EVENT, "data": {"n": number, "text": NASTY}} for number in range(500)]
    await write(held, {Part.EVENTS: rows_given})
    events = await EventRepository(held).of_job(JOB)
    assert [event.data["n"] for event in events] == [*range(500)]
    assert events[0].data["text"] == NASTY
    assert {event.created_at for event in events} == {LATER}


async def test_more_rows_than_one_statement_carries_are_all_written(
    held: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_parts, "CHUNK", 7)
    children = [{**NEW_NODE, "node_id": f"split__{n}", "fan_out_index": n} for n in range(100, 130)]
    events = [{**EVENT, "data": {"n": number}} for number in range(15)]
    await write(held, {Part.NEW_NODES: children, Part.EVENTS: events, Part.JOBS: [JOB_ROW], Part.NODES: [NODE_ROW]})
    assert len(await NodeRepository(held).of_job(JOB, "split")) == 33  # type: ignore[arg-type]
    assert [event.data["n"] for event in await EventRepository(held).of_job(JOB)] == [*range(15)]


async def test_abandoning_fails_the_children_under_way_alone(held: Connection) -> None:
    row = {"job_id": JOB, "owner_epoch": 1, "parent_node_id": "split", "error_message": "the job failed"}
    await StepRepository(held, OWNER).abandon_children([row], LATER)
    children = await NodeRepository(held).of_job(JOB, "split")  # type: ignore[arg-type]
    assert [child.status for child in children] == ["failed", "failed", "pending"]
    assert (children[0].error_message, children[0].ended_at) == ("the job failed", LATER)


async def test_removing_takes_the_children_of_one_fan_out_alone(held: Connection) -> None:
    nodes = NodeRepository(held)
    await nodes.insert(rows.node("more__0", parent_node_id="more", fan_out_index=0))
    await StepRepository(held, OWNER).remove_children([{"job_id": JOB, "owner_epoch": 1, "parent_node_id": "split"}])
    assert await nodes.of_job(JOB, "split") == []  # type: ignore[arg-type]
    assert len(await nodes.of_job(JOB, "more")) == 1  # type: ignore[arg-type]
    assert await nodes.find(job_id=JOB, node_id="split") is not None


async def test_withdrawing_takes_what_is_queued_or_leased_and_leaves_what_is_done(held: Connection) -> None:
    tasks = TaskRepository(held)
    await tasks.insert(rows.task("done", status="done"))
    await tasks.insert(rows.task("dead", status="dead", dead_reason="r"))
    await StepRepository(held, OWNER).withdraw_tasks([{"job_id": JOB, "owner_epoch": 1}])
    found = {task.task_id: (task.status, task.leased_by) for task in await tasks.of_job(JOB)}
    assert found == {
        "job_node_0": ("withdrawn", None),
        "job_split__0_0": ("withdrawn", None),
        "done": ("done", None),
        "dead": ("dead", None),
    }


async def test_a_task_is_withdrawn_by_name(held: Connection) -> None:
    await StepRepository(held, OWNER).withdraw_tasks([{"job_id": JOB, "owner_epoch": 1, "task_id": "job_node_0"}])
    found = {task.task_id: task.status for task in await TaskRepository(held).of_job(JOB)}
    assert found == {"job_node_0": "withdrawn", "job_split__0_0": "leased"}


async def test_notifications_are_sent_when_the_step_commits_and_not_before(
    held: Connection, database: TestDatabase
) -> None:
    channels = [EVENTS, queue_channel("q"), owner_channel(OWNER)]
    async with await psycopg.AsyncConnection.connect(database.url(), autocommit=True) as listener:
        for channel in channels:
            await listener.execute(f'LISTEN "{channel}"')
        told = [{"channel": channel, "payload": str(number)} for number, channel in enumerate(channels)]
        async with held.transaction():
            await StepRepository(held, OWNER).write([as_read()], {Part.NOTIFICATIONS: told}, NOW)
            assert [each async for each in listener.notifies(timeout=0.2)] == []
        heard = [(each.channel, each.payload) async for each in listener.notifies(timeout=5, stop_after=3)]
    assert heard == [(channel, str(number)) for number, channel in enumerate(channels)]


# New jobs


async def test_jobs_are_added_in_term_one_and_taken_keys_add_nothing(held: Connection) -> None:
    new = {
        "workflow_id": "flow",
        "workflow_version": "1",
        "workflow_hash": rows.HASH,
        "priority": 3,
        "share": "",
        "input_params": NESTED,
    }
    given = [
        {**new, "job_id": "first", "idempotency_key": "k"},
        {**new, "job_id": "second", "idempotency_key": "k"},
        {**new, "job_id": "job"},
        {**new, "job_id": "third"},
    ]
    assert await StepRepository(held, OWNER).add_jobs(given, NOW) == {"first", "third"}
    job = await JobRepository(held).get(job_id="first")
    assert (job.owner_id, job.owner_epoch, job.status, job.input_params) == (OWNER, 1, JobStatus.PENDING, NESTED)
    assert (await JobRepository(held).get(job_id="job")).input_params == {}


# Documents


@pytest.mark.parametrize("value", ["a\0b", ["\0"], {"\0": 1}, {"a": [{"b": "\0"}]}, "\ud800", {1: 2}, object(), "\\\0"])
def test_what_no_row_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        document(value)


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", {"a\\u0000": "u0000"}, NASTY, NESTED, "", [], None, 0])
async def test_every_other_value_goes_to_a_row_and_back(held: Connection, value: Any) -> None:
    assert document(value)
    await write(held, {Part.NODES: [{**NODE_ROW, "output": value}]})
    assert (await NodeRepository(held).get(job_id=JOB, node_id="node")).output == value
