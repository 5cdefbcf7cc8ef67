"""What a report does to a node in each state, and what it must not do."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.dag.jobs import BEGINNING, PlayedJob, end, graph, start, task, told

from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag.graph import Graph
from graticule.dag.state import DeadlinePassed, NodeState, Policy, Reported

CURRENT = "job_work_0"

# What becomes of the node, by its status and the report's: everything else leaves it as it is.
OUTCOMES = {
    (NodeStatus.DISPATCHED, ResultStatus.RUNNING): NodeStatus.RUNNING,
    (NodeStatus.DISPATCHED, ResultStatus.COMPLETED): NodeStatus.COMPLETED,
    (NodeStatus.DISPATCHED, ResultStatus.FAILED): NodeStatus.READY,
    (NodeStatus.DISPATCHED, ResultStatus.CANCELLED): NodeStatus.READY,
    (NodeStatus.RUNNING, ResultStatus.COMPLETED): NodeStatus.COMPLETED,
    (NodeStatus.RUNNING, ResultStatus.FAILED): NodeStatus.READY,
    (NodeStatus.RUNNING, ResultStatus.CANCELLED): NodeStatus.READY,
}


def drawn() -> Graph:
    return graph(start("work"), task("work", "after", timeout_seconds=100), task("after", "end"), end())


def job_in(status: NodeStatus, job_status: JobStatus = JobStatus.RUNNING) -> PlayedJob:
    """Put a job by force into a state in which the node has its first attempt."""
    job = PlayedJob(drawn())
    ended = status in (NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED)
    job.store.status = job_status
    job.store.rows["start"] = NodeState("start", NodeType.START, NodeStatus.COMPLETED, ended_at=BEGINNING)
    job.store.rows["work"] = NodeState(
        "work",
        NodeType.TASK,
        status,
        task_id=CURRENT,
        worker_id="w1" if status is NodeStatus.RUNNING else None,
        input_params={},
        ended_at=BEGINNING if ended else None,
        ready_at=BEGINNING + timedelta(hours=1) if status is NodeStatus.READY else None,
    )
    job.store.rows["after"].status = NodeStatus.DISPATCHED  # not to be moved by what follows
    return job


@pytest.mark.parametrize("report", list(ResultStatus))
@pytest.mark.parametrize("status", [status for status in NodeStatus if status is not NodeStatus.PENDING])
def test_every_status_with_every_report(status: NodeStatus, report: ResultStatus) -> None:
    job = job_in(status)
    job.happen(Reported(CURRENT, "work", report, worker_id="w1"))
    assert job.node_status("work") is OUTCOMES.get((status, report), status)


@pytest.mark.parametrize("report", list(ResultStatus))
@pytest.mark.parametrize("status", [status for status in NodeStatus if status is not NodeStatus.PENDING])
def test_a_report_of_another_attempt_is_told_of_and_changes_nothing(status: NodeStatus, report: ResultStatus) -> None:
    job = job_in(status)
    decision = job.happen(Reported("job_work_9", "work", report, worker_id="w1"))
    assert told(decision) == [("result_ignored", "work")]
    assert decision.changes == []
    assert decision.events[0].data["task_id"] == "job_work_9"
    assert decision.events[0].data["status"] == report
    assert decision.events[0].data["reason"]


@pytest.mark.parametrize("report", list(ResultStatus))
@pytest.mark.parametrize("status", [NodeStatus.READY, NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED])
def test_a_report_of_a_node_that_is_not_under_way_is_told_of(status: NodeStatus, report: ResultStatus) -> None:
    decision = job_in(status).happen(Reported(CURRENT, "work", report))
    assert told(decision) == [("result_ignored", "work")]
    assert decision.changes == []


@pytest.mark.parametrize("report", list(ResultStatus))
@pytest.mark.parametrize("job_status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
def test_a_report_to_an_ended_job_is_told_of(job_status: JobStatus, report: ResultStatus) -> None:
    decision = job_in(NodeStatus.RUNNING, job_status).happen(Reported(CURRENT, "work", report))
    assert told(decision) == [("result_ignored", "work")]
    assert (decision.changes, decision.job_status) == ([], job_status)


def test_a_report_of_an_unknown_node_is_told_of() -> None:
    job = PlayedJob(drawn())
    job.submit()
    decision = job.happen(Reported("job_ghost_0", "ghost", ResultStatus.COMPLETED))
    assert told(decision) == [("result_ignored", "ghost")]


def test_a_result_may_overtake_the_running_report() -> None:
    job = PlayedJob(drawn())
    job.submit()
    running = job.report("work", ResultStatus.RUNNING)
    job.complete("work", output={"a": 1})
    assert job.store.rows["work"].output == {"a": 1}
    assert told(job.happen(running)) == [("result_ignored", "work")]


def test_running_sets_worker_start_and_deadline() -> None:
    job = PlayedJob(drawn(), policy=Policy(running_grace_seconds=7))
    job.submit()
    job.wait(5)
    decision = job.run("work", worker_id="w3")
    row = job.store.rows["work"]
    assert (row.worker_id, row.started_at) == ("w3", job.now)
    assert row.deadline_at == job.now + timedelta(seconds=107)
    assert told(decision) == [("node_running", "work")]


def test_a_repeated_running_report_is_nothing() -> None:
    job = PlayedJob(drawn())
    job.submit()
    job.run("work")
    job.wait(5)
    decision = job.run("work")
    assert (decision.events, decision.changes) == ([], [])


def test_another_worker_takes_over() -> None:
    job = PlayedJob(drawn())
    job.submit()
    job.run("work", worker_id="w1")
    job.wait(50)
    decision = job.run("work", worker_id="w2")
    assert told(decision) == [("node_running", "work")]
    assert decision.events[0].data == {"worker_id": "w2"}
    assert job.store.rows["work"].worker_id == "w2"
    assert job.store.rows["work"].deadline_at == job.now + timedelta(seconds=160)


def test_progress_and_checkpoint_are_told() -> None:
    job = PlayedJob(drawn())
    job.submit()
    decision = job.run("work", progress={"done": 1, "total": 2}, checkpoint="first")
    assert told(decision) == [("node_running", "work"), ("node_progress", "work"), ("checkpoint_saved", "work")]
    assert job.store.rows["work"].progress == {"done": 1, "total": 2}
    assert decision.events[1].data == {"done": 1, "total": 2}
    assert decision.events[2].data == {"phase": "first"}
    deadline = job.store.rows["work"].deadline_at
    job.wait(10)
    assert told(job.run("work", progress={"done": 2, "total": 2})) == [("node_progress", "work")]
    assert job.store.rows["work"].deadline_at == deadline


@pytest.mark.parametrize("status", [ResultStatus.COMPLETED, ResultStatus.FAILED, ResultStatus.CANCELLED])
def test_the_last_progress_comes_with_the_end(status: ResultStatus) -> None:
    job = PlayedJob(drawn())
    job.submit()
    decision = job.happen(job.report("work", status, progress={"done": 2, "total": 2}, retryable=False))
    ended = "node_completed" if status is ResultStatus.COMPLETED else "node_failed"
    assert told(decision)[:2] == [("node_progress", "work"), (ended, "work")]
    assert decision.events[0].data == {"done": 2, "total": 2}
    assert job.store.rows["work"].progress == {"done": 2, "total": 2}


def test_completion_keeps_output_reference_and_metrics() -> None:
    job = PlayedJob(drawn())
    job.submit()
    decision = job.happen(job.report("work", output={"a": 1}, output_ref="far/away", metrics={"rows": 3}))
    row = job.store.rows["work"]
    assert (row.output, row.output_ref, row.ended_at, row.deadline_at) == ({"a": 1}, "far/away", job.now, None)
    assert decision.events[0].data == {"worker_id": "w1", "metrics": {"rows": 3}}
    assert decision.events[0].task_id == CURRENT


def test_two_completions_in_one_batch_count_once() -> None:
    job = PlayedJob(drawn())
    job.submit()
    first = job.report("work", output=1)
    decision = job.happen(first, replace(first, output=2))
    assert job.store.rows["work"].output == 1
    assert told(decision)[:2] == [("node_completed", "work"), ("result_ignored", "work")]
    assert [new.node_id for new in decision.tasks] == ["after"]


@pytest.mark.parametrize("node_id", ["start", "end", "ghost", "after"])
def test_the_deadline_of_a_node_that_is_not_under_way_is_nothing(node_id: str) -> None:
    job = PlayedJob(drawn())
    job.submit()
    decision = job.happen(DeadlinePassed(node_id))
    assert (decision.events, decision.changes) == ([], [])


def test_the_state_that_was_given_is_never_changed() -> None:
    job = PlayedJob(drawn())
    job.submit()
    state = job.store.load([], job.now)
    before = {node_id: replace(node) for node_id, node in state.nodes.items()}
    job.store.decide([job.report("work", output={"a": 1})], job.now)
    assert state.nodes == before
