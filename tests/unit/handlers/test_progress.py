"""What a handler tells of its progress, and what is worked out of it."""

from typing import Any

import pytest
import structlog

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import Signals, TaskContext


@pytest.fixture
def told() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def ctx(told: list[dict[str, Any]]) -> TaskContext:
    log = structlog.get_logger()
    return TaskContext(TaskId("t"), JobId("j"), NodeId("n"), 0, {}, log, Signals(), told.append)


def at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr("graticule.handlers.context.time.monotonic", lambda: seconds)


def test_percent_and_the_time_that_is_left(
    ctx: TaskContext, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 100)
    ctx.progress(0, 10)
    at(monkeypatch, 104)
    ctx.progress(2, 10, "second")
    assert told == [
        {"done": 0, "total": 10, "percent": 0},
        {"done": 2, "total": 10, "percent": 20, "eta_seconds": 16, "message": "second"},
    ]


def test_what_an_earlier_attempt_did_makes_nothing_faster(
    ctx: TaskContext, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 0)
    ctx.progress(90, 100)
    at(monkeypatch, 10)
    ctx.progress(95, 100)
    assert told[-1]["eta_seconds"] == 10


@pytest.mark.parametrize(("done", "total"), [(0, 0), (3, 0), (12, 10)])
def test_odd_numbers_are_no_error(done: int, total: int, ctx: TaskContext, told: list[dict[str, Any]]) -> None:
    ctx.progress(0, total)
    ctx.progress(done, total)
    assert told[-1].get("eta_seconds", 0) >= 0


def test_without_a_total_nothing_is_foretold(ctx: TaskContext, told: list[dict[str, Any]]) -> None:
    ctx.progress(7)
    assert told == [{"done": 7}]
