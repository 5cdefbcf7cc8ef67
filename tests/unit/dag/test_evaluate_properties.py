"""Properties of the evaluator on random graphs."""

from collections.abc import Callable
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.simulation.invariants import Before, check_commit, check_story
from tests.unit.dag.jobs import PlayedJob, end, fan_out, graph, start, task

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.deciding.step import ACTIVE, UNDER_WAY
from graticule.dag.graph import Branch, Graph, Join, NodeSpec
from graticule.dag.replay import replay
from graticule.dag.state import Decision, Reported


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a graph of tasks and conditionals: node n follows some of those before it."""
    count = draw(st.integers(1, 7))
    names = [f"n{number}" for number in range(count)]
    sources = {
        name: draw(st.sets(st.sampled_from(["start", *names[:place]]), min_size=1, max_size=3))
        for place, name in enumerate(names)
    }
    loose = {"start", *names} - set().union(*sources.values())
    sources["end"] = loose
    nodes = [NodeSpec(node_id="start", type=NodeType.START, next=_targets(sources, "start"))]
    for name in names:
        join = draw(st.sampled_from(Join))
        targets = _targets(sources, name)
        if draw(st.booleans()):
            nodes.append(task(name, *targets, join=join))
        else:
            chosen = tuple(target for target in targets if draw(st.booleans()))
            branches = (Branch(condition="true", next=chosen), Branch(condition=None, next=targets))
            nodes.append(NodeSpec(node_id=name, type=NodeType.CONDITIONAL, next=targets, join=join, branches=branches))
    return graph(*nodes, end())


def _targets(sources: dict[str, set[str]], name: str) -> tuple[str, ...]:
    return tuple(target for target, found in sources.items() if name in found)


def step(job: PlayedJob, act: Callable[[], Decision]) -> Decision:
    """Take one step and check all invariants after it."""
    before = {node_id: Before(row.status, row.task_id) for node_id, row in job.store.rows.items()}
    decision = act()
    check_commit(job.store, decision, before)
    check_story(job.store.graph, job.store)
    return decision


def under_way(job: PlayedJob) -> list[str]:
    rows = job.store.rows.values()
    return [row.node_id for row in rows if row.status in UNDER_WAY and row.node_type is NodeType.TASK]


def play(job: PlayedJob, rng: Random) -> None:
    """Complete task after task in any order."""
    step(job, job.submit)
    while job.status in ACTIVE:
        names = under_way(job)
        chosen = rng.sample(names, rng.randint(1, len(names)))
        step(job, lambda chosen=chosen: job.complete(*chosen, output={"value": 1, "items": []}))  # type: ignore[misc]


@given(drawn=graphs(), rng=st.randoms(use_true_random=False))
def test_every_job_ends_and_the_order_of_results_does_not_matter(drawn: Graph, rng: Random) -> None:
    first, second = PlayedJob(drawn), PlayedJob(drawn)
    play(first, rng)
    play(second, rng)
    assert first.status is JobStatus.COMPLETED
    assert first.statuses == second.statuses
    assert set(first.store.tasks) == set(second.store.tasks)


@given(drawn=graphs())
def test_the_order_of_the_nodes_does_not_matter(drawn: Graph) -> None:
    scrambled = drawn.model_copy(update={"nodes": dict(reversed(drawn.nodes.items()))})
    first, second = PlayedJob(drawn), PlayedJob(scrambled)
    play(first, Random(1))
    play(second, Random(1))
    assert first.statuses == second.statuses


@given(drawn=graphs(), rng=st.randoms(use_true_random=False))
def test_repeated_reports_change_nothing(drawn: Graph, rng: Random) -> None:
    job = PlayedJob(drawn)
    reported: list[Reported] = []
    step(job, job.submit)
    while job.status in ACTIVE:
        reported.append(job.report(rng.choice(under_way(job)), output=1))
        job.happen(reported[-1])
        again = job.happen(*rng.sample(reported, len(reported)))
        assert (again.changes, again.tasks) == ([], [])
        assert {event.event_type for event in again.events} == {EventType.RESULT_IGNORED}


@given(drawn=graphs())
def test_a_batch_does_what_its_reports_do_one_by_one(drawn: Graph) -> None:
    together, apart = PlayedJob(drawn), PlayedJob(drawn)
    together.submit()
    apart.submit()
    while together.status in ACTIVE:
        names = under_way(together)
        together.complete(*names, output=len(names))
        for name in names:
            apart.complete(name, output=len(names))
    assert apart.statuses == together.statuses
    assert apart.store.result == together.store.result


@given(total=st.integers(0, 12), most=st.integers(1, 5), seed=st.integers(0, 2**16))
def test_a_fan_out_never_exceeds_its_limit_and_runs_each_child_once(total: int, most: int, seed: int) -> None:
    drawn = graph(start("split"), fan_out("split", "end", source=[*range(total)], max_parallel=most), end())
    job = PlayedJob(drawn)
    play(job, Random(seed))
    assert len(job.store.tasks) == total
    assert job.status is JobStatus.COMPLETED


@pytest.mark.parametrize("count", [1, 400])
def test_the_work_of_a_result_does_not_grow_with_its_siblings(count: int) -> None:
    """What is read and written for one result is the same for one child and for many."""
    job = PlayedJob(graph(start("split"), fan_out("split", "end", source=[*range(count + 1)]), end()))
    job.submit()
    happened = [job.report("split__0")]
    assert len(job.store.load(happened, job.now).nodes) == 4
    decision = job.happen(*happened)
    assert (len(decision.changes), len(decision.events)) == (2, 1)


def test_replay_follows_every_kind_of_event() -> None:
    """A job that fails in a fan-out, is resumed from its start and completes."""
    drawn = graph(start("a"), task("a", "split"), fan_out("split", "end", source=[1, 2, 3], max_parallel=2), end())
    job = PlayedJob(drawn)
    job.submit()
    job.complete("a")
    job.run("split__0")
    job.fail("split__1")
    assert replay(drawn, job.store.events).node_statuses == {
        "start": NodeStatus.COMPLETED,
        "a": NodeStatus.COMPLETED,
        "split": NodeStatus.FAILED,
        "split__0": NodeStatus.FAILED,
        "split__1": NodeStatus.FAILED,
        "split__2": NodeStatus.PENDING,
        "end": NodeStatus.PENDING,
    }
    job.resume("a")
    assert set(replay(drawn, job.store.events).node_statuses) == {"start", "a", "split", "end"}
    job.complete("a")
    job.complete("split__0", "split__1")
    job.complete("split__2")
    replayed = replay(drawn, job.store.events)
    assert replayed.job_status is JobStatus.COMPLETED
    assert set(replayed.node_statuses.values()) == {NodeStatus.COMPLETED}


def test_a_replay_of_nothing_is_a_job_that_has_not_begun() -> None:
    drawn = graph(start("a"), task("a", "end"), end())
    replayed = replay(drawn, [])
    assert replayed.job_status is JobStatus.PENDING
    assert set(replayed.node_statuses.values()) == {NodeStatus.PENDING}
