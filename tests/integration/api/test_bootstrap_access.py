"""Who may call the bootstrap endpoints, and what those learn who may not."""

from typing import Any

import httpx
import pytest
from tests.conftest import TestDatabase
from tests.integration.api.conftest import KEY, StartApi

from graticule.core.table import DatabaseRole
from graticule.http.problems import MEDIA_TYPE

BOOTSTRAP = "/api/v1/bootstrap"
ENDPOINTS = [
    ("GET", "status"),
    ("GET", "tables"),
    ("GET", "ddl"),
    ("POST", "deploy"),
    ("POST", "migrate"),
    ("POST", "rebuild?confirm=x"),
]
each_endpoint = pytest.mark.parametrize(("method", "path"), ENDPOINTS)

# Words of the machinery that a caller has no business with.
INTERNAL = ["Traceback", "psycopg", ".py", "password", "SELECT", "/tmp/", "Error:"]


def problem_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Give the problem document of an answer, after checking what is true of all of them."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == f"urn:graticule:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["instance"] == answer.request.url.path
    assert [word for word in INTERNAL if word in answer.text] == []
    return problem


@each_endpoint
async def test_without_a_key_the_answer_is_401_and_names_the_header(
    visitor: httpx.AsyncClient, method: str, path: str
) -> None:
    answer = await visitor.request(method, f"{BOOTSTRAP}/{path}")
    assert "X-API-Key" in problem_of(answer, 401, "unauthenticated")["hint"]
    assert "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize("wrong", ["wrong", "", KEY[:-1], KEY + "x", KEY.upper(), "ключ"])
@each_endpoint
async def test_with_a_wrong_key_the_answer_is_401(
    visitor: httpx.AsyncClient, method: str, path: str, wrong: str
) -> None:
    answer = await visitor.request(method, f"{BOOTSTRAP}/{path}", headers={b"X-API-Key": wrong.encode()})
    problem_of(answer, 401, "unauthenticated")
    assert KEY not in answer.text


@pytest.mark.parametrize("sent", [None, "", "anything"])
@each_endpoint
async def test_where_no_key_is_configured_nobody_is_an_admin(
    start_api: StartApi, method: str, path: str, sent: str | None
) -> None:
    async with start_api(None, key=None) as client:
        headers = {} if sent is None else {"X-API-Key": sent}
        answer = await client.request(method, f"{BOOTSTRAP}/{path}", headers=headers)
        problem_of(answer, 401, "unauthenticated")


@pytest.mark.parametrize("sent", [None, ""])
async def test_an_empty_key_opens_nothing(start_api: StartApi, sent: str | None) -> None:
    async with start_api(None, key="") as client:
        headers = {} if sent is None else {"X-API-Key": sent}
        answer = await client.get(f"{BOOTSTRAP}/status", headers=headers)
        problem_of(answer, 401, "unauthenticated")


async def test_the_key_is_asked_for_before_the_form_of_a_request_is_looked_at(visitor: httpx.AsyncClient) -> None:
    problem_of(await visitor.post(f"{BOOTSTRAP}/rebuild"), 401, "unauthenticated")


async def test_an_unknown_address_is_answered_by_a_problem_document(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get(f"{BOOTSTRAP}/nonsense")
    assert (answer.status_code, answer.headers["content-type"]) == (404, MEDIA_TYPE)
    assert answer.json()["code"] == "not_found"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("endpoint", ["deploy", "migrate", "rebuild"])
async def test_what_changes_something_is_not_done_by_get(visitor: httpx.AsyncClient, endpoint: str) -> None:
    answer = await visitor.get(f"{BOOTSTRAP}/{endpoint}", params={"confirm": "x"}, headers={"X-API-Key": KEY})
    assert (answer.status_code, answer.headers["content-type"]) == (405, MEDIA_TYPE)
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(("method", "path"), [("GET", "status"), ("POST", "deploy"), ("POST", "migrate")])
async def test_a_login_that_may_not_change_the_schema_is_refused_and_told_so(
    database: TestDatabase, start_api: StartApi, method: str, path: str
) -> None:
    """An orchestrator that was given no owner's login tries with its own."""
    async with start_api(database, owner=None) as client:
        answer = await client.request(method, f"{BOOTSTRAP}/{path}", headers={"X-API-Key": KEY})
        problem_of(answer, 403, "permission_denied")


async def test_a_login_that_may_only_read_can_list_the_tables_or_is_told_why_not(
    database: TestDatabase, start_api: StartApi
) -> None:
    async with start_api(database, owner=DatabaseRole.GATEWAY) as client:
        answer = await client.get(f"{BOOTSTRAP}/tables", headers={"X-API-Key": KEY})
        assert answer.status_code in {200, 403}, answer.text


@each_endpoint
async def test_a_database_that_is_away_is_answered_by_503(start_api: StartApi, method: str, path: str) -> None:
    async with start_api(None, development=True) as client:
        answer = await client.request(method, f"{BOOTSTRAP}/{path}", headers={"X-API-Key": KEY})
        if path == "ddl":  # made from the models alone
            assert answer.status_code == 200
        else:
            problem_of(answer, 503, "unavailable")
            assert answer.headers["retry-after"]
