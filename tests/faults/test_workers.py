"""Workers that are killed or paused lose their tasks, and a task that ends its workers is set aside."""

import signal
import time
from typing import Any

import pytest
from tests.chaos.member import Action, Fault
from tests.e2e.eventually import eventually
from tests.faults.installation import Installation, Service

from graticule.core.fault_points import Commit, Moment

LEASE_SECONDS = 1  # see `SHORT_TIMES`


@pytest.fixture(scope="module")
def orchestrator(installation: Installation) -> Service:
    return installation.orchestrator().until_ready()


def told(installation: Installation, job_id: str, event_type: str, node_id: str) -> list[dict[str, Any]]:
    """Give what the events of a type say of a node."""
    query = "SELECT data FROM dagapp.dag_job_events WHERE (job_id, event_type::text, node_id) = (%s, %s, %s)"
    return [row["data"] for row in installation.query(query, job_id, event_type, node_id)]


def results(installation: Installation, task_id: str) -> list[str]:
    """Give who has reported that a task completed."""
    query = "SELECT worker_id FROM dagapp.dag_task_results WHERE task_id = %s AND status = 'completed'"
    return [row["worker_id"] for row in installation.query(query, task_id)]


def test_the_task_of_a_killed_worker_goes_to_another_after_its_lease(
    installation: Installation, orchestrator: Service
) -> None:
    with installation.visitors():
        first, second = installation.worker(), None
        job_id = installation.submit(orchestrator, first_seconds=60, phases=2)
        task = installation.until_leased(job_id)
        eventually(lambda: len(told(installation, job_id, "checkpoint_saved", "first")) == 2, "both phases")
        first_id = installation.worker_id(first)
        first.member.kill()
        began = time.monotonic()
        second = installation.worker()
        second_id = installation.worker_id(second)
        assert installation.until_ended(job_id) == "completed"
        seconds = time.monotonic() - began
    assert installation.tasks(job_id)[0]["delivery_count"] == 2
    assert installation.tasks(job_id)[1]["delivery_count"] == 1
    assert results(installation, task["task_id"]) == [second_id]
    (completed,) = told(installation, job_id, "node_completed", "first")
    assert completed["worker_id"] == second_id != first_id
    assert len(told(installation, job_id, "checkpoint_saved", "first")) == 2, "the second goes on after the last phase"
    assert seconds < LEASE_SECONDS + 5
    assert installation.violations() == []


@pytest.mark.parametrize("second_is_done", [True, False])
def test_a_paused_worker_that_comes_back_cannot_report_for_a_task_that_it_lost(
    installation: Installation, orchestrator: Service, *, second_is_done: bool
) -> None:
    """It is paused when its handler has ended, and its report is next."""
    with installation.visitors():
        first = installation.worker(Fault(Commit.FINISH, Moment.BEFORE, Action.PAUSE))
        job_id = installation.submit(orchestrator, seconds=0 if second_is_done else 1)
        task = installation.until_leased(job_id)
        eventually(lambda: "fault before finish" in first.member.output, "the pause")
        second = installation.worker()
        second_id = installation.worker_id(second)
        if second_is_done:
            assert installation.until_ended(job_id) == "completed"
        else:
            installation.until_leased(job_id, deliveries=2)
        first.member.send(signal.SIGCONT)
        eventually(
            lambda: "a result was not accepted" in first.member.output, lambda: f"a word of it; {first.member.output}"
        )
        assert installation.until_ended(job_id) == "completed"
        installation.until_quiet()
        assert first.member.running
    assert results(installation, task["task_id"]) == [second_id]
    assert [run.moment for run in installation.ledger.read() if run.task_id == task["task_id"]].count("ended") == 2
    assert installation.violations() == []


def test_a_task_that_ends_its_workers_is_a_dead_letter_and_fails_its_node(
    installation: Installation, orchestrator: Service
) -> None:
    job_id = installation.submit(orchestrator, "faults_poison", may_fail=True)
    installation.query("UPDATE dagapp.dag_tasks SET max_deliveries = 2 WHERE job_id = %s", job_id)
    for _ in range(2):
        assert installation.job(job_id)["ended_at"] is None
        assert installation.worker().member.wait() == -signal.SIGKILL
        installation.lapse_leases()
    assert installation.until_ended(job_id) == "failed"
    reason = "poison task: delivered 2 times without a result"
    node = orchestrator.get(f"/api/v1/jobs/{job_id}/nodes/poison")
    assert (node["status"], node["error_message"]) == ("failed", reason)
    assert reason in orchestrator.get(f"/api/v1/jobs/{job_id}")["error_message"]
    (letter,) = orchestrator.get("/api/v1/dead-letters?kind=task")["items"]
    assert (letter["job_id"], letter["node_id"], letter["reason"]) == (job_id, "poison", reason)
    assert (letter["handler"], letter["delivery_count"]) == ("chaos.poison", 2)
    installation.until_quiet()
    assert installation.violations() == []
