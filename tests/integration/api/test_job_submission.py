"""Submit, cancel and retry over HTTP."""

import json
from typing import Any

import httpx
import pytest
from tests.integration.api.running import WORKER, RunningApi
from tests.integration.api.test_bootstrap_access import problem_of

from graticule.core.ids import WorkerId
from graticule.core.models import Job
from graticule.repositories.database import Connection
from graticule.repositories.tasks import Delivery, TaskRepository

JOBS = "/api/v1/jobs"
ECHO = {"workflow_id": "echo_test", "input_params": {"message": "hi"}}

FAILING = """
workflow_id: failing
name: Failing
version: 1
nodes:
  start: {type: start, next: work}
  work: {handler: echo, retry: {max_attempts: 0}, next: end}
  end: {type: end}
"""
BY_PARAMS = """
workflow_id: by_params
name: By params
version: 1
job_id: params
inputs: {number: {type: integer, required: true}}
nodes:
  start: {type: start, next: work}
  work: {handler: echo, retry: {max_attempts: 0}, next: end}
  end: {type: end}
"""


@pytest.fixture
async def failing(api: RunningApi) -> RunningApi:
    """Give the application with two more workflows."""
    for name, text in (("failing", FAILING), ("by_params", BY_PARAMS)):
        (api.home / "workflows" / f"{name}.yaml").write_text(text)
    assert (await api.client.post("/api/v1/workflows/reload")).status_code == 200
    return api


async def test_a_job_is_submitted_runs_and_shows_its_result(api: RunningApi) -> None:
    given = {**ECHO, "correlation_id": "c", "submitted_by": "Zoë", "priority": 7}
    answer = await api.client.post(JOBS, json=given)
    assert answer.status_code == 201, answer.text
    job = Job.model_validate(answer.json())
    assert (job.workflow_id, job.input_params["message"], job.priority) == ("echo_test", "hi", 7)
    assert (job.correlation_id, job.submitted_by) == ("c", "Zoë")
    assert answer.headers["location"] == f"{JOBS}/{job.job_id}"
    task = await api.task(job.job_id, "echo_handler")
    await api.report(task.task_id, output={"echoed_params": task.params})
    await api.ended(job.job_id)
    found = await api.get(f"{JOBS}/{job.job_id}")
    assert (found["status"], found["progress"]["percent"]) == ("completed", 100.0)
    assert found["result"]["echoed_params"]["message"] == "hi"
    assert await actors(api, job.job_id, "job_created") == ["admin"]


async def test_a_second_submission_with_the_same_key_gives_the_first_job(api: RunningApi) -> None:
    first = await api.client.post(JOBS, json={**ECHO, "idempotency_key": "k"})
    again = await api.client.post(JOBS, json={**ECHO, "idempotency_key": "k"})
    by_header = await api.client.post(JOBS, json=ECHO, headers={"Idempotency-Key": "k"})
    assert [answer.status_code for answer in (first, again, by_header)] == [201, 200, 200]
    assert len({answer.json()["job_id"] for answer in (first, again, by_header)}) == 1
    other = await api.client.post(JOBS, json={**ECHO, "input_params": {"message": "other"}, "idempotency_key": "k"})
    assert (other.status_code, other.json()["job_id"]) == (200, first.json()["job_id"])
    both = await api.client.post(JOBS, json={**ECHO, "idempotency_key": "a"}, headers={"Idempotency-Key": "b"})
    problem_of(both, 422, "invalid_input")


async def test_identical_inputs_are_one_job_where_the_workflow_says_so(failing: RunningApi) -> None:
    body = {"workflow_id": "by_params", "input_params": {"number": 1}}
    first, again = [await failing.client.post(JOBS, json=body) for _ in range(2)]
    other = await failing.client.post(JOBS, json={**body, "input_params": {"number": 2}})
    assert [answer.status_code for answer in (first, again, other)] == [201, 200, 201]
    assert first.json()["job_id"] == again.json()["job_id"] != other.json()["job_id"]


