"""While long tasks hold all child processes, a worker asks for tasks of other partners only when there may be some."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.messaging.protocol import TaskMessage
from graticule.worker import consumer as consumer_module
from graticule.worker.consumer import POLL_SECONDS, Consumer
from graticule.worker.holdings import Holdings
from graticule.worker.run import Run

QUEUE, SLOW = "tasks", "test.slow"


class Source:
    """A queue in which only other partners' tasks are, and who asked for them."""

    def __init__(self) -> None:
        self.waiting: list[TaskMessage] = []
        self.asked = 0
        self.meanwhile: Callable[[], None] | None = None

    async def receive(
        self, queue: str, limit: int, without: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> list[TaskMessage]:
        if not passed_over:
            return []
        self.asked += 1
        found, self.waiting = self.waiting[:limit], self.waiting[limit:]
        if self.meanwhile is not None:
            self.meanwhile()
        return found

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        return None

    async def abandon(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        raise AssertionError

    async def abandon_all_but(self, held: Collection[TaskId]) -> set[TaskId]:
        raise AssertionError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def message(task_id: str, share: str) -> TaskMessage:
    return TaskMessage(TaskId(task_id), JobId("j"), NodeId("n"), SLOW, {}, QUEUE, share=share)


def run_of(told: TaskMessage) -> Run:
    return Run(told, None, in_process=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(consumer_module, "time", made)
    return made


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def consumer(source: Source, clock: Clock) -> Consumer:
    """Return the consumer of a worker whose two child processes have run tasks of one partner for a minute."""
    holdings = Holdings(lambda message, *, is_lost: None)
    for number in range(2):
        holdings.add(run_of(message(f"long_{number}", "pa")))
    for run in holdings.to_start(2):
        run.started = clock.now - 60
    nothing: Any = lambda *_: None  # noqa: E731
    return Consumer(
        source,
        [QUEUE],
        holdings,
        concurrency=4,
        processes=2,
        hold=run_of,
        on_held=nothing,
        start=nothing,
        unwritten=lambda: 0,
        heavy={SLOW: QUEUE},
    )


async def test_rounds_in_which_nothing_is_new_ask_once(consumer: Consumer, source: Source) -> None:
    for _ in range(5):
        assert not await consumer._claim_round()
        consumer.slot_freed()
    assert source.asked == 1


async def test_an_announcement_is_followed_also_when_it_comes_during_a_claim(
    consumer: Consumer, source: Source
) -> None:
    source.meanwhile = consumer.announce
    assert not await consumer._claim_round()
    source.meanwhile, source.waiting = None, [message("other", "pb")]
    assert await consumer._claim_round()
    assert source.asked == 2


async def test_the_poll_asks_again(consumer: Consumer, source: Source, clock: Clock) -> None:
    assert not await consumer._claim_round()
    clock.now += POLL_SECONDS
    source.waiting = [message("other", "pb")]
    assert await consumer._claim_round()
    assert source.asked == 2


async def test_where_one_was_found_there_may_be_another(consumer: Consumer, source: Source) -> None:
    source.waiting = [message("first", "pb"), message("second", "pb")]
    assert await consumer._claim_round()
    (run,) = consumer._holdings.to_start(4)
    consumer._holdings.ended(run)
    assert await consumer._claim_round()
    assert source.waiting == []
