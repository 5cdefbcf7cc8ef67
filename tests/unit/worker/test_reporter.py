"""The reporter writes in groups, keeps what cannot be written yet, and lets no result spoil another."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from graticule.core import backoff
from graticule.core.errors import InvalidInput, TransactionAborted, Unavailable
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.states import ResultStatus
from graticule.messaging.protocol import TaskMessage
from graticule.worker import reporter as module
from graticule.worker.outcome import Outcome
from graticule.worker.reporter import Reporter
from graticule.worker.reports import News, Report
from graticule.worker.run import Run


def run(task_id: str) -> Run:
    message = TaskMessage(TaskId(task_id), JobId("j"), NodeId("n"), "echo", {}, "q")
    made = Run(message, None, in_process=False)
    made.over()
    return made


class Sink:
    """Takes reports as the test says."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.reports: list[Report] = []
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.check: Callable[[Sequence[Report]], None] = lambda _: None
        self.lost: set[str] = set()

    async def finish(self, reports: Sequence[Report]) -> set[TaskId]:
        self.batches.append([report.message.task_id for report in reports])
        self.asked.set()
        await self.go.wait()
        self.check(reports)
        self.reports += reports
        return {report.message.task_id for report in reports} - self.lost

    async def running(self, news: Sequence[News]) -> None:
        raise NotImplementedError


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def settled() -> list[str]:
    return []


@pytest.fixture
async def reporter(sink: Sink, settled: list[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reporter]:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)
    made = Reporter(sink, lambda each: settled.append(each.message.task_id))
    writing = asyncio.create_task(made.write_forever())
    yield made
    writing.cancel()


def put(reporter: Reporter, *names: str) -> list[Run]:
    runs = [run(name) for name in names]
    for each in runs:
        reporter.put(each, Report(each.message, Outcome(ResultStatus.COMPLETED, output=b"1")))
    return runs


async def test_what_finishes_during_a_write_goes_into_the_next(
    reporter: Reporter, sink: Sink, settled: list[str]
) -> None:
    sink.go.clear()
    put(reporter, "a")
    await sink.asked.wait()
    put(reporter, "b", "c")
    sink.go.set()
    await reporter.drain()
    assert sink.batches == [["a"], ["b", "c"]]
    assert settled == ["a", "b", "c"]


@pytest.mark.parametrize("error", [Unavailable("away"), TransactionAborted("again")])
async def test_results_are_kept_until_they_are_written(
    reporter: Reporter, sink: Sink, settled: list[str], error: Exception
) -> None:
    tries = iter([error, error, None])

    def check(_: Sequence[Report]) -> None:
        if failing := next(tries):
            raise failing

    sink.check = check
    put(reporter, "a", "b")
    await reporter.drain()
    assert sink.batches == [["a", "b"]] * 3
    assert settled == ["a", "b"]


async def test_a_result_whose_task_was_lost_meanwhile_is_dropped(
    reporter: Reporter, sink: Sink, settled: list[str]
) -> None:
    lost: list[Run] = []

    def check(reports: Sequence[Report]) -> None:
        if len(reports) == 2:
            lost[0].lose()
            raise Unavailable("away")

    sink.check = check
    lost += put(reporter, "a", "b")
    await reporter.drain()
    assert sink.batches == [["a", "b"], ["b"]]
    assert sorted(settled) == ["a", "b"]


async def test_a_result_that_is_refused_fails_alone(reporter: Reporter, sink: Sink, settled: list[str]) -> None:
    def check(reports: Sequence[Report]) -> None:
        if any(each.message.task_id == "bad" and each.outcome.output for each in reports):
            raise InvalidInput("a value does not fit")

    sink.check = check
    put(reporter, "a", "bad", "b", "c")
    await reporter.drain()
    written = {each.message.task_id: each.outcome for each in sink.reports}
    assert {name for name, outcome in written.items() if outcome.output} == {"a", "b", "c"}
    assert written[TaskId("bad")].error_message == "The result could not be recorded: a value does not fit"
    assert not written[TaskId("bad")].retryable
    assert sorted(settled) == ["a", "b", "bad", "c"]


@pytest.mark.parametrize("error", [InvalidInput("no"), TypeError("something that nobody thought of")])
async def test_a_result_that_is_refused_in_every_form_stops_nobody(
    reporter: Reporter, sink: Sink, settled: list[str], error: Exception
) -> None:
    def check(reports: Sequence[Report]) -> None:
        if any(each.message.task_id == "bad" for each in reports):
            raise error

    sink.check = check
    put(reporter, "bad", "good")
    await reporter.drain()
    assert sorted(settled) == ["bad", "good"]


async def test_a_batch_is_closed_when_it_carries_much_text(
    reporter: Reporter, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_BATCH_BYTES", 10)
    for name, size in (("a", 4), ("b", 6), ("c", 1), ("d", 50), ("e", 1), ("f", 9)):
        each = run(name)
        reporter.put(each, Report(each.message, Outcome(ResultStatus.COMPLETED, output=b"1" * size)))
    await reporter.drain()
    assert sink.batches == [["a", "b"], ["c"], ["d"], ["e", "f"]]
