"""Outputs of served versions that are missing or damaged: callers get 503, and a metric counts it."""

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter

from graticule.core.models.platform import DataType
from graticule.http.problems import answer_error


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


async def answer_unreadable(request: Request, error: Exception) -> Response:
    """Answer a request for an output that cannot be read."""
    counter: Counter | None = getattr(request.app.state, "unreadable", None)
    if counter is not None:
        counter.inc()
    return await answer_error(request, error)
