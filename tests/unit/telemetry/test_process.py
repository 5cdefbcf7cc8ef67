"""Whether a process traces: only as OpenTelemetry's own variables say, and whatever stands in the way stops nothing."""

import sys
import time

import pytest
from structlog.testing import capture_logs

from graticule.core.trace_context import continued, current_trace, parse_traceparent
from graticule.telemetry import NO_SPAN, begin_tracing, begun, end_tracing, is_tracing, span
from graticule.telemetry.process import is_configured

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
PARTNER = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "graticule"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_a_collector_turns_it_on(variables: dict[str, str], expected: bool) -> None:
    assert is_configured(variables) is expected


def test_without_one_a_span_is_the_same_nothing_every_time() -> None:
    begin_tracing("worker")
    assert not is_tracing()
    with continued(PARTNER), span("gdal.warp", path="silver/a.tif") as nothing:
        nothing.rename("x")
        nothing.set({"a": 1})
        nothing.fail("it did not")
        assert current_trace() == PARTNER
        assert nothing.traceparent is None
    assert nothing is NO_SPAN
    assert begun("step", PARTNER) is NO_SPAN


def test_a_span_that_nobody_records_costs_next_to_nothing() -> None:
    def spent(count: int = 2000) -> float:
        began = time.thread_time()
        for _ in range(count):
            with span("gdal.warp", tiles=3):
                pass
        return (time.thread_time() - began) / count

    assert min(spent() for _ in range(5)) < 5e-6


@pytest.mark.parametrize(
    ("missing", "variables", "told"),
    [
        ("opentelemetry.sdk.trace", {}, "no traces are exported: a package is not installed"),
        (
            "opentelemetry.exporter.otlp.proto.http.trace_exporter",
            {},
            "no traces are exported: a package is not installed",
        ),
        (
            None,
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "no traces are exported: the protocol is not known here",
        ),
        (None, {"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "no traces are exported: the variables do not fit"),
    ],
)
def test_what_stands_in_the_way_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, missing: str | None, variables: dict[str, str], told: str
) -> None:
    for name, value in {**ENDPOINT, **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "graticule.telemetry.exporting", raising=False)
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    with capture_logs() as logs:
        begin_tracing("worker")
        assert not is_tracing()
        with span("goes on"):
            pass
    end_tracing()
    (line,) = logs
    assert line["event"] == told
    assert line.get("hint") == (None if missing is None else "Install graticule[telemetry].")
    assert missing is None or line["package"] == missing
