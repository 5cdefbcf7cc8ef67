"""The loop on a real database: found by notification, by poll as a net, each job by its owner alone."""

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

import psycopg
import pytest
from pydantic import JsonValue
from tests.conftest import TestDatabase
from tests.integration.orchestrator.conftest import NewInstance
from tests.integration.orchestrator.instances import Instance, until, working
from tests.integration.services.engine import DONE, READY, SENT, flow

from graticule.core.errors import Unavailable
from graticule.core.ids import JobId, OwnerId
from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus, MessageStatus
from graticule.dag.evaluate import advance
from graticule.orchestrator import loop as loop_module
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.tasks import ClaimedTask
from graticule.services import step_reading
from graticule.services.jobs import Submission

FLOW = flow("""
  start: {type: start, next: a}
  a: {handler: echo, params: {items: [1, 2, 3]}, next: split}
  split:
    type: fan_out
    source: "{{ nodes.a.output.items }}"
    max_parallel: 2
    task: {handler: echo, params: {i: "{{ item }}"}}
    next: merge
  merge: {type: fan_in, aggregation: sum, next: last}
  last: {handler: echo, params: {total: "{{ nodes.merge.output.total }}"}, next: end}""")
ECHO = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: end}""")
RETRY = flow("""
  start: {type: start, next: a}
  a: {handler: echo, retry: {max_attempts: 3, initial_delay_seconds: 0.3, backoff: fixed, jitter: false}, next: end}""")
WIDE = flow(
    """
  start: {type: start, next: split}
  split:
    type: fan_out
    source: "{{ range(inputs.n) | list }}"
    task: {handler: echo, params: {i: "{{ item }}"}}
    next: merge
  merge: {type: fan_in, aggregation: sum, next: end}""",
    inputs="{n: {type: integer, default: 1}}",
)


def echo(task: ClaimedTask) -> JsonValue:
    return task.params


async def submitted(instance: Instance, count: int) -> list[JobId]:
    made = await instance.jobs.submit_many([Submission(workflow_id="flow")] * count)
    return [each.job.job_id for each in made]


# What moves it


async def test_a_job_runs_by_notifications_alone(new_instance: NewInstance, database: TestDatabase) -> None:
    async with new_instance(FLOW).running() as instance, working(database, echo):
        job_id = await instance.submit()
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]
    assert (await instance.job(job_id)).result == {"total": 6}


async def test_jobs_that_are_there_before_the_loop_are_found_when_it_begins(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    instance = new_instance(ECHO)
    job_id = await instance.submit()
    await instance.report(await instance.task_of(job_id, "a"), output="reported while the loop was away")
    async with instance.running():
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]


async def test_a_result_of_which_nobody_told_is_found_by_the_poll(new_instance: NewInstance) -> None:
    async with new_instance(ECHO, orchestrator_poll_interval=0.1).running() as instance:
        job_id = await instance.submit()
        await instance.report(await instance.task_of(job_id, "a"), output="untold")
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]


async def test_without_word_and_without_poll_nothing_is_looked_at(new_instance: NewInstance) -> None:
    """The opposite of the two above: else they would prove nothing."""
    instance = new_instance(ECHO)
    instance.looks_away()
    async with instance.running():
        job_id = await instance.submit()
        await instance.report(await instance.task_of(job_id, "a"), output="untold")
        await asyncio.sleep(0.5)
        assert await instance.status(job_id) is JobStatus.RUNNING


async def test_a_node_that_waits_for_a_worker_says_so(
    new_instance: NewInstance, admin: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "NOTE_WAITING_EVERY_SECONDS", 0.05)
    async with new_instance(ECHO).running() as instance:
        job_id = await instance.submit()
        await admin.execute("UPDATE dagapp.dag_tasks SET available_at = available_at - interval '61 seconds'")

        async def is_noted() -> bool:
            return any(event.event_type is EventType.NODE_WAITING_FOR_WORKER for event in await instance.events(job_id))

        await until(is_noted)


async def test_a_retry_fires_at_its_time(new_instance: NewInstance, database: TestDatabase) -> None:
    def flaky(task: ClaimedTask) -> JsonValue:
        if task.retry_count < 2:
            raise LookupError("flaky")
        return "at last"

    async with new_instance(RETRY).running() as instance, working(database, flaky):
        job_id = await instance.submit()
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]
    events = [event for event in await instance.events(job_id) if event.node_id == "a"]
    retried = [event for event in events if event.event_type == "node_retry"]
    sent = [event.created_at for event in events if event.event_type == "node_dispatched"][1:]
    due = [datetime.fromisoformat(str(event.data["ready_at"])) for event in retried]
    assert len(sent) == len(due) == 2
    assert all(0 <= (at - wanted).total_seconds() < 5 for at, wanted in zip(sent, due, strict=True))


async def test_a_retry_of_another_owner_is_taken_over_with_the_job(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    first, second = new_instance(RETRY), new_instance(RETRY)
    job_id = await first.submit()
    await first.fail(job_id, "a", retryable=True)
    async with second.running(), working(database, echo):
        async with first.running():
            pass
        assert await second.ended(job_id) == [JobStatus.COMPLETED]


async def test_a_deadline_is_found_by_the_poll(new_instance: NewInstance) -> None:
    async with new_instance(ECHO, orchestrator_poll_interval=0.1).running() as instance:
        job_id = await instance.submit()
        await instance.let_pass(3601)

        async def is_failed_once() -> bool:
            return (await instance.node(job_id, "a")).status is READY

        await until(is_failed_once)
    assert (await instance.trace(job_id)).count("node_failed") == 1


async def test_a_lease_that_ran_out_is_given_to_another_worker(
    new_instance: NewInstance, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "REAP_EVERY_SECONDS", 0.05)
    instance = new_instance(ECHO)
    job_id = await instance.submit()
    await instance.claim("worker-that-dies")
    await instance.execute("UPDATE dagapp.dag_tasks SET lease_expires_at = now() - interval '1 second'")
    async with instance.running(), working(database, echo):
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]
    (task,) = await instance.tasks(job_id, None)
    assert (task.status, task.delivery_count) == (MessageStatus.DONE, 2)


# Load


async def test_what_comes_while_steps_are_taken_is_one_batch(new_instance: NewInstance) -> None:
    instance = new_instance(ECHO)
    instance.looks_away()
    jobs = await submitted(instance, 40)
    gate, advance_jobs = asyncio.Event(), instance.steps.advance

    async def held_up(wakes: Any) -> Any:
        await gate.wait()
        return await advance_jobs(wakes)

    instance.steps.advance = held_up  # type: ignore[method-assign]
    async with instance.running():
        for job_id in jobs:
            await instance.report(await instance.task_of(job_id, "a"))
            instance.loop._inbox.add(job_id)
        gate.set()
        assert set(await instance.ended(*jobs)) == {JobStatus.COMPLETED}
    assert len(instance.batches) <= 4
    assert sum(map(len, instance.batches)) == len(jobs)


async def test_a_fan_out_of_thousands_goes_through_many_batches(
    new_instance: NewInstance, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 300)
    async with new_instance(WIDE).running() as instance, working(database, lambda task: task.params["i"]):
        job_id = await instance.submit(n=2000)
        await until(lambda: _is_ended(instance, job_id), 60)
    assert (await instance.job(job_id)).result == {"total": 1999 * 1000, "count": 2000}


async def test_results_beyond_one_step_are_taken_without_another_word(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 5)
    instance = new_instance(WIDE)
    job_id = await instance.submit(n=23)
    for task in await instance.tasks(job_id):
        await instance.report(task, output=1)
    async with instance.running():
        assert await instance.ended(job_id) == [JobStatus.COMPLETED]
    assert len(instance.batches) >= 5


async def _is_ended(instance: Instance, job_id: JobId) -> bool:
    return (await instance.job(job_id)).ended_at is not None


async def test_many_jobs_at_once_all_complete(new_instance: NewInstance, database: TestDatabase) -> None:
    async with new_instance(ECHO).running() as instance, working(database, echo):
        jobs = await submitted(instance, 150)
        assert Counter(await instance.ended(*jobs)) == {JobStatus.COMPLETED: 150}


# One job harms no other


async def test_a_job_that_breaks_the_evaluator_fails_alone(
    new_instance: NewInstance, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(ECHO)
    jobs = await submitted(instance, 10)

    def decide(graph: Any, state: Any, *given: Any) -> Any:
        if state.job_id == jobs[3]:
            raise ZeroDivisionError
        return advance(graph, state, *given)

    monkeypatch.setattr("graticule.services.steps.advance", decide)
    async with instance.running(), working(database, echo):
        ended = await instance.ended(*jobs)
    assert ended.pop(3) is JobStatus.FAILED
    assert set(ended) == {JobStatus.COMPLETED}


async def test_a_job_whose_step_cannot_be_written_fails_alone(new_instance: NewInstance) -> None:
    growing = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {n: "{{ '\\\\x00' if nodes.a.output > 2 else 'b' }}"}, next: end}""")
    instance = new_instance(growing)
    jobs = await submitted(instance, 5)
    for number, job_id in enumerate(jobs):
        await instance.report(await instance.task_of(job_id, "a"), output=3 if number == 2 else 2)
    async with instance.running():
        await instance.ended(jobs[2])

        async def others_went_on() -> bool:
            return all([(await instance.node(each, "a")).status is DONE for each in jobs if each != jobs[2]])

        await until(others_went_on)
    assert await instance.status(jobs[2]) is JobStatus.FAILED


