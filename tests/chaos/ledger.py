"""The append-only ledger into which handlers write their effects: what truly happened, whatever the engine says."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Moment = Literal["began", "ended", "failed"]


def monotonic_now() -> float:
    """Tell a time that all processes of the machine share, and that a skewed wall clock does not touch."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One moment of one execution of a handler. `ended` is the effect: it is written before the result is returned."""

    run: str  # made anew by the handler when it begins: one per execution
    moment: Moment
    task_id: str
    job_id: str
    node_id: str
    retry_count: int
    delivery_count: int
    process_id: int = field(default_factory=os.getpid)
    at: float = field(default_factory=monotonic_now)


class TornLine(ValueError):
    """A line in the middle of the ledger is not whole."""


class Ledger:
    """One JSON object per line, each written by one call, which is atomic between processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, entry: Entry) -> None:
        """Append an entry; a process that is killed leaves the whole of it or nothing."""
        line = json.dumps(asdict(entry)).encode() + b"\n"
        descriptor = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written to {self.path}")

    def read(self) -> list[Entry]:
        """Give all entries in the order in which they were written; a last line without its end is passed over."""
        if not self.path.exists():
            return []
        *lines, _ = self.path.read_bytes().split(b"\n")
        return [_entry(number, line) for number, line in enumerate(lines, 1)]


def _entry(number: int, line: bytes) -> Entry:
    try:
        return Entry(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise TornLine(f"line {number} of the ledger is {line!r}") from error
