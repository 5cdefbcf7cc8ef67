"""What handlers return and raise, as something that can be reported."""

from typing import Any

import pytest

from graticule.core.errors import InvalidInput
from graticule.core.states import ResultStatus
from graticule.handlers import HandlerResult
from graticule.worker.outcome import MAX_MESSAGE_LENGTH, document, outcome_of, outcome_of_error, shortened


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, {"a": [1, 2.5, None, "ä\n\\u0000"]}, "null"])
def test_a_plain_value_is_a_success(value: Any) -> None:
    outcome = outcome_of(value)
    assert (outcome.status, outcome.output) == (ResultStatus.COMPLETED, document(value))


def test_a_result_keeps_its_metrics_also_when_it_failed() -> None:
    assert outcome_of(HandlerResult.success(1, {"rows": 2})).metrics == '{"rows":2}'
    failed = outcome_of(HandlerResult.failure("no", retryable=False, metrics={"rows": 2}))
    assert (failed.error_message, failed.retryable, failed.metrics) == ("no", False, '{"rows":2}')


def test_a_failure_without_a_reason_says_so() -> None:
    assert outcome_of(HandlerResult.failure("")).error_message == "the handler gave no reason"


def test_a_document_of_the_staged_api_is_a_result() -> None:
    done = outcome_of({"success": True, "result": {"tiles": 204}})
    assert (done.status, done.output) == (ResultStatus.COMPLETED, b'{"tiles":204}')
    assert outcome_of({"success": True, "result": None}).output == b"null"
    failed = outcome_of({"success": False, "error": "no CRS"})
    assert (failed.status, failed.error_message, failed.retryable) == (ResultStatus.FAILED, "no CRS", True)


@pytest.mark.parametrize(
    "more",
    [{"result": {"detail": "no CRS"}}, {"result": None}, {"error": None}, {"error_message": ""}],
)
def test_a_failure_of_the_staged_api_needs_no_reason(more: dict[str, Any]) -> None:
    failed = outcome_of({"success": False, **more})
    assert (failed.status, failed.error_message) == (ResultStatus.FAILED, "the handler gave no reason")


@pytest.mark.parametrize(
    "value",
    [
        {"success": True},
        {"success": True, "rows": 3},
        {"success": "yes", "result": 1},
        {"result": 1},
        {"success": True, "result": 1, "rows": 3},
        {"success": False},
    ],
)
def test_a_document_that_says_more_or_less_is_an_output(value: dict[str, Any]) -> None:
    outcome = outcome_of(value)
    assert (outcome.status, outcome.output) == (ResultStatus.COMPLETED, document(value))


def test_a_text_that_only_looks_like_nul_is_kept() -> None:
    assert outcome_of("a\\u0000").status is ResultStatus.COMPLETED
    assert not outcome_of({"a\0": 1}).retryable
    assert not outcome_of(["a\0", "\\u0000"]).retryable


def test_metrics_that_are_not_json_fail_for_good() -> None:
    assert not outcome_of(HandlerResult.success(1, {"a": object()})).retryable  # type: ignore[dict-item]


def test_a_value_that_is_nested_without_end_fails_for_good() -> None:
    value: list[Any] = []
    value.append(value)
    assert not outcome_of(value).retryable


def test_errors_are_told_with_their_kind() -> None:
    assert outcome_of_error(ValueError("no")).error_message == "ValueError: no"
    assert outcome_of_error(ValueError()).error_message == "ValueError"
    assert outcome_of_error(ValueError("no")).retryable
    refused = outcome_of_error(InvalidInput("No such layer.", hint="Name one."))
    assert (refused.error_message, refused.retryable) == ("No such layer. Name one.", False)


def test_a_package_that_the_worker_lacks_is_told_with_where_to_get_it() -> None:
    outcome = outcome_of_error(ModuleNotFoundError("No module named 'pyproj'", name="pyproj"))
    assert outcome.error_message is not None
    assert outcome.error_message.startswith("ModuleNotFoundError: No module named 'pyproj'. Install it")
    assert "graticule[worker]" in outcome.error_message
    assert outcome.retryable  # by a worker that has it


def test_a_failure_may_bring_a_report() -> None:
    outcome = outcome_of(HandlerResult.failure("empty", retryable=False, report={"outcome": "reject"}))
    assert (outcome.error_message, outcome.output) == ("empty", b'{"report":{"outcome":"reject"}}')
    large = outcome_of(HandlerResult.failure("empty", report={"text": "x" * 70_000}))
    assert large.error_message is not None
    assert "65,536 bytes" in large.error_message


def test_long_texts_are_cut() -> None:
    assert shortened("x" * MAX_MESSAGE_LENGTH) == "x" * MAX_MESSAGE_LENGTH
    cut = shortened("x" * (MAX_MESSAGE_LENGTH + 5))
    assert cut.endswith(" … (5 characters more)")
