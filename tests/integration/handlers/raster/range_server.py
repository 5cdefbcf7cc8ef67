"""A server of one file that is mostly zeros, as a process of its own: GDAL may hold Python up while it waits.

`range_server.py HEAD SIZE CERTIFICATE KEY`: the file has the bytes of `HEAD`, and zeros to its end. The first line that
is printed is the port; then one for each request: the bytes that were sent, and what was asked for.
"""

import re
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Ranges(BaseHTTPRequestHandler):
    """Gives ranges; who asks for the whole file gets nothing."""

    protocol_version = "HTTP/1.1"
    head: bytes
    size: int

    def do_HEAD(self) -> None:
        self._answer(200, 0, self.size - 1, sent=0)

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found is None:
            self._answer(416, 0, -1, sent=self.size)
            return
        start, end = int(found[1]), min(int(found[2]), self.size - 1)
        self._answer(206, start, end, sent=end - start + 1)
        self.wfile.write(self.head[start : end + 1].ljust(end - start + 1, b"\0"))

    def _answer(self, status: int, start: int, end: int, *, sent: int) -> None:
        print(sent, self.command, self.path, self.headers.get("Range"), flush=True)  # noqa: T201
        self.send_response(status)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"always the same"')
        self.send_header("Content-Length", str(end - start + 1))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end}/{self.size}")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(head: str, size: str, certificate: str, key: str) -> None:
    Ranges.head, Ranges.size = Path(head).read_bytes(), int(size)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_address[1], flush=True)  # noqa: T201
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
