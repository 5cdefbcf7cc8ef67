"""Reads the fields of one mapping of a workflow, noting whatever is wrong with them."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from graticule.dag.compiling.yaml_source import YamlList, YamlMap, YamlValue
from graticule.dag.problems import Problems, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Target:
    """A node that another one names, and where."""

    name: str
    line: int


class Fields:
    """One mapping: each method gives a field that is sound, or its default and a problem."""

    def __init__(self, source: YamlMap, problems: Problems, node: str | None, path: str = "") -> None:
        self.source = source
        self.problems = problems
        self.node = node
        self._path = path

    def line(self, name: str | None = None) -> int:
        """Give the line of a field, or of the mapping."""
        return self.source.lines.get(name, self.source.line) if name else self.source.line

    def error(self, code: str, message: str, name: str | None = None, hint: str | None = None) -> None:
        """Note a problem at a field."""
        self.problems.error(code, message, self.line(name), self.node, hint)

    def only(self, known: Collection[str]) -> None:
        """Refuse fields that nobody knows."""
        for name in self.source:
            if name not in known:
                self.error("unknown_key", f"{self._named(name)} is not known here.", name, did_you_mean(name, known))

    def has(self, name: str) -> bool:
        """Tell whether the field is written and not null."""
        return self.source.get(name) is not None

    def raw(self, name: str) -> YamlValue:
        """Give a field as it is."""
        return self.source.get(name)

    def required(self, name: str) -> bool:
        """Note a field that must be there and is not."""
        if not self.has(name):
            self.error("missing_key", f"{self._named(name)} is missing.")
            return False
        return True

    def text(self, name: str, *, pattern: str | None = None, most: int = 1000, expected: str = "text") -> str | None:
        """Give a text."""
        value = self.source.get(name)
        if value is None:
            return None
        fits = isinstance(value, str) and 0 < len(value) <= most and re.fullmatch(pattern or ".*", value, re.DOTALL)
        if not fits:
            self._wrong(name, f"{expected} (at most {most:,} characters)", value)
            return None
        return str(value)

    def whole(self, name: str, least: int, most: int) -> int | None:
        """Give a whole number within bounds."""
        value = self.source.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._wrong(name, f"a whole number from {least} to {most:,}", value)
            return None
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        """Give a number within bounds."""
        value = self.source.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            self._wrong(name, f"a number from {least:g} to {most:,g}", value)
            return None
        return value

    def flag(self, name: str) -> bool | None:
        """Give a boolean."""
        value = self.source.get(name)
        if value is None or isinstance(value, bool):
            return value
        self._wrong(name, "true or false", value)
        return None

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """Give one of a few words, in capitals or not."""
        value = self.source.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value.lower() in {str(choice) for choice in choices}:
            return choices(value.lower())
        hint = did_you_mean(str(value).lower(), [str(choice) for choice in choices])
        self._wrong(name, f"one of {', '.join(choices)}", value, hint)
        return None

    def mapping(self, name: str) -> "Fields | None":
        """Give the fields of an inner mapping."""
        value = self.source.get(name)
        if value is None:
            return None
        if not isinstance(value, YamlMap):
            self._wrong(name, "a mapping", value)
            return None
        return Fields(value, self.problems, self.node, self._full(name))

    def targets(self, name: str) -> list[Target]:
        """Give the nodes that a field names: one name, or a list of names."""
        value = self.source.get(name)
        if value is None:
            return []
        listed = value if isinstance(value, YamlList) else [value]
        lines = value.lines if isinstance(value, YamlList) else [self.line(name)]
        if not listed or not all(isinstance(part, str) for part in listed):
            self._wrong(name, "the name of a node, or a list of names", value)
            return []
        named = [Target(str(part), line) for part, line in zip(listed, lines, strict=True)]
        return list({target.name: target for target in reversed(named)}.values())[::-1]

    def _wrong(self, name: str, expected: str, value: YamlValue, hint: str | None = None) -> None:
        self.error("wrong_value", f"{self._named(name)} must be {expected}, and is {_shown(value)}.", name, hint)

    def _full(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _named(self, name: str) -> str:
        return f"'{self._full(name)}'"


def _shown(value: YamlValue) -> str:
    if isinstance(value, YamlMap):
        return "a mapping"
    if isinstance(value, YamlList):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
