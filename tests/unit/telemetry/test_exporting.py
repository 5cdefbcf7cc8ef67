"""Spans that are exported, to a collector that listens on this machine or does not."""

import logging
import socket
import threading
import time
from dataclasses import asdict, replace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs
from tests.otlp_collector import Collector
from tests.unit.telemetry.conftest import Begin

from graticule.core.trace_context import continued, current_trace, current_traceparent, parse_traceparent
from graticule.telemetry import Kind, adopt, begun, end_tracing, is_tracing, span
from graticule.telemetry.recording import RecordedSpan, RecordingTracer
from graticule.telemetry.spans import record_with

PARTNER = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
SIGNED = "https://account.blob.core.windows.net/bronze/dem.tif?se=2026-01-01&sig=c2VjcmV0"

STRANGE: dict[str, Any] = {"strange": object}
HALVED: dict[str, Any] = {"of \udcff": "\udcff.tif"}


def seen(collector: Collector) -> dict[str, Any]:
    """End, so that all is exported, and give what came by name."""
    end_tracing()
    return {each.name: each for each in collector.spans}


def test_spans_hang_below_each_other_and_below_the_partners(begin: Begin) -> None:
    collector = begin("gateway")
    with continued(PARTNER), span("outer", Kind.SERVER, job_id="j1", tries=2), span("inner"):
        inside = current_traceparent()
    assert is_tracing()
    found = seen(collector)
    assert PARTNER is not None
    outer, inner = found["outer"], found["inner"]
    assert (outer.trace_id, outer.parent_id, outer.kind) == (PARTNER.trace_id, PARTNER.span_id, "server")
    assert (inner.trace_id, inner.parent_id, inner.kind) == (PARTNER.trace_id, outer.span_id, "internal")
    assert inside == f"00-{inner.trace_id}-{inner.span_id}-01"
    assert outer.service == "graticule-gateway"
    assert outer.attributes == {"graticule.job_id": "j1", "graticule.tries": 2}
    assert outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns
    assert not is_tracing()


def test_a_span_with_nobody_above_begins_a_trace(begin: Begin) -> None:
    collector = begin()
    with span("first"):
        pass
    with span("second"):
        pass
    found = seen(collector)
    assert {each.parent_id for each in found.values()} == {""}
    assert len({each.trace_id for each in found.values()}) == 2


def test_one_that_need_not_be_entered_has_a_start_and_may_be_forgotten(begin: Begin) -> None:
    collector = begin()
    early = time.time_ns() - 1_000_000_000
    step = begun("step", PARTNER, start_ns=early, attributes={"job_id": "j"})
    assert current_trace() is None
    step.end()
    step.end()
    with span("probe") as probe:
        probe.forget()
    found = seen(collector)
    assert list(found) == ["step"]
    assert found["step"].start_ns == early


def test_an_error_tells_its_kind_and_no_more(begin: Begin) -> None:
    collector = begin()
    with pytest.raises(ValueError, match="secret"), span("broken"):
        raise ValueError(f"no secret: {SIGNED}")
    assert seen(collector)["broken"].error == "ValueError"


def test_no_secret_leaves_the_process(begin: Begin) -> None:
    collector = begin()
    with span("signed", path=SIGNED, url="postgresql://me:hunter2@host/db", large=10**40, **STRANGE) as each:
        each.fail(f"cannot read {SIGNED} {'x' * 10_000}")
    end_tracing()
    body = b"".join(collector.bodies)
    assert b"c2VjcmV0" not in body
    assert b"hunter2" not in body
    (found,) = collector.spans
    assert found.error is not None
    assert len(found.error) == 256


def test_half_a_character_costs_no_spans_and_no_handler_its_life(begin: Begin) -> None:
    collector = begin()
    handed: list[RecordedSpan] = []
    with span("handle \udcff", **HALVED) as handling:
        handling.fail("cannot read \udcff.tif")
        record_with(RecordingTracer(handed.append))
        with span("open \udcff", **HALVED) as opening:
            opening.fail("cannot read \udcff.tif")
    assert orjson.loads(orjson.dumps(asdict(handed[0])))["error"] == "cannot read ?.tif"
    (found,) = seen(collector).values()
    assert (found.name, found.error) == ("handle ?", "cannot read ?.tif")
    assert found.attributes == {"graticule.of ?": "?.tif"}


