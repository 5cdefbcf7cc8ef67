"""How large a TopoJSON file becomes: each arc is stored once, and can be used any number of times."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from graticule.handlers.vector.rejecting import Code, rejected

MAX_POINTS: Final = 10_000_000  # 16 bytes each, and GDAL holds all features


def check_size(pieces: Iterable[bytes]) -> None:
    """Reject a topology whose features together have too many points."""
    try:
        topology = orjson.loads(b"".join(pieces).removeprefix(b"\xef\xbb\xbf"))
        lengths = [len(arc) for arc in topology["arcs"]]
        count = sum(lengths[index if index >= 0 else ~index] for index in _arcs(topology["objects"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise rejected(Code.CORRUPT, "The topology cannot be read.") from error
    if not topology["objects"]:
        raise rejected(Code.NO_LAYER, "The topology has no objects.")
    if count > MAX_POINTS:
        what = f"The features have {count:,} points together, more than {MAX_POINTS:,}."
        raise rejected(Code.DECOMPRESSION_BOMB, what)


def _arcs(objects: dict[str, Any]) -> Iterator[int]:
    """Yield the index of each arc of each geometry; a negative one is the complement of that of a reversed arc."""
    waiting: list[Any] = list(objects.values())
    while waiting:
        each = waiting.pop()
        if isinstance(each, int):
            yield each
        elif isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.append(each.get("arcs", []))
            waiting.append(each.get("geometries", []))
