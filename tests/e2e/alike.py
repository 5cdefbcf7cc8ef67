"""What is known only by its kind: stands in for a value in a comparison."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any


class Alike:
    """Equals every value of its kind."""

    def __init__(self, kind: str, belongs: Callable[[Any], object]) -> None:
        self._kind = kind
        self._belongs = belongs

    def __eq__(self, other: object) -> bool:
        return bool(self._belongs(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._kind}>"


def text_like(pattern: str) -> Alike:
    """Equals every text that the pattern matches as a whole."""
    return Alike(pattern, lambda value: isinstance(value, str) and re.fullmatch(pattern, value))


A_MOMENT = Alike("a moment", lambda value: isinstance(value, datetime) and value.tzinfo is not None)
A_MOMENT_OR_NONE = Alike("a moment, or None", lambda value: value is None or value == A_MOMENT)
A_SIZE = Alike("a size in bytes", lambda value: isinstance(value, int) and value >= 0)
