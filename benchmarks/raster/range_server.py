"""A server of one file on loopback, by HTTPS, for sources are read by nothing else; it counts what it sends."""

import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


class RangeServer(ThreadingHTTPServer):
    """Answers with ranges of the file."""

    daemon_threads = True

    def __init__(self, file: Path, folder: Path) -> None:
        super().__init__((HOST, 0), RangeHandler)
        self.file = file
        self.sent_bytes = 0
        self._certificate = folder / "range-server.pem"
        _make_certificate(self._certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def place(self) -> str:
        """The host with its port, as an operator allows it."""
        return f"{HOST}:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """The address of the file."""
        return f"https://{self.place}/{self.file.name}"

    @property
    def trusted(self) -> Mapping[str, str]:
        """What lets a process, and GDAL in it, trust this server, and go to it without a proxy."""
        names = ("SSL_CERT_FILE", "GDAL_CURL_CA_BUNDLE")
        return {**dict.fromkeys(names, str(self._certificate)), "NO_PROXY": HOST, "no_proxy": HOST}


class RangeHandler(BaseHTTPRequestHandler):
    """One connection."""

    server: RangeServer
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024

    def do_HEAD(self) -> None:
        self._begin_answer()

    def do_GET(self) -> None:
        start, length = self._begin_answer()
        with self.server.file.open("rb") as file:
            data = os.pread(file.fileno(), length, start)
        self.server.sent_bytes += len(data)
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - it is called so
        pass

    def _begin_answer(self) -> tuple[int, int]:
        """Send the headers, and give where the range begins and how long it is."""
        size = self.server.file.stat().st_size
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        start, end = int(first or 0), min(int(last or size - 1), size - 1)
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(end - start + 1))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"the one and only"')
        if first:
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        self.end_headers()
        return start, end - start + 1


@contextmanager
def served(file: Path, folder: Path) -> Iterator[RangeServer]:
    """Serve a file until the block is left."""
    with RangeServer(file, folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _make_certificate(path: Path) -> None:
    """Write a certificate for loopback, that vouches for itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "range server of the benchmarks")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    as_pem = serialization.Encoding.PEM
    private = key.private_bytes(as_pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(private + certificate.public_bytes(as_pem))
