"""Loads: what is asked of a server, by a client in a process of its own, and what came of it."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any, cast
from urllib.parse import urlsplit

from benchmarks.raster.tools import ROOT

CLIENT = (sys.executable, "-m", "benchmarks.serving.client")
LONGEST_SECONDS = 600.0
Request = tuple[str, Mapping[str, str]]  # a path, and headers


class WrongAnswer(Exception):
    """A server has not answered as it should."""


@dataclass(frozen=True)
class Seen:
    """What a server answered to one request."""

    status: int
    etag: str | None
    size: int
    sha256: str


@dataclass(frozen=True)
class Outcome:
    """What a load came to."""

    seconds: float
    cpu_seconds: float  # of the client
    received: int  # bytes
    milliseconds: Sequence[float] = field(repr=False)

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return len(self.milliseconds) / self.seconds

    def percentile(self, percent: int) -> float:
        """The time in milliseconds in which so many of a hundred requests were answered."""
        return quantiles(self.milliseconds, n=100)[percent - 1]


@dataclass(frozen=True)
class Target:
    """A server, and what it is asked."""

    url: str
    requests: Sequence[Request]
    status: int = 200  # of all answers

    async def run(self, count: int, connections: int) -> Outcome:
        """Send so many requests, the list again and again, and take the times."""
        came = await self._ask(count, connections, looks=False)
        return Outcome(came["seconds"], came["cpu_seconds"], came["received"], came["milliseconds"])

    async def look(self, connections: int = 1) -> list[Seen]:
        """Send each request once, and give what was answered; this also makes the server warm."""
        came = await self._ask(len(self.requests), connections, looks=True)
        return [Seen(**each) for each in came["seen"]]

    async def _ask(self, count: int, connections: int, *, looks: bool) -> dict[str, Any]:
        load = {
            "port": urlsplit(self.url).port,
            "requests": self.requests,
            "count": count,
            "connections": connections,
            "looks": looks,
        }
        client = await asyncio.create_subprocess_exec(
            *CLIENT, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        try:
            output, _ = await asyncio.wait_for(client.communicate(json.dumps(load).encode()), LONGEST_SECONDS)
        finally:
            if client.returncode is None:
                client.kill()
        if client.returncode != 0:
            raise WrongAnswer(f"The client could not ask {self.url}{self.requests[0][0]}.")
        came = json.loads(output)
        if came["statuses"] != {str(self.status): count}:
            raise WrongAnswer(f"{self.url}{self.requests[0][0]} and others: {came['statuses']}")
        return cast("dict[str, Any]", came)
