"""A worker whose child processes are all held by long tasks has one more for another partner."""

from typing import Any

import pytest
from tests.integration.worker.conftest import Board, StartWorker

from graticule.worker import spare_process

SLOW = "test.slow"


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_process, "LONG_SECONDS", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)


async def give_long(board: Board, count: int, seconds: float = 4) -> list[Any]:
    return [await board.give(SLOW, f"long_{n}", share="pa", turn=n, seconds=seconds) for n in range(count)]


async def states(board: Board, tasks: list[Any]) -> list[str]:
    return [(await board.task(name)).status for name in tasks]


async def test_a_partner_gets_a_process_while_long_tasks_of_another_hold_all_others(
    board: Board, start_worker: StartWorker
) -> None:
    long = await give_long(board, 6, seconds=30)
    async with start_worker(concurrency=3):
        await board.leased(long[1])
        quick = [await board.run(SLOW, task_id=f"quick_{n}", share="pb", turn=0, seconds=0) for n in range(2)]
        standing = await states(board, long)
    assert standing == ["leased", "leased", *["queued"] * 4], "nobody was interrupted, and nobody else was let in"
    assert [report.status for report in quick] == ["completed", "completed"]


async def test_concurrency_bounds_the_spare_process_too(board: Board, start_worker: StartWorker) -> None:
    long = await give_long(board, 2)
    async with start_worker(concurrency=2):
        await board.leased(long[1])
        await board.run(SLOW, task_id="quick", share="pb", turn=0, seconds=0)
        assert "done" in await states(board, long), "one of them had to end first"


async def test_tasks_that_need_no_process_are_not_kept_from_an_idle_worker(
    board: Board, start_worker: StartWorker
) -> None:
    long = await give_long(board, 2, seconds=30)
    async with start_worker(concurrency=3):
        await board.leased(long[1])
        kept = await board.give("test.waits_for_cancel", share="pb", turn=0)  # in the slot that is left
        await board.leased(kept)
        light = [await board.give("echo", share="pb", turn=0) for _ in range(20)]
        async with start_worker(concurrency=2):
            reports = [await board.ended(name) for name in light]
        assert [report.status for report in reports] == ["completed"] * 20
        assert await states(board, long) == ["leased", "leased"]
        await board.withdraw(kept)
