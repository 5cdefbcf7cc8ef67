"""What templates see of a job, when outputs are asked for, and what a job gives in the end."""

from dataclasses import replace

import pytest
from pydantic import JsonValue
from tests.unit.dag.jobs import PlayedJob, conditional, end, fan_in, fan_out, graph, start, task, task_spec

from graticule.dag.evaluate import advance
from graticule.dag.graph import Graph
from graticule.dag.state import NOT_LOADED, NeedsData, Policy


def two(params: dict[str, JsonValue]) -> Graph:
    return graph(start("first"), task("first", "second"), task("second", "end", params=params), end())


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ inputs.size }}", 3),
        ("{{ nodes.first.output.items }}", [1, 2]),
        ("{{ nodes.first.status }}", "completed"),
        ("{{ nodes.second.status }}", "ready"),
        ("{{ job.job_id }}", "job"),
        ("{{ job.workflow_id }}", "drawn"),
        ("{{ env.REGION }}", "eu"),
        ("{{ nodes.ghost.output | default('none') }}", "none"),
        ("{{ nodes.first.other | default('none') }}", "none"),
    ],
)
def test_what_a_template_sees(template: str, value: JsonValue) -> None:
    job = PlayedJob(two({"x": template}), inputs={"size": 3}, policy=Policy(environment={"REGION": "eu"}))
    job.submit()
    decision = job.complete("first", output={"items": [1, 2]})
    assert decision.tasks[0].params == {"x": value}


def test_stages_give_the_results_of_their_tasks() -> None:
    params: dict[str, JsonValue] = {"one": "{{ stages.one.results }}", "many": "{{ stages.many.results }}"}
    drawn = graph(
        start("one"),
        task("one", "split", stage="one"),
        fan_out(
            "split",
            "merge",
            source="{{ stages.one.results }}",
            stage="many",
            task=task_spec(params={"before": "{{ item }}"}),
        ),
        fan_in("merge", "last", stage="many"),
        task("last", "end", params=params),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    assert job.complete("one", output={"a": 1}).tasks[0].params == {"before": {"a": 1}}
    decision = job.complete("split__0", output="b")
    assert decision.tasks[0].params == {"one": [{"a": 1}], "many": ["b"]}


def test_an_output_is_asked_for_only_when_it_is_used() -> None:
    drawn = graph(
        start("a"),
        task("a", "b"),
        task("b", "c", params={"x": 1}),
        task("c", "end", params={"x": "{{ nodes.a.output }}"}),
        end(),
    )
    job = PlayedJob(drawn)
    job.store.leaves_out = lambda node: True
    job.submit()
    job.complete("a", output="big")
    happened = [job.report("b")]
    state = job.store.load(happened, job.now)
    assert state.nodes["a"].output is NOT_LOADED
    with pytest.raises(NeedsData) as needed:
        advance(drawn, state, happened, job.now)
    assert needed.value.outputs == {"a"}
    assert job.happen(*happened).tasks[0].params == {"x": "big"}


def test_an_output_that_is_stored_elsewhere_is_asked_for() -> None:
    job = PlayedJob(two({"x": "{{ nodes.first.output }}"}))
    job.submit()
    happened = [job.report("first", output=None, output_ref="far/away")]
    with pytest.raises(NeedsData) as needed:
        advance(job.store.graph, job.store.load(happened, job.now), happened, job.now)
    assert needed.value.outputs == {"first"}


@pytest.mark.parametrize("reported", [None, NOT_LOADED])
def test_an_output_that_was_asked_for_is_found_in_the_node(reported: JsonValue) -> None:
    job = PlayedJob(two({"x": "{{ nodes.first.output }}"}))
    job.submit()
    happened = [job.report("first", output=reported, output_ref="far/away")]
    state = job.store.load(happened, job.now)
    state.nodes["first"] = replace(state.nodes["first"], output={"large": True})
    decision = advance(job.store.graph, state, happened, job.now)
    assert decision.tasks[0].params == {"x": {"large": True}}
    assert decision.changes[0].node.output_ref == "far/away"


def test_a_conditional_that_does_not_decide_is_not_asked_for() -> None:
    drawn = graph(
        start("route", "slow"),
        conditional("route", (None, "join")),
        task("slow", "slower"),
        task("slower", "join"),
        task("join", "end"),
        end(),
    )
    job = PlayedJob(drawn)
    job.store.leaves_out = lambda node: True
    job.submit()
    happened = [job.report("slow")]
    decision = advance(drawn, job.store.load(happened, job.now), happened, job.now)
    assert [new.node_id for new in decision.tasks] == ["slower"]


def ending(*names: str) -> PlayedJob:
    drawn = graph(start(*names), *(task(name, "end") for name in names), end())
    job = PlayedJob(drawn)
    job.submit()
    for name in names:
        job.complete(name, output=f"from {name}")
    return job


def test_the_result_is_what_flows_into_the_end() -> None:
    assert ending("a").store.result == "from a"
    assert ending("a", "b").store.result == {"a": "from a", "b": "from b"}


def test_a_dead_edge_brings_no_result() -> None:
    drawn = graph(
        start("route"),
        conditional("route", ("inputs.go", "a"), (None, "b")),
        task("a", "end"),
        task("b", "end"),
        end(),
    )
    job = PlayedJob(drawn, inputs={"go": False})
    job.submit()
    job.complete("b", output="from b")
    assert job.store.result == "from b"


def test_control_nodes_bring_no_result() -> None:
    drawn = graph(start("route"), conditional("route", (None, "end")), end())
    job = PlayedJob(drawn)
    job.submit()
    assert (job.status, job.store.result) == ("completed", None)
