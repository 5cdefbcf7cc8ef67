"""Decisions of reviewers: the revision that they name is a number, and nothing that can be read as one."""

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


@pytest.mark.parametrize("decision", BODIES)
@pytest.mark.parametrize("revision", [True, False, "2", 2.0, 0, -1, 2**31, [2]])
def test_a_revision_is_a_whole_number_of_json(decision: type[Decision], revision: object) -> None:
    body = json.dumps(BODIES[decision] | {"revision": revision})
    with pytest.raises(ValidationError) as refused:
        decision.model_validate_json(body)
    assert [error["loc"] for error in refused.value.errors()] == [("revision",)]


@pytest.mark.parametrize("decision", BODIES)
def test_a_revision_may_be_named(decision: type[Decision]) -> None:
    assert decision.model_validate_json(json.dumps(BODIES[decision] | {"revision": 2})).revision == 2
