"""`python -m benchmarks.serving.client`: asks a server over connections that are kept alive, and takes the times.

It takes a load as JSON from its input and gives what it saw as JSON. It does as little as it can: the servers have the
same two cores. Times are taken from the first byte of a request to the last one of its answer.
"""

import asyncio
import gc
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

END_OF_HEAD = b"\r\n\r\n"
LAST_CHUNK = b"\r\n0\r\n\r\n"
NOT_MODIFIED = 304
_STATUS = slice(len("HTTP/1.1 "), len("HTTP/1.1 200"))
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: *([^\r]+)", re.IGNORECASE)


class Load:
    """The requests that are still to be sent, and what came back."""

    def __init__(self, given: dict[str, Any]) -> None:
        requests = [_request(given["port"], path, headers) for path, headers in given["requests"]]
        self._left: Iterator[tuple[int, bytes]] = islice(cycle(enumerate(requests)), given["count"])
        self._looks = given["looks"]  # at what came back: not while times are taken
        self.milliseconds: list[float] = []
        self.statuses: dict[int, int] = {}
        self.received = 0
        self.seen: dict[int, dict[str, Any]] = {}

    def take(self) -> tuple[int, bytes] | None:
        """Give the next request, with its place in the list."""
        return next(self._left, None)

    def came(self, number: int, seconds: float, answer: bytearray, end_of_head: int) -> None:
        """Note an answer."""
        status = int(answer[_STATUS])
        self.milliseconds.append(seconds * 1000)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.received += len(answer)
        if self._looks:
            head, body = bytes(answer[:end_of_head]), bytes(answer[end_of_head + len(END_OF_HEAD) :])
            tag = _ETAG.search(head)
            self.seen[number] = {
                "status": status,
                "etag": tag and tag[1].decode(),
                "size": len(body),
                "sha256": hashlib.sha256(body).hexdigest(),
            }


def _request(port: int, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: */*"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "\r\n"]).encode()


class Connection(asyncio.Protocol):
    """Sends one request after the other."""

    def __init__(self, load: Load) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load = load
        self._answer = bytearray()
        self._end_of_head = -1
        self._end: int | None = None  # of the whole answer, when its head tells it
        self._number = 0
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; a server that hangs up too early is an error."""
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("The server has closed the connection."))

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer."""
        self._answer += data
        if self._end_of_head < 0:
            self._read_head()
        if self._is_whole():
            self._load.came(self._number, time.perf_counter() - self._began, self._answer, self._end_of_head)
            self._next()

    def _next(self) -> None:
        taken = self._load.take()
        if taken is None:
            self.ended.set_result(None)
            self._transport.close()
            return
        self._answer = bytearray()
        self._end_of_head, self._end = -1, None
        self._number, request = taken
        self._began = time.perf_counter()
        self._transport.write(request)

    def _read_head(self) -> None:
        self._end_of_head = self._answer.find(END_OF_HEAD)
        if self._end_of_head < 0:
            return
        begin = self._end_of_head + len(END_OF_HEAD)
        length = _LENGTH.search(self._answer, 0, self._end_of_head)
        if int(self._answer[_STATUS]) == NOT_MODIFIED:
            self._end = begin
        elif length is not None:
            self._end = begin + int(length[1])

    def _is_whole(self) -> bool:
        if self._end_of_head < 0:
            return False
        return len(self._answer) == self._end if self._end is not None else self._answer.endswith(LAST_CHUNK)


async def run(given: dict[str, Any]) -> dict[str, Any]:
    """Send all requests, and give what was seen."""
    load, loop = Load(given), asyncio.get_running_loop()
    began, used = time.perf_counter(), time.process_time()
    opened = [
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", given["port"])
        for _ in range(given["connections"])
    ]
    await asyncio.gather(*(connection.ended for _, connection in opened))
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - used,
        "milliseconds": load.milliseconds,
        "statuses": load.statuses,
        "received": load.received,
        "seen": [load.seen[number] for number in sorted(load.seen)],
    }


def main() -> None:
    """Run one load."""
    gc.disable()
    json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)


if __name__ == "__main__":
    main()
