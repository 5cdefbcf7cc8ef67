"""The live events of a job, read to the job's end; a lost connection is taken up where it broke."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import httpx

from graticule.cli.client import ApiClient, ApiProblem, Document

PATIENCE_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.5
END: Final = "end"


@dataclass(slots=True)
class _Message:
    """What has arrived of one server-sent event."""

    event: str = "message"
    data: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.event = value
        elif name == "data":
            self.data.append(value)


async def messages(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Give the name and the data of each server-sent event in these lines."""
    message = _Message()
    async for line in lines:
        if line:
            message.take(line)
        else:
            if message.data:
                yield message.event, "\n".join(message.data)
            message = _Message()


async def follow_events(client: ApiClient, job_id: str, after: int = 0) -> AsyncIterator[Document]:
    """Give the events of a job after an event id, live, and end when the job has."""
    last, alone_since = after, time.monotonic()
    while True:
        try:
            async with client.stream(job_id, last) as lines:
                async for name, data in messages(lines):
                    alone_since = time.monotonic()
                    if name == END:
                        return
                    event: Document = json.loads(data)
                    last = int(event["event_id"])
                    yield event
        except httpx.TransportError as error:
            if time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise client.unreachable(error) from error
        except ApiProblem as problem:
            if problem.status < 500 or time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
