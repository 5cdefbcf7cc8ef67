"""One id, one line in the log and one measurement for every request."""

import re
import time
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.http.metrics import HttpMetrics
from graticule.http.routes import RouteFinder
from graticule.logs import bound, get_logger

REQUEST_ID_HEADER: Final = "X-Request-ID"

# What is logged and measured when the caller has gone before an answer was begun (as nginx does).
CLIENT_CLOSED_REQUEST: Final = 499

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
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
        request_id = _chosen_id(Headers(scope=scope).get(REQUEST_ID_HEADER))
        scope.setdefault("state", {})["request_id"] = request_id
        with bound(request_id=request_id):
            await self._observe(request_id, scope, receive, send)

    async def _observe(self, request_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        status = CLIENT_CLOSED_REQUEST
        find_route = RouteFinder(scope)
        path = scope["path"]  # an application that is mounted below may change it

        async def noticing(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        began = time.perf_counter()
        try:
            await self.app(scope, receive, noticing)
        finally:
            seconds = time.perf_counter() - began
            route = find_route(scope)
            self.metrics.observe(method=scope["method"], route=route, status=status, seconds=seconds)
            _tell(scope["method"], path, route, status, seconds)


def _chosen_id(offered: str | None) -> str:
    return offered if offered and _SANE_ID.fullmatch(offered) else uuid4().hex


def _tell(method: str, path: str, route: str, status: int, seconds: float) -> None:
    tell = _log.debug if route.endswith(_PROBES) else _log.info
    tell("request", method=method, path=quote(path), status=status, duration_ms=round(seconds * 1000, 1))
