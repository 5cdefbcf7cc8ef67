"""Every error becomes a problem document that says what its caller may know, and no more."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.types import Message
from structlog.testing import capture_logs

from graticule.core import errors
from graticule.core.errors import GraticuleError
from graticule.http.application import create_application
from graticule.http.problems import MOST_FIELD_ERRORS, STATUSES, Problem, problem_of, problem_responses, status_of


class Order(BaseModel):
    count: int
    password: str


async def half() -> AsyncIterator[str]:
    yield "half"
    raise RuntimeError("the other half")


@pytest.fixture
def app() -> FastAPI:
    app = create_application(process="test", title="Test", checks={})

    @app.get("/refused/{name}")
    async def refused(name: str) -> None:
        raise getattr(errors, name)("What happened.", hint="What to do.", detail="only for the log")

    @app.post("/orders")
    async def order(order: Order) -> Order:
        return order

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("an inner secret")

    @app.post("/relayed")
    async def relayed(request: Request) -> int:
        return len([part async for part in request.stream()])

    @app.get("/half")
    async def streamed() -> StreamingResponse:
        return StreamingResponse(half())

    @app.get("/status/{status}")
    async def status(status: int) -> None:
        raise HTTPException(status, "as written", headers={"X-Extra": "kept"})

    @app.get("/documented", responses=problem_responses(401, 404))
    async def documented() -> None:
        return None

    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


def problem(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == response.status_code
    assert document.pop("request_id") == response.headers["x-request-id"]
    return document


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("InvalidInput", 422),
        ("Unauthenticated", 401),
        ("PermissionDenied", 403),
        ("NotFound", 404),
        ("Conflict", 409),
        ("AlreadyExists", 409),
        ("IllegalTransition", 409),
        ("StaleVersion", 409),
        ("SchemaOutdated", 503),
        ("Unavailable", 503),
        ("TransactionAborted", 503),
        ("ConfigurationError", 500),
        ("GraticuleError", 500),
    ],
)
async def test_a_domain_error_answers_with_its_status(client: httpx.AsyncClient, name: str, status: int) -> None:
    response = await client.get(f"/refused/{name}")
    code = getattr(errors, name).code
    assert problem(response) == {
        "type": f"urn:graticule:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": "What happened.",
        "hint": "What to do.",
        "code": code,
        "instance": f"/refused/{name}",
    }
    assert ("www-authenticate" in response.headers) is (status == 401)
    assert response.headers.get("retry-after") == ("5" if status == 503 else None)


# Other modules' errors have parameters of their own, and which of them are loaded depends on the other tests.
PARTICULAR = {errors.Refused, errors.TooManyRequests}
ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, GraticuleError) and kind not in PARTICULAR
]


@settings(deadline=None)  # a busy machine is no failure
@given(st.sampled_from(ERRORS), st.text(min_size=1))
def test_every_error_has_a_status_and_keeps_its_detail_to_itself(kind: type[GraticuleError], secret: str) -> None:
    marked = f"Zq7{secret}Kx9"
    error = kind("What happened.", detail=marked)
    assert 400 <= status_of(error) < 600
    assert marked not in json.dumps(problem_of(error).model_dump(), ensure_ascii=False)


def test_a_rule_that_refuses_is_named_and_tells_how_things_stand() -> None:
    current = {"version": 3, "approved": None, "at": datetime(2026, 3, 1, tzinfo=UTC)}
    refused = problem_of(errors.Refused("version_unresolved", "Not yet.", hint="Decide.", current=current))
    assert (refused.status, refused.code, refused.hint) == (409, "version_unresolved", "Decide.")
    assert refused.current == current
    assert problem_of(errors.Refused("version_exists", "No.")).current is None


async def test_what_stands_is_sent_as_it_is(app: FastAPI, client: httpx.AsyncClient) -> None:
    @app.get("/unresolved")
    async def unresolved() -> None:
        raise errors.Refused("version_unresolved", "Not yet.", current={"latest": None, "at": date(2026, 3, 1)})

    document = problem(await client.get("/unresolved"))
    assert document["current"] == {"latest": None, "at": "2026-03-01"}


async def test_who_asks_too_often_is_told_when_to_come_back(app: FastAPI, client: httpx.AsyncClient) -> None:
    @app.get("/often")
    async def often() -> None:
        raise errors.TooManyRequests("Too often.", retry_after_seconds=17)

    answer = await client.get("/often")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "17")
    assert problem(answer)["code"] == "too_many_requests"


def test_a_subclass_that_the_table_does_not_name_takes_the_status_of_its_parent() -> None:
    class VersionUnresolved(errors.Conflict):
        code = "version_unresolved"

    assert VersionUnresolved not in STATUSES
    assert status_of(VersionUnresolved("no")) == 409


async def test_the_detail_goes_to_the_log(client: httpx.AsyncClient) -> None:
    with capture_logs() as lines:
        await client.get("/refused/Unavailable")
    (line,) = [line for line in lines if line["event"] == "request refused"]
    assert line["detail"] == "only for the log"
    assert line["log_level"] == "warning"


async def test_what_nobody_foresaw_says_nothing_of_itself_and_is_logged(client: httpx.AsyncClient) -> None:
    with capture_logs() as lines:
        response = await client.get("/broken")
    assert response.status_code == 500
    assert problem(response)["code"] == "internal_error"
    assert "inner secret" not in response.text
    (line,) = [line for line in lines if line["event"] == "request failed"]
    assert str(line["exc_info"]) == "an inner secret"


async def test_half_an_answer_is_cut_off(client: httpx.AsyncClient) -> None:
    with capture_logs() as lines, pytest.raises(RuntimeError, match="the other half"):
        await client.get("/half")
    assert "request failed" in [line["event"] for line in lines]


async def test_a_client_that_goes_away_in_the_middle_of_its_request_is_no_error(app: FastAPI) -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def unheard(message: Message) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/relayed", "query_string": b"", "headers": []}
    with capture_logs() as lines:
        await app(scope, gone, unheard)
    (line,) = [line for line in lines if "client" in line["event"]]
    assert line["log_level"] == "info"
    assert not [line for line in lines if "exc_info" in line]


async def test_an_invalid_body_is_told_field_by_field_without_what_was_sent(client: httpx.AsyncClient) -> None:
    response = await client.post("/orders", json={"count": "hunter2", "extra": "hunter3"})
    document = problem(response)
    assert response.status_code == 422
    assert document["code"] == "invalid_input"
    assert {(tuple(fault["loc"]), fault["type"]) for fault in document["errors"]} == {
        (("body", "count"), "int_parsing"),
        (("body", "password"), "missing"),
    }
    assert all(set(fault) == {"loc", "message", "type"} for fault in document["errors"])
    assert "hunter" not in response.text


def test_of_many_faults_the_first_are_told_and_the_others_are_counted() -> None:
    fault = {"loc": ("body", 1), "msg": "m", "type": "t"}
    for count in (MOST_FIELD_ERRORS, MOST_FIELD_ERRORS + 980):
        found = problem_of(RequestValidationError([fault] * count))
        assert len(found.errors or ()) == MOST_FIELD_ERRORS == 20
        assert ("980 are left out" in found.detail) is (count > MOST_FIELD_ERRORS)


def test_half_a_character_can_be_told_of() -> None:
    fault = {"loc": ("body", "\ud800"), "msg": "\ud801", "type": "t"}
    for error in (RequestValidationError([fault]), errors.NotFound("There is no \ud800.", hint="\udfff")):
        assert "\\\\ud" in problem_of(error).model_dump_json()


async def test_a_body_that_is_not_json_is_malformed(client: httpx.AsyncClient) -> None:
    response = await client.post("/orders", content='{"count": 1', headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert problem(response)["code"] == "malformed_request"


async def test_an_unknown_address_is_a_problem_too(client: httpx.AsyncClient) -> None:
    document = problem(await client.get("/no/such/thing?secret=1"))
    assert document == {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "There is nothing at this address.",
        "code": "not_found",
        "instance": "/no/such/thing",
    }


async def test_a_method_that_is_not_taken_is_a_problem_too(client: httpx.AsyncClient) -> None:
    response = await client.delete("/orders")
    assert problem(response)["code"] == "method_not_allowed"
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(("status", "code"), [(413, "content_too_large"), (418, "im_a_teapot"), (599, "http_599")])
async def test_any_http_error_keeps_its_words_and_headers(client: httpx.AsyncClient, status: int, code: str) -> None:
    response = await client.get(f"/status/{status}")
    document = problem(response)
    assert (document["code"], document["detail"]) == (code, "as written")
    assert response.headers["x-extra"] == "kept"


async def test_a_status_without_a_body_has_none(client: httpx.AsyncClient) -> None:
    response = await client.get("/status/304")
    assert (response.status_code, response.content) == (304, b"")


async def test_problems_are_documented_with_their_media_type(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    documented = paths["/documented"]["get"]["responses"]
    assert {"200", "401", "404", "default"} == set(documented)
    schema = documented["404"]["content"]["application/problem+json"]["schema"]
    assert set(schema["properties"]) == set(Problem.model_fields)
    assert "$ref" not in json.dumps(schema)
    refused = paths["/orders"]["post"]["responses"]["422"]
    assert [*refused["content"]] == ["application/problem+json"]
