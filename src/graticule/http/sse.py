"""Server-sent events: an answer without end, for as long as the client listens and the server runs."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import StreamingResponse

from graticule.core.cancellation import end_tasks

MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE_SECONDS: Final = 15.0
RETRY_MILLISECONDS: Final = 1000

_LINE_END: Final = re.compile(r"\r\n|\r|\n")  # fewer than str.splitlines() knows: U+2028 may stand in a JSON string

EVENT_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Server-sent events", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
}


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event on the wire; `id` is what a client sends back as Last-Event-ID."""

    data: str
    event: str | None = None
    id: str | None = None

    def encode(self) -> bytes:
        """Give the event as it goes out."""
        lines = [f"{name}: {value}" for name, value in (("id", self.id), ("event", self.event)) if value is not None]
        lines += [f"data: {line}" for line in _LINE_END.split(self.data)]
        return ("\n".join(lines) + "\n\n").encode()


Batches = AsyncGenerator[Sequence[ServerSentEvent], None]


def event_stream_response(
    batches: Batches, stopping: asyncio.Event, *, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> StreamingResponse:
    """Answer with these events until they end, the client goes, or the server begins to stop."""
    return StreamingResponse(
        _encoded(batches, stopping, keep_alive_seconds),
        media_type=MEDIA_TYPE,
        headers={"X-Accel-Buffering": "no"},  # nginx would hold the events back
    )


async def _encoded(batches: Batches, stopping: asyncio.Event, keep_alive_seconds: float) -> AsyncGenerator[bytes, None]:
    stop: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
    following: asyncio.Future[Any] | None = None
    try:
        yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
        while not stop.done():
            following = following or asyncio.ensure_future(anext(batches))
            await asyncio.wait({stop, following}, timeout=keep_alive_seconds, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                events: Sequence[ServerSentEvent] = following.result()
                following = None
                if events:
                    yield b"".join(event.encode() for event in events)
            elif not stop.done():
                yield b": keep-alive\n\n"
    except StopAsyncIteration:
        return
    finally:
        await end_tasks(stop, *filter(None, [following]))
        await batches.aclose()
