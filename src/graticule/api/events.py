"""The live stream of events, of one job and of all. Operators only."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from graticule.api.access import OperatorOnly
from graticule.api.jobs import JobPath
from graticule.api.services import Events, Reader, Stopping
from graticule.core.models import Event
from graticule.http.problems import problem_responses
from graticule.http.sse import EVENT_STREAM, Batches, ServerSentEvent, event_stream_response
from graticule.services.event_stream import Batches as EventBatches

router = APIRouter(
    prefix="/api/v1",
    tags=["events"],
    dependencies=[OperatorOnly],
    responses={**EVENT_STREAM, **problem_responses(401, 403, 422, 503)},
    default_response_class=StreamingResponse,
)

LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, lt=2**63, description="The last event that the client has.")
]
After = Annotated[int | None, Query(ge=0, lt=2**63, description="The same, for clients that cannot set the header.")]
END = ServerSentEvent(event="end", data="{}")


@router.get("/jobs/{job_id}/events/stream", response_model=None, responses=problem_responses(404))
async def stream_of_job(
    job_id: JobPath,
    reader: Reader,
    events: Events,
    stopping: Stopping,
    *,
    last_event_id: LastEventId = None,
    after: After = None,
) -> StreamingResponse:
    """Stream the events of a job from its first one on, live; after its end comes `event: end`, and no more."""
    await reader.check(job_id)
    begin = _begin(last_event_id, after)
    return event_stream_response(_wire(events.follow_job(job_id, begin or 0), END), stopping)


@router.get("/events/stream", response_model=None)
async def stream_of_all(
    events: Events, stopping: Stopping, last_event_id: LastEventId = None, after: After = None
) -> StreamingResponse:
    """Stream all events from now on, or from the last one that the client has."""
    return event_stream_response(_wire(events.follow(after=_begin(last_event_id, after))), stopping)


def _begin(last_event_id: int | None, after: int | None) -> int | None:
    """The header is newer: a browser that connects again repeats the address and adds it."""
    return after if last_event_id is None else last_event_id


async def _wire(batches: EventBatches, *final: ServerSentEvent) -> Batches:
    async with aclosing(batches):
        async for events in batches:
            yield _encoded(events)
    yield final


def _encoded(events: Sequence[Event]) -> list[ServerSentEvent]:
    return [
        ServerSentEvent(id=str(event.event_id), event=event.event_type, data=event.model_dump_json())
        for event in events
    ]