async def test_a_failed_job_is_resumed_by_resubmitting_it(failing: RunningApi) -> None:
    body = {"workflow_id": "by_params", "input_params": {"number": 1}}
    job_id = (await failing.client.post(JOBS, json=body)).json()["job_id"]
    task = await failing.task(job_id, "work")
    await failing.report(task.task_id, "failed", error_message="no", retryable=False)
    await failing.ended(job_id)
    left = await failing.client.post(JOBS, json=body)
    assert (left.status_code, left.json()["status"]) == (200, "failed")
    resumed = await failing.client.post(JOBS, json=body, params={"resubmit": "true"})
    assert (resumed.status_code, resumed.json()["status"]) == (200, "running")
    assert (await failing.task(job_id, "work")).task_id != task.task_id
    assert await actors(failing, job_id, "job_resumed") == ["admin"]


async def actors(api: RunningApi, job_id: str, event_type: str) -> list[str | None]:
    """Name who caused the events of a type."""
    events = await api.get(f"{JOBS}/{job_id}/events?event_type={event_type}")
    return [event["actor"] for event in events["items"]]


async def test_the_dead_letter_that_a_job_failed_of_is_tried_again_by_resuming_the_job(
    failing: RunningApi, connection: Connection
) -> None:
    job_id = await failing.submit("failing")
    task = await failing.task(job_id, "work")
    await failing.hold(task.task_id)
    lease = Delivery(task.task_id, 1)
    assert await TaskRepository(connection).dead_letter(WorkerId(WORKER), lease, "poison")
    await failing.ended(job_id)
    requeue = f"/api/v1/dead-letters/{task.task_id}/requeue"
    answer = await failing.client.post(requeue)
    assert answer.status_code == 200, answer.text
    again = await failing.task(job_id, "work")
    assert again.task_id != task.task_id
    assert (await failing.get("/api/v1/dead-letters"))["items"] == []
    assert await actors(failing, job_id, "job_resumed") == ["admin"]
    problem_of(await failing.client.post(requeue), 404, "not_found")
    await failing.report(again.task_id, output={})
    await failing.ended(job_id)
    assert (await failing.get(f"{JOBS}/{job_id}"))["status"] == "completed"


async def test_a_failed_job_is_retried_and_a_job_that_runs_is_not(failing: RunningApi) -> None:
    job_id = await failing.submit("failing")
    problem_of(await failing.client.post(f"{JOBS}/{job_id}/retry"), 409, "conflict")
    task = await failing.task(job_id, "work")
    await failing.report(task.task_id, "failed", error_message="no", retryable=False)
    await failing.ended(job_id)
    assert (await failing.get(f"{JOBS}/{job_id}"))["error_message"]
    unknown = await failing.client.post(f"{JOBS}/{job_id}/retry", json={"node_id": "nowhere"})
    assert unknown.status_code in {404, 409, 422}, unknown.text
    retried = await failing.client.post(f"{JOBS}/{job_id}/retry", json={"node_id": "work"})
    assert (retried.status_code, retried.json()["status"]) == (200, "running")
    again = await failing.task(job_id, "work")
    await failing.report(again.task_id, output={})
    await failing.ended(job_id)
    assert (await failing.get(f"/api/v1/status/{job_id}"))["status"] == "completed"
    assert await actors(failing, job_id, "job_resumed") == ["admin"]


