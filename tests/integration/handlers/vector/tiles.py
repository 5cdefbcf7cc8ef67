"""Reads vector tiles by what their specification says, and with no other program's help."""

import gzip
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmtiles.reader import MmapSource, Reader

POINT, LINE, POLYGON = 1, 2, 3
_VALUES: dict[int, Callable[[Any], Any]] = {
    1: bytes.decode,
    2: lambda raw: struct.unpack("<f", raw)[0],
    3: lambda raw: struct.unpack("<d", raw)[0],
}
_WIDTHS = {1: 8, 5: 4}


@dataclass(frozen=True)
class Feature:
    id: int
    type: int
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Archive:
    header: dict[str, Any]
    metadata: dict[str, Any]
    tiles: dict[tuple[int, int, int], list[Feature]]  # the first of these names is the zoom


def read_archive(file: Path, *wanted: tuple[int, int, int]) -> Archive:
    """Read a PMTiles file, and of its tiles those that are wanted; one that is not there is empty."""
    with file.open("rb") as opened:
        reader: Any = Reader(MmapSource(opened))  # type: ignore[no-untyped-call]
        found = {tile: reader.get(*tile) for tile in wanted}
        return Archive(reader.header(), reader.metadata(), {tile: _features(data) for tile, data in found.items()})


def _features(tile: bytes | None) -> list[Feature]:
    if tile is None:
        return []
    (layer,) = (value for _, value in _fields(gzip.decompress(tile)))
    parts = list(_fields(layer))
    assert [value for key, value in parts if key == 1] == [b"features"]
    keys = [value.decode() for key, value in parts if key == 3]
    values = [_value(value) for key, value in parts if key == 4]
    return [_feature(dict(_fields(value)), keys, values) for key, value in parts if key == 2]


def _feature(fields: dict[int, Any], keys: list[str], values: list[Any]) -> Feature:
    tags = list(_numbers(fields.get(2, b"")))
    named = {keys[key]: values[value] for key, value in zip(tags[::2], tags[1::2], strict=True)}
    return Feature(fields[1], fields[3], named)


def _value(message: bytes) -> Any:
    ((key, raw),) = _fields(message)
    if key == 6:  # a number whose sign is its last bit
        return (raw >> 1) ^ -(raw & 1)
    if key == 4:
        return raw - 2**64 if raw >= 2**63 else raw
    return bool(raw) if key == 7 else _VALUES.get(key, int)(raw)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(message):
        tag, place = _number(message, place)
        if tag & 7 == 0:
            value, place = _number(message, place)
            yield tag >> 3, value
            continue
        length, place = (_WIDTHS[tag & 7], place) if tag & 7 in _WIDTHS else _number(message, place)
        yield tag >> 3, message[place : place + length]
        place += length


def _numbers(packed: bytes) -> Iterator[int]:
    place = 0
    while place < len(packed):
        value, place = _number(packed, place)
        yield value


def _number(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
