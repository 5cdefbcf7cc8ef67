"""What the gateway makes of the orchestrator's answers, and what it tells it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.gateway.front import (
    NOWHERE,
    SERVICE_KEY,
    Front,
    address,
    headers_of,
    problem_of,
    running_front,
    settings_of,
)

from graticule.core.errors import Unavailable
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.gateway import forwarding
from graticule.gateway.forwarding import ForwardedProblem, Orchestrator
from graticule.http.problems import Problem
from graticule.services.service_tokens import HEADER, ServiceTokens

PARTNER = Caller("partner", frozenset({ClientRole.SUBMITTER}))
OPERATOR = Caller("operator", frozenset({ClientRole.OPERATOR}))
PROBLEM = "application/problem+json"
Answering = Callable[[httpx.Request], httpx.Response]


@asynccontextmanager
async def orchestrator_answering(answer: Answering, **more: Any) -> AsyncIterator[Orchestrator]:
    """Give a client whose orchestrator answers like this."""
    async with Orchestrator("http://it", lambda _: "token", transport=httpx.MockTransport(answer), **more) as client:
        yield client


async def refusal_of(answer: httpx.Response, caller: Caller = OPERATOR) -> Exception:
    """Give what becomes of an answer."""
    async with orchestrator_answering(lambda _: answer) as orchestrator:
        with pytest.raises((ForwardedProblem, Unavailable)) as caught:
            await orchestrator.send("POST", "/x", caller=caller)
    return caught.value


def refused(status: int, **more: Any) -> httpx.Response:
    problem = {"title": "T", "status": status, "detail": "D", "code": "version_unresolved", **more}
    return httpx.Response(status, json=problem, headers={"Content-Type": PROBLEM, "Retry-After": "7"})


async def test_a_problem_is_passed_on_as_it_is_and_to_partners_without_what_is_ours() -> None:
    current = {"asset_id": "a", "job_id": "j", "versions": [{"revision": 1, "current_job_id": "j", "reviewer": "r"}]}
    answer = refused(409, hint="H", current=current, errors=[{"loc": ["body"], "message": "m", "type": "t"}])
    staff = await refusal_of(answer)
    assert isinstance(staff, ForwardedProblem)
    assert (staff.problem.status, staff.problem.code, staff.problem.detail) == (409, "version_unresolved", "D")
    assert (staff.problem.hint, staff.problem.current) == ("H", current)
    assert staff.problem.errors is not None
    assert staff.headers == {"Retry-After": "7"}
    partner = await refusal_of(answer, PARTNER)
    assert isinstance(partner, ForwardedProblem)
    assert partner.problem.current == {"asset_id": "a", "versions": [{"revision": 1}]}


@pytest.mark.parametrize(
    "answer",
    [
        refused(500),
        httpx.Response(500, text="Traceback (most recent call last)"),
        httpx.Response(404, text="<html>not ours</html>", headers={"Content-Type": "text/html"}),
        httpx.Response(302, headers={"Location": "http://evil.example/"}),
        httpx.Response(409, json={"status": 404}, headers={"Content-Type": PROBLEM}),
    ],
)
async def test_what_is_no_refusal_of_ours_is_a_bad_gateway_that_tells_nothing(answer: httpx.Response) -> None:
    error = await refusal_of(answer)
    assert isinstance(error, ForwardedProblem)
    assert (error.problem.status, error.problem.code) == (502, "bad_gateway")
    assert not {"Traceback", "html", "evil"} & set(str(error.problem.model_dump()).split())


async def test_an_answer_of_another_form_is_a_bad_gateway() -> None:
    with pytest.raises(ForwardedProblem) as caught:
        forwarding.parsed(httpx.Response(200, text="{}", request=httpx.Request("GET", "http://it/x")), Problem)
    assert caught.value.problem.status == 502


async def test_a_service_token_that_is_not_taken_is_not_the_callers_fault() -> None:
    error = await refusal_of(refused(401))
    assert isinstance(error, Unavailable)
    assert "GRATICULE_SERVICE_KEY" in str(error)


async def test_an_orchestrator_that_is_silent_or_breaks_off_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("gone")

    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(forwarding, "ANSWER_SECONDS", 0.05)
    for answer in (breaks_off, silent):
        async with orchestrator_answering(answer) as orchestrator:  # type: ignore[arg-type]
            with pytest.raises(Unavailable, match="whether the change was made is not known"):
                await orchestrator.send("POST", "/x", caller=OPERATOR)


async def test_what_goes_along_is_the_token_the_request_id_and_the_trace_and_never_the_credential(
    database: TestDatabase, tmp_path: Path
) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return refused(404)

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with running_front(settings_of(tmp_path), database) as front:
        sign = ServiceTokens(SecretStr(SERVICE_KEY)).sign
        async with Orchestrator("http://it/base", sign, transport=httpx.MockTransport(answer)) as orchestrator:
            front.app.state.orchestrator = orchestrator
            headers = {"X-Request-ID": "abc", "traceparent": trace, "Cookie": "a=b", **headers_of("reviewer")}
            path = f"/api/assets/{'0' * 32}/clearance"
            told = await front.client.post(path, json={"clearance_level": "ouo"}, headers=headers)
        problem_of(told, 404, "version_unresolved")
    (request,) = seen
    assert str(request.url) == f"http://it/base/api/v1/assets/{'0' * 32}/clearance"
    assert (request.headers["x-request-id"], request.headers["traceparent"]) == ("abc", trace)
    assert not {"x-api-key", "authorization", "cookie"} & set(request.headers)
    caller = ServiceTokens(SecretStr(SERVICE_KEY)).read(request.headers[HEADER])
    assert (caller.name, caller.roles, caller.client_id) == ("reviewer", frozenset({ClientRole.REVIEWER}), "reviewer")


async def test_without_a_service_key_changes_say_how_to_set_one(database: TestDatabase, tmp_path: Path) -> None:
    async with running_front(settings_of(tmp_path, service_key=None), database) as front:
        problem = problem_of(await _clear(front), 503, "unavailable")
    assert "no service key" in problem["detail"]
    assert "GRATICULE_SERVICE_KEY" in problem["hint"]


async def test_with_the_orchestrator_down_changes_are_503_with_retry_after(
    database: TestDatabase, tmp_path: Path
) -> None:
    async with running_front(settings_of(tmp_path, orchestrator_url=address(NOWHERE)), database) as front:
        answer = await _clear(front)
    assert "nothing was changed" in problem_of(answer, 503, "unavailable")["detail"]
    assert answer.headers["retry-after"] == "5"


async def _clear(front: Front) -> httpx.Response:
    return await front.ask("reviewer", "POST", f"/api/assets/{'0' * 32}/clearance", json={"clearance_level": "ouo"})