async def test_the_loop_goes_on_after_its_connections_were_lost(
    new_instance: NewInstance, database: TestDatabase, admin: psycopg.AsyncConnection
) -> None:
    async with new_instance(ECHO, orchestrator_poll_interval=0.2).running() as instance:
        job_id = await instance.submit()
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        async with working(database, echo):
            await until(lambda: _is_completed(instance, job_id))


async def _is_completed(instance: Instance, job_id: JobId) -> bool:
    try:
        return await instance.status(job_id) is JobStatus.COMPLETED
    except Exception:
        return False


# Cancel and resume while loops run


async def test_a_cancel_by_another_instance_is_heard_at_once(new_instance: NewInstance) -> None:
    first, second = new_instance(ECHO), new_instance(ECHO)
    async with first.running(), second.running():
        job_id = await first.submit()
        await second.jobs.cancel(job_id, "ann")
        assert await first.ended(job_id) == [JobStatus.CANCELLED]
    assert (await first.job(job_id)).owner_id == "owner-a"


async def test_a_job_that_another_instance_resumes_goes_on_there(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    first, second = new_instance(ECHO), new_instance(ECHO)
    job_id = await first.submit()
    await first.fail(job_id, "a")
    async with first.running(), second.running(), working(database, echo):
        await second.jobs.resume(job_id)
        assert await second.ended(job_id) == [JobStatus.COMPLETED]
    assert (await first.job(job_id)).owner_id == "owner-b"


# Idle


async def test_an_idle_instance_asks_almost_nothing(new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings that are shipped, and with jobs that wait for workers."""
    shipped = {
        "orchestrator_poll_interval": 5.0,
        "heartbeat_interval_seconds": 30.0,
        "orphan_scan_interval_seconds": 5.0,
    }
    instance = new_instance(ECHO, **shipped)
    jobs = await submitted(instance, 300)
    asked: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def counted(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        asked.append(str(query))
        return await execute(self, query, *given, **more)

    async with instance.running():
        await asyncio.sleep(0.5)
        monkeypatch.setattr(psycopg.AsyncCursor, "execute", counted)
        await asyncio.sleep(6)
        monkeypatch.undo()
        counted_batches = len(instance.batches)
    assert 0 < len(asked) <= 6 * 4, Counter(asked)
    assert counted_batches == 0
    assert (await instance.node(jobs[0], "a")).status is SENT


async def test_a_look_around_that_failed_is_repeated_at_once(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(ECHO)
    job_id = await instance.submit()
    await instance.report(await instance.task_of(job_id, "a"), output=1)  # nobody hears of it
    looks = OwnershipRepository.waiting_jobs
    failures = iter([Unavailable("The connection was lost.")] * 3)

    async def failing(self: OwnershipRepository, owner_id: OwnerId) -> list[JobId]:
        for failure in failures:
            raise failure
        return await looks(self, owner_id)

    monkeypatch.setattr(OwnershipRepository, "waiting_jobs", failing)
    async with instance.running():

        async def has_gone_on() -> bool:
            return (await instance.node(job_id, "a")).status is DONE

        await until(has_gone_on, 10)
