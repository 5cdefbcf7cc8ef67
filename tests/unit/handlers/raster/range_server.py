"""A server of ranges of one file that counts what it gives.

It is a process of its own, for GDAL may wait for it while it holds the GIL.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Served:
    """A file that is served."""

    address: str

    @property
    def name(self) -> str:
        return f"/vsicurl/{self.address}file.tif"

    def counted(self) -> tuple[int, int]:
        """Give how many bytes were served, in how many requests."""
        with urllib.request.urlopen(f"{self.address}count") as answer:
            served, requests = json.load(answer)
        return served, requests

    def fail(self, status: int) -> None:
        """Answer with this status from now on; with 0, send half of what was asked for and end the connection."""
        urllib.request.urlopen(f"{self.address}fail/{status}").close()


@contextmanager
def served(file: Path, status: int = 0) -> Iterator[Served]:
    """Serve a file, or answer all requests with a status."""
    command = [sys.executable, "-S", __file__, str(file), str(status)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Served(f"http://127.0.0.1:{process.stdout.readline().strip()}/")
        finally:
            process.kill()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    file, status = Path(), 0
    breaks_off = False
    counted = [0, 0]  # noqa: RUF012 - of the whole process

    def do_HEAD(self) -> None:
        self._answer(self.status or 200, b"", self.file.stat().st_size)

    def do_GET(self) -> None:
        if self.path == "/count":
            told = json.dumps(self.counted).encode()
            return self._answer(200, told, len(told))
        if self.path.startswith("/fail/"):
            _Handler.status = int(self.path.removeprefix("/fail/"))
            _Handler.breaks_off = not self.status
            return self._answer(200, b"", 0)
        if self.status:
            return self._answer(self.status, b"", 0)
        size, (first, _, last) = self.file.stat().st_size, self.headers["Range"].removeprefix("bytes=").partition("-")
        with self.file.open("rb") as file:
            data = os.pread(file.fileno(), int(last) - int(first) + 1, int(first))
        self.counted[0] += len(data)
        self.close_connection = self.breaks_off
        given = data[: len(data) // 2] if self.breaks_off else data
        return self._answer(206, given, len(data), f"bytes {first}-{int(first) + len(data) - 1}/{size}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _answer(self, status: int, body: bytes, length: int, content_range: str | None = None) -> None:
        self.counted[1] += 1
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    _Handler.file, _Handler.status = Path(sys.argv[1]), int(sys.argv[2])
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)  # noqa: T201
        server.serve_forever()
