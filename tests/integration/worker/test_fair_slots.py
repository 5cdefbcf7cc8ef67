"""The child processes of a worker are not all taken by the slow tasks of one partner."""

import pytest
from tests.integration.worker.conftest import Board, StartWorker

from graticule.worker import slot_turns

HANDLER = "test.slow"


async def test_a_job_of_quick_steps_waits_for_one_slow_task_and_not_at_each_step(
    board: Board, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_turns, "SLOW_SECONDS", 0.8)
    monkeypatch.setattr(slot_turns, "PAUSE_SECONDS", 10)  # this test may be slow to queue the next step
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    slow = [await board.give(HANDLER, f"slow_{n}", share="pa", turn=1, seconds=1) for n in range(8)]
    async with start_worker(concurrency=2):
        await board.leased(slow[1])
        quick = [await board.run(HANDLER, task_id=f"quick_{n}", share="pb", turn=0, seconds=0) for n in range(4)]
        reports = [report for name in slow for report in await board.reports(name)]
    between = [report for report in reports if quick[0].reported_at < report.reported_at < quick[-1].reported_at]
    assert len(between) <= 1


async def test_a_partner_gets_a_process_while_long_tasks_of_another_hold_all_of_them(
    board: Board, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_turns, "LONG_SECONDS", 0.5)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    long = [await board.give(HANDLER, f"long_{n}", share="pa", turn=n, seconds=4) for n in range(6)]
    async with start_worker(concurrency=2):
        await board.leased(long[1])
        quick = [await board.run(HANDLER, task_id=f"quick_{n}", share="pb", turn=0, seconds=0) for n in range(2)]
        standing = [(await board.task(name)).status for name in long]
    assert standing == ["leased", "leased", *["queued"] * 4], "nobody was interrupted, and nobody else was let in"
    assert [report.status for report in quick] == ["completed", "completed"]
