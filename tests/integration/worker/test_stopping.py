"""A worker that stops loses nothing: what it cannot finish it gives back, and that counts against no task."""

import asyncio
import time
from pathlib import Path

from tests.integration.worker.conftest import Board, StartWorker, is_gone, on_both_transports, text_of

from graticule.core.states import MessageStatus, ResultStatus

pytestmark = on_both_transports


async def test_a_task_that_ends_in_time_is_reported(board: Board, start_worker: StartWorker) -> None:
    async with start_worker(worker_grace_seconds=10):
        task_id = await board.give("test.progress", seconds=1)
        await board.leased(task_id)
    (result,) = [each for each in await board.reports(task_id) if each.status is not ResultStatus.RUNNING]
    assert result.status is ResultStatus.COMPLETED


async def test_a_handler_that_makes_way_is_given_back_and_another_worker_resumes(
    board: Board, start_worker: StartWorker
) -> None:
    async with start_worker(worker_grace_seconds=10):
        began = time.monotonic()
        task_id = await board.give("test.saves_at_shutdown", node_id="n")
        await board.leased(task_id)
    assert time.monotonic() - began < 8, "it waits no longer than the handlers need"
    task = await board.task(task_id)
    assert (task.status, task.delivery_count) == (MessageStatus.QUEUED, 0)
    saved = await board.checkpoint("n")
    assert saved is not None
    assert saved.phase == "at_shutdown"


async def test_a_process_handler_makes_way_too(board: Board, start_worker: StartWorker) -> None:
    async with start_worker(worker_grace_seconds=10):
        task_id = await board.give("multi_phase", node_id="n", phases=100, seconds_per_phase=0.2)
        await board.until(lambda: board.checkpoint("n"), "a checkpoint")
    assert (await board.task(task_id)).status is MessageStatus.QUEUED
    await board.withdraw(task_id)  # or the next worker goes on with it, and saves phases meanwhile
    saved = await board.checkpoint("n")
    assert saved is not None
    async with start_worker():
        resumed = await board.run("multi_phase", node_id="n", phases=1, seconds_per_phase=0)
        assert resumed.output == {"phases": 1, "resumed_from": saved.phase}


async def test_what_does_not_end_is_ended_and_given_back(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with start_worker(worker_grace_seconds=0.2):
        tasks = [
            await board.give("test.never_returns", file=str(tmp_path / "pid")),
            await board.give("test.never_returns_async"),
        ]
        for task_id in tasks:
            await board.leased(task_id)
        pid = await board.until(lambda: text_of(tmp_path / "pid"), "the process")
    assert is_gone(pid)
    for task_id in tasks:
        task = await board.task(task_id)
        assert (task.status, task.delivery_count, task.leased_by) == (MessageStatus.QUEUED, 0, None)


async def test_what_only_waits_for_a_slot_is_given_back_at_once(board: Board, start_worker: StartWorker) -> None:
    async with start_worker(concurrency=1):
        for _ in range(20):
            await board.run("echo")  # quick: the worker takes some in advance from here on
        tasks = [await board.give("test.never_returns_async") for _ in range(5)]
        await board.leased(tasks[0])
        await asyncio.sleep(0.5)
    assert {(await board.task(task)).status for task in tasks} == {MessageStatus.QUEUED}
    assert {(await board.task(task)).delivery_count for task in tasks} == {0}
