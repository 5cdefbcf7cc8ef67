"""A process is killed before and after every commit: nothing is lost, and nothing counts twice."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from tests.chaos.member import Action, Fault
from tests.faults.installation import Installation, Service, go_on, pause
from tests.faults.queue_user import QueueUser
from tests.faults.ways import AGED_MESSAGE, AGED_TASK, WAYS, Scene

from graticule.core.fault_points import Commit, Moment
from graticule.core.table import DatabaseRole

BY_QUEUE = (Commit.SEND, Commit.COMPLETE, Commit.DEAD_LETTER)  # only the queue's own protocol reaches these
BY_REAPER = (Commit.REAP_TASKS, Commit.REAP_MESSAGES)  # which comes two seconds after the start: all are tried at once
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
    assert {*WAYS, *BY_QUEUE, *BY_REAPER} == {*Commit}


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("commit", WAYS)
def test_a_process_is_killed_there_and_the_others_bring_every_job_to_its_end(
    visited: Healthy, commit: Commit, moment: Moment
) -> None:
    scene = Scene(visited.installation, visited.orchestrator, visited.worker, Fault(commit, moment, at=WAYS[commit].at))
    acts = WAYS[commit].way(scene)
    member = next(acts)
    assert member.wait(15) == -signal.SIGKILL, member.output
    visited.installation.lapse_leases()
    go_on(visited.orchestrator, visited.worker)
    next(acts, None)
    visited.installation.until_quiet()
    assert visited.installation.violations() == []


def test_all_who_reap_are_killed_there_and_what_they_found_is_not_lost(visited: Healthy) -> None:
    pause(visited.worker)
    job_id = visited.installation.submit(visited.orchestrator)
    pause(visited.orchestrator)
    visited.installation.query(AGED_TASK, job_id)
    visited.installation.query(AGED_MESSAGE, visited.installation.send())
    faults = [Fault(commit, moment) for commit in BY_REAPER for moment in Moment]
    others = [visited.installation.orchestrator(fault) for fault in faults]
    assert {other.member.wait(15) for other in others} == {-signal.SIGKILL}
    go_on(visited.orchestrator, visited.worker)
    visited.installation.until_quiet()
    assert visited.installation.tasks(job_id)[0]["delivery_count"] == 2
    assert visited.installation.violations() == []


@pytest.mark.parametrize(
    ("moment", "action"),
    [(Moment.BEFORE, Action.KILL), (Moment.AFTER, Action.KILL), (Moment.AFTER, Action.LOSE_ANSWER)],
)
@pytest.mark.parametrize("commit", BY_QUEUE)
def test_a_user_of_the_queue_ends_or_loses_an_answer_and_another_finds_what_is_left(
    installation: Installation, commit: Commit, moment: Moment, action: Action
) -> None:
    job_id = uuid4().hex
    installation.query(QUEUE_JOB, job_id)
    user = QueueUser(installation.url(DatabaseRole.ORCHESTRATOR), job_id)
    if commit is not Commit.SEND:
        user.send()
    code = user.deed_with(Fault(commit, moment, action))
    assert code == (-signal.SIGKILL if action is Action.KILL else 0)
    installation.lapse_leases()
    left = [(message.task_id.rpartition("-")[2], message.delivery_count) for message in user.receive()]
    reasons = installation.query(
        "SELECT dead_reason FROM dagapp.dag_tasks WHERE job_id = %s AND status = 'dead'", job_id
    )
    results = installation.query("SELECT error_message FROM dagapp.dag_task_results WHERE job_id = %s", job_id)
    installation.query("DELETE FROM dagapp.dag_jobs WHERE job_id = %s", job_id)
    was_committed = moment is Moment.AFTER
    if commit is Commit.SEND:
        assert left == ([("1", 1), ("2", 1)] if was_committed else [])
    elif commit is Commit.COMPLETE:
        assert left == ([] if was_committed else [("1", 2), ("2", 2)])
    else:
        assert left == ([("2", 2)] if was_committed else [("1", 2), ("2", 2)])
        assert [each["dead_reason"] for each in reasons] == ["no good"] * was_committed
    expected = ["no good"] if commit is Commit.DEAD_LETTER and was_committed else []
    assert [each["error_message"] for each in results] == expected
