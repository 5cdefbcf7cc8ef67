"""Workflow files as YAML: plain data with the line of every key and item, and nothing that can harm.

The scalars are those of YAML 1.2: `true`, `false`, `null`, numbers, text (`no` and `12:30` are text).
Anchors, aliases and merge keys work; tags other than the plain ones do not. The size, the depth and
what the aliases amount to are bounded.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from pydantic import JsonValue

MAX_CHARACTERS: Final = 1 << 20
MAX_DEPTH: Final = 40
MAX_VALUES: Final = 200_000  # with what the aliases repeat

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,400}")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]{1,100}")
_OCTAL: Final = re.compile(r"0o[0-7]{1,100}")
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class YamlError(Exception):
    """A file that cannot be read; `line` counts from 1."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class YamlMap(dict[str, "YamlValue"]):
    """A mapping that knows where it stands."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class YamlList(list["YamlValue"]):
    """A list that knows where it stands."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


YamlValue = YamlMap | YamlList | str | int | float | bool | None


def read_yaml(text: str, note: Callable[[str, int], None]) -> YamlValue:
    """Read one document; of what is wrong and can be passed over, the reason and the line are noted."""
    if len(text) > MAX_CHARACTERS:
        raise YamlError(f"The file has more than {MAX_CHARACTERS:,} characters.", None)
    try:
        return _Reader(text, note).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.problem, error.context) if part)
        line = min(mark.line, text.count("\n")) + 1 if mark else None  # the end may be told as a line more
        raise YamlError(f"It is not YAML: {reason}.", line) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"It is not YAML: {' '.join(str(error).split())}.", None) from None


def plain_value(value: YamlValue) -> JsonValue:
    """Give the data without the lines."""
    if isinstance(value, YamlMap):
        return {key: plain_value(part) for key, part in value.items()}
    if isinstance(value, YamlList):
        return [plain_value(part) for part in value]
    return value


def texts(value: YamlValue, where: str, line: int) -> Iterator[tuple[str, str, int]]:
    """Give every text inside a value, with its path and line."""
    if isinstance(value, str):
        yield value, where, line
    elif isinstance(value, YamlMap):
        for key, part in value.items():
            yield from texts(part, f"{where}.{key}", value.lines[key])
    elif isinstance(value, YamlList):
        for place, part in enumerate(value):
            yield from texts(part, f"{where}[{place}]", value.lines[place])


class _Reader:
    """Builds the data from the parser's events, so that depth and repetition are bounded while it is read."""

    def __init__(self, text: str, note: Callable[[str, int], None]) -> None:
        self._note = note
        self._events = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, tuple[YamlValue, int]] = {}
        self._values = 0

    def document(self) -> YamlValue:
        """Read the whole stream."""
        value: YamlValue = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError("A file holds one workflow, and this one has a second document.", _line(event))
                value = self._value(next(self._events), 0)
        return value

    def _value(self, event: Any, depth: int) -> YamlValue:
        if depth > MAX_DEPTH:
            raise YamlError(f"It is nested more than {MAX_DEPTH} levels deep.", _line(event))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._values
        self._count(1, event)
        value = self._read(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _read(self, event: Any, depth: int) -> YamlValue:
        if isinstance(event, yaml.MappingStartEvent):
            _check_tag(event, "map")
            return self._mapping(event, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            _check_tag(event, "seq")
            return self._list(event, depth)
        return _scalar(event)

    def _alias(self, event: yaml.AliasEvent) -> YamlValue:
        if event.anchor not in self._anchors:
            raise YamlError(f"The alias *{event.anchor} names no anchor before it.", _line(event))
        value, size = self._anchors[event.anchor]
        self._count(size, event)
        return value

    def _count(self, values: int, event: yaml.Event) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise YamlError(f"It has more than {MAX_VALUES:,} values, with those that aliases repeat.", _line(event))

    def _list(self, start: yaml.Event, depth: int) -> YamlList:
        found = YamlList(_line(start))
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.lines.append(_line(event))
            found.append(self._value(event, depth + 1))
        return found

    def _mapping(self, start: yaml.Event, depth: int) -> YamlMap:
        found = YamlMap(_line(start))
        merged: list[YamlMap] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, line = _key(event), _line(event)
            value = self._value(next(self._events), depth + 1)
            if key == "<<" and event.implicit[0]:  # and not between quotes
                merged += _merged(value, line)
                continue
            if key in found:
                self._note(f"The key {key!r} stands here twice; it was in line {found.lines[key]} before.", line)
            found[key], found.lines[key] = value, line
        for other in merged:
            for key in other:
                if key not in found:
                    found[key], found.lines[key] = other[key], other.lines[key]
        return found


def _merged(value: YamlValue, line: int) -> list[YamlMap]:
    """Give the mappings that `<<` names; of two the first wins."""
    listed = value if isinstance(value, YamlList) else [value]
    if not all(isinstance(part, YamlMap) for part in listed):
        raise YamlError("'<<' merges mappings only.", line)
    return [part for part in listed if isinstance(part, YamlMap)]


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise YamlError("A key must be text.", _line(event))
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> YamlValue:
    text = str(event.value)
    if event.tag is not None and event.tag != "!":
        _check_tag(event, "str")
        return text
    return _plain(text, event) if event.implicit[0] else text


def _plain(text: str, event: yaml.Event) -> YamlValue:
    """Give the value of a scalar that was written without quotes."""
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    for pattern, base in ((_WHOLE, 10), (_HEXADECIMAL, 16), (_OCTAL, 8)):
        if pattern.fullmatch(text):
            return int(text, base)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number in {float("inf"), float("-inf")}:
            raise YamlError(f"The number {text} is too large.", _line(event))
        return number
    return text


def _check_tag(event: Any, plain: str) -> None:
    if event.tag not in {None, "!", _TAG + plain}:
        shown = event.tag.replace(_TAG, "!!")
        raise YamlError(f"The tag {shown} is not allowed in a workflow.", _line(event))


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
