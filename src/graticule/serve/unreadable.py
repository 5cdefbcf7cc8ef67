"""Outputs of served versions that are missing or damaged: callers get 503, and a metric counts it."""

from typing import Final

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter
from starlette.types import Scope

from graticule.core.models.platform import DataType
from graticule.http.problems import answer_error

_HAS_FAULT: Final = "has_fault"


class UnreadableOutputs:
    """Counts the answers that an unreadable output has made impossible."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = Counter(
            "graticule_outputs_unreadable_total",
            "Requests refused because a file or table of a served version is missing or damaged.",
            ["data_type"],
            registry=registry,
        )

    def watch(self, app: FastAPI, data_type: DataType) -> None:
        """Count the refusals of an application."""
        app.state.unreadable = self._counter.labels(data_type.value)


def note_fault(request: Request) -> None:
    """Note that the output of a request could not be read: what was answered from it before does not hold any more."""
    request.scope["state"][_HAS_FAULT] = True


def has_fault(scope: Scope) -> bool:
    """Return whether the output of a request turned out to be unreadable."""
    return bool(scope["state"].get(_HAS_FAULT))


async def answer_unreadable(request: Request, error: Exception) -> Response:
    """Answer a request for an output that cannot be read."""
    note_fault(request)
    counter: Counter | None = getattr(request.app.state, "unreadable", None)
    if counter is not None:
        counter.inc()
    return await answer_error(request, error)
