"""The transition tables say what ENGINE.md 4 and PLATFORM.md 2 say, and nothing else: every pair is looked at."""

from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from graticule.core.errors import Conflict, IllegalTransition
from graticule.core.states import (
    APPROVAL,
    CLEARANCE,
    JOB,
    NODE,
    PROCESSING,
    REQUEST,
    ApprovalState,
    ClearanceState,
    JobStatus,
    NodeStatus,
    ProcessingState,
    RequestStatus,
    Transitions,
)

JOB_STEPS = {
    "pending running",
    "pending cancelled",
    "running completed",
    "running failed",
    "running cancelled",
    "cancelled running",
    "failed running",  # resumed
}
NODE_STEPS = {
    "pending ready",
    "pending skipped",
    "ready dispatched",
    "ready running",  # ENGINE.md 3: a fan-out's edge stays open until its children are done
    "ready completed",  # ENGINE.md 3: control nodes never go to a worker
    "ready failed",
    "ready skipped",
    "dispatched running",
    "dispatched completed",
    "dispatched failed",
    "running completed",
    "running failed",
    "failed ready",
}
PROCESSING_STEPS = {
    "queued processing",
    "queued completed",  # a workflow that needs no worker
    "queued failed",
    "processing completed",
    "processing failed",
    "completed queued",  # rules 2 and 3: a new revision
    "failed queued",
    "failed processing",  # its job was resumed
}
APPROVAL_STEPS = {
    "pending_review approved",
    "pending_review rejected",
    "pending_review failed",
    "approved rejected",  # rule 7: revoked
    "approved pending_review",  # rule 2: overwritten
    "rejected pending_review",  # rule 4: from rejected only by overwriting
    "failed pending_review",  # retried, overwritten, or its job was resumed
}
CLEARANCE_STEPS = {
    "uncleared ouo",
    "uncleared public",  # rule 4: approving with clearance_level=public
    "ouo public",
    "public ouo",
    "ouo uncleared",  # rule 7: revived
    "public uncleared",
}
REQUEST_STEPS = {
    "accepted processing",
    "accepted completed",  # a workflow that needs no worker
    "accepted failed",
    "processing completed",
    "processing failed",
    "failed accepted",  # rule 10: retried by the same request
    "failed processing",  # its job was resumed
}
TABLES: list[tuple[Transitions[Any], type[StrEnum], set[str]]] = [
    (JOB, JobStatus, JOB_STEPS),
    (NODE, NodeStatus, NODE_STEPS),
    (PROCESSING, ProcessingState, PROCESSING_STEPS),
    (APPROVAL, ApprovalState, APPROVAL_STEPS),
    (CLEARANCE, ClearanceState, CLEARANCE_STEPS),
    (REQUEST, RequestStatus, REQUEST_STEPS),
]
NAMES = [table.subject for table, _, _ in TABLES]
every_table = pytest.mark.parametrize(("table", "states", "steps"), TABLES, ids=NAMES)


@every_table
def test_exactly_the_documented_steps_are_allowed(
    table: Transitions[Any], states: type[StrEnum], steps: set[str]
) -> None:
    assert {f"{old} {new}" for old, new in product(states, states) if table.allows(old, new)} == steps


@every_table
def test_the_table_names_every_state(table: Transitions[Any], states: type[StrEnum], steps: set[str]) -> None:
    assert list(table.steps) == list(states)
    assert steps


@every_table
def test_check_raises_for_every_pair_that_is_not_allowed_and_names_it(
    table: Transitions[Any], states: type[StrEnum], steps: set[str]
) -> None:
    for old, new in product(states, states):
        if f"{old} {new}" in steps:
            table.check(old, new)
        else:
            with pytest.raises(IllegalTransition, match=rf"^A {table.subject} cannot go from {old} to {new}\.$"):
                table.check(old, new)


@every_table
def test_sources_are_the_states_before(table: Transitions[Any], states: type[StrEnum], steps: set[str]) -> None:
    for new in states:
        assert table.sources(new) == tuple(old for old in states if f"{old} {new}" in steps)


@every_table
def test_no_state_follows_itself(table: Transitions[Any], states: type[StrEnum], steps: set[str]) -> None:
    assert not any(table.allows(state, state) for state in states)
    assert steps


@pytest.mark.parametrize(
    ("table", "final"),
    [
        (JOB, (JobStatus.COMPLETED,)),
        (NODE, (NodeStatus.COMPLETED, NodeStatus.SKIPPED)),
        (REQUEST, (RequestStatus.COMPLETED,)),
        (PROCESSING, ()),
        (APPROVAL, ()),
        (CLEARANCE, ()),
    ],
    ids=lambda value: value.subject if isinstance(value, Transitions) else None,
)
def test_final_states_are_those_that_nothing_leaves(table: Transitions[Any], final: tuple[StrEnum, ...]) -> None:
    assert table.final() == final


@pytest.mark.parametrize(
    ("table", "initial"),
    [
        (JOB, "pending"),
        (NODE, "pending"),
        (PROCESSING, "queued"),
        (APPROVAL, "pending_review"),
        (CLEARANCE, "uncleared"),
        (REQUEST, "accepted"),
    ],
    ids=lambda value: value.subject if isinstance(value, Transitions) else None,
)
def test_things_begin_where_the_design_says_and_every_state_can_be_reached(
    table: Transitions[Any], initial: str
) -> None:
    assert table.initial == initial
    reached, before = {table.initial}, set[Any]()
    while reached != before:
        before, reached = reached, reached.union(*(table.steps[state] for state in reached))
    assert reached == set(table.steps)


def test_an_illegal_step_is_a_conflict_for_whoever_asked() -> None:
    assert issubclass(IllegalTransition, Conflict)
    assert IllegalTransition("m").code == "illegal_transition"
