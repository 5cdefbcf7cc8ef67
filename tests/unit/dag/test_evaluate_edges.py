"""When a node may run: joins, dead edges, conditionals, chains of nodes that need no worker."""

import pytest
from tests.unit.dag.jobs import PlayedJob, conditional, end, fan_in, fan_out, graph, start, task, told

from graticule.core.models.engine import EventType
from graticule.dag.graph import Graph, Join

SIZE = "nodes.check.output.size"


def diamond(join: Join) -> Graph:
    return graph(start("a", "b"), task("a", "c"), task("b", "c"), task("c", "end", join=join), end())


def branching(join: Join = Join.ALL_OF) -> Graph:
    """Draw check → route → light or heavy → last."""
    return graph(
        start("check"),
        task("check", "route"),
        conditional("route", (f"{SIZE} < 100", "light"), (None, "heavy")),
        task("light", "last"),
        task("heavy", "heavier"),
        task("heavier", "last"),
        task("last", "end", join=join),
        end(),
    )


def test_all_of_waits_for_every_edge() -> None:
    job = PlayedJob(diamond(Join.ALL_OF))
    job.submit()
    job.complete("a")
    assert job.node_status("c") == "pending"
    job.complete("b")
    assert job.node_status("c") == "dispatched"


def test_any_of_runs_at_the_first_live_edge_and_once() -> None:
    job = PlayedJob(diamond(Join.ANY_OF))
    job.submit()
    assert [new.node_id for new in job.complete("b").tasks] == ["c"]
    assert job.complete("a").tasks == []
    job.complete("c")
    assert job.status == "completed"


def test_a_job_waits_for_what_an_any_of_did_not_wait_for() -> None:
    job = PlayedJob(diamond(Join.ANY_OF))
    job.submit()
    job.complete("a")
    job.complete("c")
    assert job.status == "running"
    assert job.node_status("end") == "completed"
    job.complete("b")
    assert job.status == "completed"


@pytest.mark.parametrize("join", list(Join))
@pytest.mark.parametrize(("size", "runs", "skipped"), [(5, "light", ["heavy", "heavier"]), (500, "heavy", ["light"])])
def test_a_conditional_kills_the_edges_that_it_did_not_choose(
    join: Join, size: int, runs: str, skipped: list[str]
) -> None:
    job = PlayedJob(branching(join))
    job.submit()
    decision = job.complete("check", output={"size": size})
    assert [new.node_id for new in decision.tasks] == [runs]
    assert told(decision, EventType.NODE_SKIPPED) == [("node_skipped", node_id) for node_id in skipped]
    while job.status == "running":
        under_way = [node_id for node_id, status in job.statuses.items() if status == "dispatched"]
        job.complete(*under_way)
    assert {job.statuses[node_id] for node_id in skipped} == {"skipped"}
    assert job.statuses["last"] == "completed"


def test_the_choice_is_the_conditionals_output() -> None:
    job = PlayedJob(branching())
    job.submit()
    decision = job.complete("check", output={"size": 5})
    assert job.store.rows["route"].output == {"branch": 0, "next": ["light"]}
    assert ("node_completed", "route") in told(decision)


def test_a_join_of_dead_edges_only_is_skipped_up_to_the_end() -> None:
    drawn = graph(
        start("route"),
        conditional("route", ("inputs.wanted", ("a", "b")), (None, "other")),
        task("a", "c"),
        task("b", "c"),
        task("c", "end"),
        end(),
        task("other", "other_end"),
        end("other_end"),
    )
    job = PlayedJob(drawn, inputs={"wanted": False})
    decision = job.submit()
    assert told(decision, EventType.NODE_SKIPPED) == [("node_skipped", node_id) for node_id in ("a", "b", "c", "end")]
    job.complete("other", output=1)
    assert (job.status, job.store.result) == ("completed", 1)


@pytest.mark.parametrize("join", list(Join))
def test_one_live_edge_among_dead_ones_is_enough(join: Join) -> None:
    drawn = graph(
        start("route", "b"),
        conditional("route", ("inputs.wanted", "a"), (None, "end")),
        task("a", "c"),
        task("b", "c"),
        task("c", "end", join=join),
        end(),
    )
    job = PlayedJob(drawn, inputs={"wanted": False})
    job.submit()
    assert job.statuses["c"] == "pending"
    job.complete("b")
    assert job.statuses["c"] == "dispatched"


def test_an_edge_chosen_by_two_branches_is_live_for_both() -> None:
    drawn = graph(
        start("route"),
        conditional("route", ("inputs.wanted", ("a", "b")), (None, "b")),
        task("a", "end"),
        task("b", "end"),
        end(),
    )
    for wanted in (True, False):
        job = PlayedJob(drawn, inputs={"wanted": wanted})
        job.submit()
        assert job.statuses["b"] == "dispatched"
        assert job.statuses["a"] == ("dispatched" if wanted else "skipped")


def test_a_fan_outs_edge_is_open_until_its_children_have_ended() -> None:
    drawn = graph(start("split"), fan_out("split", "after", source=[1, 2]), task("after", "end"), end())
    job = PlayedJob(drawn)
    job.submit()
    job.complete("split__0")
    assert job.statuses["after"] == "pending"
    job.complete("split__1")
    assert job.statuses["after"] == "dispatched"


def test_a_chain_of_control_nodes_costs_one_step() -> None:
    drawn = graph(
        start("first"),
        conditional("first", (None, "second")),
        conditional("second", ("inputs.go", "split"), (None, "end")),
        fan_out("split", "merge", source=[]),
        fan_in("merge", "end"),
        end(),
    )
    job = PlayedJob(drawn, inputs={"go": True})
    decision = job.submit()
    assert set(job.statuses.values()) == {"completed"}
    assert job.status == "completed"
    assert told(decision) == [
        ("job_created", None),
        ("node_completed", "first"),
        ("node_completed", "second"),
        ("node_ready", "split"),
        ("node_completed", "split"),
        ("node_completed", "merge"),
        ("job_started", None),
        ("job_completed", None),
    ]


def test_a_graph_may_come_in_any_order() -> None:
    """A database that keeps documents by key does not keep the order of the nodes."""
    drawn = branching()
    scrambled = drawn.model_copy(update={"nodes": dict(sorted(drawn.nodes.items(), reverse=True))})
    job = PlayedJob(scrambled)
    job.submit()
    job.complete("check", output={"size": 500})
    assert job.statuses["light"] == "skipped"
    job.complete("heavy")
    job.complete("heavier")
    job.complete("last")
    assert job.status == "completed"


def test_an_end_that_completes_early_has_an_event_of_its_own() -> None:
    drawn = graph(start("a", "b"), task("a", "one"), end("one"), task("b", "two"), end("two"))
    job = PlayedJob(drawn)
    job.submit()
    assert told(job.complete("a", output=1)) == [("node_completed", "a"), ("node_completed", "one")]
    decision = job.complete("b", output=2)
    assert told(decision) == [("node_completed", "b"), ("job_completed", None)]
    assert decision.events[-1].data == {"nodes_completed": ["two"]}
    assert job.store.result == {"a": 1, "b": 2}


def test_several_nodes_become_ready_before_any_is_dispatched() -> None:
    job = PlayedJob(diamond(Join.ALL_OF))
    assert told(job.submit()) == [
        ("job_created", None),
        ("node_ready", "a"),
        ("node_ready", "b"),
        ("node_dispatched", "a"),
        ("job_started", None),
        ("node_dispatched", "b"),
    ]
