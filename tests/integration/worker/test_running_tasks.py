"""What a worker does with tasks from the claim to the result."""

import asyncio
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from tests.integration.worker.conftest import QUEUE, Board, StartWorker, is_gone, on_both_transports, text_of

from graticule.core import backoff
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.database import Connection
from graticule.repositories.processes import WorkerRepository
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import MAX_OUTPUT_BYTES


@on_both_transports
async def test_a_task_is_run_and_its_result_written(board: Board, worker: FastAPI) -> None:
    task_id = await board.give("echo", a=[1, None, {"b": "ä"}])
    result = await board.ended(task_id)
    assert result.output == {"echoed_params": {"a": [1, None, {"b": "ä"}]}}
    assert (result.status, result.error_message, result.progress) == (ResultStatus.COMPLETED, None, None)
    task = await board.task(task_id)
    assert (task.status, task.delivery_count) == (MessageStatus.DONE, 1)
    assert len(await board.reports(task_id)) == 1, "a quick task never says that it runs"


@on_both_transports
async def test_a_notification_wakes_an_idle_worker_at_once(board: Board, worker: FastAPI) -> None:
    await board.run("echo")
    began = time.monotonic()
    for _ in range(5):
        await board.run("echo")
    assert time.monotonic() - began < 4, "the poll, every 5 s, would have been slower"


@on_both_transports
async def test_what_nobody_told_of_is_found_by_the_poll(board: Board, connection: Connection, worker: FastAPI) -> None:
    await board.run("echo")
    await connection.execute(
        "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler)"
        " VALUES ('silent', 'job', 'n', %s, 'echo')",
        [QUEUE],
    )
    await board.ended("silent", seconds=12)  # type: ignore[arg-type]


@on_both_transports
async def test_a_task_that_waits_for_its_time_is_run_then(
    board: Board, connection: Connection, worker: FastAPI
) -> None:
    await connection.execute(
        "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, available_at)"
        " VALUES ('delayed', 'job', 'n', %s, 'echo', now() + interval '1.5 s')",
        [QUEUE],
    )
    began = time.monotonic()
    result = await board.ended("delayed")  # type: ignore[arg-type]
    assert result.status is ResultStatus.COMPLETED
    assert 0.5 < time.monotonic() - began < 4.5


@on_both_transports
async def test_many_tasks_are_run_each_once(board: Board, connection: Connection, worker: FastAPI) -> None:
    await connection.execute(
        "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params)"
        " SELECT 't' || n, 'job', 'n', %s, 'echo', jsonb_build_object('n', n) FROM generate_series(1, 3000) n",
        [QUEUE],
    )
    await connection.execute("SELECT pg_notify('graticule_queue_' || md5(%s), '')", [QUEUE])

    async def results() -> bool:
        cursor = await connection.execute("SELECT count(*) AS n FROM dagapp.dag_task_results")
        return bool(((await cursor.fetchone()) or {})["n"] >= 3000)

    await board.until(results, "3000 results")
    cursor = await connection.execute(
        "SELECT count(*) AS n, count(DISTINCT task_id) AS tasks, count(DISTINCT output) AS outputs,"
        " (SELECT max(delivery_count) FROM dagapp.dag_tasks) AS deliveries FROM dagapp.dag_task_results"
    )
    assert await cursor.fetchone() == {"n": 3000, "tasks": 3000, "outputs": 3000, "deliveries": 1}


