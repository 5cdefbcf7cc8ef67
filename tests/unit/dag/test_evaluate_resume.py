"""A failed job goes on, and computes nothing twice."""

import pytest
from tests.unit.dag.jobs import PlayedJob, conditional, end, fan_in, fan_out, graph, split_graph, start, task, told

from graticule.core.errors import Conflict, NotFound
from graticule.core.models.engine import EventType
from graticule.core.states import ResultStatus
from graticule.dag.graph import Graph
from graticule.dag.state import CancelRequested, Resumed


def chain() -> Graph:
    return graph(start("a"), task("a", "b"), task("b", "c"), task("c", "end"), end())


def failed_chain() -> PlayedJob:
    job = PlayedJob(chain())
    job.submit()
    job.complete("a", output="from a")
    job.fail("b")
    return job


def test_failed_nodes_run_again_and_completed_ones_are_kept() -> None:
    job = failed_chain()
    decision = job.resume()
    assert job.status == "running"
    assert job.store.error_message is None
    assert [new.task_id for new in decision.tasks] == ["job_b_1"]
    assert job.statuses["a"] == "completed"
    job.complete("b")
    job.complete("c", output="end")
    assert (job.status, job.store.result) == ("completed", "end")


def test_the_events_of_a_resume() -> None:
    decision = failed_chain().resume()
    assert told(decision) == [("job_resumed", None), ("node_ready", "b"), ("node_dispatched", "b")]
    assert decision.events[0].data == {"ready": ["b"], "reset": [], "removed_children_of": []}
    assert decision.events[0].actor == "operator"


def test_a_resumed_node_has_a_fresh_budget_and_new_task_ids() -> None:
    job = PlayedJob(chain())
    job.submit()
    tries = 4  # three retries are the default
    for _ in range(2):
        for _ in range(tries):
            job.fail("a", retryable=True)
            job.wait(60)
            if job.status == "running":
                job.happen()
        assert job.status == "failed"
        job.resume()
    assert job.store.rows["a"].task_id == "job_a_8"
    assert sorted(job.store.tasks) == [f"job_a_{attempt}" for attempt in range(9)]


