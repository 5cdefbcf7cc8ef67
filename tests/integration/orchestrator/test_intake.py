"""Job messages become jobs, once; what can never become one is set aside with the reason."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue
from tests.conftest import TestDatabase
from tests.integration.orchestrator.conftest import NewInstance
from tests.integration.orchestrator.instances import Instance, until, working
from tests.integration.services.engine import flow

from graticule.core.models import Job, JobMessage
from graticule.core.states import JobStatus, MessageStatus
from graticule.orchestrator.intake import Intake
from graticule.repositories.job_views import JobFilter, JobViews
from graticule.repositories.jobs import JobRepository
from graticule.repositories.messages import MessageRepository
from graticule.repositories.tasks import ClaimedTask

QUEUE = "orchestrator-jobs"
NODES = """
  start: {type: start, next: a}
  a: {handler: echo, params: {n: "{{ inputs.n }}"}, next: end}"""
INPUTS = "{n: {type: integer, required: true}}"
FLOW = flow(NODES, inputs=INPUTS)
BY_PARAMS = flow(NODES, inputs=INPUTS, workflow_id="by_params", more="job_id: params")


def echo(task: ClaimedTask) -> JsonValue:
    return task.params


async def send(instance: Instance, message_id: str, body: dict[str, Any] | None = None, **more: Any) -> None:
    now = datetime.now(UTC)
    given = {"workflow_id": "flow", "input_params": {"n": 1}} if body is None else body
    message = JobMessage(
        **{"message_id": message_id, "queue": QUEUE, "body": given, "available_at": now, "created_at": now, **more}
    )
    async with instance.pool.connection() as connection:
        await MessageRepository(connection).send(message)


async def message(instance: Instance, message_id: str) -> JobMessage:
    async with instance.pool.connection() as connection:
        return await MessageRepository(connection).get(message_id=message_id)


async def jobs(instance: Instance) -> list[Job]:
    async with instance.pool.connection() as connection:
        listed = await JobViews(connection).jobs(JobFilter(), limit=1000)
        return await JobRepository(connection).by_ids([job.job_id for job in listed])


def intake(instance: Instance) -> Intake:
    return Intake(instance.settings, instance.pool, instance.jobs, instance.owner_id)


async def test_messages_become_jobs_by_notification_alone(new_instance: NewInstance, database: TestDatabase) -> None:
    async with new_instance(FLOW).running() as instance, working(database, echo):
        for number in range(3):
            await send(instance, f"m{number}", {"workflow_id": "flow", "input_params": {"n": number}})

        async def all_completed() -> bool:
            found = await jobs(instance)
            return len(found) == 3 and all(job.status is JobStatus.COMPLETED for job in found)

        await until(all_completed)
        for number in range(3):
            assert (await message(instance, f"m{number}")).status is MessageStatus.DONE
    assert sorted(job.input_params["n"] for job in await jobs(instance)) == [0, 1, 2]  # type: ignore[type-var]


async def test_messages_that_wait_when_the_loop_begins_become_jobs(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW)
    await send(instance, "m")
    async with instance.running():

        async def is_made() -> bool:
            return len(await jobs(instance)) == 1

        await until(is_made)


async def test_a_message_keeps_all_that_it_says(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW)
    body = {
        "workflow_id": "flow",
        "input_params": {"n": 5},
        "correlation_id": "c",
        "submitted_by": "ann",
        "callback_url": "https://example.org",
        "idempotency_key": "k",
        "priority": 9,
        "submitted_at": "2026-01-01T00:00:00Z",
    }
    await send(instance, "m", body)
    await intake(instance).take()
    (job,) = await jobs(instance)
    assert (job.correlation_id, job.submitted_by, job.callback_url) == ("c", "ann", "https://example.org")
    assert (job.idempotency_key, job.priority, job.input_params) == ("k", 9, {"n": 5})
    assert (job.owner_id, job.owner_epoch) == (instance.owner_id, 1)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "missing input": ({"workflow_id": "flow"}, "'n' is required"),
    "wrong type": ({"workflow_id": "flow", "input_params": {"n": "x"}}, "'n' must be an integer"),
    "unknown input": ({"workflow_id": "flow", "input_params": {"n": 1, "m": 2}}, "'m' is not an input"),
    "no workflow": ({"input_params": {}}, "workflow_id: Field required"),
    "unknown field": ({"workflow_id": "flow", "input_params": {"n": 1}, "x": 1}, "x: Extra inputs"),
    "too long": ({"workflow_id": "flow", "input_params": {"n": 1}, "submitted_by": "x" * 65}, "submitted_by: "),
    "priority": ({"workflow_id": "flow", "input_params": {"n": 1}, "priority": 11}, "priority: "),
    "empty": ({}, "workflow_id: Field required"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_can_never_be_a_job_is_set_aside_with_the_reason(new_instance: NewInstance, name: str) -> None:
    body, reason = BAD[name]
    instance = new_instance(FLOW)
    await send(instance, "good before")
    await send(instance, "bad", body)
    await send(instance, "good after")
    await intake(instance).take()
    dead = await message(instance, "bad")
    assert dead.status is MessageStatus.DEAD
    assert reason in (dead.dead_reason or "")
    assert len(await jobs(instance)) == 2


async def test_a_message_that_says_the_same_twice_is_set_aside_in_words_of_ours(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW)
    await send(instance, "twice", {"workflow_id": "flow", "inputs": {"n": 1}, "input_params": {"n": 1}})
    await intake(instance).take()
    reason = "`inputs` is another name of `input_params`: send only one of them"
    assert (await message(instance, "twice")).dead_reason == reason


async def test_the_request_and_the_asset_of_an_earlier_gateway_claim_nothing(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW)
    body = {"request_id": "req-1", "asset_id": "a7b3c9d2e1f4", "workflow_id": "flow", "inputs": {"n": 1}}
    await send(instance, "from a gateway", body)
    await intake(instance).take()
    (job,) = await jobs(instance)
    assert (job.correlation_id, job.input_params) == ("req-1", {"n": 1})
    assert (job.asset_id, job.version_ordinal, job.purpose, job.share) == (None, None, None, "")


async def test_a_message_for_an_unknown_workflow_is_left_to_those_who_know_it(new_instance: NewInstance) -> None:
    ignorant, knowing = new_instance(), new_instance(FLOW)
    for number in range(20):
        await send(ignorant, f"m{number}")
    await intake(ignorant).take()
    left = [await message(ignorant, f"m{number}") for number in range(20)]
    assert {(each.status, each.delivery_count, each.unknown_since is None) for each in left} == {
        (MessageStatus.QUEUED, 0, False)
    }
    await intake(knowing).take()
    assert {job.owner_id for job in await jobs(ignorant)} == {knowing.owner_id}
    assert len(await jobs(ignorant)) == 20


async def test_a_message_whose_workflow_stays_unknown_is_set_aside_in_the_end(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW, unknown_workflow_seconds=100)
    await send(instance, "m", {"workflow_id": "nowhere"})
    await intake(instance).take()
    await instance.execute("UPDATE dagapp.dag_job_messages SET unknown_since = unknown_since - interval '90 seconds'")
    await intake(instance).take()
    assert (await message(instance, "m")).status is MessageStatus.QUEUED
    await instance.execute("UPDATE dagapp.dag_job_messages SET unknown_since = unknown_since - interval '10 seconds'")
    await intake(instance).take()
    dead = await message(instance, "m")
    assert (dead.status, dead.delivery_count) == (MessageStatus.DEAD, 1)
    assert "There is no workflow 'nowhere'. No orchestrator knew it for 10" in (dead.dead_reason or "")


async def test_a_dead_letter_becomes_a_job_once_its_workflow_is_known(new_instance: NewInstance) -> None:
    """As an older release leaves it, which sets aside what it does not know."""
    ignorant, knowing = new_instance(unknown_workflow_seconds=0), new_instance(FLOW)
    for name in ("recent", "old", "other reason"):
        await send(ignorant, name)
    await intake(ignorant).take()
    await ignorant.execute(
        "UPDATE dagapp.dag_job_messages SET created_at = created_at - interval '2 days' WHERE message_id = 'old'"
    )
    await ignorant.execute("UPDATE dagapp.dag_job_messages SET dead_reason = 'x' WHERE message_id = 'other reason'")
    await intake(knowing).take()
    assert len(await jobs(ignorant)) == 1
    assert (await message(ignorant, "recent")).status is MessageStatus.DONE
    assert (await message(ignorant, "old")).status is MessageStatus.DEAD
    assert (await message(ignorant, "other reason")).status is MessageStatus.DEAD


async def test_an_instance_that_has_enough_leaves_messages_for_the_others(new_instance: NewInstance) -> None:
    first, second = new_instance(FLOW, max_active_jobs=3), new_instance(FLOW)
    for number in range(5):
        await send(first, f"m{number}")
    await intake(first).take()
    assert len(await jobs(first)) == 3
    left = [await message(first, f"m{number}") for number in range(5)]
    assert sum(each.status is MessageStatus.QUEUED and each.delivery_count == 0 for each in left) == 2
    await intake(first).take()
    assert len(await jobs(first)) == 3
    await intake(second).take()
    assert sorted(job.owner_id or "" for job in await jobs(first)) == ["owner-a"] * 3 + ["owner-b"] * 2


async def test_a_full_instance_takes_messages_again_when_it_has_room(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    instance = new_instance(FLOW, max_active_jobs=1, orchestrator_poll_interval=600)  # it waits for no poll
    for number in range(3):
        await send(instance, f"m{number}")
    async with instance.running(), working(database, echo):

        async def all_completed() -> bool:
            return sum(job.status is JobStatus.COMPLETED for job in await jobs(instance)) == 3

        await until(all_completed)


async def test_the_most_urgent_message_is_taken_first(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW, max_active_jobs=1)
    await send(instance, "normal")
    await send(instance, "urgent", priority=10)
    await intake(instance).take()
    assert (await message(instance, "urgent")).status is MessageStatus.DONE
    assert (await message(instance, "normal")).status is MessageStatus.QUEUED


async def test_messages_of_another_queue_are_left(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW, job_queue_name="dag-jobs")
    await send(instance, "other")
    await send(instance, "own", queue="dag-jobs")
    await intake(instance).take()
    assert (await message(instance, "other")).status is MessageStatus.QUEUED
    assert (await message(instance, "own")).status is MessageStatus.DONE


async def test_a_key_that_is_known_ends_the_message_and_makes_no_job(new_instance: NewInstance) -> None:
    instance = new_instance(FLOW)
    for name in ("first", "second"):
        await send(instance, name, {"workflow_id": "flow", "input_params": {"n": 1}, "idempotency_key": "k"})
    await intake(instance).take()
    await send(instance, "third", {"workflow_id": "flow", "input_params": {"n": 2}, "idempotency_key": "k"})
    await intake(instance).take()
    assert len(await jobs(instance)) == 1
    assert {(await message(instance, name)).status for name in ("first", "second", "third")} == {MessageStatus.DONE}


async def test_equal_inputs_in_one_batch_are_one_job_where_the_workflow_says_so(new_instance: NewInstance) -> None:
    instance = new_instance(BY_PARAMS)
    for name in ("first", "second"):
        await send(instance, name, {"workflow_id": "by_params", "input_params": {"n": 1}})
    await intake(instance).take()
    assert len(await jobs(instance)) == 1
    assert (await message(instance, "second")).status is MessageStatus.DONE


async def test_a_message_whose_first_step_cannot_be_taken_does_not_hold_up_the_others(
    new_instance: NewInstance,
) -> None:
    """Its template makes a number that no row can hold."""
    growing = flow(NODES.replace("{{ inputs.n }}", "{{ inputs.n * inputs.n }}"), inputs=INPUTS)
    instance = new_instance(growing)
    await send(instance, "bad", {"workflow_id": "flow", "input_params": {"n": 2**40}}, priority=10)
    await send(instance, "good")
    async with instance.running():

        async def good_is_made() -> bool:
            return (await message(instance, "good")).status is MessageStatus.DONE

        await until(good_is_made, 5)
    bad = await message(instance, "bad")
    assert bad.status in (MessageStatus.DEAD, MessageStatus.DONE)


async def test_a_message_whose_lease_was_lost_makes_no_job(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(FLOW)
    await send(instance, "m")
    claim = MessageRepository.claim

    async def claimed_and_lost(self: MessageRepository, *given: Any, **more: Any) -> list[JobMessage]:
        found = await claim(self, *given, **more)
        await instance.execute("UPDATE dagapp.dag_job_messages SET delivery_count = delivery_count + 1")
        return found

    monkeypatch.setattr(MessageRepository, "claim", claimed_and_lost)
    await intake(instance).take()
    assert await jobs(instance) == []
    async with instance.pool.connection() as connection:
        assert (await MessageRepository(connection).get(message_id="m")).status is MessageStatus.LEASED


async def test_many_messages_among_two_instances_make_each_one_job(new_instance: NewInstance) -> None:
    first, second = new_instance(FLOW), new_instance(FLOW)
    async with first.running(), second.running():
        for number in range(120):
            await send(first, f"m{number}", {"workflow_id": "flow", "input_params": {"n": number}})

        async def all_made() -> bool:
            return len(await jobs(first)) >= 120

        await until(all_made)
    assert sorted(job.input_params["n"] for job in await jobs(first)) == [*range(120)]  # type: ignore[type-var]
