"""Jobs and results in the words of earlier releases mean what those meant."""

from typing import Any

import pytest
from pydantic import ValidationError

from graticule.core.compatibility import NO_REASON
from graticule.core.errors import fault_message
from graticule.services.jobs import Submission
from graticule.services.results import ResultReport

FROM_GATEWAY = {"request_id": "req-1", "asset_id": "a7b3c9d2e1f4", "workflow_id": "echo_test", "inputs": {"n": 1}}


def test_a_request_of_an_earlier_gateway_is_the_correlation_id() -> None:
    submission = Submission.model_validate(FROM_GATEWAY)
    assert submission == Submission(workflow_id="echo_test", input_params={"n": 1}, correlation_id="req-1")


@pytest.mark.parametrize(("named", "kept"), [("order-7", "order-7"), (None, "req-1")])
def test_a_correlation_id_that_is_there_is_kept(named: str | None, kept: str) -> None:
    assert Submission.model_validate({**FROM_GATEWAY, "correlation_id": named}).correlation_id == kept


def test_the_asset_of_a_message_binds_the_job_to_nothing() -> None:
    """A job of an asset version begins with a submission; a message must not claim what belongs to one."""
    assert not {"asset_id", "version_ordinal", "purpose"} & Submission.model_fields.keys()
    assert Submission.model_validate(FROM_GATEWAY).input_params == {"n": 1}


@pytest.mark.parametrize("more", [{"asset_id": "a7b3c9d2e1f4"}, {"version_ordinal": 0}, {"purpose": "export"}])
def test_an_asset_is_accepted_in_that_message_alone(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Submission.model_validate({"workflow_id": "echo_test", **more})


@pytest.mark.parametrize(
    ("job_type", "address"),
    [
        ("process_raster", "/process_raster,"),
        ("Not an id", "/{workflow},"),
        (None, "/{workflow},"),
        (["x"], "/{workflow},"),
    ],
)
def test_a_message_of_the_staged_api_is_told_where_to_go(job_type: object, address: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Submission.model_validate({"job_id": "a", "job_type": job_type, "stage": 1, "parameters": {}})
    (fault,) = refused.value.errors()
    assert f"POST /api/jobs/submit{address}" in fault_message(fault)


@pytest.mark.parametrize("request_id", ["", "x" * 65, 7])
def test_a_request_id_that_is_no_correlation_id_is_refused(request_id: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Submission.model_validate({**FROM_GATEWAY, "request_id": request_id})
    assert refused.value.errors()[0]["loc"] == ("correlation_id",)


def report(**said: Any) -> ResultReport:
    return ResultReport.model_validate({"task_id": "t", "worker_id": "worker-xyz", **said})


@pytest.mark.parametrize("status", [{"success": True}, {"status": "completed"}])
@pytest.mark.parametrize("output", [{"result": {"a": 1}}, {"result": {"a": 1}, "output": None}])
def test_result_is_another_name_of_output(status: dict[str, Any], output: dict[str, Any]) -> None:
    said = report(**status, **output)
    assert (said.status, said.output) == ("completed", {"a": 1})
    assert said.content_hash == report(status="completed", output={"a": 1}).content_hash


def test_a_report_may_leave_its_result_null() -> None:
    assert report(status="completed", output={"a": 1}, result=None).output == {"a": 1}
    assert report(success=True, result=None).output is None


def test_result_and_output_at_once_are_refused() -> None:
    with pytest.raises(ValidationError) as refused:
        report(status="completed", output={"a": 1}, result={"a": 2})
    (fault,) = refused.value.errors()
    assert fault_message(fault) == "`result` is another name of `output`: send only one of them"


@pytest.mark.parametrize("failed", [{"status": "failed"}, {"success": False}])
@pytest.mark.parametrize("reason", [{}, {"error_message": None}, {"error_message": ""}])
def test_a_failure_may_have_no_reason(failed: dict[str, Any], reason: dict[str, Any]) -> None:
    said = report(**failed, output={}, **reason)
    assert (said.status, said.error_message) == ("failed", NO_REASON)
