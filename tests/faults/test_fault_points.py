"""A process is killed before and after every commit: nothing is lost, and nothing counts twice."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from tests.chaos.member import Action, Fault
from tests.faults.conftest import on_postgres, over_broker
from tests.faults.installation import Installation, Service, go_on, pause
from tests.faults.queue_user import QueueUser
from tests.faults.ways import (
    AGED_TASK,
    BY_REAPER,
    HELD_MESSAGE,
    NOT_OF_QUEUES,
    OVER_BROKER,
    REAPERS,
    SENT_LONG_AGO,
    WAYS,
    Reached,
    Scene,
)

from graticule.core.fault_points import Commit, Moment
from graticule.core.table import DatabaseRole

BY_QUEUE = (Commit.SEND, Commit.COMPLETE, Commit.DEAD_LETTER)  # only the queue's own protocol reaches these
BY_QUEUE_OVER_BROKER = (Commit.DEAD_LETTER,)
NEVER_OVER_BROKER = {Commit.COMPLETE}  # the broker ends its messages, and the results say it of the tasks
ENDS = [(Moment.BEFORE, Action.KILL), (Moment.AFTER, Action.KILL), (Moment.AFTER, Action.LOSE_ANSWER)]
QUEUE_JOB = """
    WITH flow AS (
        INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
        VALUES (repeat('ab', 32), 'flow', '1', 'Flow',
                '{"workflow_id": "flow", "name": "Flow", "version": "1", "nodes": {}}')
        ON CONFLICT DO NOTHING
    )
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, owner_id, ended_at)
    VALUES (%s, 'flow', '1', repeat('ab', 32), 'cancelled', 'nobody', now())
"""
FORGOTTEN_RESULTS = "DELETE FROM dagapp.dag_task_results WHERE job_id = %s RETURNING error_message"


@dataclass(frozen=True)
class Healthy:
    """What runs from the first test to the last."""

    installation: Installation
    orchestrator: Service
    worker: Service


@pytest.fixture(scope="module")
def healthy(installation: Installation) -> Healthy:
    orchestrator, worker = installation.orchestrator(), installation.worker()
    return Healthy(installation, orchestrator.until_ready(), worker.until_ready())


@pytest.fixture
def visited(healthy: Healthy) -> Iterator[Healthy]:
    """Give the healthy ones; whatever else is started ends with the test."""
    with healthy.installation.visitors():
        yield healthy
    go_on(healthy.orchestrator, healthy.worker)
    healthy.installation.clear()


def test_there_is_a_way_to_every_commit() -> None:
    assert {*(each.commit for each in WAYS), *BY_QUEUE, *BY_REAPER} == {*Commit}
    over_broker = {*(each.commit for each in OVER_BROKER), *BY_QUEUE_OVER_BROKER, *BY_REAPER}
    assert over_broker | NOT_OF_QUEUES | NEVER_OVER_BROKER == {*Commit}
    assert over_broker.isdisjoint(NOT_OF_QUEUES | NEVER_OVER_BROKER)


@on_postgres
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("reached", WAYS, ids=str)
def test_a_process_is_killed_there_and_the_others_bring_every_job_to_its_end(
    visited: Healthy, reached: Reached, moment: Moment
) -> None:
    assert_nothing_is_lost(visited, reached, moment)


@over_broker
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("reached", OVER_BROKER, ids=str)
def test_the_same_holds_while_tasks_and_messages_are_with_a_broker(
    visited: Healthy, reached: Reached, moment: Moment
) -> None:
    assert_nothing_is_lost(visited, reached, moment)


def assert_nothing_is_lost(visited: Healthy, reached: Reached, moment: Moment) -> None:
    """Have a process killed beside the healthy ones, and see that these bring all to its end."""
    fault = Fault(reached.commit, moment, at=reached.at)
    acts = reached.way(Scene(visited.installation, visited.orchestrator, visited.worker, fault))
    member = next(acts)
    assert member.wait(15) == -signal.SIGKILL, member.output
    visited.installation.lapse_leases()
    go_on(visited.orchestrator, visited.worker)
    next(acts, None)
    visited.installation.until_quiet()
    assert visited.installation.violations() == []


def test_all_who_reap_are_killed_there_and_what_they_found_is_not_lost(visited: Healthy) -> None:
    installation = visited.installation
    pause(visited.worker)
    expired, dropped = (installation.submit(visited.orchestrator) for _ in range(2))
    installation.carrier.drop(task["task_id"] for job_id in (expired, dropped) for task in installation.tasks(job_id))
    pause(visited.orchestrator)
    installation.query(AGED_TASK, expired)
    installation.query(SENT_LONG_AGO, dropped)
    installation.leave(HELD_MESSAGE)
    others = [installation.orchestrator(fault) for fault in REAPERS[installation.transport]]
    assert {other.member.wait(15) for other in others} == {-signal.SIGKILL}
    go_on(visited.orchestrator, visited.worker)
    installation.until_quiet()
    assert installation.tasks(expired)[0]["delivery_count"] == 2
    assert installation.violations() == []


@on_postgres
@pytest.mark.parametrize(("moment", "action"), ENDS)
@pytest.mark.parametrize("commit", BY_QUEUE)
def test_a_user_of_the_queue_ends_or_loses_an_answer_and_another_finds_what_is_left(
    installation: Installation, commit: Commit, moment: Moment, action: Action
) -> None:
    assert_the_rest_is_left(installation, Fault(commit, moment, action))


@over_broker
@pytest.mark.parametrize(("moment", "action"), ENDS)
@pytest.mark.parametrize("commit", BY_QUEUE_OVER_BROKER)
def test_the_same_holds_of_a_user_of_a_broker(
    installation: Installation, commit: Commit, moment: Moment, action: Action
) -> None:
    assert_the_rest_is_left(installation, Fault(commit, moment, action))


def assert_the_rest_is_left(installation: Installation, fault: Fault) -> None:
    """Have someone meet the fault at the queue, and see what another finds there."""
    job_id = uuid4().hex
    installation.query(QUEUE_JOB, job_id)
    user = QueueUser(installation.url(DatabaseRole.ORCHESTRATOR), installation.carrier.settings, job_id)
    if fault.commit is not Commit.SEND:
        user.send()
    assert user.deed_with(fault) == (-signal.SIGKILL if fault.action is Action.KILL else 0)
    installation.lapse_leases()
    left = sorted((message.task_id.rpartition("-")[2], message.delivery_count) for message in user.receive())
    reasons = installation.query(
        "SELECT dead_reason FROM dagapp.dag_tasks WHERE job_id = %s AND status = 'dead'", job_id
    )
    results = installation.query(FORGOTTEN_RESULTS, job_id)
    installation.query("DELETE FROM dagapp.dag_jobs WHERE job_id = %s", job_id)
    was_committed = fault.moment is Moment.AFTER
    if fault.commit is Commit.SEND:
        assert left == ([("1", 1), ("2", 1)] if was_committed else [])
    elif fault.commit is Commit.COMPLETE:
        assert left == ([] if was_committed else [("1", 2), ("2", 2)])
    else:
        assert left == ([("2", 2)] if was_committed else [("1", 2), ("2", 2)])
        assert [each["dead_reason"] for each in reasons] == ["no good"] * was_committed
    expected = ["no good"] if fault.commit is Commit.DEAD_LETTER and was_committed else []
    assert [each["error_message"] for each in results] == expected
