"""Whatever a handler does: its attempt fails with a clear error, and the worker lives on."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.integration.worker.conftest import Board, is_gone, text_of

from graticule.core.states import ResultStatus

pytestmark = pytest.mark.usefixtures("worker")

CRASHES: dict[str, str] = {
    "test.segfault": "The handler's process crashed: it was ended by SIGSEGV.",
    "test.abort": "The handler's process crashed: it was ended by SIGABRT.",
    "test.killed": "The handler's process crashed: it was ended by SIGKILL (out of memory?).",
    "test.exit": "The handler's process ended with exit status 3 before it gave a result.",
    "test.sys_exit": "The handler tried to end its process (SystemExit).",
    "test.async_sys_exit": "The handler tried to end its process (SystemExit).",
    "test.allocate": "The handler ran out of memory (MemoryError).",
    "test.recursion": "The handler called itself too deeply (RecursionError).",
    "test.async_recursion": "The handler called itself too deeply (RecursionError).",
    "test.garbage_on_the_link": "The handler's process sent something that is not a result; it was ended.",
    "test.closes_everything": "The handler's process closed its connection to the worker; it was ended.",
    "test.cancels_itself": "CancelledError",
    "test.unshowable": "Unshowable: <its message cannot be shown>",
    "test.rubbish": "rubbish",
    "test.interrupted_for_nothing": "The handler gave up although nobody had asked it to.",
}


@pytest.mark.parametrize("handler", CRASHES)
async def test_it_fails_its_attempt_and_the_next_task_is_run(board: Board, handler: str) -> None:
    failed = await board.run(handler)
    assert (failed.status, failed.error_message, failed.retryable) == (ResultStatus.FAILED, CRASHES[handler], True)
    next_one = await board.run("test.plain_value", a=1)
    assert next_one.status is ResultStatus.COMPLETED
    assert isinstance(next_one.output, dict)
    assert (next_one.output["params"], next_one.output["main"]) == ({"a": 1}, True)


async def test_crashes_harm_no_task_beside_them(board: Board) -> None:
    crashing = [await board.give("test.segfault") for _ in range(3)]
    beside = [await board.give("echo", n=n) for n in range(20)] + [await board.give("test.plain_value")]
    assert {(await board.ended(task)).status for task in beside} == {ResultStatus.COMPLETED}
    assert {(await board.ended(task)).status for task in crashing} == {ResultStatus.FAILED}


@pytest.mark.parametrize("handler", ["test.huge_message", "test.async_huge_message"])
async def test_a_huge_message_is_cut_and_made_storable(board: Board, handler: str) -> None:
    failed = await board.run(handler)
    assert failed.error_message is not None
    assert failed.error_message.startswith("ValueError: \\0?xxx")
    assert failed.error_message.endswith("characters more)")
    assert len(failed.error_message) < 5000


async def test_a_handler_that_never_returns_is_killed_for_real(board: Board, tmp_path: Path) -> None:
    failed = await board.run("test.never_returns", timeout_seconds=1, file=str(tmp_path / "pid"))
    assert failed.error_message == "The handler was ended after its timeout of 1 s."
    assert failed.retryable
    assert is_gone(text_of(tmp_path / "pid"))


async def test_what_a_killed_handler_has_started_is_killed_too(board: Board, tmp_path: Path) -> None:
    await board.run("test.leaves_a_program", timeout_seconds=2, file=str(tmp_path / "pid"))
    pid = text_of(tmp_path / "pid")
    assert pid
    await board.until(lambda: is_gone(pid), "the end of the program")


async def test_an_async_handler_that_never_returns_is_cancelled(board: Board) -> None:
    failed = await board.run("test.never_returns_async", timeout_seconds=1)
    assert failed.error_message == "The handler was ended after its timeout of 1 s."


async def test_an_async_handler_that_ignores_its_cancellation_is_not_waited_for(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graticule.worker.run.STUBBORN_SECONDS", 0.5)
    failed = await board.run("test.stubborn", timeout_seconds=1, seconds=4)
    assert failed.error_message == "The handler did not end when it was cancelled (timed_out)."
    assert (await board.run("echo")).status is ResultStatus.COMPLETED


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("object", "Type is not JSON serializable: object"),
        ("nan", "Out of range float values are not JSON compliant"),
        ("nul", "a text contains the character NUL, which PostgreSQL cannot store"),
        ("surrogate", "str is not valid UTF-8: surrogates not allowed"),
        ("huge_integer", "A number is too large for any reader of JSON"),
        ("key", "Dict key must be str"),
        ("bytes", "Type is not JSON serializable: bytes"),
    ],
)
async def test_a_value_that_is_not_json_fails_for_good(board: Board, which: str, reason: str) -> None:
    failed = await board.run("test.not_json", which=which)
    assert (failed.status, failed.retryable) == (ResultStatus.FAILED, False)
    assert (failed.error_message or "").startswith(f"The handler returned a value that is not JSON: {reason}")


async def test_a_value_of_a_child_process_that_is_not_json_fails_for_good(board: Board) -> None:
    failed = await board.run("test.not_json_process")
    assert not failed.retryable
    assert "not JSON" in (failed.error_message or "")


@pytest.mark.parametrize("handler", ["test.declared", "test.declared_process"])
async def test_parameters_that_do_not_fit_fail_for_good_and_name_the_fields(board: Board, handler: str) -> None:
    failed = await board.run(handler, count="many")
    assert not failed.retryable
    assert failed.error_message == (
        "The parameters do not fit the handler: count: Input should be a valid integer, unable to parse string as an"
        " integer; name: Field required."
    )
    fine = await board.run(handler, count="3", name="n")
    assert fine.output == {"count": 3}


async def test_an_unknown_handler_is_told_and_may_be_known_elsewhere(board: Board) -> None:
    failed = await board.run("test.unknown")
    assert failed.error_message == "This worker has no handler 'test.unknown'; another one may have it."
    assert failed.retryable


async def test_a_handler_may_take_memory_within_its_limit_also_after_one_that_took_too_much(board: Board) -> None:
    await board.run("test.allocate")
    assert (await board.run("test.within_limit")).output == 50_000_000


async def test_binary_rubbish_is_logged_as_text_and_not_without_end(
    board: Board, worker: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    done = await board.run("test.rubbish", succeed=True)
    assert done.status is ResultStatus.COMPLETED
    assert sum(len(record.getMessage()) for record in caplog.records) < 1_000_000


async def test_processes_are_kept_for_the_next_task(board: Board) -> None:
    pids = set()
    for _ in range(4):
        output: Any = (await board.run("test.plain_value")).output
        pids.add(output["pid"])
    assert len(pids) == 1
    assert os.getpid() not in pids


async def test_a_process_that_says_what_it_should_not_is_ended(board: Board) -> None:
    for frame in ({"kind": "result"}, {"kind": "load", "task_id": "another"}):
        failed = await board.run("test.sends_a_frame", frame=frame)
        assert failed.error_message == "The handler's process sent something that is not a result; it was ended."
    assert (await board.run("test.plain_value")).status is ResultStatus.COMPLETED


async def test_a_process_that_speaks_after_its_result_gets_no_task(board: Board, tmp_path: Path) -> None:
    talking = (await board.run("test.talks_on", file=str(tmp_path / "now"))).output
    (tmp_path / "now").touch()
    await board.until(lambda: not (tmp_path / "now").exists(), "what is said too late")
    done: Any = (await board.run("test.plain_value")).output
    assert done["pid"] != talking


async def test_a_process_that_ended_while_it_waited_gets_no_task(board: Board) -> None:
    resting: Any = (await board.run("test.plain_value")).output
    os.kill(resting["pid"], signal.SIGKILL)
    await board.until(lambda: not Path(f"/proc/{resting['pid']}").exists(), "the worker to take note of its end")
    assert (await board.run("test.plain_value")).status is ResultStatus.COMPLETED