@on_both_transports
async def test_no_more_handlers_run_at_once_than_allowed(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with start_worker(concurrency=2):
        tasks = [await board.give("test.waits_for_file", file=str(gate)) for _ in range(3)]
        await board.leased(tasks[0])
        await board.leased(tasks[1])
        await asyncio.sleep(0.3)
        assert (await board.task(tasks[2])).status is MessageStatus.QUEUED, "slow tasks are not taken in advance"
        gate.touch()
        for task in tasks:
            assert (await board.ended(task)).status is ResultStatus.COMPLETED


@on_both_transports
async def test_tasks_for_child_processes_are_left_to_others_when_no_process_is_free(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    tasks = [await board.give("test.plain_value") for _ in range(12)]
    slow = [await board.give("test.waits_for_file_process", file=str(gate), priority=9) for _ in range(6)]
    async with start_worker(concurrency=50):
        await board.until(lambda: _any_leased(board, slow), "a slow task under way")
        await asyncio.sleep(0.5)
        states = [(await board.task(task)).status for task in slow + tasks]
        assert states.count(MessageStatus.LEASED) <= 4
        gate.touch()
        for task in slow + tasks:
            assert (await board.ended(task, seconds=60)).status is ResultStatus.COMPLETED
        assert {(await board.task(task)).delivery_count for task in tasks} == {1}


# Not with a broker: what a message is for is known only when it was taken, and then no other worker can have it.
async def test_light_tasks_overtake_heavy_ones_that_wait_for_a_process(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with start_worker(concurrency=20):
        heavy = [await board.give("test.waits_for_file_process", file=str(gate)) for _ in range(5)]
        await board.until(lambda: _any_leased(board, heavy), "a heavy task under way")
        light = [await board.give("echo") for _ in range(30)]
        for task in light:
            await board.ended(task)
        assert MessageStatus.QUEUED in {(await board.task(task)).status for task in heavy}
        gate.touch()
        for task in heavy:
            assert (await board.ended(task, seconds=60)).status is ResultStatus.COMPLETED


async def _any_leased(board: Board, tasks: list[Any]) -> bool:
    return any([(await board.task(task)).status is MessageStatus.LEASED for task in tasks])


async def test_nothing_is_an_output_too(board: Board, worker: FastAPI) -> None:
    result = await board.run("test.null")
    assert (result.status, result.output, result.output_ref) == (ResultStatus.COMPLETED, None, None)


# Outputs


@pytest.mark.parametrize("handler", ["test.large_output", "test.large_output_process"])
@pytest.mark.parametrize(("node_id", "limit"), [("node", 1024 * 1024), ("split__7", 256 * 1024)])
@pytest.mark.usefixtures("worker")
async def test_large_outputs_are_stored(board: Board, tmp_path: Path, handler: str, node_id: str, limit: int) -> None:
    size = limit - 2  # and two quotation marks
    kept = await board.run(handler, node_id=node_id, size=size)
    assert (kept.output_ref, len(str(kept.output))) == (None, size)
    stored = await board.run(handler, node_id=node_id, size=size + 1)
    assert (stored.status, stored.output) == (ResultStatus.COMPLETED, None)
    assert stored.output_ref == "outputs/job/task_2_1.json"
    assert await LocalStorage(tmp_path / "storage").get(stored.output_ref) == b'"' + b"x" * (size + 1) + b'"'


@pytest.mark.parametrize("handler", ["test.large_output", "test.large_output_process"])
async def test_an_output_of_any_size_is_not_accepted(board: Board, worker: FastAPI, handler: str) -> None:
    result = await board.run(handler, size=MAX_OUTPUT_BYTES)
    assert (result.status, result.retryable) == (ResultStatus.FAILED, False)
    assert result.error_message == ("The output has 64.0 MiB and may have 64; store it as a file and return its path.")


# Progress


@pytest.mark.parametrize("handler", ["test.progress", "test.progress_process"])
async def test_progress_is_told_about_once_a_second_and_the_last_always(
    board: Board, worker: FastAPI, handler: str
) -> None:
    task_id = await board.give(handler, seconds=3.2)
    result = await board.ended(task_id)
    running = [each for each in await board.reports(task_id) if each.status is ResultStatus.RUNNING]
    assert 1 <= len(running) <= 4
    told: list[Any] = [each.progress["done"] for each in running if each.progress]
    assert told == sorted(told)
    assert result.progress is not None
    assert result.progress["done"] == result.output, "the last one"
    assert all(each.result_id < result.result_id for each in running)  # type: ignore[operator]
    assert {each.worker_id for each in running} == {result.worker_id}


async def test_a_task_that_takes_longer_than_a_second_says_that_it_runs(board: Board, worker: FastAPI) -> None:
    task_id = await board.give("test.never_returns_async", timeout_seconds=3)
    await board.ended(task_id)
    assert [each.status for each in await board.reports(task_id)] == [ResultStatus.RUNNING, ResultStatus.FAILED]


# Cancel and lost leases


@on_both_transports
@pytest.mark.parametrize("handler", ["test.waits_for_cancel", "test.waits_for_cancel_process"])
async def test_a_handler_sees_within_two_seconds_that_its_job_was_cancelled(
    board: Board, worker: FastAPI, tmp_path: Path, handler: str
) -> None:
    file = tmp_path / "seen"
    task_id = await board.give(handler, file=str(file))
    await board.leased(task_id)
    if handler.endswith("process"):
        await board.until(lambda: text_of(file) == "began", "the handler")
    await board.withdraw(task_id)
    await board.until(lambda: text_of(file) == "saw it", "the handler to see it", seconds=2)
    result = await board.ended(task_id)
    assert (result.status, result.output) == (ResultStatus.COMPLETED, "ended"), "a late result is recorded"
    assert (await board.task(task_id)).status is MessageStatus.DONE


@on_both_transports
async def test_a_cancel_that_was_missed_while_the_listener_was_away_is_seen_when_it_is_back(
    admin: psycopg.AsyncConnection[Any], board: Board, worker: FastAPI, tmp_path: Path
) -> None:
    task_id = await board.give("test.waits_for_cancel", file=str(tmp_path / "seen"))
    await board.leased(task_id)
    await board.withdraw(task_id, tell=False)
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name LIKE 'graticule-worker%' AND datname = current_database()"
    )
    await board.until(lambda: text_of(tmp_path / "seen") == "saw it", "the handler to see it", seconds=8)


@on_both_transports
async def test_a_cancel_that_was_not_told_is_seen_at_the_next_renewal(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with start_worker(worker_renew_seconds=0.3):
        task_id = await board.give("test.waits_for_cancel", file=str(tmp_path / "seen"))
        await board.leased(task_id)
        await board.withdraw(task_id, tell=False)
        await board.until(lambda: text_of(tmp_path / "seen") == "saw it", "the handler to see it", seconds=3)


async def test_a_handler_that_does_not_look_is_ended_when_its_job_was_cancelled(
    board: Board, worker: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graticule.worker.leases.CANCEL_GRACE_SECONDS", 1.0)
    task_id = await board.give("test.never_returns", file=str(tmp_path / "pid"))
    await board.until(lambda: text_of(tmp_path / "pid"), "the handler")
    await board.withdraw(task_id)
    pid = text_of(tmp_path / "pid")
    await board.until(lambda: is_gone(pid), "the end of the process", seconds=10)
    result = await board.ended(task_id)
    assert (result.status, result.output) == (ResultStatus.CANCELLED, None)
    assert result.error_message == "The job does not want the task any more."


@on_both_transports
async def test_a_task_that_was_withdrawn_before_its_turn_is_not_run(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    for _ in range(20):  # quick ones: the worker takes the next tasks in advance
        await board.give("echo")
    async with start_worker(concurrency=1):
        blocking = await board.give("test.waits_for_cancel", file=str(tmp_path / "seen"))
        waiting = [await board.give("echo") for _ in range(3)]
        await board.leased(blocking)
        for task_id in (*waiting, blocking):
            await board.withdraw(task_id)
        await board.ended(blocking)
        assert (await board.run("echo")).status is ResultStatus.COMPLETED
        for task_id in waiting:
            assert (await board.task(task_id)).status is MessageStatus.WITHDRAWN
            assert await board.reports(task_id) == []


@on_both_transports
async def test_a_lost_task_is_ended_at_once_and_its_result_dropped(
    board: Board, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with start_worker(worker_renew_seconds=0.2):
        task_id = await board.give("test.never_returns", file=str(tmp_path / "pid"))
        await board.until(lambda: text_of(tmp_path / "pid"), "the handler")
        await board.steal(task_id)
        pid = text_of(tmp_path / "pid")
        await board.until(lambda: is_gone(pid), "the end of the process", seconds=4)
        assert (await board.run("echo")).status is ResultStatus.COMPLETED
    task = await board.task(task_id)
    assert (task.status, task.leased_by) == (MessageStatus.LEASED, "thief")
    assert [each.status for each in await board.reports(task_id) if each.status is not ResultStatus.RUNNING] == []


@on_both_transports
async def test_a_lease_outlives_its_term_while_its_worker_renews_it(board: Board, start_worker: StartWorker) -> None:
    async with start_worker(worker_lease_seconds=1.0, worker_renew_seconds=0.2):
        task_id = await board.give("sleep", seconds=3)
        first = await board.leased(task_id)
        await asyncio.sleep(1.5)
        later = await board.task(task_id)
        assert first.lease_expires_at is not None
        assert later.lease_expires_at is not None
        assert later.lease_expires_at > first.lease_expires_at
        assert (await board.ended(task_id)).status is ResultStatus.COMPLETED


# Checkpoints


@pytest.mark.parametrize("handler", ["test.checkpoint", "test.checkpoint_process"])
async def test_the_next_attempt_finds_the_phase_that_was_saved(board: Board, worker: FastAPI, handler: str) -> None:
    first = await board.give(handler, node_id="n")
    assert (await board.ended(first)).status is ResultStatus.FAILED
    assert [each.checkpoint for each in await board.reports(first)] == ["first", None]
    again = await board.run(handler, node_id="n", retry_count=1)
    assert again.output == {"phase": "first", "data": {"n": 1}, "artifacts": ["scratch/artifact.bin"]}


@pytest.mark.parametrize("handler", ["test.checkpoint", "test.checkpoint_process"])
async def test_a_phase_whose_artifact_is_gone_is_not_trusted(
    board: Board, worker: FastAPI, tmp_path: Path, handler: str
) -> None:
    assert (await board.run(handler, node_id="n")).status is ResultStatus.FAILED
    await LocalStorage(tmp_path / "storage").delete("scratch/artifact.bin")
    assert (await board.run(handler, node_id="n")).status is ResultStatus.FAILED, "it begins anew"


async def test_a_phase_that_cannot_be_saved_is_told_to_the_handler(board: Board, worker: FastAPI) -> None:
    failed = await board.run("test.bad_checkpoint")
    assert failed.error_message == "CheckpointNotSaved: The name of a phase must have 1 to 128 characters."


async def test_the_example_resumes_after_its_last_phase(board: Board, connection: Connection, worker: FastAPI) -> None:
    whole = await board.run("multi_phase", node_id="a", phases=3, seconds_per_phase=0)
    assert whole.output == {"phases": 3, "resumed_from": None}
    again = await board.run("multi_phase", node_id="a", phases=5, seconds_per_phase=0)
    assert again.output == {"phases": 5, "resumed_from": "phase_3"}
    saved = await board.checkpoint("a")
    assert saved is not None
    assert saved.phase == "phase_5"


# The row of the worker, and what it tells


async def test_a_worker_has_a_row_while_it_works(
    board: Board, connection: Connection, start_worker: StartWorker
) -> None:
    workers = WorkerRepository(connection)
    async with start_worker(concurrency=3, heartbeat_interval_seconds=0.1):
        (row,) = await board.until(workers.running, "a row")
        assert (row.queues, row.concurrency) == ([QUEUE], 3)
        assert {"echo", "multi_phase", "test.segfault"} <= set(row.handlers)

        async def has_beaten() -> bool:
            return bool((await workers.get(worker_id=row.worker_id)).heartbeat_at > row.heartbeat_at)

        await board.until(has_beaten, "a heartbeat")
    assert await workers.running() == []


async def test_what_is_measured(board: Board, worker: FastAPI) -> None:
    await board.run("echo")
    await board.run("fail", message="m")
    registry = worker.state.registry
    value = registry.get_sample_value
    assert value("graticule_worker_tasks_total", {"handler": "echo", "outcome": "completed"}) == 1
    assert value("graticule_worker_tasks_total", {"handler": "fail", "outcome": "failed"}) == 1
    assert value("graticule_worker_task_duration_seconds_count", {"handler": "echo"}) == 1
    assert value("graticule_task_wait_seconds_count", {"queue": QUEUE}) == 2
    assert value("graticule_worker_leases_lost_total", {"state": "lost"}) == 0
    assert (value("graticule_worker_slots"), value("graticule_worker_results_unwritten")) == (8, 0)


# The database goes away


@on_both_transports
async def test_a_result_is_kept_while_connections_break_and_the_worker_goes_on(
    admin: psycopg.AsyncConnection[Any], board: Board, worker: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.4)
    task_id = await board.give("sleep", seconds=1.5)
    await board.leased(task_id)
    ended = 0
    for _ in range(25):
        cursor = await admin.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name LIKE 'graticule-worker%' AND datname = current_database()"
        )
        ended += ((await cursor.fetchone()) or [0])[0]
        await asyncio.sleep(0.1)
    assert ended > 5
    assert (await board.ended(task_id)).status is ResultStatus.COMPLETED
    assert (await board.run("echo")).status is ResultStatus.COMPLETED
