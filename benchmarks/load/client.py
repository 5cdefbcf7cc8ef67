"""`python -m benchmarks.load.client`: programs that submit at a fixed rate, whether or not the answers keep up.

It takes a load as JSON from its input and gives what it saw as JSON. A request is due at its time; what it waited for
a connection counts as its latency, so that a server which stalls is not asked less often just then. It does as little
as it can, for the servers have the same cores.
"""

import asyncio
import gc
import json
import re
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

MOST_CONNECTIONS: Final = 256
SECONDS_FOR_AN_ANSWER: Final = 30.0
ACCEPTED: Final = frozenset({201, 202})
_END_OF_HEAD: Final = b"\r\n\r\n"
_STATUS: Final = slice(len("HTTP/1.1 "), len("HTTP/1.1 202"))
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class Kind(StrEnum):
    """What is submitted: jobs, as operators' programs do, or data, as partners do."""

    JOBS = "jobs"
    DATA = "data"


PATHS: Final = {Kind.JOBS: "/api/gateway/submit", Kind.DATA: "/api/platform/submit"}
RECEIPTS: Final = {Kind.JOBS: "job_id", Kind.DATA: "request_id"}


@dataclass(frozen=True, slots=True)
class Load:
    """What, how often, how long, to whom, with whose keys, and how it is named."""

    kind: Kind
    port: int
    name: str
    rate: float
    seconds: float
    keys: list[str]

    @property
    def count(self) -> int:
        """Give the number of submissions."""
        return round(self.rate * self.seconds)

    def request(self, number: int) -> bytes:
        """Write a submission; no two are the same."""
        body = json.dumps(self._job(number) if self.kind == Kind.JOBS else self._data(number))
        head = (
            f"POST {PATHS[self.kind]} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"X-API-Key: {self.keys[number % len(self.keys)]}",
            f"Idempotency-Key: {self.name}-{number}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join([*head, "", body]).encode()

    def _job(self, number: int) -> dict[str, Any]:
        return {
            "workflow_id": "echo_test",
            "input_params": {"message": f"{self.name} {number}"},
            "priority": number % 3,
        }

    def _data(self, number: int) -> dict[str, Any]:
        """Describe a raster in the partner's own words; no two are of the same dataset."""
        return {
            "dataset_id": f"{self.name}-{number}",
            "resource_id": "raster",
            "version_id": "1",
            "data_type": "raster",
            "container_name": "bronze",
            "file_name": "ddh/any.tif",
        }


class Connections:
    """Connections that are kept alive: one that is idle is used again, and so many at most are open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and give the status and the body of the answer."""
        async with self._room:
            reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(request)
                head = await reader.readuntil(_END_OF_HEAD)
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
            except BaseException:
                writer.close()
                raise
            self._idle.append((reader, writer))
            return int(head[_STATUS]), body

    def close(self) -> None:
        """Hang up."""
        for _, writer in self._idle:
            writer.close()


class Seen:
    """What came back."""

    def __init__(self, kind: Kind) -> None:
        self._receipt = RECEIPTS[kind]
        self.milliseconds: list[float] = []
        self.receipts: list[str] = []
        self.refused: dict[str, int] = {}

    def came(self, seconds: float, status: int, body: bytes) -> None:
        """Note an answer."""
        self.milliseconds.append(seconds * 1000)
        if status in ACCEPTED:
            self.receipts.append(json.loads(body)[self._receipt])
        else:
            self.failed(f"{status}: {body[:200].decode(errors='replace')}")

    def failed(self, why: str) -> None:
        """Note a request that came to nothing."""
        self.refused[why] = self.refused.get(why, 0) + 1


async def run(load: Load) -> dict[str, Any]:
    """Send everything at its time, and give what was seen."""
    connections, seen, loop = Connections(load.port), Seen(load.kind), asyncio.get_running_loop()
    began, used = loop.time(), time.process_time()

    async def send(number: int, due: float) -> None:
        try:
            async with asyncio.timeout(SECONDS_FOR_AN_ANSWER):
                status, body = await connections.ask(load.request(number))
            seen.came(loop.time() - due, status, body)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            seen.failed(type(error).__name__)

    async with asyncio.TaskGroup() as group:
        for number in range(load.count):
            due = began + number / load.rate
            await asyncio.sleep(due - loop.time())
            group.create_task(send(number, due))
    connections.close()
    return {
        "seconds": loop.time() - began,
        "cpu_seconds": time.process_time() - used,
        "sent": load.count,
        "milliseconds": seen.milliseconds,
        "receipts": seen.receipts,
        "refused": seen.refused,
    }


def main() -> None:
    """Run one load."""
    gc.disable()
    json.dump(asyncio.run(run(Load(**json.load(sys.stdin)))), sys.stdout)


if __name__ == "__main__":
    main()
