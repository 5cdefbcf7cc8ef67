"""Traces: which piece of work took how long, from a partner's request to the callback.

    from graticule.telemetry import span

    with span("gdal.render", width=box.width):
        ...

Without a collector (`OTEL_EXPORTER_OTLP_ENDPOINT`) nothing is recorded, and OpenTelemetry's SDK is not imported.
"""

from graticule.telemetry.process import adopt, begin_tracing, end_tracing
from graticule.telemetry.spans import NO_SPAN, Kind, Span, begun, is_tracing, span

__all__ = ["NO_SPAN", "Kind", "Span", "adopt", "begin_tracing", "begun", "end_tracing", "is_tracing", "span"]
