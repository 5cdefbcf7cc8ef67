"""An API that answers from documents: for what the command line makes of answers, not for the API itself."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import httpx

from graticule.cli import server
from graticule.client import AsyncClient

Answer = Callable[[httpx.Request], httpx.Response]
JOB_ID = "019c5c1e3fd07e0c1d4b2a990f1c6a55"
CREATED = "2026-03-14T15:00:00+00:00"


def job(status: str = "running", **changes: Any) -> dict[str, Any]:
    ended = None if status in {"pending", "running"} else "2026-03-14T15:00:04+00:00"
    values = {"job_id": JOB_ID, "workflow_id": "demo", "status": status, "error_message": None, "result": None}
    return {**values, "created_at": CREATED, "started_at": CREATED, "ended_at": ended, **changes}


def node(node_id: str, status: str = "completed", node_type: str = "task", **changes: Any) -> dict[str, Any]:
    times = dict.fromkeys(("ready_at", "dispatched_at", "started_at", "ended_at"))
    counters = dict.fromkeys(("children_total", "children_started", "children_done", "children_failed"), 0)
    empty = dict.fromkeys(("output", "progress", "error_message"))
    values = {"node_id": node_id, "status": status, "node_type": node_type, "retry_count": 0}
    return {**times, **counters, **empty, **values, **changes}


def event(number: int, event_type: str, node_id: str | None = None, **data: Any) -> dict[str, Any]:
    values = {"event_id": number, "event_type": event_type, "job_id": JOB_ID, "node_id": node_id, "task_id": None}
    return {**values, "actor": None, "data": data, "created_at": f"2026-03-14T15:00:{number % 60:02}+00:00"}


def stream(*events: dict[str, Any], end: bool = True) -> httpx.Response:
    """Give an answer with these events on the wire."""
    text = "retry: 1000\n\n: keep-alive\n\n"
    text += "".join(
        f"id: {each['event_id']}\nevent: {each['event_type']}\ndata: {json.dumps(each)}\n\n" for each in events
    )
    return httpx.Response(200, text=text + ("event: end\ndata: {}\n\n" if end else ""))


def problem(status: int, detail: str, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"title": "x", "status": status, "detail": detail, "code": "x", **more})


@dataclass
class FakeApi:
    """Answers by method and path, and remembers what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.get(f"{request.method} {request.url.path}")
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return answer
        return httpx.Response(200, json=answer) if answer is not None else problem(404, "There is nothing here.")

    def body(self) -> Any:
        """Give the document of the last request that had one."""
        return json.loads(next(request.content for request in reversed(self.asked) if request.content))

    @contextmanager
    def served(self) -> Iterator["FakeApi"]:
        """Let the command line talk to this one."""
        mocked = partial(AsyncClient, transport=httpx.MockTransport(self))
        with patch.object(server, "AsyncClient", mocked):
            yield self


def page(*items: Any, following: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "next": following}


def watched(final: dict[str, Any], *events: dict[str, Any], nodes: tuple[dict[str, Any], ...] = ()) -> FakeApi:
    """Give an API with one job that is watched to its end."""
    path = f"/api/v1/jobs/{JOB_ID}"
    return FakeApi(
        {
            "POST /api/v1/jobs": httpx.Response(201, json=job("pending")),
            f"GET {path}": [job("running"), final],
            f"GET {path}/nodes": page(*nodes),
            f"GET {path}/events/stream": stream(*events),
        }
    )