async def test_a_job_is_cancelled_and_stays_so(api: RunningApi) -> None:
    job_id = await api.submit("echo_test")
    answer = await api.client.post(f"{JOBS}/{job_id}/cancel")
    assert answer.status_code in {200, 202}, answer.text
    assert [heard.event for heard in await api.ended(job_id)][-2:] == ["job_cancelled", "end"]
    again = await api.client.post(f"{JOBS}/{job_id}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    for action in ("cancel", "retry"):
        problem_of(await api.client.post(f"{JOBS}/none/{action}"), 404, "not_found")


async def test_an_unknown_workflow_is_404_and_a_near_one_is_named(admin_client: httpx.AsyncClient) -> None:
    answer = await admin_client.post(JOBS, json={"workflow_id": "echo_tset"})
    assert "echo_test" in problem_of(answer, 404, "not_found")["hint"]
    answer = await admin_client.post("/api/jobs/submit/echo_tset", json={})
    assert "echo_test" in problem_of(answer, 404, "not_found")["hint"]


async def test_bad_inputs_are_told_all_at_once(admin_client: httpx.AsyncClient) -> None:
    body = {"workflow_id": "fan_out_test", "input_params": {"items": "text", "seconds": -1, "nonsense": 1}}
    detail = problem_of(await admin_client.post(JOBS, json=body), 422, "invalid_input")["detail"]
    assert all(name in detail for name in ("items", "seconds", "nonsense"))
    assert (await admin_client.get(JOBS)).json()["items"] == []


@pytest.mark.parametrize("megabytes", [2, 5, 11])
async def test_an_input_document_that_is_too_large_is_refused(admin_client: httpx.AsyncClient, megabytes: int) -> None:
    body = {"workflow_id": "echo_test", "input_params": {"message": "x" * (megabytes * 1024 * 1024)}}
    answer = await admin_client.post(JOBS, json=body)
    assert answer.status_code == (413 if megabytes > 10 else 422), answer.text
    assert "bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"workflow_id": ""},
        {"workflow_id": "x" * 65},
        {"workflow_id": None},
        {"correlation_id": "x" * 65},
        {"callback_url": "http://" + "x" * 512},
        {"priority": 11},
        {"priority": -1},
        {"priority": "high"},
        {"input_params": []},
        {"input_params": None},
        {"nonsense": 1},
    ],
)
async def test_a_message_that_is_not_one_is_refused(admin_client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    problem = problem_of(await admin_client.post(JOBS, json={**ECHO, **change}), 422, "invalid_input")
    assert {error["loc"][1] for error in problem["errors"]} == set(change)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe"])
async def test_a_body_that_is_no_message_is_refused(admin_client: httpx.AsyncClient, body: bytes) -> None:
    answer = await admin_client.post(JOBS, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("message", ["nul \0", "lone \ud800"])
async def test_a_text_that_no_database_can_hold_is_refused(admin_client: httpx.AsyncClient, message: str) -> None:
    body = json.dumps({**ECHO, "input_params": {"message": message}}).encode()
    answer = await admin_client.post(JOBS, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text


async def test_the_staged_form_takes_the_inputs_as_its_body(api: RunningApi) -> None:
    answer = await api.client.post("/api/jobs/submit/echo_test", json={"message": "hi"})
    assert answer.status_code == 201, answer.text
    accepted = answer.json()
    told = {"job_id", "workflow_id", "job_type", "status", "created", "queue", "message_id", "status_url", "created_at"}
    assert set(accepted) == told | {"warnings"}
    assert (accepted["job_type"], accepted["created"], accepted["status"]) == ("echo_test", True, "queued")
    assert (accepted["queue"], accepted["message_id"]) == ("orchestrator-jobs", accepted["job_id"])
    assert await actors(api, accepted["job_id"], "job_created") == ["admin"]
    status = await api.get(accepted["status_url"])
    assert (status["job_id"], status["result"], status["error"]) == (accepted["job_id"], None, None)
    assert status["progress"]["total"] == 3
    empty = await api.client.post("/api/jobs/submit/echo_test", headers={"Idempotency-Key": "k"})
    again = await api.client.post("/api/jobs/submit/echo_test", headers={"Idempotency-Key": "k"}, json={})
    assert [empty.status_code, again.status_code, again.json()["created"]] == [201, 200, False]
