"""What goes over the wire, what its answers become, and when a call is sent again. The same for both clients."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from tests.unit.client.senders import ADDRESS, Answer, Sender, Wire

from graticule.client import ApiProblem, AsyncClient, Client, Page, Unavailable, UnexpectedAnswer, calls, document
from graticule.client.call import Call, Parsed
from graticule.core.errors import ConfigurationError, InvalidInput
from graticule.core.exchange import Approval, PlatformSubmission
from graticule.core.models.engine import EventType
from graticule.core.models.platform import DataType
from graticule.core.states import ClearanceState, JobStatus
from graticule.services.jobs import Submission

SECRET = "gtc_Zq7hunterXk9rabbit"
SETTLED = {"id": "x", "done": "requeued"}
SUBMISSION = PlatformSubmission(
    platform_id="ddh",
    platform_refs={"dataset_id": "1", "layer_index": 2},
    version_label="1",
    data_type=DataType.RASTER,
    container_name="bronze",
    file_name="ddh/a.tif",
)
READ: Call[dict[str, Any]] = document(calls.get_job("x"))
CHANGE: Call[dict[str, Any]] = document(calls.cancel_job("x"))


def answer(status: int = 200, body: Any = SETTLED, **headers: str) -> httpx.Response:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=told)


def refusal(status: int, code: str = "conflict", **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"title": "x", "status": status, "detail": "It is so.", "code": code, **more})


# what goes out


def test_a_key_and_a_token_go_out_and_are_nowhere_shown(sender: Sender) -> None:
    wire = Wire([answer()])
    sender.send(wire, READ, api_key=SECRET, bearer=SECRET)
    assert wire.headers["X-API-Key"] == SECRET
    assert wire.headers["Authorization"] == f"Bearer {SECRET}"
    for client in (Client, AsyncClient):
        assert SECRET not in repr(client(f"http://user:{SECRET}@127.0.0.1", api_key=SECRET, bearer=SECRET))


@pytest.mark.parametrize("credential", [f"{SECRET}\n", f"{SECRET} ", f"{SECRET}é"])
def test_a_credential_that_can_be_none_is_refused_and_not_shown(sender: Sender, credential: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        sender.send(Wire([answer()]), READ, api_key=credential)
    assert SECRET not in str(found.value)


@pytest.mark.parametrize("address", ["127.0.0.1:8001", "ftp://x", "nonsense", "http://", "http://x:port"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(ConfigurationError, match="not the address of a server"):
            client(address)


def test_a_path_before_the_api_is_kept() -> None:
    wire = Wire([answer()])
    with Client("https://maps.example.org/graticule/", transport=httpx.MockTransport(wire)) as client:
        client.send(READ)
    assert wire.asked[0].url == "https://maps.example.org/graticule/api/v1/jobs/x"


def test_each_part_stays_one_part_of_the_path(sender: Sender) -> None:
    wire = Wire([answer()])
    sender.send(wire, document(calls.cancel_job("../../bootstrap/rebuild?confirm=x#é")))
    assert wire.asked[0].url.raw_path == b"/api/v1/jobs/..%2F..%2Fbootstrap%2Frebuild%3Fconfirm%3Dx%23%C3%A9/cancel"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_part_that_would_change_the_address_is_refused(sender: Sender, name: str) -> None:
    wire = Wire([answer()])
    with pytest.raises(InvalidInput):
        sender.send(wire, calls.get_job(name))
    assert wire.asked == []


def test_a_query_leaves_out_what_is_not_asked_and_repeats_what_is_many() -> None:
    moment = datetime(2026, 3, 14, 15, tzinfo=UTC)
    wanted = calls.list_jobs(status=JobStatus.FAILED, created_after=moment)
    assert wanted.parameters == [("status", "failed"), ("created_after", "2026-03-14T15:00:00+00:00")]
    types = calls.list_job_events("x", event_type=[EventType.JOB_CREATED, EventType.JOB_FAILED], after=0)
    assert types.parameters == [("after", "0"), ("event_type", "job_created"), ("event_type", "job_failed")]
    assert calls.list_workers(stopped=True).parameters == [("stopped", "true")]
    box = calls.list_assets(refs={"b": 1, "a": "é"}, bbox=(-10.5, 35.0, 1e-5, 60.0), deleted=False)
    assert dict(box.parameters) == {
        "refs": '{"a": "\\u00e9", "b": 1}',
        "bbox": "-10.5,35,0.00001,60",
        "deleted": "false",
    }
    assert calls.list_assets(refs={}).parameters == []


def test_a_body_holds_what_was_set_and_leaves_the_rest_to_the_server(sender: Sender) -> None:
    wire = Wire([answer(202)])
    sender.send(wire, document(calls.submit_data(SUBMISSION, idempotency_key="k-1")))
    assert wire.headers["Content-Type"] == "application/json"
    assert wire.headers["Idempotency-Key"] == "k-1"
    assert json.loads(wire.asked[0].content) == SUBMISSION.model_dump(mode="json", exclude_unset=True)
    assert "overwrite" not in json.loads(wire.asked[0].content)


def test_the_gateway_is_told_the_asset_in_the_body() -> None:
    approval = Approval(clearance_level=ClearanceState.OUO)
    call = calls.gateway.approve(approval, asset_id="a")
    assert json.loads(call.content or b"") == {"clearance_level": "ouo", "asset_id": "a"}


def test_a_partners_own_form_goes_out_as_it_is() -> None:
    form = {"dataset_id": "1", "version_id": "2"}
    assert json.loads(calls.gateway.submit(form).content or b"") == form


@pytest.mark.parametrize("key", ["", "two words", "é", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        calls.submit_data(SUBMISSION, idempotency_key=key)


def test_calls_are_values() -> None:
    assert calls.get_job("x") == calls.get_job("x")
    assert calls.get_job("x") != calls.get_job("y")
    plain: object = document(calls.get_job("x"))
    assert calls.get_job("x") != plain


# what comes back


def test_an_answer_becomes_its_type_and_fields_of_a_newer_server_are_passed_over(sender: Sender) -> None:
    found = sender.send(Wire([answer(body={**SETTLED, "new": 1})]), calls.requeue_dead_letter("x"))
    assert (found.id, found.done) == ("x", "requeued")


@pytest.mark.parametrize(("status", "created"), [(201, True), (200, False)])
def test_a_submission_tells_whether_the_job_was_made_just_now(sender: Sender, status: int, created: bool) -> None:
    job = {"job_id": "j", "workflow_id": "w", "workflow_version": "1", "workflow_hash": "0" * 64}
    times = {"created_at": "2026-03-14T15:00:00Z", "updated_at": "2026-03-14T15:00:00Z"}
    found = sender.send(Wire([answer(status, {**job, **times})]), calls.submit_job(Submission(workflow_id="w")))
    assert (found.job.job_id, found.created) == ("j", created)


def test_a_problem_document_becomes_an_error_with_all_that_it_tells(sender: Sender) -> None:
    faults = [{"loc": ["body", "priority"], "message": "too large", "type": "x"}]
    told = {"hint": "Do otherwise.", "errors": faults, "current": {"asset": {"version": 3}}}
    wire = Wire([refusal(409, "version_unresolved", **told)])
    with pytest.raises(ApiProblem) as found:
        sender.send(wire, CHANGE)
    problem = found.value
    assert (problem.status, problem.code, problem.message) == (409, "version_unresolved", "It is so.")
    assert (problem.hint, problem.current) == ("Do otherwise.", {"asset": {"version": 3}})
    assert [str(fault) for fault in problem.errors] == ["body.priority: too large"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"\xff", b"null", b'{"detail": 7}'])
@pytest.mark.parametrize("status", [200, 302, 404, 502])
def test_an_answer_of_another_program_is_told_as_such(sender: Sender, status: int, body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match=f"{ADDRESS} answered with {status}"):
        sender.send(Wire([httpx.Response(status, content=body)]), calls.requeue_dead_letter("x"))


def test_a_server_that_does_not_answer_is_told_with_its_address_and_without_the_login(sender: Sender) -> None:
    with pytest.raises(Unavailable, match=f"Nothing answers at {ADDRESS}."):
        sender.send(Wire([httpx.ConnectError("refused")]), CHANGE)
    with (
        Client(f"http://u:{SECRET}@127.0.0.1:1", transport=httpx.MockTransport(Wire([httpx.ConnectError("")]))) as one,
        pytest.raises(Unavailable, match=r"Nothing answers at http://127\.0\.0\.1:1\."),
    ):
        one.send(CHANGE)


# pages


def page(*items: int, following: str | None = None) -> httpx.Response:
    return answer(body={"items": list(items), "next": following})


NUMBERS: Call[Page[int]] = calls.list_queues().read_as(Parsed(Page[int]))


def test_pages_follow_one_another_to_the_last(sender: Sender) -> None:
    wire = Wire([page(1, 2, following="a"), page(following="b"), page(3)])
    assert sender.first(wire, NUMBERS, 100) == [1, 2, 3]
    assert [dict(request.url.params) for request in wire.asked] == [{}, {"cursor": "a"}, {"cursor": "b"}]


def test_a_page_that_nobody_needs_is_not_asked_for(sender: Sender) -> None:
    wire = Wire([page(1, 2, following="a"), page(3, 4, following="b"), httpx.ReadError("not this one")])
    assert sender.first(wire, NUMBERS, 4) == [1, 2, 3, 4]
    assert len(wire.asked) == 2


# when it is sent again

LOST = [httpx.ConnectError("x"), httpx.ReadError("x"), httpx.RemoteProtocolError("x"), httpx.ConnectTimeout("x")]


@pytest.mark.parametrize("lost", [*LOST, refusal(503), refusal(429)], ids=str)
def test_a_reading_call_is_sent_again_and_again_with_growing_pauses(
    sender: Sender, pauses: list[float], lost: Any
) -> None:
    wire = Wire([lost, lost, lost, answer()])
    assert sender.send(wire, READ) == SETTLED
    assert len(wire.asked) == 4
    assert pauses[0] < pauses[1] < pauses[2] < 1


def test_after_three_repeats_the_last_outcome_stands(sender: Sender, pauses: list[float]) -> None:
    busy, away = Wire([refusal(503, "unavailable")]), Wire([httpx.ConnectError("x")])
    with pytest.raises(ApiProblem, match="It is so"):
        sender.send(busy, READ)
    with pytest.raises(Unavailable):
        sender.send(away, READ)
    assert (len(busy.asked), len(away.asked), len(pauses)) == (4, 4, 6)


def test_a_change_is_sent_once_whatever_comes_of_it(sender: Sender, pauses: list[float]) -> None:
    outcomes: list[Answer] = [*LOST, refusal(503), refusal(429)]
    for lost in outcomes:
        wire = Wire([lost])
        with pytest.raises((Unavailable, ApiProblem)):
            sender.send(wire, CHANGE)
        assert len(wire.asked) == 1
    assert pauses == []


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(
    ("call", "times"),
    [
        (calls.submit_data(SUBMISSION), 1),
        (calls.submit_data(SUBMISSION, idempotency_key="k"), 4),
        (calls.gateway.submit(SUBMISSION, idempotency_key="k"), 4),
        (calls.submit_job(Submission(workflow_id="w")), 1),
        (calls.submit_job(Submission(workflow_id="w", idempotency_key="k")), 4),
        (calls.run_command("cache.invalidate", {"all": True}), 4),
    ],
)
def test_a_change_with_a_key_is_repeated_as_reading_is(sender: Sender, call: Call[Any], times: int) -> None:
    wire = Wire([httpx.ReadError("the answer is lost")])
    with pytest.raises(Unavailable):
        sender.send(wire, call)
    assert len(wire.asked) == times
    assert len({request.content for request in wire.asked}) == 1


def test_retry_after_is_honoured(sender: Sender, pauses: list[float]) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=8))
    wire = Wire([answer(429, Retry_After="7"), answer(503, Retry_After="10"), answer(503, Retry_After=soon), answer()])
    assert sender.send(wire, READ) == SETTLED
    assert pauses[:2] == [7, 10]
    assert 5 < pauses[2] <= 8


def test_a_server_that_wants_longer_than_ten_seconds_is_not_asked_again(sender: Sender, pauses: list[float]) -> None:
    wire = Wire([httpx.Response(503, json={"detail": "It is so."}, headers={"Retry-After": "11"})])
    with pytest.raises(ApiProblem) as found:
        sender.send(wire, READ)
    assert (found.value.retry_after, len(wire.asked), pauses) == (11, 1, [])


@pytest.mark.parametrize("told", ["soon", "-1", "1.5", "٣", ""])
def test_a_retry_after_that_cannot_be_read_asks_for_nothing(sender: Sender, pauses: list[float], told: str) -> None:
    headers = [(b"Retry-After", told.encode())]
    sender.send(Wire([httpx.Response(503, headers=headers), answer()]), READ)
    assert len(pauses) == 1
    assert pauses[0] < 1


@pytest.mark.parametrize("outcome", [refusal(500), refusal(502), refusal(404), httpx.ReadTimeout("slow")], ids=str)
def test_what_will_not_pass_in_a_moment_is_not_repeated(sender: Sender, pauses: list[float], outcome: Any) -> None:
    wire = Wire([outcome])
    with pytest.raises((Unavailable, ApiProblem)):
        sender.send(wire, READ)
    assert (len(wire.asked), pauses) == (1, [])


def test_repeating_can_be_switched_off(sender: Sender, pauses: list[float]) -> None:
    wire = Wire([refusal(503), answer()])
    with pytest.raises(ApiProblem):
        sender.send(wire, READ, repeats=0)
    assert pauses == []
