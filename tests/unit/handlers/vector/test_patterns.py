"""Regular expressions that see the bytes of partners: none takes long, whatever it is given."""

import contextlib
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from re import _constants as ops
from re import _parser
from types import ModuleType
from typing import Any

import pytest

from graticule import handlers
from graticule.handlers import vector
from graticule.handlers.findings import Rejected
from graticule.handlers.vector.sources import filegdb, json_crs, mapinfo
from graticule.handlers.vector.sources.source import HEAD_BYTES, kind_of

SECONDS = 1.0
JSON_BYTES = 1024**2 + json_crs.MAX_CRS_BYTES  # a piece of a file, and what waits for it
BOUNDS = {  # of what a pattern is used on, where that is not the head of a file
    "mapinfo._INTERCHANGE": mapinfo.INTERCHANGE_BYTES,
    "crs_texts._LEADS_ELSEWHERE": filegdb.MAX_HEADER_BYTES,
    "filegdb._WKT": filegdb.PIECE_BYTES,
    "json_crs._GEOJSON.value": JSON_BYTES,
    "json_crs._GEOJSON.begun": JSON_BYTES,
    "json_crs._JSON_FG.value": JSON_BYTES,
    "json_crs._JSON_FG.begun": JSON_BYTES,
    "json_escapes._MISREAD": JSON_BYTES,
    "attributes._NUL_ESCAPE": 1024**2,
    "attributes._HUGE_EXPONENT": 1024**2,
}
ONLY_AT_THE_BEGINNING = {"source._ROOT", "source._BEGUN_LINE", "mapinfo._INTERCHANGE", "wkt._TOKEN"}


def modules() -> Iterator[ModuleType]:
    yield from (importlib.import_module(f"{handlers.__name__}.{each.name}") for each in plain(handlers))
    for each in pkgutil.walk_packages(vector.__path__, f"{vector.__name__}."):
        yield importlib.import_module(each.name)


def plain(package: ModuleType) -> list[pkgutil.ModuleInfo]:
    return [each for each in pkgutil.iter_modules(package.__path__) if not each.ispkg]


def patterns() -> dict[str, re.Pattern[Any]]:
    found: dict[str, re.Pattern[Any]] = {}
    for module in modules():
        short = module.__name__.rpartition(".")[2]
        for name, value in vars(module).items():
            members = {f".{each}": getattr(value, each) for each in getattr(type(value), "__slots__", ())}
            for suffix, pattern in {"": value, **members}.items():
                if isinstance(pattern, re.Pattern):
                    found.setdefault(f"{short}.{name}{suffix}", pattern)
    return found


def sample(items: Any) -> str:
    """Return a text that some parts of a pattern match, or nearly so."""
    return "".join(map(_sample, items))


def _sample(item: tuple[Any, Any]) -> str:
    kind, value = item
    if kind is ops.LITERAL:
        return chr(value)
    if kind is ops.IN:
        return _one_of(value)
    if kind in {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}:
        return sample(value[2]) * max(1, min(int(value[0]), 300))
    if kind is ops.SUBPATTERN:
        return sample(value[-1])
    if kind is ops.BRANCH:
        return sample(value[1][0])
    return "" if kind in {ops.AT, ops.ASSERT, ops.ASSERT_NOT} else "x"


def _one_of(choices: Any) -> str:
    classes = {ops.CATEGORY_SPACE: "\n", ops.CATEGORY_DIGIT: "1", ops.CATEGORY_WORD: "a"}
    kind, value = choices[0]
    if kind is ops.NEGATE:
        return "a"
    if kind is ops.CATEGORY:
        return classes.get(value, "-")
    return chr(value if kind is ops.LITERAL else value[0])


def branches(items: Any) -> Iterator[Any]:
    """Return each of the alternatives that a pattern has at its top."""
    kind, value = items[0]
    yield from (branch for branch in value[1]) if kind is ops.BRANCH else [items]


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Return how texts begin that are like what is looked for, and which part of it they repeat for ever."""
    for items in branches(_parser.parse(pattern.pattern, pattern.flags)):
        yield "", sample(items)
        for place, (kind, _) in enumerate(items):
            if kind is not ops.LITERAL:
                begin, part = sample(items[:place]), sample(items[place : place + 1])
                yield from [(begin, part), ("", begin + part)]


@pytest.mark.parametrize("name", patterns())
def test_patterns_take_no_longer_than_a_second(name: str) -> None:
    pattern = patterns()[name]
    find = pattern.match if name in ONLY_AT_THE_BEGINNING else pattern.search
    size = BOUNDS.get(name, HEAD_BYTES)
    for begin, part in {*attacks(pattern)} - {("", "")}:
        text = (begin + part * (size // max(1, len(part))))[: size - 1] + "!"
        started = time.process_time()
        find(text.encode() if isinstance(pattern.pattern, bytes) else text)
        assert time.process_time() - started < SECONDS, (begin, part[:100])


@pytest.mark.parametrize(
    "head",
    [
        b"version 1" + b"\n" * HEAD_BYTES,
        b"!table" + b"\n" * HEAD_BYTES,
        b"<?a?>" * (HEAD_BYTES // 5),
        b"<!---->" * (HEAD_BYTES // 7),
        b'{"a":1,' + b'"conformsTo":[' * (2 * 1024**2 // 14),
    ],
    ids=["mif", "tab", "xml", "comments", "json-fg"],
)
def test_a_format_is_recognized_within_a_second(head: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(Rejected):
        kind_of(head, "a.bin")
    assert time.process_time() - started < SECONDS
