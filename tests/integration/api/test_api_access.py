"""Nothing of the API is open to those who have no key."""

import re

import httpx
import pytest
from fastapi.routing import APIRoute
from tests.integration.api.running import KEY, TOKEN
from tests.integration.api.test_bootstrap_access import problem_of

from graticule.api.app import ROUTERS
from graticule.api.callbacks import router as callbacks
from graticule.api.clients import noting


def _endpoints() -> list[tuple[str, str]]:
    routes = [route for router in ROUTERS if not router.prefix.startswith(callbacks.prefix) for route in router.routes]
    return sorted(
        (method, re.sub(r"\{\w+\}", "x", route.path_format))
        for route in routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    )


ENDPOINTS = _endpoints()


def test_every_endpoint_is_under_a_prefix_of_the_api() -> None:
    assert len(ENDPOINTS) > 30
    assert [path for _, path in ENDPOINTS if not path.startswith(("/api/v1/", "/api/jobs/"))] == []


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": "wrong"}, {"X-API-Key": ""}, {"Authorization": "Bearer x"}, {"X-Service-Token": "x"}]
)
async def test_without_the_key_every_endpoint_answers_401_before_it_looks_at_the_request(
    visitor: httpx.AsyncClient, headers: dict[str, str], subtests: pytest.Subtests
) -> None:
    for method, path in ENDPOINTS:
        with subtests.test(f"{method} {path}"):
            sent = {"Content-Type": "application/json", **headers}
            answer = await visitor.request(method, path, headers=sent, content=b"{")
            problem_of(answer, 401, "unauthenticated")
            assert KEY not in answer.text


async def test_the_worker_token_opens_nothing_but_the_callbacks(
    visitor: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for method, path in ENDPOINTS:
        with subtests.test(f"{method} {path}"):
            answer = await visitor.request(method, path, headers={"Authorization": f"Bearer {TOKEN}"}, content=b"{")
            if path == f"{noting.prefix}/used":  # the gateway's alone
                problem_of(answer, 401, "unauthenticated")
            else:
                problem_of(answer, 403, "permission_denied")


async def test_the_worker_token_counts_for_callbacks_whatever_stands_beside_it(visitor: httpx.AsyncClient) -> None:
    for method, path in (("POST", "task-result"), ("GET", "checkpoint"), ("POST", "catalogue/items")):
        headers = {"Authorization": f"Bearer {TOKEN}", "X-API-Key": "wrong"}
        answer = await visitor.request(method, f"/api/v1/callbacks/{path}", json={}, headers=headers)
        problem_of(answer, 422, "invalid_input")


async def test_a_database_that_is_away_is_answered_by_503(visitor: httpx.AsyncClient) -> None:
    visitor.headers["X-API-Key"] = KEY
    for path in ("jobs", "jobs/a", "jobs/a/nodes", "jobs/a/events/stream", "queues", "stats", "dead-letters"):
        answer = await visitor.get(f"/api/v1/{path}")
        problem_of(answer, 503, "unavailable")
        assert answer.headers["retry-after"]
