"""The spans of tasks: below the step that sent them, with those of the child process below."""

from collections.abc import AsyncIterator

import pytest
from tests.integration.worker.conftest import Board, StartWorker
from tests.otlp_collector import Collector, SeenSpan, traced

from graticule.telemetry import end_tracing
from graticule.worker.pool import child_environment

TRACE, STEP = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{STEP}-01"


@pytest.fixture
async def collector(board: Board, start_worker: StartWorker) -> AsyncIterator[Collector]:
    """Give a collector to which a running worker exports."""
    with traced("worker") as collector:
        async with start_worker():
            yield collector


def seen(collector: Collector) -> dict[str, SeenSpan]:
    end_tracing()
    return {span.name: span for span in collector.trace(TRACE)}


async def test_a_task_and_what_its_child_process_does_are_one_trace(
    board: Board, collector: Collector, capfd: pytest.CaptureFixture[str]
) -> None:
    result = await board.run("test.traced", traceparent=TRACEPARENT, retry_count=2)
    found = seen(collector)
    handling, opening, reading = found["handle test.traced"], found["gdal.open"], found["gdal.read"]
    assert (handling.parent_id, handling.kind, handling.error) == (STEP, "consumer", None)
    assert (opening.parent_id, reading.parent_id) == (handling.span_id, opening.span_id)
    assert result.output == f"00-{TRACE}-{handling.span_id}-01"  # what the handler hands on
    assert handling.start_ns <= opening.start_ns <= reading.start_ns <= reading.end_ns <= handling.end_ns
    assert {each.service for each in found.values()} == {"graticule-worker"}
    waited = handling.attributes["graticule.waited_seconds"]
    assert handling.attributes == {
        "graticule.handler": "test.traced",
        "graticule.queue": "tasks",
        "graticule.task_id": "task_1",
        "graticule.job_id": "job",
        "graticule.node_id": "n1",
        "graticule.retry_count": 2,
        "graticule.delivery_count": 1,
        "graticule.waited_seconds": waited,
        "graticule.status": "completed",
    }
    assert opening.attributes == {"graticule.path": "silver/a.tif"}
    assert reading.attributes["graticule.is_odd"] == "nan"
    assert len(reading.attributes) == 20  # a child tells no more of one
    line = next(line for line in capfd.readouterr().err.splitlines() if "inside" in line)
    assert f"trace_id={TRACE}" in line
    assert f"span_id={reading.span_id}" in line
    assert "job_id=job" in line


async def test_a_child_that_crashes_has_told_what_it_had_done(board: Board, collector: Collector) -> None:
    result = await board.run("test.traced", traceparent=TRACEPARENT, crash=True)
    failing = await board.run("fail", traceparent=TRACEPARENT, message="password=hunter2 is wrong")
    found = seen(collector)
    assert found["gdal.open"].parent_id == found["handle test.traced"].span_id
    assert found["handle test.traced"].error == result.error_message
    assert "SIGABRT" in str(result.error_message)
    assert failing.error_message is not None
    assert found["handle fail"].error == "password=*** is wrong"


async def test_a_task_that_was_given_no_valid_trace_begins_one(board: Board, collector: Collector) -> None:
    for given in (None, "00-hostile"):
        await board.run("echo", traceparent=given)
    end_tracing()
    spans = collector.spans
    assert [(span.name, span.parent_id) for span in spans] == [("handle echo", "")] * 2
    assert len({span.trace_id for span in spans}) == 2


async def test_without_a_collector_a_trace_is_handed_on_as_it_came(board: Board, start_worker: StartWorker) -> None:
    async with start_worker():
        carried = await board.run("test.traced", traceparent=TRACEPARENT)
        hostile = await board.run("test.traced", traceparent="00-hostile")
    assert (carried.output, hostile.output) == (TRACEPARENT, None)


def test_a_child_process_is_not_given_the_keys_of_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
    assert not [name for name in child_environment() if name.startswith("OTEL_")]
