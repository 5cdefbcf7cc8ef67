"""Spans of a process that exports nothing itself: each is handed on when it ends. A worker's child process is one."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from graticule.core.trace_context import TraceContext
from graticule.telemetry.spans import LONGEST_NAME, NO_SPAN, Kind, LiveSpan, Span, Value

MOST_ATTRIBUTES: Final = 20


@dataclass(slots=True)
class RecordedSpan:
    """A span that has ended, as it is handed on; its trace is that of the task."""

    name: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int = 0
    error: str | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


HandOn = Callable[[RecordedSpan], None]


class RecordingTracer:
    """Records spans below those of another process."""

    def __init__(self, hand_on: HandOn) -> None:
        self._hand_on = hand_on

    def begin(self, name: str, parent: TraceContext | None, kind: Kind, start_ns: int) -> Span:
        """Begin a span; one that belongs to no trace that is recorded is nothing."""
        if parent is None or not (parent.is_ours and parent.is_sampled):
            return NO_SPAN
        place = TraceContext(parent.trace_id, secrets.token_hex(8), is_ours=True)
        return HandedOnSpan(place, RecordedSpan(name, place.span_id, parent.span_id, start_ns), self._hand_on)


class HandedOnSpan(LiveSpan):
    """A span that is handed on when it ends."""

    __slots__ = ("_hand_on", "_recorded")

    def __init__(self, place: TraceContext, recorded: RecordedSpan, hand_on: HandOn) -> None:
        super().__init__(place)
        self._recorded = recorded
        self._hand_on = hand_on

    def rename(self, name: str) -> None:
        """Give it another name than it began with."""
        self._recorded.name = name[:LONGEST_NAME]

    def _set(self, name: str, value: Value) -> None:
        if len(self._recorded.attributes) < MOST_ATTRIBUTES:
            self._recorded.attributes[name] = value

    def _fail(self, reason: str) -> None:
        self._recorded.error = reason

    def _end(self) -> None:
        self._recorded.end_ns = time.time_ns()
        self._hand_on(self._recorded)
