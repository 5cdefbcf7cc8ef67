"""What the children of a fan-out are given, and what they give, is bounded; and what `sum` adds up."""

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import given
from pydantic import JsonValue
from tests.unit.dag.jobs import PlayedJob, split_graph, task_spec

from graticule.core.states import ResultStatus
from graticule.dag.deciding.aggregation import ERROR_LENGTH, FRAME_BYTES
from graticule.dag.evaluate import advance
from graticule.dag.state import NOT_LOADED, ChildOutcome, Decision, NeedsData, Policy

LIMIT = 1000
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(-1e100, 1e100), st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


# What a fan-out gives to its children


def params_size(decision: Decision) -> int:
    return sum(len(orjson.dumps(child.input_params)) for child in decision.created)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=30), st.integers(0, 600))
def test_a_fan_out_fails_when_the_parameters_of_all_children_are_too_large(items: list[JsonValue], limit: int) -> None:
    task = task_spec(params={"item": "{{ item }}", "shared": "{{ inputs.shared }}"})
    drawn, inputs = split_graph(items, task=task), {"shared": "x" * 10}
    size = params_size(PlayedJob(drawn, inputs=inputs).submit())
    job = PlayedJob(drawn, inputs=inputs, policy=Policy(max_children_params_bytes=limit))
    decision = job.submit()
    if size <= limit:
        assert len(decision.tasks) == len(items)
        return
    assert (job.status, job.statuses["split"], decision.created, decision.tasks) == ("failed", "failed", [], [])
    assert f"at most {limit:,} are allowed" in str(job.store.rows["split"].error_message)


def test_the_reason_says_how_large_and_what_to_do() -> None:
    inputs: dict[str, JsonValue] = {"text": "x" * (1 << 20)}
    task = task_spec(params={"text": "{{ inputs.text }}", "index": "{{ index }}"})
    job = PlayedJob(split_graph([*range(100_000)], task=task), inputs=inputs)
    job.submit()
    assert job.store.error_message == (
        "node 'split' failed: The parameters of 64 of the 100,000 children of fan-out 'split' have 67,110,262 bytes of "
        "JSON together; at most 67,108,864 are allowed. Hand the children references to what is large, such as a path "
        "in the storage."
    )


def test_parameters_that_no_row_can_hold_fail_the_fan_out() -> None:
    job = PlayedJob(split_graph([1, 2], task=task_spec(params={"n": "{{ 2 ** (item * 600) }}"})))
    job.submit()
    assert "The parameters of child split__1 cannot be written as JSON" in str(job.store.error_message)


# What the children give to a fan-in


class Gathering:
    """A job whose last child is reported, and of whose children nothing was read yet but how they ended."""

    def __init__(self, sizes: list[int], aggregation: str = "collect", limit: int = LIMIT) -> None:
        self.job = PlayedJob(split_graph([*range(len(sizes))], aggregation=aggregation, on_child_failure="continue"))
        self.policy = Policy(max_gathered_bytes=limit)
        self.job.submit()
        *before, last = (f"split__{index}" for index in range(len(sizes)))
        if before:
            self.job.complete(*before)
        self.happened = [self.job.report(last, output=NOT_LOADED)]
        self.state = self.job.store.load(self.happened, self.job.now)
        self.outcomes = self.state.children["split"] = [
            ChildOutcome(index, f"split__{index}", completed=True, output=NOT_LOADED) for index in range(len(sizes))
        ]
        self.sizes = sizes

    def ask(self) -> Decision:
        return advance(self.job.store.graph, self.state, self.happened, self.job.now, self.policy)

    def supply(self, needed: NeedsData) -> None:
        """Do as a reader does: measure until it is too much, and else read."""
        left = needed.at_most
        wanted = [outcome for outcome in self.outcomes if outcome.node_id in needed.outputs]
        for outcome in wanted:
            outcome.size = self.sizes[outcome.index]
            left -= outcome.size
            if left < 0:
                return
        for outcome in wanted:
            outcome.output = [outcome.index]

    def play(self) -> tuple[Decision, list[NeedsData]]:
        asked: list[NeedsData] = []
        while True:
            try:
                return self.ask(), asked
            except NeedsData as needed:
                asked.append(needed)
                assert len(asked) == 1  # one look at the outputs is enough, whatever comes of it
                self.supply(needed)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=8), st.sampled_from(["collect", "concat", "sum"]))
def test_a_fan_in_fails_when_the_outputs_of_all_children_are_too_large(sizes: list[int], aggregation: str) -> None:
    gathering = Gathering(sizes, aggregation)
    decision, asked = gathering.play()
    assert [len(needed.outputs) for needed in asked] == [len(sizes)]
    if sum(sizes) + len(sizes) + FRAME_BYTES <= LIMIT:
        assert decision.job_status == "completed"
        return
    assert decision.job_status == "failed"
    assert all(outcome.output is NOT_LOADED for outcome in gathering.outcomes)
    (failed,) = [change.node for change in decision.changes if change.node.status == "failed"]
    assert failed.node_id == "merge"
    assert f"at most {LIMIT:,} are gathered" in str(failed.error_message)


