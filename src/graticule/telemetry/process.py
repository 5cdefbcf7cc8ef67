"""Whether a process records traces: as the standard variables of OpenTelemetry say, and never without them."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from graticule.core.trace_context import current_trace
from graticule.logs import get_logger
from graticule.telemetry.recording import RecordedSpan
from graticule.telemetry.spans import clean, record_with

if TYPE_CHECKING:
    from graticule.telemetry.exporting import ExportingTracer

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"

_log = get_logger(__name__)
_exporting: "ExportingTracer | None" = None


def begin_tracing(process: str) -> None:
    """Record spans and export them, if that is configured; what stands in the way is told, and stops nothing."""
    global _exporting  # noqa: PLW0603 - one for the process, as its log is
    if _exporting is not None or not is_configured(os.environ):
        return
    protocol = _first(os.environ, _PROTOCOLS)
    if protocol not in {"", _PROTOCOL}:
        _log.warning("no traces are exported: the protocol is not known here", protocol=protocol, known=_PROTOCOL)
        return
    try:
        from graticule.telemetry.exporting import ExportingTracer  # noqa: PLC0415 - an extra, and not free to import
    except ImportError as error:
        _log.warning(
            "no traces are exported: a package is not installed",
            package=error.name,
            hint="Install graticule[telemetry].",
        )
        return
    try:
        _exporting = ExportingTracer(process)
    except Exception as error:  # variables that make no sense; there is no list of what the SDK may say to them
        _log.warning("no traces are exported: the variables do not fit", error=clean(str(error)))
        return
    record_with(_exporting)


def adopt(recorded: RecordedSpan) -> None:
    """Export a span that a child process has recorded for what is done where this is called."""
    place = current_trace()
    if _exporting is not None and place is not None:
        _exporting.adopt(recorded, place)


def end_tracing() -> None:
    """Export what is left, for a few seconds at most, and record nothing more."""
    global _exporting  # noqa: PLW0603
    if _exporting is not None:
        record_with(None)
        _exporting.close()
        _exporting = None


def is_configured(environment: Mapping[str, str]) -> bool:
    """Tell whether there is a collector to send traces to."""
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_unwanted = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return bool(_first(environment, _ENDPOINTS)) and not is_disabled and not is_unwanted


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environment.get(name, "").strip())), "")