def test_the_standard_variables_are_obeyed(begin: Begin) -> None:
    collector = begin(
        OTEL_SERVICE_NAME="ours",
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20abc",
        OTEL_TRACES_SAMPLER="parentbased_always_off",
    )
    with span("unasked"):
        unsampled = current_traceparent()
    with continued(PARTNER), span("asked"):
        pass
    found = seen(collector)
    assert list(found) == ["asked"]
    assert found["asked"].service == "ours"
    assert collector.headers[0]["authorization"] == "Bearer abc"
    assert unsampled is not None
    assert unsampled.endswith("-00")


def test_a_header_that_is_not_valid_is_told_without_what_it_says(
    begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="opentelemetry")
    collector = begin(OTEL_EXPORTER_OTLP_HEADERS="Bearer hunter2,x-kept=1")
    with span("sent"):
        pass
    end_tracing()
    assert (collector.headers[0]["x-kept"], len(collector.spans)) == ("1", 1)
    assert "a header for the collector is not valid" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_childs_span_becomes_part_of_the_trace_with_its_own_id(begin: Begin) -> None:
    collector = begin()
    handed: list[RecordedSpan] = []
    child = RecordingTracer(handed.append)
    with span("handle") as handling:
        outer = child.begin("gdal.open", handling.place, Kind.INTERNAL, time.time_ns())
        inner = child.begin("gdal.read", outer.place, Kind.INTERNAL, time.time_ns())
        inner.set({"graticule.bands": 3})
        inner.fail("it broke")
        inner.end()
        outer.end()
        for each in handed:
            adopt(each)
        adopt(replace(handed[0], name="token=hunter2", span_id="a" * 16))
    found = seen(collector)
    assert found.pop("token=***").span_id == "a" * 16
    assert [each.name for each in handed] == ["gdal.read", "gdal.open"]
    assert {each.trace_id for each in found.values()} == {found["handle"].trace_id}
    assert found["gdal.open"].parent_id == found["handle"].span_id
    assert found["gdal.read"].parent_id == found["gdal.open"].span_id
    assert (found["gdal.read"].attributes, found["gdal.read"].error) == ({"graticule.bands": 3}, "it broke")
    assert found["gdal.read"].end_ns == handed[0].end_ns


def test_a_collector_that_is_away_is_told_of_once_and_delays_nothing(begin: Begin) -> None:
    with capture_logs() as logs, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen: nobody is there, and nobody else will be
        begin(
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{taken.getsockname()[1]}",
            OTEL_EXPORTER_OTLP_HEADERS="api-key=hunter2",
            OTEL_EXPORTER_OTLP_TIMEOUT="0.2",
            OTEL_BSP_SCHEDULE_DELAY="20",
            OTEL_BSP_MAX_QUEUE_SIZE="8",
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE="4",
        )
        for _ in range(200):  # far more than there is room for
            with span("lost"):
                pass
        until(lambda: len(logs) > 0)
        with span("lost, too"):
            pass
        end_tracing()
    assert [each["event"] for each in logs] == ["spans cannot be exported, and are lost until that works again"]
    assert "hunter2" not in str(logs)


def test_a_collector_that_never_answers_keeps_no_process_from_its_end(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graticule.telemetry.exporting.END_SECONDS", 0.2)
    collector = begin()
    collector.pausing = threading.Event()
    with capture_logs() as logs:
        with span("stuck"):
            pass
        began = time.monotonic()
        end_tracing()
        took = time.monotonic() - began
    assert [each["event"] for each in logs] == ["the last spans could not be exported in time"]
    assert took < 2


def test_what_works_again_is_told_with_what_was_lost(begin: Begin) -> None:
    with capture_logs() as logs:
        collector = begin(OTEL_BSP_SCHEDULE_DELAY="20")
        collector.status = 400  # not worth another try
        with span("lost"):
            pass
        until(lambda: len(logs) == 1)
        collector.status = 200
        with span("kept"):
            pass
        until(lambda: len(logs) == 2)
    assert (logs[1]["event"], logs[1]["lost"]) == ("spans are exported again", 1)
    assert list(seen(collector)) == ["kept"]


def until(holds: Any) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
