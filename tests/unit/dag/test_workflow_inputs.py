"""The inputs of a job: checked all at once when it is submitted."""

import hashlib
import re
from typing import Any

import pytest
from tests.unit.dag.workflow_texts import graph_of

from graticule.core.errors import InvalidInput
from graticule.dag.graph import Graph, InputSpec, InputType
from graticule.dag.inputs import deterministic_job_id, faults, validate_inputs

GRAPH = graph_of(
    """\
workflow_id: inputs_case
inputs:
  name: {type: string, required: true, pattern: "^[a-z]+$"}
  count: {type: integer, default: 3, minimum: 1, maximum: 10}
  ratio: {type: number, minimum: 0.5}
  flag: {type: boolean, default: false}
  tags: {type: array, default: [a]}
  extra: {type: object}
  tier: {type: string, enum: [hot, cool], default: hot}
  level: {type: integer, enum: [1, 2]}
nodes: {start: {next: end}}
"""
)


def test_defaults_are_filled_in() -> None:
    assert validate_inputs(GRAPH, {"name": "a"}) == {
        "name": "a",
        "count": 3,
        "ratio": None,
        "flag": False,
        "tags": ["a"],
        "extra": None,
        "tier": "hot",
        "level": None,
    }


def test_what_is_given_is_kept_with_its_type() -> None:
    given: dict[str, Any] = {
        "name": "abc",
        "count": 1,
        "ratio": 2,
        "flag": True,
        "tags": [],
        "extra": {"a": None},
        "tier": "cool",
        "level": 2,
    }
    assert validate_inputs(GRAPH, given) == given
    assert validate_inputs(GRAPH, {"name": "a", "count": None}) == validate_inputs(GRAPH, {"name": "a"})


def test_no_pattern_keeps_the_caller_waiting() -> None:
    spec = InputSpec(type=InputType.STRING, pattern="^(a|aa)+$")
    assert faults(spec, "a" * 100_000 + "b") == ["must match ^(a|aa)+$"]
    assert faults(spec, "a" * 100_000) == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "'name' is required (string)"),
        ({"name": None}, "'name' is required"),
        ({"name": 5}, "'name' must be a string, and is an integer"),
        ({"name": "A"}, "'name' must match ^[a-z]+$"),
        ({"count": 3.0}, "'count' must be an integer, and is a number"),
        ({"count": True}, "'count' must be an integer, and is a boolean"),
        ({"count": "3"}, "'count' must be an integer, and is a string"),
        ({"count": 0}, "'count' must be at least 1"),
        ({"count": 11}, "'count' must be at most 10"),
        ({"ratio": 0.4}, "'ratio' must be at least 0.5"),
        ({"ratio": True}, "'ratio' must be a number, and is a boolean"),
        ({"flag": 1}, "'flag' must be a boolean, and is an integer"),
        ({"flag": "true"}, "'flag' must be a boolean"),
        ({"tags": {"a": 1}}, "'tags' must be an array, and is an object"),
        ({"tags": "a"}, "'tags' must be an array"),
        ({"extra": [1]}, "'extra' must be an object, and is an array"),
        ({"tier": "warm"}, '\'tier\' must be one of "hot", "cool"'),
        ({"level": 3}, "'level' must be one of 1, 2"),
        ({"level": True}, "'level' must be an integer"),
        ({"nmae": "a"}, "'nmae' is not an input. Did you mean 'name'?"),
    ],
)
def test_what_does_not_fit_is_told(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_inputs(GRAPH, {"name": "a", **given} if given else {})
    assert reason in str(caught.value)
    assert "'inputs_case'" in str(caught.value)


def test_everything_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_inputs(GRAPH, {"count": "x", "tier": 5, "other": 1})
    for name in ("other", "name", "count", "tier"):
        assert f"'{name}'" in caught.value.message


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"extra": {"x": "a" * 5_000_000}}, "at most 1,048,576"),
        ({"extra": {"x": "é" * 600_000}}, "at most 1,048,576"),
        ({"unknown": "a" * 5_000_000}, "at most 1,048,576"),
        ({"tags": nested(65)}, "64 levels"),
        ({"tags": nested(100_000)}, "64 levels"),
        ({"ratio": float("nan")}, "not JSON"),
        ({"ratio": float("inf")}, "not JSON"),
        ({"name": "\ud800"}, "not JSON"),
        ({"a" * 10_000: 1}, "is not an input"),
    ],
)
def test_hostile_inputs_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        validate_inputs(GRAPH, {"name": "a", **given})
    assert len(str(caught.value)) < 1000


def test_inputs_of_64_levels_are_accepted() -> None:
    assert validate_inputs(GRAPH, {"name": "a", "tags": nested(63)})["tags"] == nested(63)


def test_identical_inputs_have_one_job_id() -> None:
    first = validate_inputs(GRAPH, {"name": "a", "extra": {"x": 1, "y": "é"}})
    second = validate_inputs(GRAPH, {"extra": {"y": "é", "x": 1}, "count": 3, "name": "a"})
    found = deterministic_job_id(GRAPH, first)
    assert found == deterministic_job_id(GRAPH, second)
    assert re.fullmatch("[0-9a-f]{64}", found)
    assert found != deterministic_job_id(GRAPH, validate_inputs(GRAPH, {"name": "b"}))
    other = Graph.model_validate({**GRAPH.model_dump(mode="json"), "workflow_id": "other"})
    assert found != deterministic_job_id(other, first)


def test_the_job_id_is_the_digest_that_the_contract_names() -> None:
    graph = graph_of("workflow_id: a\ninputs: {y: {type: integer}, x: {type: array}}\nnodes: {start: {next: end}}")
    inputs = validate_inputs(graph, {"x": [1, "é"], "y": 2})
    assert deterministic_job_id(graph, inputs) == hashlib.sha256('a{"x":[1,"é"],"y":2}'.encode()).hexdigest()
