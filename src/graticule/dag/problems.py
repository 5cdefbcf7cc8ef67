"""What is wrong with a workflow: every problem with its file, line and node."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MAX_COMPARED = 500  # names; a file that has more, and as many mistakes, would keep us for minutes


class Severity(StrEnum):
    """Whether a workflow can be used in spite of the problem."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and how to mend it."""

    file: str
    line: int | None
    node: str | None
    severity: Severity
    code: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [place, "warning" if self.severity is Severity.WARNING else None]
        parts.append(None if self.node is None else f"node {self.node!r}")
        told = f"{self.message} {self.hint}" if self.hint else self.message
        return ": ".join([*(part for part in parts if part is not None), told])


class Problems:
    """Gathers the problems of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[Problem, None] = {}  # in order, each once

    def error(
        self, code: str, message: str, line: int | None, node: str | None = None, hint: str | None = None
    ) -> None:
        """Note what keeps the workflow from being used."""
        self._found[Problem(self._file, line, node, Severity.ERROR, code, message, hint)] = None

    def warn(self, code: str, message: str, line: int | None, node: str | None = None, hint: str | None = None) -> None:
        """Note what may be meant, and may be a mistake."""
        self._found[Problem(self._file, line, node, Severity.WARNING, code, message, hint)] = None

    @property
    def has_errors(self) -> bool:
        """Tell whether the workflow cannot be used."""
        return any(problem.severity is Severity.ERROR for problem in self._found)

    @property
    def in_order(self) -> tuple[Problem, ...]:
        """Give the problems in the order of their lines."""
        return tuple(sorted(self._found, key=lambda problem: problem.line or 0))


def did_you_mean(name: str, known: Iterable[str], *, or_list: bool = True) -> str | None:
    """Give a hint with the name that was probably meant, or with all there are if these are few."""
    listed = sorted(known)[:MAX_COMPARED]
    close = difflib.get_close_matches(name, listed, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known here: {', '.join(listed)}." if or_list and 0 < len(listed) <= 20 else None