def test_everything_that_was_cancelled_with_the_job_goes_on() -> None:
    drawn = graph(start("a", "b", "c"), task("a", "end"), task("b", "end"), task("c", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    late = job.report("b", output="late")
    job.fail("c", retryable=True)
    job.fail("a")
    decision = job.resume()
    assert [new.task_id for new in decision.tasks] == ["job_a_1", "job_b_1"]
    assert told(job.happen(late)) == [("result_ignored", "b")]
    job.wait(60)
    assert [new.task_id for new in job.happen().tasks] == ["job_c_1"]


def test_a_node_that_was_ready_when_the_job_failed_is_dispatched() -> None:
    drawn = graph(
        start("good", "split", "bad"),
        task("good", "end"),
        fan_out("split", "end", source=[1, 2]),
        task("bad", "end", params={"a": "{{ inputs.later }}"}),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    assert job.status == "failed"
    job.store.inputs = {"later": 1}
    decision = job.resume()
    assert [new.node_id for new in decision.tasks] == ["good", "bad", "split__0", "split__1"]


def test_failed_children_run_again_without_a_new_expansion() -> None:
    job = PlayedJob(split_graph([*range(5)], max_parallel=3))
    job.submit()
    job.complete("split__0", output=0)
    job.fail("split__2")
    assert [str(child.status) for child in job.store.children("split")] == [
        "completed",
        "failed",
        "failed",
        "failed",
        "pending",
    ]
    decision = job.resume()
    assert (decision.created, decision.removed_children_of) == ([], [])
    assert [new.task_id for new in decision.tasks] == ["job_split__1_1", "job_split__2_1", "job_split__3_1"]
    assert job.statuses == {"start": "completed", "split": "running", "merge": "ready", "end": "pending"}
    row = job.store.rows["split"]
    assert (row.children_total, row.children_started, row.children_done, row.children_failed) == (5, 4, 1, 0)
    job.complete("split__1", "split__2", "split__3", output=1)
    job.complete("split__4", output=4)
    assert (job.status, job.store.result) == ("completed", {"results": [0, 1, 1, 1, 4], "count": 5})


def test_the_events_of_resumed_children() -> None:
    job = PlayedJob(split_graph([*range(5)]))
    job.submit()
    job.complete("split__2")
    job.fail("split__0")
    decision = job.resume()
    ranges = [
        (event.event_type, event.data["from"], event.data["to"]) for event in decision.events if "from" in event.data
    ]
    assert ranges == [("node_ready", 0, 1), ("node_ready", 3, 4), ("node_dispatched", 0, 1), ("node_dispatched", 3, 4)]


def test_a_tolerated_failure_stays_when_a_cancelled_fan_out_goes_on() -> None:
    drawn = graph(
        start("split", "bad"),
        fan_out("split", "merge", source=[*range(4)], on_child_failure="continue", max_parallel=2),
        fan_in("merge", "end"),
        task("bad", "end"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.fail("split__0", "tolerated")
    job.fail("bad")
    decision = job.resume()
    assert [new.task_id for new in decision.tasks] == ["job_bad_1", "job_split__1_1", "job_split__2_1"]
    assert job.node_status("split__0") == "failed"
    job.complete("split__1", "split__2", "bad")
    job.complete("split__3")
    assert job.status == "completed"
    failed = job.store.rows["merge"].output["failed"]  # type: ignore[call-overload,index]
    assert [entry["error"] for entry in failed] == ["tolerated"]  # type: ignore[union-attr,call-overload,index]


def test_a_fan_out_that_failed_before_its_expansion_is_expanded() -> None:
    job = PlayedJob(split_graph("{{ inputs.items }}"), inputs={"items": "text"})
    job.submit()
    job.store.inputs = {"items": [1, 2]}
    decision = job.resume()
    assert [new.task_id for new in decision.tasks] == ["job_split__0_0", "job_split__1_0"]


def test_a_fan_out_whose_last_child_completed_as_the_job_failed_completes() -> None:
    drawn = graph(start("split", "bad"), fan_out("split", "end", source=[1]), task("bad", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    bad = job.report("bad", ResultStatus.FAILED, error_message="x", retryable=False)
    job.happen(job.report("split__0"), bad)
    assert (job.statuses["split"], job.node_status("split__0")) == ("failed", "completed")
    job.resume()
    assert job.statuses["split"] == "completed"


def test_a_fan_in_that_failed_with_its_fan_out_waits_for_all_its_edges_again() -> None:
    drawn = graph(
        start("split", "slow"),
        fan_out("split", "merge", source=[1]),
        task("slow", "merge"),
        fan_in("merge", "end"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.fail("split__0")
    job.resume()
    job.complete("split__0")
    assert job.statuses["merge"] == "ready"
    job.complete("slow")
    assert job.status == "completed"


def test_a_node_whose_edges_closed_as_the_job_failed_runs() -> None:
    drawn = graph(start("a", "bad"), task("a", "b"), task("b", "end"), task("bad", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    bad = job.report("bad", ResultStatus.FAILED, error_message="x", retryable=False)
    job.happen(job.report("a"), bad)
    assert job.statuses["b"] == "pending"
    assert [new.task_id for new in job.resume().tasks] == ["job_b_0", "job_bad_1"]


def test_children_that_a_resume_could_not_dispatch_are_due() -> None:
    drawn = graph(
        start("split", "a"),
        fan_out("split", "end", source=[1, 2]),
        task("a", "bad"),
        task("bad", "end", params={"x": "{{ inputs.later }}"}),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.complete("a")
    job.resume()
    assert job.status == "failed"
    assert job.statuses["split"] == "ready"
    assert [(str(child.status), child.ready_at) for child in job.store.children("split")] == [("ready", job.now)] * 2
    job.store.inputs = {"later": 1}
    decision = job.resume()
    assert [new.task_id for new in decision.tasks] == ["job_bad_2", "job_split__0_1", "job_split__1_1"]


# From one node


def test_a_named_node_and_all_downstream_start_over() -> None:
    job = failed_chain()
    decision = job.resume("a")
    assert [new.task_id for new in decision.tasks] == ["job_a_1"]
    assert job.statuses == {"start": "completed", "a": "dispatched", "b": "pending", "c": "pending", "end": "pending"}
    assert decision.events[0].data["ready"] == ["a"]
    assert decision.events[0].data["reset"] == ["b"]
    assert job.store.rows["a"].output is None
    assert (job.store.rows["b"].error_message, job.store.rows["b"].task_id) == (None, None)
    job.complete("a")
    assert job.store.rows["b"].task_id == "job_b_1"


def test_parameters_downstream_are_rendered_anew() -> None:
    drawn = graph(start("a"), task("a", "b"), task("b", "end", params={"of": "{{ nodes.a.output }}"}), end())
    job = PlayedJob(drawn)
    job.submit()
    job.complete("a", output="old")
    job.fail("b")
    job.resume("a")
    decision = job.complete("a", output="new")
    assert decision.tasks[0].params == {"of": "new"}


def test_other_failed_nodes_go_on_too() -> None:
    drawn = graph(start("a", "x"), task("a", "b"), task("b", "end"), task("x", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    job.complete("a")
    job.fail("x")
    decision = job.resume("a")
    assert [new.task_id for new in decision.tasks] == ["job_a_1", "job_x_1"]
    assert job.statuses["b"] == "pending"


def test_a_fan_out_downstream_loses_its_children_and_never_repeats_a_task_id() -> None:
    drawn = graph(
        start("list"),
        task("list", "split"),
        fan_out("split", "merge", source="{{ nodes.list.output }}"),
        fan_in("merge", "last"),
        task("last", "end"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    for attempt in range(3):
        job.complete("list", output=[1, 2])
        assert job.store.rows["split__1"].task_id == f"job_split__1_{attempt}"
        job.complete("split__0", "split__1")
        job.fail("last")
        decision = job.resume("list")
        assert decision.removed_children_of == ["split"]
        assert job.store.children("split") == []
        assert job.store.rows["split"].children_total == 0
        assert decision.events[0].data["removed_children_of"] == ["split"]


def test_a_named_fan_out_is_expanded_anew() -> None:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.complete("split__0")
    job.fail("split__1")
    decision = job.resume("split")
    assert decision.removed_children_of == ["split"]
    assert [(child.node_id, child.retry_count, child.retry_base) for child in decision.created] == [
        ("split__0", 1, 1),
        ("split__1", 1, 1),
    ]
    job.complete("split__0", "split__1", output="new")
    assert job.store.result == {"results": ["new", "new"], "count": 2}


def test_old_children_that_wait_for_a_retry_are_gone_too() -> None:
    job = PlayedJob(split_graph("{{ inputs.items }}"), inputs={"items": [1, 2, 3]})
    job.submit()
    job.fail("split__2", retryable=True)
    job.fail("split__0")
    job.wait(60)
    job.store.inputs = {"items": [1]}
    assert [new.task_id for new in job.resume("split").tasks] == ["job_split__0_2"]
    job.complete("split__0")
    assert job.status == "completed"


def test_a_conditional_decides_anew() -> None:
    drawn = graph(
        start("check"),
        task("check", "route"),
        conditional("route", ("nodes.check.output > 1", "a"), (None, "b")),
        task("a", "end"),
        task("b", "end"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.complete("check", output=5)
    job.fail("a")
    job.resume("check")
    decision = job.complete("check", output=0)
    assert [new.node_id for new in decision.tasks] == ["b"]
    assert job.statuses["a"] == "skipped"


def test_from_the_start_everything_runs_again() -> None:
    job = failed_chain()
    decision = job.resume("start")
    assert [new.task_id for new in decision.tasks] == ["job_a_1"]
    assert told(decision, EventType.NODE_COMPLETED) == [("node_completed", "start")]


def test_a_node_that_waits_for_its_retry_may_be_named() -> None:
    drawn = graph(start("a", "b"), task("a", "end"), task("b", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    job.fail("a", retryable=True)
    job.fail("b")
    assert [new.task_id for new in job.resume("a").tasks] == ["job_a_2", "job_b_1"]


@pytest.mark.parametrize(
    ("node_id", "error", "message"),
    [
        ("ghost", NotFound, "has no node 'ghost'"),
        ("ghost__1", NotFound, "has no node 'ghost__1'"),
        ("split__0", Conflict, "is a child of 'split'"),
        ("end", Conflict, "'end' is pending"),
        ("skipped", Conflict, "'skipped' is skipped"),
    ],
)
def test_nodes_from_which_no_job_can_go_on(node_id: str, error: type[Exception], message: str) -> None:
    drawn = graph(
        start("route"),
        conditional("route", ("inputs.go", "split"), (None, "skipped")),
        fan_out("split", "end", source=[1]),
        task("skipped", "end"),
        end(),
    )
    job = PlayedJob(drawn, inputs={"go": True})
    job.submit()
    job.fail("split__0")
    with pytest.raises(error, match=message):
        job.resume(node_id)
    assert job.status == "failed"


def test_only_a_job_that_failed_or_was_cancelled_can_be_resumed() -> None:
    job = PlayedJob(chain())
    job.submit()
    with pytest.raises(Conflict, match="is running"):
        job.resume()
    bad = job.report("a", ResultStatus.FAILED, error_message="x", retryable=False)
    with pytest.raises(Conflict, match="is running"):
        job.happen(bad, Resumed())
    job.happen(CancelRequested())
    job.resume()
    for node_id in ("a", "b", "c"):
        job.complete(node_id)
    with pytest.raises(Conflict, match="is completed"):
        job.resume()
