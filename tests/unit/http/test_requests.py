"""Every request has an id, a line in the log, a measurement, safe headers and a body of limited size."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs
from tests.otlp_collector import Collector, traced

from graticule.core.trace_context import current_traceparent
from graticule.http.application import create_application
from graticule.http.requests import _chosen_id, request_id_of
from graticule.telemetry import end_tracing

LIMIT = 100


async def plain(request: Request) -> PlainTextResponse:
    return PlainTextResponse("plain")


def mounted() -> FastAPI:
    below = FastAPI()
    routes = APIRouter()

    @below.get("/direct/{z}")
    async def direct(z: str) -> str:
        return z

    @routes.get("/included/{z}")
    async def included(z: str) -> str:
        return z

    below.include_router(routes, prefix="/deep")
    return below


@pytest.fixture
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    app = create_application(process="test", title="Test", checks={}, max_body_bytes=LIMIT)
    inner = APIRouter(prefix="/nodes")
    outer = APIRouter()

    @inner.get("/{node}")
    async def node(node: str) -> str:
        return node

    @outer.get("/jobs/{job}")
    async def job(job: str, request: Request) -> dict[str, Any]:
        return {"seen": request_id_of(request.scope), "bound": get_contextvars().get("request_id")}

    @app.post("/echo")
    async def echo(request: Request) -> Response:
        return Response(await request.body(), headers={"Cache-Control": "max-age=60", "X-Frame-Options": "SAMEORIGIN"})

    @app.post("/careless")
    async def careless(request: Request) -> str:
        try:
            await request.body()
        except Exception:
            return "all is well"
        return "read"

    @app.post("/unread")
    async def unread() -> str:
        raise AssertionError("a body that is too large must not get here")

    @app.post("/json")
    async def read_json(value: dict[str, int]) -> dict[str, int]:
        return value

    outer.include_router(inner, prefix="/jobs/{job}")
    outer.add_route("/plain/{name}", plain)
    app.include_router(outer, prefix="/api/v1")
    app.mount("/static", StaticFiles(directory=tmp_path_factory.mktemp("static")))
    app.mount("/tenants/{tenant}", mounted())
    app.mount("/starlette", Starlette(routes=[Route("/{x}", plain), Mount("/m/{y}", routes=[Route("/{x}", plain)])]))
    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


async def chunks(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


def counted(app: FastAPI) -> set[tuple[str, str, str]]:
    registry: CollectorRegistry = app.state.registry
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"])
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "graticule_http_requests_total"
    }


async def test_a_request_gets_an_id_that_its_handler_log_and_answer_share(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/jobs/7")
    given_id = response.headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", given_id)
    assert response.json() == {"seen": given_id, "bound": given_id}
    assert get_contextvars() == {}


async def test_a_sane_id_of_the_caller_is_kept(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/jobs/7", headers={"X-Request-ID": "trace-1.a_B"})
    assert response.headers["x-request-id"] == "trace-1.a_B"


@settings(deadline=None)  # a busy machine is no failure
@given(st.text() | st.from_regex(r"\A[A-Za-z0-9._-]{1,70}\n?\Z"))
def test_an_id_is_always_sane(offered: str) -> None:
    chosen = _chosen_id(offered)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", chosen)
    assert chosen == offered or not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", offered)


async def test_one_line_is_logged_without_the_query(client: httpx.AsyncClient) -> None:
    with capture_logs() as lines:
        await client.get("/api/v1/jobs/a%0Ab?key=secret")
    (line,) = lines
    assert line.pop("duration_ms") >= 0
    assert line == {
        "event": "request",
        "log_level": "info",
        "method": "GET",
        "path": "/api/v1/jobs/a%0Ab",
        "status": 200,
    }


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health", "/metrics"])
async def test_probes_are_logged_for_debugging_only(client: httpx.AsyncClient, path: str) -> None:
    with capture_logs() as lines:
        await client.get(path)
    assert [line["log_level"] for line in lines] == ["debug"]


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/api/v1/jobs/7", "/api/v1/jobs/{job}"),
        ("/api/v1/jobs/7/nodes/8", "/api/v1/jobs/{job}/nodes/{node}"),
        ("/api/v1/plain/x", "/api/v1/plain/{name}"),
        ("/openapi.json", "/openapi.json"),
        ("/livez", "/livez"),
        ("/no/such/7", "unmatched"),
        ("/api/v1/jobs/7/", "unmatched"),
        ("/static/no-such-file", "/static/{path}"),
        ("/tenants/7/direct/8", "/tenants/{tenant}/direct/{z}"),
        ("/tenants/7/deep/included/8", "/tenants/{tenant}/deep/included/{z}"),
        ("/tenants/7/no/such", "/tenants/{tenant}/{path}"),
        ("/starlette/7", "/starlette/{x}"),
    ],
)
async def test_the_label_is_the_template(client: httpx.AsyncClient, app: FastAPI, path: str, route: str) -> None:
    await client.get(path)
    assert {counted_route for _, counted_route, _ in counted(app)} == {route}


@settings(deadline=None)  # a busy machine is no failure
@given(values=st.lists(st.text("0123456789", min_size=5), min_size=5, max_size=5))
async def test_no_label_ever_holds_a_part_of_an_address(values: list[str]) -> None:
    application = create_application(process="test", title="Test", checks={})
    application.mount("/tenants/{tenant}", mounted())
    application.mount("/starlette", Starlette(routes=[Mount("/m/{y}", routes=[Route("/{x}", plain)])]))
    paths = ("/tenants/{}/direct/{}", "/tenants/{}/no/{}", "/{}/{}", "/starlette/m/{}/{}", "/starlette/{}/{}")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
        for path, value in zip(paths, values, strict=True):
            await client.get(path.format(value, value))
    assert not any(value in route for value in values for _, route, _ in counted(application))


async def test_refused_methods_are_counted_by_template_and_odd_ones_as_other(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    await client.delete("/api/v1/jobs/7")
    await client.request("BREW", "/api/v1/jobs/7")
    assert counted(app) == {("DELETE", "/api/v1/jobs/{job}", "405"), ("OTHER", "/api/v1/jobs/{job}", "405")}


async def test_durations_are_measured(client: httpx.AsyncClient, app: FastAPI) -> None:
    await client.get("/livez")
    labels = {"method": "GET", "route": "/livez"}
    assert app.state.registry.get_sample_value("graticule_http_request_duration_seconds_count", labels) == 1


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=1.0.0,text/plain;q=0.5", "application/openmetrics-text"),
        ("application/openmetrics-text; version=nonsense", "text/plain; version=0.0.4"),
    ],
)
async def test_metrics_are_shown_in_the_form_that_is_asked_for(
    client: httpx.AsyncClient, accept: str, media_type: str
) -> None:
    response = await client.get("/metrics", headers={"accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(media_type)


@pytest.mark.parametrize("path", ["/livez", "/no/such"])
async def test_answers_carry_safe_headers(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


async def test_an_answer_may_set_its_own(client: httpx.AsyncClient) -> None:
    headers = (await client.post("/echo")).headers
    assert headers.get_list("cache-control") == ["max-age=60"]
    assert headers.get_list("x-frame-options") == ["SAMEORIGIN"]


@pytest.mark.parametrize("sizes", [(LIMIT,), (LIMIT - 1, 1), (0,)])
async def test_a_body_up_to_the_limit_is_taken(client: httpx.AsyncClient, sizes: tuple[int, ...]) -> None:
    announced = await client.post("/echo", content=b"x" * sum(sizes))
    streamed = await client.post("/echo", content=chunks(*sizes))
    assert announced.content == streamed.content == b"x" * sum(sizes)


@pytest.mark.parametrize("path", ["/echo", "/careless", "/json", "/unread", "/no/such"])
async def test_a_body_that_announces_too_much_is_refused_before_it_is_read(
    client: httpx.AsyncClient, path: str
) -> None:
    response = await client.post(path, content=b"x" * (LIMIT + 1))
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "content_too_large"
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/echo", "/careless", "/json"])
async def test_a_body_that_turns_out_too_large_is_refused_while_it_is_read(
    client: httpx.AsyncClient, path: str
) -> None:
    with capture_logs() as lines:
        response = await client.post(path, content=chunks(60, 60, 60))
    assert response.status_code == 413
    assert response.json()["code"] == "content_too_large"
    assert [(line["event"], line["status"]) for line in lines] == [("request", 413)]


@pytest.mark.parametrize("length", ["nonsense", "-1", "٣"])
async def test_an_announcement_that_is_no_number_is_left_to_the_count(client: httpx.AsyncClient, length: str) -> None:
    headers = {b"content-length": length.encode()}
    response = await client.post("/echo", content=chunks(60, 60), headers=headers)
    assert response.status_code == 413


async def test_a_stream_is_counted_and_not_timed_whoever_passes_it_on(app: FastAPI, client: httpx.AsyncClient) -> None:
    @app.get("/proxy/{path:path}")
    async def pass_on(path: str) -> Response:
        return Response("data: 1\n\n", media_type="text/event-stream" if path == "events" else "text/plain")

    await client.get("/proxy/events")
    assert ("GET", "/proxy/{path}", "200") in counted(app)
    labels = {"method": "GET", "route": "/proxy/{path}"}
    name = "graticule_http_request_duration_seconds_count"
    assert app.state.registry.get_sample_value(name, labels) is None
    await client.get("/proxy/page")
    assert app.state.registry.get_sample_value(name, labels) == 1


# Traces

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


@pytest.mark.parametrize(
    "headers",
    [[], [("traceparent", "00-hostile")], [("traceparent", TRACEPARENT)] * 2, [("traceparent", "0" * 10_000)]],
)
async def test_a_request_that_names_no_trace_is_answered_as_ever(
    app: FastAPI, client: httpx.AsyncClient, headers: list[tuple[str, str]]
) -> None:
    _add_traced(app)
    response = await client.get("/traced", headers=headers)
    assert response.json() is None


async def test_the_callers_trace_is_known_although_nothing_is_recorded(app: FastAPI, client: httpx.AsyncClient) -> None:
    _add_traced(app)
    assert (await client.get("/traced", headers={"traceparent": TRACEPARENT})).json() == TRACEPARENT


async def test_a_request_is_a_span_by_its_route_and_probes_are_none(
    app: FastAPI, client: httpx.AsyncClient, collector: Collector
) -> None:
    @app.get("/broken/{way}")
    async def broken(way: str) -> None:
        raise RuntimeError("password=hunter2")

    for path in (
        "/api/v1/jobs/7?sig=hunter2",
        "/tenants/a/deep/included/b",
        "/livez",
        "/metrics",
        "/nowhere/7",
        "/broken/x",
    ):
        await client.get(path, headers={"traceparent": TRACEPARENT})
    await client.request("BREW", "/api/v1/jobs/7")
    end_tracing()
    found = {span.name: span for span in collector.spans}
    assert found.keys() == {
        "GET /api/v1/jobs/{job}",
        "GET /tenants/{tenant}/deep/included/{z}",
        "GET unmatched",
        "GET /broken/{way}",
        "_OTHER /api/v1/jobs/{job}",
    }
    of_job = found["GET /api/v1/jobs/{job}"]
    assert (of_job.trace_id, of_job.parent_id, of_job.kind, of_job.error) == (TRACE, CALLER, "server", None)
    assert of_job.attributes == {
        "graticule.request_id": of_job.attributes["graticule.request_id"],
        "http.request.method": "GET",
        "http.route": "/api/v1/jobs/{job}",
        "http.response.status_code": 200,
    }
    assert (found["GET unmatched"].attributes["http.response.status_code"], found["GET unmatched"].error) == (404, None)
    assert found["GET /broken/{way}"].error == "status 500"
    assert found["_OTHER /api/v1/jobs/{job}"].parent_id == ""
    assert b"hunter2" not in b"".join(collector.bodies)


def _add_traced(app: FastAPI) -> None:
    @app.get("/traced")
    async def traced() -> str | None:
        return current_traceparent()


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Give a collector to which spans are exported."""
    with traced("test") as collector:
        yield collector