def test_the_reason_tells_how_many_children_gave_how_much() -> None:
    decision, _ = Gathering([400, 500, 600, 700]).play()
    assert decision.error_message == (
        "node 'merge' failed: What 3 of the 4 children of fan-out 'split' gave has 1,568 bytes of JSON together; "
        "at most 1,000 are gathered. Let the children give less: write what is large to the storage and return "
        "references to it."
    )


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=8), st.sampled_from(["first", "last"]))
def test_first_and_last_ask_for_one_output_and_are_bound_by_it_alone(sizes: list[int], aggregation: str) -> None:
    index = 0 if aggregation == "first" else len(sizes) - 1
    decision, asked = Gathering(sizes, aggregation).play()
    assert [needed.outputs for needed in asked] == [{f"split__{index}"}]
    if sizes[index] + 1 + FRAME_BYTES <= LIMIT:
        assert decision.result == {"result": [index], "count": len(sizes)}
    else:
        assert decision.job_status == "failed"


def failing(count: int, error: str, limit: int) -> PlayedJob:
    drawn = split_graph([*range(count)], on_child_failure="continue")
    job = PlayedJob(drawn, policy=Policy(max_gathered_bytes=limit))
    job.submit()
    job.happen(
        *(
            job.report(f"split__{index}", ResultStatus.FAILED, error_message=error, retryable=False)
            for index in range(count)
        )
    )
    return job


def test_the_reasons_of_failed_children_count_too() -> None:
    assert failing(10, "x" * 20, LIMIT).status == "completed"
    job = failing(10, "x" * 100, LIMIT)
    assert job.status == "failed"
    assert "What 10 of the 10 children" in str(job.store.error_message)


@pytest.mark.parametrize("length", [ERROR_LENGTH, ERROR_LENGTH + 1, 4000])
def test_the_reason_of_a_failed_child_is_cut_in_the_list(length: int) -> None:
    job = failing(1, "é" * length, 1 << 20)
    assert job.store.rows["split__0"].error_message == "é" * length
    output = job.store.rows["merge"].output
    told = "é" * ERROR_LENGTH + ("…" if length > ERROR_LENGTH else "")
    failed: JsonValue = [{"index": 0, "key": None, "node_id": "split__0", "error": told}]
    assert output == {"results": [], "count": 0, "failed": failed}


@given(st.lists(VALUES, min_size=1, max_size=6), st.lists(st.text(max_size=30), max_size=3))
def test_what_is_gathered_within_the_bound_has_no_more_bytes_than_it(
    outputs: list[JsonValue], errors: list[str]
) -> None:
    count = len(outputs) + len(errors)
    sizes = [len(orjson.dumps(output)) for output in outputs]
    job = PlayedJob(split_graph([*range(count)], on_child_failure="continue"))
    job.submit()
    state = job.store.load([], job.now)
    state.nodes["split"].children_done, state.nodes["split"].children_failed = len(outputs), len(errors)
    state.children["split"] = [
        *(
            ChildOutcome(index, f"split__{index}", completed=True, output=output, size=size)
            for index, (output, size) in enumerate(zip(outputs, sizes, strict=True))
        ),
        *(
            ChildOutcome(index, f"split__{index}", completed=False, error_message=error)
            for index, error in enumerate(errors, len(outputs))
        ),
    ]
    limits = range(sum(sizes), sum(sizes) + 2000, 7)
    decisions = (advance(job.store.graph, state, [], job.now, Policy(max_gathered_bytes=limit)) for limit in limits)
    limit, result = next((at, each.result) for at, each in zip(limits, decisions, strict=True) if each.result)
    assert len(orjson.dumps(result)) <= limit


# What `sum` adds up


def summed(*outputs: JsonValue) -> PlayedJob:
    job = PlayedJob(split_graph([*range(len(outputs))], aggregation="sum"))
    job.submit()
    job.happen(*(job.report(f"split__{index}", output=output) for index, output in enumerate(outputs)))
    return job


def numbers(value: JsonValue) -> Iterator[int | float]:
    match value:
        case bool() | str() | None:
            return
        case dict():
            for part in value.values():
                yield from numbers(part)
        case list():
            for part in value:
                yield from numbers(part)
        case _:
            yield value


@given(st.lists(VALUES, min_size=1, max_size=6), st.randoms())
def test_sum_adds_the_numbers_at_any_depth_in_any_order(outputs: list[JsonValue], random: Random) -> None:
    result = summed(*outputs).store.result
    assert isinstance(result, dict)
    found = [*numbers(outputs)]
    exact = sum(map(Fraction, found), Fraction())
    if all(isinstance(number, int) for number in found):
        assert result == {"total": int(exact), "count": len(outputs)}
        assert isinstance(result["total"], int)
    else:
        assert result == {"total": float(exact), "count": len(outputs)}
        random.shuffle(outputs)
        assert summed(*outputs).store.result == result


@pytest.mark.parametrize(
    ("output", "total"),
    [
        (5, 5),
        (2.5, 2.5),
        ({"a": 1, "b": {"c": [2, {"d": 3.5}]}}, 6.5),
        ([[1], [[2]], []], 3),
        ([True, False, "7", None, {"n": "8"}], 0),
        ([math.nan, math.inf, 1], 1),
        ([0.1] * 10, 1.0),
    ],
)
def test_what_sum_counts_as_a_number(output: JsonValue, total: float) -> None:
    assert summed(output).store.result == {"total": total, "count": 1}


def test_sum_finds_numbers_deeper_than_the_interpreter_can_nest_calls() -> None:
    output: JsonValue = 7
    for _ in range(10_000):
        output = [output]
    assert summed(output).store.rows["merge"].output == {"total": 7, "count": 1}


@pytest.mark.parametrize("outputs", [(1e308, 1e308), (2**63, 2**63), (-(2**63), -1), (10**400, 0.5)])
def test_a_total_that_no_row_can_hold_fails_the_fan_in(outputs: tuple[JsonValue, ...]) -> None:
    assert summed(*outputs).store.error_message == "node 'merge' failed: sum: the total is too large a number."
