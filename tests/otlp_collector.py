"""A collector of traces on a real port of this machine, which decodes what it is sent."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from graticule.telemetry import begin_tracing, end_tracing

KINDS = {value: name.removeprefix("SPAN_KIND_").lower() for name, value in Span.SpanKind.items()}


@dataclass(frozen=True)
class SeenSpan:
    """A span as the collector was told of it."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    error: str | None  # None: nothing went wrong


@dataclass
class Collector:
    """Where spans go, and those that have come."""

    url: str = ""
    status: int = 200
    pausing: threading.Event | None = None  # requests are answered when it is set
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def spans(self) -> list[SeenSpan]:
        return [span for body in tuple(self.bodies) for span in _decoded(body)]

    def trace(self, trace_id: str) -> list[SeenSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listen on a free port."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if collector.pausing is not None:
                collector.pausing.wait(60)
            if self.path == "/v1/traces" and collector.status == 200:
                collector.bodies.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                collector.headers.append(dict(self.headers.items()))
            self.send_response(collector.status if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's signature
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of those who do not wait for an answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            if collector.pausing is not None:
                collector.pausing.set()
            server.shutdown()
            thread.join()


@contextmanager
def traced(process: str, **variables: str) -> Iterator[Collector]:
    """Let this process trace to a collector, under the name of a process of ours."""
    with collecting() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        for name, value in variables.items():
            patch.setenv(name, value)
        begin_tracing(process)
        try:
            yield collector
        finally:
            end_tracing()


def _decoded(body: bytes) -> Iterator[SeenSpan]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                is_error = span.status.code == Status.STATUS_CODE_ERROR
                yield SeenSpan(
                    service=service,
                    name=span.name,
                    kind=KINDS[span.kind],
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    attributes=_attributes(span.attributes),
                    error=span.status.message if is_error else None,
                )


def _attributes(given: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in given}
