"""Decisions of reviewers: the version and revision that they name are numbers, and nothing that can be read as one."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from graticule.core.exchange import Approval, ClearanceChange, Decision, Rejection, Revocation

BODIES: dict[type[Decision], dict[str, Any]] = {
    Approval: {"clearance_level": "ouo"},
    ClearanceChange: {"clearance_level": "ouo"},
    Rejection: {"reason": "Clouds."},
    Revocation: {"reason": "Clouds."},
}


NOT_NUMBERS = [True, False, "2", 2.0, -1, 2**31, [2]]


@pytest.mark.parametrize("decision", BODIES)
@pytest.mark.parametrize(
    ("field", "value"),
    [*(("revision", value) for value in [*NOT_NUMBERS, 0]), *(("version_ordinal", value) for value in NOT_NUMBERS)],
)
def test_a_number_is_a_whole_number_of_json(decision: type[Decision], field: str, value: object) -> None:
    body = json.dumps(BODIES[decision] | {field: value})
    with pytest.raises(ValidationError) as refused:
        decision.model_validate_json(body)
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


@pytest.mark.parametrize("decision", BODIES)
def test_a_version_and_its_revision_may_be_named(decision: type[Decision]) -> None:
    read = decision.model_validate_json(json.dumps(BODIES[decision] | {"version_ordinal": 0, "revision": 2}))
    assert (read.version_ordinal, read.revision) == (0, 2)
