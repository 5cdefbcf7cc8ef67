"""A partner's server that is told when processing ends."""

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class Received:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Receiver:
    """Where callbacks go, and those that have come."""

    url: str
    arrived: "queue.Queue[Received]" = field(default_factory=queue.Queue)
    taken: list[Received] = field(default_factory=list)

    def next(self, seconds: float = 30) -> Received:
        """Wait for the next one."""
        self.taken.append(self.arrived.get(timeout=seconds))
        return self.taken[-1]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Listen on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listening.arrived.put(Received(self.path, dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's signature
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        listening = Receiver(f"http://127.0.0.1:{server.server_port}/graticule")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield listening
        finally:
            server.shutdown()
            thread.join()
