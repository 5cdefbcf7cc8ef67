"""What expressions work on: JSON values, what is missing, and the bounds that keep every step small.

Nothing here measures time: each operation is paid for, in steps, by the size of what it reads or
makes, so that the same template costs the same everywhere and a hostile one ends early.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

MAX_TEXT: Final = 1 << 20  # characters of a text that a template makes
MAX_MADE: Final = 8 << 20  # characters of JSON of a list or mapping that a template makes
MAX_ITEMS: Final = 100_000  # items of a list that a template makes; as many as a fan-out may have
MAX_BITS: Final = 4096  # of a whole number that a template makes
MAX_STEPS: Final = 1_000_000  # of one rendering
CHARACTERS_PER_STEP: Final = 16  # written
CHARACTERS_COMPARED_PER_STEP: Final = 256


class Refused(Exception):
    """An expression that cannot be evaluated; the text is the reason, for the user."""


class Kind(StrEnum):
    """The kinds of value; two of different kinds are unlike."""

    NULL = "null"
    BOOLEAN = "a boolean"
    NUMBER = "a number"
    TEXT = "text"
    LIST = "a list"
    MAPPING = "a mapping"


@dataclass(frozen=True, slots=True)
class Missing:
    """Stands for a value that is not there; only `default` and `is defined` may look at it."""

    reason: str


class Budget:
    """The steps that are left."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Pay, or end the evaluation."""
        self.left -= steps
        if self.left < 0:
            raise Refused("it takes too many steps; do such work in a handler")


class Run:
    """One evaluation: the context, the names that the template itself sets, and the budget."""

    __slots__ = ("budget", "context", "names")

    def __init__(self, context: Mapping[str, object], budget: Budget | None = None) -> None:
        self.context = context
        self.names: dict[str, object] = {}
        self.budget = budget or Budget()


_KINDS: Final[dict[type, Kind]] = {
    type(None): Kind.NULL,
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
    list: Kind.LIST,
    tuple: Kind.LIST,
    dict: Kind.MAPPING,
}


def kind(value: object) -> Kind:
    """Tell what kind of value it is; anything that is not like JSON is refused."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Missing):
        raise Refused(value.reason)
    if isinstance(value, Mapping):
        return Kind.MAPPING
    for base, of_base in ((str, Kind.TEXT), (int, Kind.NUMBER), (float, Kind.NUMBER)):  # such as the status, an enum
        if isinstance(value, base):
            return of_base
    raise Refused(f"a value of type {type(value).__name__} cannot be used in a template")


def there(value: object) -> object:
    """Give the value, unless it is missing."""
    if isinstance(value, Missing):
        raise Refused(value.reason)
    return value


def as_text(value: object, use: str) -> str:
    """Give a value that must be text."""
    if kind(value) is not Kind.TEXT:
        raise Refused(f"{use} needs text, and got {kind(value)}")
    return str(value)


def as_number(value: object, use: str) -> int | float:
    """Give a value that must be a number."""
    if kind(value) is not Kind.NUMBER:
        raise Refused(f"{use} needs a number, and got {kind(value)}")
    return value  # type: ignore[return-value]


def as_whole(value: object, use: str) -> int:
    """Give a value that must be a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refused(f"{use} needs a whole number, and got {kind(value)}")
    return value


def as_list(run: Run, value: object, use: str) -> list[object]:
    """Give the items of a list, or the keys of a mapping."""
    found = kind(value)
    if found is Kind.MAPPING:
        value = list(value)  # type: ignore[call-overload]
    elif found is not Kind.LIST:
        raise Refused(f"{use} needs a list, and got {found}")
    run.budget.spend(len(value))  # type: ignore[arg-type]
    return value if isinstance(value, list) else list(value)  # type: ignore[call-overload]


def made_text(run: Run, text: str) -> str:
    """Pay for a text that was made."""
    text_of_size(run, len(text))
    return text


def text_of_size(run: Run, size: int) -> None:
    """Pay for a text before it is made."""
    if size > MAX_TEXT:
        raise Refused(f"it makes a text of more than {MAX_TEXT:,} characters")
    run.budget.spend(1 + size // CHARACTERS_PER_STEP)


def list_of_size(run: Run, size: int) -> None:
    """Pay for a list before it is made."""
    if size > MAX_ITEMS:
        raise Refused(f"it makes a list of more than {MAX_ITEMS:,} items")
    run.budget.spend(1 + size)


def pay_for_reading(run: Run, value: object) -> None:
    """Pay for a look at the whole of a value."""
    if isinstance(value, str):
        run.budget.spend(len(value) // CHARACTERS_COMPARED_PER_STEP)
    elif isinstance(value, Mapping):
        run.budget.spend(len(value))
        for part in value.values():
            pay_for_reading(run, part)
    elif isinstance(value, list | tuple):
        run.budget.spend(len(value))
        for part in value:
            pay_for_reading(run, part)


class _Json:
    """Turns a result into plain JSON and measures it; what is plain already is given back as it is."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.left = self.limit = limit

    def plain(self, value: object) -> JsonValue:
        """Give the value as JSON knows it."""
        found = kind(value)
        if found is Kind.MAPPING:
            return self._mapping(value)  # type: ignore[arg-type]
        if found is Kind.LIST:
            return self._list(value)  # type: ignore[arg-type]
        if found is Kind.TEXT:
            self._count(len(value) + 2)  # type: ignore[arg-type]
            return value if type(value) is str else str(value)
        self._count(8)
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused("the result is not a finite number")
        return value  # type: ignore[return-value]

    def _mapping(self, value: Mapping[object, object]) -> JsonValue:
        self._count(2)
        found: dict[str, JsonValue] = {}
        same = type(value) is dict
        for key, part in value.items():
            if not isinstance(key, str):
                raise Refused(f"a mapping has the key {key!r}, and only text can be a key")
            self._count(len(key) + 4)
            found[key] = self.plain(part)
            same = same and found[key] is part
        return value if same else found  # type: ignore[return-value]

    def _list(self, value: list[object] | tuple[object, ...]) -> JsonValue:
        self._count(2 + len(value))
        found = [self.plain(part) for part in value]
        same = type(value) is list and all(new is old for new, old in zip(found, value, strict=True))
        return value if same else found  # type: ignore[return-value]

    def _count(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise Refused(f"it makes a value of more than {self.limit:,} characters")


def plain(value: object, limit: int = MAX_MADE) -> JsonValue:
    """Give a result as JSON: tuples become lists, mappings dictionaries; anything else is refused."""
    return _Json(limit).plain(value)


def referred(value: object) -> JsonValue:
    """Give a result that was only referred to as JSON: it may have any size, it exists already."""
    return _Json(1 << 62).plain(value)


def to_text(run: Run, value: object) -> str:
    """Write a value as Jinja2 does."""
    if type(value) is str:
        return made_text(run, value)
    found = kind(value)
    if found in {Kind.LIST, Kind.MAPPING}:
        pay_for_reading(run, value)
        value = plain(value, MAX_TEXT)
    return made_text(run, str(value))
