"""Spans: pieces of work in a trace. Who records them is chosen once in a process; until then a span is nothing."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import Token
from enum import StrEnum
from types import TracebackType
from typing import Final, Protocol, Self

from graticule.core.trace_context import TraceContext, current_trace, enter_trace, leave_trace
from graticule.logs import redact_text

Value = str | bool | int | float
OURS: Final = "graticule."  # what the names of our own attributes begin with
LONGEST_NAME: Final = 100
LONGEST_VALUE: Final = 256
_LARGEST: Final = 2**63


class Kind(StrEnum):
    """What a span is to the others of its trace."""

    INTERNAL = "internal"
    SERVER = "server"  # answers a request
    CLIENT = "client"  # asks another process, and waits
    CONSUMER = "consumer"  # does what was asked for earlier


class Span:
    """A piece of work; this one is not recorded."""

    __slots__ = ()

    @property
    def place(self) -> TraceContext | None:
        """Give its place in the trace, below which others hang; None when nothing is recorded."""
        return None

    @property
    def traceparent(self) -> str | None:
        """Give the same as the value of a header."""
        place = self.place
        return None if place is None else place.traceparent

    def rename(self, name: str) -> None:
        """Give it another name than it began with."""

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Note something of it, by full names; None is left out."""

    def fail(self, reason: str) -> None:
        """Note that it went wrong."""

    def forget(self) -> None:
        """Do not record it after all."""

    def end(self) -> None:
        """Note that it has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


NO_SPAN: Final = Span()


class LiveSpan(Span, ABC):
    """A piece of work that is recorded; inside its block, it is what other spans hang below."""

    __slots__ = ("_before", "_is_forgotten", "_place")

    def __init__(self, place: TraceContext) -> None:
        self._place = place
        self._is_forgotten = False
        self._before: Token[TraceContext | None] | None = None

    @property
    def place(self) -> TraceContext:
        """Give its place in the trace."""
        return self._place

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Note something of it, by full names; None is left out."""
        for name, value in attributes.items():
            if value is not None:
                self._set(encodable(name[:LONGEST_NAME]), shown(value))

    def fail(self, reason: str) -> None:
        """Note that it went wrong."""
        self._fail(clean(reason))

    def forget(self) -> None:
        """Do not record it after all."""
        self._is_forgotten = True

    def end(self) -> None:
        """Note that it has ended; what happens to it later is not recorded."""
        if not self._is_forgotten:
            self._is_forgotten = True
            self._end()

    def __enter__(self) -> Self:
        self._before = enter_trace(self._place)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # what an error says may be anybody's; its kind is ours
            self.fail(kind.__name__)
        if self._before is not None:
            leave_trace(self._before)
        self.end()

    @abstractmethod
    def _set(self, name: str, value: Value) -> None: ...

    @abstractmethod
    def _fail(self, reason: str) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...


class Tracer(Protocol):
    """Records spans."""

    def begin(self, name: str, parent: TraceContext | None, kind: Kind, start_ns: int) -> Span:
        """Begin a span below another, or a trace of its own."""


_tracer: Tracer | None = None


def record_with(tracer: Tracer | None) -> None:
    """Let a tracer record the spans of this process from now on."""
    global _tracer  # noqa: PLW0603 - one for the process, as its log is
    _tracer = tracer


def is_tracing() -> bool:
    """Tell whether spans are recorded."""
    return _tracer is not None


def span(name: str, kind: Kind = Kind.INTERNAL, **attributes: Value | None) -> Span:
    """Give a span to enter: a part of what is done where it is called. Attributes are named `graticule.…`."""
    if _tracer is None:
        return NO_SPAN
    return begun(name, current_trace(), kind, attributes=attributes)


def begun(
    name: str,
    parent: TraceContext | None,
    kind: Kind = Kind.INTERNAL,
    *,
    start_ns: int | None = None,
    attributes: Mapping[str, Value | None] | None = None,
) -> Span:
    """Give a span that has begun, below a place that is named; it need not be entered."""
    if _tracer is None:
        return NO_SPAN
    found = _tracer.begin(encodable(name[:LONGEST_NAME]), parent, kind, start_ns or time.time_ns())
    found.set({f"{OURS}{each}": value for each, value in (attributes or {}).items()})
    return found


def shown(value: object) -> Value:
    """Give a value as it may leave the process, in one of the few types that it may have."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return clean(str(value))


def clean(text: str) -> str:
    """Give a text as it may leave the process: without secrets, and not too long."""
    return encodable(redact_text(text)[:LONGEST_VALUE])


def encodable(text: str) -> str:
    """Give a text as UTF-8 can have it: half a character, as in the name of a file, loses all that is sent with it."""
    return text.encode(errors="replace").decode()
