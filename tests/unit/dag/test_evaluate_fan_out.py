"""Fan-out and fan-in: expansion, counters, release, failed children, aggregation."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.dag.jobs import PlayedJob, end, fan_in, fan_out, graph, split_graph, start, task, task_spec, told

from graticule.core.models.engine import EventType, NodeType
from graticule.dag.deciding.fan_out import output_of_fan_out, releasable
from graticule.dag.evaluate import advance
from graticule.dag.state import NOT_LOADED, ChildOutcome, NeedsData, NodeState, Policy


def counters(job: PlayedJob) -> tuple[int, int, int, int]:
    row = job.store.rows["split"]
    return row.children_total, row.children_started, row.children_done, row.children_failed


def test_children_are_nodes_with_index_key_and_parameters() -> None:
    params = {"tile": "{{ item }}", "at": "{{ index }}", "crs": "{{ inputs.crs }}"}
    drawn = split_graph([{"id": "a"}, {"id": "b"}], key="tile {{ item.id }}", task=task_spec(params=params))
    job = PlayedJob(drawn, inputs={"crs": "EPSG:3857"})
    decision = job.submit()
    first, second = decision.created
    assert (first.node_id, first.parent_node_id, first.fan_out_index, first.fan_out_key) == (
        "split__0",
        "split",
        0,
        "tile a",
    )
    assert second.input_params == {"tile": {"id": "b"}, "at": 1, "crs": "EPSG:3857"}
    assert second.node_type == "task"
    assert [(new.task_id, new.params) for new in decision.tasks] == [
        ("job_split__0_0", first.input_params),
        ("job_split__1_0", second.input_params),
    ]


def test_the_events_of_an_expansion() -> None:
    decision = PlayedJob(split_graph([1, 2, 3])).submit()
    assert told(decision) == [
        ("job_created", None),
        ("node_ready", "split"),
        ("node_running", "split"),
        ("node_ready", "split"),
        ("node_dispatched", "split"),
        ("job_started", None),
    ]
    running, ready, dispatched = decision.events[2:5]
    assert running.data == {"children": 3}
    assert ready.data == dispatched.data == {"fan_out": True, "children": 3, "from": 0, "to": 2}


def test_a_result_counts_and_the_last_one_completes() -> None:
    job = PlayedJob(split_graph([1, 2, 3]))
    job.submit()
    assert counters(job) == (3, 3, 0, 0)
    job.complete("split__2", output="c")
    assert counters(job) == (3, 3, 1, 0)
    decision = job.complete("split__0", "split__1", output="x")
    assert counters(job) == (3, 3, 3, 0)
    assert told(decision) == [
        ("node_completed", "split__0"),
        ("node_completed", "split__1"),
        ("node_completed", "split"),
        ("node_completed", "merge"),
        ("job_completed", None),
    ]
    assert job.store.rows["split"].output == fan_out_output(3)
    assert job.store.result == {"results": ["x", "x", "c"], "count": 3}


def test_a_result_reads_nothing_of_its_siblings() -> None:
    job = PlayedJob(split_graph([*range(100)]))
    job.submit()
    happened = [job.report("split__7", output=1)]
    state = job.store.load(happened, job.now)
    assert [node_id for node_id in state.nodes if "__" in node_id] == ["split__7"]
    decision = advance(job.store.graph, state, happened, job.now)
    assert [change.node.node_id for change in decision.changes] == ["split__7", "split"]


def test_an_empty_list_completes_at_once() -> None:
    job = PlayedJob(split_graph([]))
    decision = job.submit()
    assert (job.status, decision.tasks, decision.created) == ("completed", [], [])
    assert job.store.result == {"results": [], "count": 0}


def test_a_mapping_gives_keys_and_values() -> None:
    job = PlayedJob(split_graph("{{ inputs.areas }}"), inputs={"areas": {"north": 1, "south": 2}})
    decision = job.submit()
    assert [new.params["item"] for new in decision.tasks] == [
        {"key": "north", "value": 1},
        {"key": "south", "value": 2},
    ]


@pytest.mark.parametrize(
    ("source", "reason"),
    [("text", "is a string"), (5, "is a number"), (None, "is null"), (True, "is a boolean")],
)
def test_a_source_that_is_no_list_fails_for_good(source: JsonValue, reason: str) -> None:
    job = PlayedJob(split_graph("{{ inputs.source }}"), inputs={"source": source})
    decision = job.submit()
    assert (job.status, decision.created) == ("failed", [])
    assert reason in str(job.store.rows["split"].error_message)
    assert "it must be a list or a mapping" in str(job.store.error_message)


def test_too_many_items_fail_for_good() -> None:
    assert len(PlayedJob(split_graph([*range(3)]), policy=Policy(max_children=3)).submit().tasks) == 3
    job = PlayedJob(split_graph([*range(4)]), policy=Policy(max_children=3))
    decision = job.submit()
    assert (job.status, decision.created) == ("failed", [])
    assert "has 4 items; at most 3 are allowed" in str(job.store.error_message)


@pytest.mark.parametrize("more", [{"key": "{{ item.id }}"}, {"task": task_spec(params={"a": "{{ item.id }}"})}])
def test_an_item_that_the_template_does_not_fit_fails_for_good(more: dict[str, Any]) -> None:
    job = PlayedJob(split_graph([{"id": 1}, {}], **more))
    decision = job.submit()
    assert (job.status, decision.created, decision.tasks) == ("failed", [], [])
    assert job.store.rows["split"].children_total == 0


def test_a_long_key_is_cut() -> None:
    decision = PlayedJob(split_graph(["x" * 300], key="{{ item }}")).submit()
    assert decision.created[0].fan_out_key == "x" * 255


def test_max_parallel_holds_back_and_releases_in_order() -> None:
    job = PlayedJob(split_graph([*range(5)], max_parallel=2))
    decision = job.submit()
    assert [str(child.status) for child in decision.created] == ["dispatched"] * 2 + ["pending"] * 3
    assert counters(job) == (5, 2, 0, 0)
    decision = job.complete("split__1")
    assert [new.node_id for new in decision.tasks] == ["split__2"]
    assert told(decision, EventType.NODE_READY, EventType.NODE_DISPATCHED) == [
        ("node_ready", "split"),
        ("node_dispatched", "split"),
    ]
    assert decision.events[-1].data == {"fan_out": True, "children": 1, "from": 2, "to": 2}
    decision = job.complete("split__0", "split__2")
    assert decision.events[-1].data == {"fan_out": True, "children": 2, "from": 3, "to": 4}
    job.complete("split__3", "split__4")
    assert job.status == "completed"


def test_a_child_that_waits_for_its_retry_keeps_its_place() -> None:
    job = PlayedJob(split_graph([*range(3)], max_parallel=1))
    job.submit()
    assert job.fail("split__0", retryable=True).tasks == []
    job.wait(60)
    assert [new.task_id for new in job.happen().tasks] == ["job_split__0_1"]


def test_only_children_that_were_read_are_released() -> None:
    job = PlayedJob(split_graph([*range(6)], max_parallel=2))
    job.submit()
    happened = [job.report("split__0"), job.report("split__1")]
    state = job.store.load(happened, job.now)
    del state.nodes["split__3"]
    decision = advance(job.store.graph, state, happened, job.now)
    assert [new.node_id for new in decision.tasks] == ["split__2"]
    job.store.apply(decision)
    assert counters(job) == (6, 3, 2, 0)
    assert [new.node_id for new in job.happen().tasks] == ["split__3"]


@pytest.mark.parametrize(("max_parallel", "finished", "expected"), [(None, 0, 6), (5, 0, 1), (5, 2, 3), (4, 0, 0)])
def test_how_many_children_are_to_be_read(max_parallel: int | None, finished: int, expected: int) -> None:
    job = PlayedJob(split_graph([*range(10)], max_parallel=4))
    job.submit()
    spec = job.store.graph.nodes["split"].model_copy(update={"max_parallel": max_parallel})
    assert releasable(spec, job.store.rows["split"], finished=finished) == expected


def test_due_retries_of_neighbours_are_told_of_together() -> None:
    job = PlayedJob(split_graph([*range(5)]))
    job.submit()
    for index in (0, 1, 2, 4):
        job.fail(f"split__{index}", retryable=True)
    job.wait(60)
    decision = job.happen()
    assert len(decision.tasks) == 4
    assert [(event.node_id, event.data.get("from"), event.data.get("to")) for event in decision.events] == [
        ("split", 0, 2),
        ("split__4", None, None),
    ]


def test_a_failed_child_fails_fan_out_fan_in_and_job() -> None:
    job = PlayedJob(split_graph([*range(4)]))
    job.submit()
    job.complete("split__0")
    decision = job.fail("split__3", "no luck")
    assert told(decision) == [
        ("node_failed", "split__3"),
        ("node_failed", "split"),
        ("node_failed", "merge"),
        ("job_failed", None),
    ]
    for node_id in ("split", "merge"):
        assert job.store.rows[node_id].error_message == "child split__3 failed: no luck"
    assert job.store.error_message == "node 'split' failed: child split__3 failed: no luck"
    assert counters(job) == (4, 4, 1, 1)
    assert [str(child.status) for child in job.store.children("split")] == ["completed", "failed", "failed", "failed"]


def test_a_tolerated_failure_is_listed() -> None:
    job = PlayedJob(split_graph(["a", "b", "c"], key="{{ item }}", on_child_failure="continue"))
    job.submit()
    job.fail("split__1", "no luck")
    assert job.status == "running"
    assert counters(job) == (3, 3, 0, 1)
    job.complete("split__0", "split__2", output=7)
    assert job.status == "completed"
    assert job.store.rows["split"].output == fan_out_output(3, failed=1)
    assert job.store.result == {
        "results": [7, 7],
        "count": 2,
        "failed": [{"index": 1, "key": "b", "node_id": "split__1", "error": "no luck"}],
    }


def test_a_job_survives_when_every_child_fails_and_that_is_tolerated() -> None:
    job = PlayedJob(split_graph([1, 2], on_child_failure="continue", max_parallel=1))
    job.submit()
    job.fail("split__0")
    job.fail("split__1")
    assert job.status == "completed"
    assert job.store.rows["merge"].output["count"] == 0  # type: ignore[call-overload,index]


def fan_out_output(total: int, failed: int = 0) -> JsonValue:
    ids: list[JsonValue] = [f"split__{index}" for index in range(total)]
    return {"count": total, "failed": failed, "fan_out_count": total, "child_node_ids": ids}


def gathered(aggregation: str, *outputs: JsonValue) -> PlayedJob:
    job = PlayedJob(split_graph([*range(len(outputs))], aggregation=aggregation))
    job.submit()
    for index in reversed(range(len(outputs))):
        job.complete(f"split__{index}", output=outputs[index])
    return job


@pytest.mark.parametrize(
    ("aggregation", "outputs", "expected"),
    [
        ("collect", ["a", None, {"b": 1}], {"results": ["a", None, {"b": 1}], "count": 3}),
        ("concat", [[1], [], [2, [3]]], {"results": [1, 2, [3]], "count": 3}),
        (
            "concat",
            [{"tiles": ["a", "b"], "n": 2}, {"tiles": ["c"], "bands": [1]}, {"n": 0}, ["d"]],
            {"results": ["a", "b", 1, "c", "d"], "count": 5, "by_key": {"tiles": ["a", "b", "c"], "bands": [1]}},
        ),
        ("sum", [1, 2.5, {"a": 3, "b": "x", "c": True, "d": 4}, "5", None, False, [6]], {"total": 16.5, "count": 7}),
        ("first", ["a", "b"], {"result": "a", "count": 2}),
        ("last", ["a", "b"], {"result": "b", "count": 2}),
    ],
)
def test_aggregations(aggregation: str, outputs: list[JsonValue], expected: JsonValue) -> None:
    assert gathered(aggregation, *outputs).store.result == expected


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("collect", {"results": [], "count": 0}),
        ("concat", {"results": [], "count": 0}),
        ("sum", {"total": 0, "count": 0}),
        ("first", {"result": None, "count": 0}),
        ("last", {"result": None, "count": 0}),
    ],
)
def test_aggregations_of_nothing(aggregation: str, expected: JsonValue) -> None:
    assert gathered_nothing(aggregation).store.result == expected


def gathered_nothing(aggregation: str) -> PlayedJob:
    job = PlayedJob(split_graph([], aggregation=aggregation))
    job.submit()
    return job


def test_first_and_last_pass_over_failed_children() -> None:
    for aggregation, expected in (("first", "b"), ("last", "c")):
        job = PlayedJob(split_graph([*range(4)], aggregation=aggregation, on_child_failure="continue"))
        job.submit()
        job.fail("split__0")
        job.fail("split__3")
        job.complete("split__1", output="b")
        job.complete("split__2", output="c")
        assert job.store.rows["merge"].output["result"] == expected  # type: ignore[call-overload,index]


def test_concat_of_something_else_fails_for_good() -> None:
    job = gathered("concat", [1], "a")
    assert job.status == "failed"
    assert (
        job.store.error_message
        == "node 'merge' failed: concat: the output of child split__1 is neither a list nor an object."
    )


def test_children_are_named_up_to_ten_thousand_of_them() -> None:
    for total, is_named in ((10_000, True), (10_001, False)):
        node = NodeState("split", NodeType.FAN_OUT, children_total=total, children_done=total)
        output = output_of_fan_out(node)
        assert (output["count"], output["fan_out_count"]) == (total, total)
        assert ("child_node_ids" in output) is is_named


def test_a_fan_in_asks_for_the_outcomes_of_the_children() -> None:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.complete("split__0", output="a")
    happened = [job.report("split__1", output="b")]
    state = job.store.load(happened, job.now)
    with pytest.raises(NeedsData) as needed:
        advance(job.store.graph, state, happened, job.now)
    assert needed.value.children_of == {"split"}
    state.children["split"] = [ChildOutcome(0, "split__0", completed=True, output="a")]
    decision = advance(job.store.graph, state, happened, job.now)
    assert decision.result == {"results": ["a", "b"], "count": 2}


def test_outcomes_that_were_read_and_those_of_the_step_are_put_in_order() -> None:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.complete("split__1", output="b")
    happened = [job.report("split__0", output="a")]
    state = job.store.load(happened, job.now)
    state.children["split"] = [ChildOutcome(1, "split__1", completed=True, output="b")]
    assert advance(job.store.graph, state, happened, job.now).result == {"results": ["a", "b"], "count": 2}


def test_outputs_that_stay_in_the_database_are_asked_for_or_read_with_the_outcomes() -> None:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.complete("split__0", output="a")
    happened = [replace(job.report("split__1"), output=NOT_LOADED)]
    state = job.store.load(happened, job.now)
    state.children["split"] = [
        ChildOutcome(0, "split__0", completed=True, output="a"),
        ChildOutcome(1, "split__1", completed=False),
    ]
    with pytest.raises(NeedsData) as needed:
        advance(job.store.graph, state, happened, job.now)
    assert needed.value.outputs == {"split__1"}
    state.children["split"][1] = ChildOutcome(1, "split__1", completed=True, output="b")
    decision = advance(job.store.graph, state, happened, job.now)
    assert decision.result == {"results": ["a", "b"], "count": 2}
    child = next(change.node for change in decision.changes if change.node.node_id == "split__1")
    assert child.output is NOT_LOADED


def test_outcomes_that_are_not_complete_are_an_error() -> None:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.complete("split__0")
    happened = [job.report("split__1")]
    state = job.store.load(happened, job.now)
    state.children["split"] = []
    with pytest.raises(ValueError, match="has 2 children, and the outcomes of 1"):
        advance(job.store.graph, state, happened, job.now)


def test_a_fan_in_waits_for_its_fan_out_whatever_other_edges_say() -> None:
    drawn = graph(
        start("split", "quick"),
        fan_out("split", "merge", source=[1]),
        task("quick", "merge"),
        fan_in("merge", "end", join="any_of"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.complete("quick")
    assert job.statuses["merge"] == "pending"
    job.complete("split__0", output=1)
    assert job.status == "completed"


def test_a_fan_in_needs_no_edge_from_its_fan_out() -> None:
    drawn = graph(
        start("split", "quick"),
        fan_out("split", "between", source=[1]),
        task("between", "merge"),
        task("quick", "merge"),
        fan_in("merge", "end", join="any_of"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.complete("quick")
    assert job.statuses["merge"] == "pending"
    job.complete("split__0")
    assert (job.statuses["merge"], job.statuses["between"]) == ("completed", "dispatched")


def test_a_fan_out_over_the_results_of_another() -> None:
    drawn = graph(
        start("split"),
        fan_out("split", "merge", source=[1, 2]),
        fan_in("merge", "again"),
        fan_out("again", "end", source="{{ nodes.merge.output.results }}"),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.complete("split__0", output="a")
    decision = job.complete("split__1", output="b")
    assert [new.params for new in decision.tasks] == [{"item": "a"}, {"item": "b"}]
    job.complete("again__0", "again__1")
    assert (job.status, job.store.result) == ("completed", None)
