"""Spans by OpenTelemetry's SDK, exported by OTLP. The only module that imports it, and only where traces are recorded.

The provider is not OpenTelemetry's global one: libraries that look for that would record what they like, such as
FastAPI the queries of requests, in which keys may stand.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan

from graticule import __version__
from graticule.core.trace_context import TraceContext
from graticule.logs import get_logger
from graticule.telemetry.recording import RecordedSpan
from graticule.telemetry.spans import Kind, LiveSpan, Value, clean

END_SECONDS: Final = 3.0  # for the last spans, at the end of a process

_KINDS: Final = {kind: SpanKind[kind.name] for kind in Kind}
_log = get_logger(__name__)


class ExportingTracer:
    """Records the spans of one process, and exports them beside its work."""

    def __init__(self, process: str) -> None:
        logging.getLogger("opentelemetry.util.re").addFilter(_without_headers)
        self._exporter = WatchedExporter(OTLPSpanExporter())
        self._provider = TracerProvider(resource=_resource(process), id_generator=GivenIds(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("graticule", __version__)
        # What is wrong with the variables was told by now; from here on the exporter tells what goes wrong, once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def begin(self, name: str, parent: TraceContext | None, kind: Kind, start_ns: int) -> "ExportedSpan":
        """Begin a span below another, or a trace of its own."""
        begun = self._tracer.start_span(name, _context(parent), _KINDS[kind], start_time=start_ns)
        return ExportedSpan(begun)

    def adopt(self, recorded: RecordedSpan, ancestor: TraceContext) -> None:
        """Export a span that a child process has recorded, as part of the trace that its task belongs to."""
        parent = TraceContext(ancestor.trace_id, recorded.parent_id, is_sampled=ancestor.is_sampled)
        with given_id(recorded.span_id):
            adopted = self.begin(clean(recorded.name), parent, Kind.INTERNAL, recorded.start_ns)
        adopted.set(recorded.attributes)
        if recorded.error is not None:
            adopted.fail(recorded.error)
        adopted.end_at(recorded.end_ns)

    def close(self) -> None:
        """Export what is left, but do not keep the process for it."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(END_SECONDS)
        if closing.is_alive():
            self._exporter.shutdown()  # it waits no longer for another try
            _log.warning("the last spans could not be exported in time", seconds=END_SECONDS)


class ExportedSpan(LiveSpan):
    """A span of the SDK's."""

    __slots__ = ("_span",)

    def __init__(self, begun: SdkSpan) -> None:
        self._span = begun
        found = begun.get_span_context()
        super().__init__(
            TraceContext(
                format_trace_id(found.trace_id),
                format_span_id(found.span_id),
                is_sampled=found.trace_flags.sampled,
                is_ours=True,
            )
        )

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Note something, unless nobody will see it: to look for secrets takes longer than all the rest."""
        if self._span.is_recording():
            super().set(attributes)

    def rename(self, name: str) -> None:
        """Give it another name than it began with."""
        self._span.update_name(name)

    def end_at(self, end_ns: int) -> None:
        """End it at a time that has passed."""
        self._span.end(end_ns)

    def _set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)

    def _fail(self, reason: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, reason))

    def _end(self) -> None:
        self._span.end()


_given: ContextVar[int | None] = ContextVar("graticule_span_id", default=None)


@contextmanager
def given_id(span_id: str) -> Iterator[None]:
    """Let spans that begin in the block have this id: they have had it elsewhere."""
    before = _given.set(int(span_id, 16))
    try:
        yield
    finally:
        _given.reset(before)


class GivenIds(RandomIdGenerator):
    """Makes the ids of spans, but for those that have one."""

    def generate_span_id(self) -> int:
        """Give the id of the next span."""
        return _given.get() or super().generate_span_id()


class WatchedExporter(SpanExporter):
    """Tells when exporting begins to fail, and when it works again; not at every try."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Pass spans on. Those that cannot be exported are lost."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                _log.info("spans are exported again", lost=self._lost)
            self._lost = 0
            return result
        if not self._lost:
            _log.warning("spans cannot be exported, and are lost until that works again")
        self._lost += len(spans)
        return result

    def shutdown(self) -> None:
        """Pass it on."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Pass it on."""
        return self._exporter.force_flush(timeout_millis)


def _without_headers(record: logging.LogRecord) -> bool:
    """Tell that a header in the variables is not well written, but not what it says: it may be a key."""
    record.msg, record.args = "a header for the collector is not valid, and is not sent: write name=value", ()
    return True


def _resource(process: str) -> Resource:
    """Tell who records: as the variables say, or else by the process."""
    ours = Resource({"service.name": f"graticule-{process}", "service.version": __version__})
    return ours.merge(OTELResourceDetector().detect())


def _context(parent: TraceContext | None) -> Context:
    if parent is None:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    place = SpanContext(
        int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=not parent.is_ours, trace_flags=flags
    )
    return set_span_in_context(NonRecordingSpan(place), Context())
