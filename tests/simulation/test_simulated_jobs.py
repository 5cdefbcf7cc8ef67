"""Thousands of random workflows under crashes, duplicates, reorderings and delays, each from a seed of its own."""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.simulation.invariants import Violation
from tests.simulation.world import World

from graticule.core.states import JobStatus
from graticule.dag import evaluate
from graticule.dag.deciding import failure, fan_out, reports
from graticule.dag.deciding.step import UNDER_WAY, Step
from graticule.dag.graph import Join
from graticule.dag.state import Reported

SIMULATIONS = int(os.environ.get("GRATICULE_SIMULATIONS", "2000"))
CHUNKS = 20


@pytest.mark.timeout(3600)  # more of them may be asked for
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_invariant_holds(chunk: int) -> None:
    endings = {World(seed).run().store.status for seed in range(chunk, SIMULATIONS, CHUNKS)}
    assert JobStatus.COMPLETED in endings


def test_a_seed_gives_the_same_story_each_time() -> None:
    first, second = World(7, tells=True).run(), World(7, tells=True).run()
    assert first.story == second.story
    assert len(first.story) > 10


# Bugs that are planted to see whether the simulation finds them: each is made of the function that it replaces


def _any_attempt_counts(right: Any) -> Any:
    def wrong(step: Step, report: Reported) -> str | None:
        node = step.find(report.node_id)
        return None if node is not None and step.active and node.status in UNDER_WAY else "late"

    return wrong


def _any_of_waits_for_all(right: Any) -> Any:
    return lambda step, spec: right(step, spec.model_copy(update={"join": Join.ALL_OF}))


def _one_too_many(right: Any) -> Any:
    return lambda spec, node: min(right(spec, node) + 1, node.children_total - node.children_started)


def _children_go_on(right: Any) -> Any:
    return lambda step, fan_out, reason: None


def _no_last_retry(right: Any) -> Any:
    return lambda node, policy: True


@pytest.mark.parametrize(
    ("module", "name", "bug"),
    [
        (reports, "_reason_to_ignore", _any_attempt_counts),
        (evaluate, "judge", _any_of_waits_for_all),
        (fan_out, "releasable", _one_too_many),
        (failure, "_abandon_children", _children_go_on),
        (failure, "may_retry", _no_last_retry),
    ],
)
def test_a_planted_bug_is_found(
    module: ModuleType, name: str, bug: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, bug(getattr(module, name)))
    with pytest.raises(Violation, match=r"python -m tests\.simulation \d+"):
        _run_many(500)


def _run_many(count: int) -> None:
    for seed in range(count):
        World(seed).run()
