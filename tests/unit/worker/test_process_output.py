"""What a handler prints goes into the log: as text, in lines, and not without end."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from graticule.worker.process_output import MAX_BYTES_PER_TASK, MAX_LINE, OutputLog


@pytest.fixture
def log() -> OutputLog:
    opened = OutputLog()
    opened.begin("t")
    return opened


def taken(log: OutputLog, *parts: bytes) -> list[Any]:
    with capture_logs() as lines:
        for part in parts:
            log.take(part)
    return [line["text"] for line in lines if "text" in line]


def test_lines_are_put_together_from_parts(log: OutputLog) -> None:
    assert taken(log, b"one\ntw", b"o\n", b"\n", b"three") == ["one", "two"]


def test_bytes_that_are_no_text_are_replaced(log: OutputLog) -> None:
    assert taken(log, b"a\xff\xfeb\n") == ["a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"]


def test_a_line_without_end_is_cut_and_not_kept(log: OutputLog) -> None:
    (line, *_) = taken(log, *[b"x" * 65536] * 10)
    assert len(line) == MAX_LINE
    assert len(log._rest) <= MAX_LINE * 4


def test_a_task_that_prints_too_much_is_silenced_and_the_next_is_heard(log: OutputLog) -> None:
    lines = taken(log, *[b"y" * 500 + b"\n"] * 1000)
    assert sum(map(len, lines)) <= MAX_BYTES_PER_TASK + 500
    log.begin("u")
    assert taken(log, b"hello\n") == ["hello"]
