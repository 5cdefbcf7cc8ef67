"""Results as handlers write them, in today's form and in that of earlier releases."""

from dataclasses import replace

import pytest

from graticule.core.states import ResultStatus
from graticule.handlers.result import HandlerResult
from graticule.worker.outcome import outcome_of


@pytest.mark.parametrize(
    ("result", "same"),
    [
        (HandlerResult(success=True, output={"crs": "EPSG:4326"}), HandlerResult.success({"crs": "EPSG:4326"})),
        (HandlerResult(success=True, metrics={"seconds": 1}), HandlerResult.success(metrics={"seconds": 1})),
        (HandlerResult(success=True, error_message="of no weight"), HandlerResult.success()),
        (HandlerResult(success=False, error_message="no CRS"), HandlerResult.failure("no CRS")),
        (HandlerResult(success=False), HandlerResult.failure("")),
    ],
)
def test_success_decides_how_a_handler_ended(result: HandlerResult, same: HandlerResult) -> None:
    assert result == same
    assert outcome_of(result) == outcome_of(same)


def test_a_result_tells_whether_it_is_a_success() -> None:
    assert HandlerResult(success=True).success is True
    assert HandlerResult.success({"a": 1}).success is True
    assert HandlerResult.failure("no").success is False
    assert HandlerResult.interrupted().success is False


def test_a_failure_of_the_earlier_form_is_reported_with_its_reason() -> None:
    outcome = outcome_of(HandlerResult(success=False, output={"at": 1}, error_message="no CRS"))
    assert (outcome.status, outcome.error_message) == (ResultStatus.FAILED, "no CRS")


def test_a_result_can_be_replaced_in_part() -> None:
    assert replace(HandlerResult.success({"a": 1}), metrics={"n": 2}) == HandlerResult({"a": 1}, {"n": 2})
