"""The trace that work belongs to (W3C Trace Context), recorded or not: headers, rows and messages carry it.

What is done on behalf of a request, a job or a task knows its trace without being told: log lines name it, and what is
sent on carries it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final

TRACEPARENT: Final = "traceparent"

_LONGEST: Final = 512
_FORM: Final = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A place in a trace: what is done here hangs below the span."""

    trace_id: str
    span_id: str
    is_sampled: bool = True
    is_ours: bool = False  # the span is one that this installation records

    @property
    def traceparent(self) -> str:
        """Write it as a header."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


_here: ContextVar[TraceContext | None] = ContextVar("graticule_trace", default=None)


def parse_traceparent(given: str | None) -> TraceContext | None:
    """Read a header that anyone may have written; what is not one is no trace, and never an error."""
    if given is None or len(given) > _LONGEST:
        return None
    found = _FORM.fullmatch(given)
    if found is None or (found[1] == "00" and found[5] is not None):
        return None  # only later versions may go on after the flags
    return TraceContext(found[2], found[3], is_sampled=bool(int(found[4], 16) & _SAMPLED))


def current_trace() -> TraceContext | None:
    """Give the place in a trace at which this is called, if there is one."""
    return _here.get()


def current_traceparent() -> str | None:
    """Give the same as the value of a header."""
    here = _here.get()
    return None if here is None else here.traceparent


def enter_trace(place: TraceContext | None) -> Token[TraceContext | None]:
    """Be at a place in a trace from here on, until `leave_trace` is given what this gives."""
    return _here.set(place)


def leave_trace(before: Token[TraceContext | None]) -> None:
    """Be again where one was before."""
    _here.reset(before)


@contextmanager
def continued(place: TraceContext | None) -> Iterator[None]:
    """Do what is in the block as part of a trace; without one, as part of none, whoever has called."""
    before = enter_trace(place)
    try:
        yield
    finally:
        leave_trace(before)
