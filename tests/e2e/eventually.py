"""Wait for what gives no signal: asked again and again, up to a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.2  # seconds: to ask costs processor time that the asked one needs


def eventually(question: Callable[[], T | None], what: str | Callable[[], str], seconds: float = 30) -> T:
    """Ask until the answer is something, and give it; fail when it does not come in time."""
    deadline, pause = time.monotonic() + seconds, SHORTEST_PAUSE
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(pause)
        pause = min(1.3 * pause, LONGEST_PAUSE)
    return answer
