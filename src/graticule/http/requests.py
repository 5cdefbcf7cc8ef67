"""One id, one line in the log, one measurement and one span for every request."""

import re
import time
from http import HTTPMethod
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.core.trace_context import TRACEPARENT, TraceContext, continued, parse_traceparent
from graticule.http.metrics import HttpMetrics
from graticule.http.routes import RouteFinder
from graticule.http.sse import MEDIA_TYPE as EVENT_STREAM
from graticule.logs import bound, get_logger
from graticule.telemetry import Kind, Span, span

REQUEST_ID_HEADER: Final = "X-Request-ID"

# What is logged and measured when the caller has gone before an answer was begun (as nginx does).
CLIENT_CLOSED_REQUEST: Final = 499

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS: Final = frozenset(HTTPMethod)
_PROBES: Final = ("/livez", "/readyz", "/health", "/metrics")

_log = get_logger(__name__)


def request_id_of(scope: Scope) -> str | None:
    """Return the id that this request was given."""
    request_id: str | None = scope.get("state", {}).get("request_id")
    return request_id


class RequestObserver:
    """Middleware that gives a request its id, and tells how it went."""

    def __init__(self, app: ASGIApp, *, metrics: HttpMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its id bound to every line that is logged on its behalf."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _chosen_id(headers.get(REQUEST_ID_HEADER))
        scope.setdefault("state", {})["request_id"] = request_id
        with (
            bound(request_id=request_id),
            continued(_trace_of(headers)),
            span("request", Kind.SERVER, request_id=request_id) as answering,
        ):
            await self._observe(request_id, answering, scope, receive, send)

    async def _observe(self, request_id: str, answering: Span, scope: Scope, receive: Receive, send: Send) -> None:
        status, is_stream = CLIENT_CLOSED_REQUEST, False
        find_route = RouteFinder(scope)
        path = scope["path"]  # an application that is mounted below may change it

        async def noticing(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                is_stream = headers.get("content-type", "").startswith(EVENT_STREAM)
                headers[REQUEST_ID_HEADER] = request_id
            await send(message)

        began = time.perf_counter()
        try:
            await self.app(scope, receive, noticing)
        finally:
            seconds = time.perf_counter() - began
            route = find_route(scope)
            timed = None if is_stream else seconds  # how long someone listened says nothing of us
            self.metrics.observe(method=scope["method"], route=route, status=status, seconds=timed)
            _tell(scope["method"], path, route, status, seconds)
            _record(answering, scope["method"], route, status)


def _chosen_id(offered: str | None) -> str:
    return offered if offered and _SANE_ID.fullmatch(offered) else uuid4().hex


def _tell(method: str, path: str, route: str, status: int, seconds: float) -> None:
    tell = _log.debug if route.endswith(_PROBES) else _log.info
    tell("request", method=method, path=quote(path), status=status, duration_ms=round(seconds * 1000, 1))


def _trace_of(headers: Headers) -> TraceContext | None:
    """Give the trace that the caller is in; what is no valid header, or comes twice, is nobody's."""
    given = headers.getlist(TRACEPARENT)
    return parse_traceparent(given[0]) if len(given) == 1 else None


def _record(answering: Span, method: str, route: str, status: int) -> None:
    """Name a span by the route's template, never by the path; probes are asked too often to be worth a trace."""
    if route.endswith(_PROBES):
        answering.forget()
        return
    known = method if method in _METHODS else "_OTHER"
    answering.rename(f"{known} {route}")
    answering.set({"http.request.method": known, "http.route": route, "http.response.status_code": status})
    if status >= 500:
        answering.fail(f"status {status}")
