"""CQL2 filters: what of the language is understood here, and how much of it at once.

pgstac writes SQL from a filter. It quotes what it is given; here it is given only what is known to it.
"""

import re
from typing import Any, Final

from graticule.serve.cql2_text import parse
from graticule.serve.stac.shapes import MOST_VERTICES, checked_vertices, is_number

MOST_CHARACTERS: Final = 4096
MOST_LEVELS: Final = 20
MOST_NODES: Final = 1000
LONGEST_NAME: Final = 200
LONGEST_TEXT: Final = 1000
CRS84: Final = frozenset({"http://www.opengis.net/def/crs/OGC/1.3/CRS84", "CRS84", "OGC:CRS84"})

_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]+")
_LOGICAL: Final = {"and": None, "or": None, "not": 1}
_COMPARING: Final = {"=": 2, "<>": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "like": 2, "between": 3, "in": 2, "isnull": 1}
_CHANGING: Final = {"casei": 1, "accenti": 1}
_SPATIAL: Final = frozenset(
    {"s_intersects", "s_equals", "s_disjoint", "s_touches", "s_within", "s_overlaps", "s_crosses", "s_contains"}
)
_TEMPORAL: Final = frozenset(
    {"t_after", "t_before", "t_contains", "t_disjoint", "t_during", "t_equals", "t_finishedby", "t_finishes"}
    | {"t_intersects", "t_meets", "t_metby", "t_overlappedby", "t_overlaps", "t_startedby", "t_starts"}
)
_ARRAYS: Final = {"a_equals": "a_equals", "a_contains": "a_contains", "a_overlaps": "a_overlaps"} | dict.fromkeys(
    ("a_containedby", "a_contained_by"), "a_contained_by"
)
_ARITY: Final[dict[str, int | None]] = {**_LOGICAL, **_COMPARING, **_CHANGING}


class UnknownFilter(ValueError):
    """A filter that is not understood here, or that is too large."""


def parsed_filter(text: str) -> dict[str, Any]:
    """Read a filter in the text form of CQL2."""
    if len(text) > MOST_CHARACTERS:
        raise UnknownFilter(f"A filter has at most {MOST_CHARACTERS} characters.")
    return checked_filter(parse(text, most_depth=MOST_LEVELS))


def checked_filter(given: Any) -> dict[str, Any]:
    """Give a filter in the JSON form of CQL2 as pgstac understands it."""
    if not isinstance(given, dict) or "op" not in given:
        raise UnknownFilter("A filter is an object with 'op' and 'args'.")
    return _Checker().operation(given, 1)


def checked_name(name: Any) -> str:
    """Give the name of a property, if it can be one."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise UnknownFilter(f"The name of a property is a text of up to {LONGEST_NAME} characters.")
    if not name.removeprefix("properties.").strip() or name.strip() == "properties":
        raise UnknownFilter("The name of a property is missing.")
    return name


class _Checker:
    """Walks through one filter, and counts."""

    def __init__(self) -> None:
        self._nodes = 0
        self._vertices = 0

    def operation(self, node: dict[str, Any], level: int) -> dict[str, Any]:
        name = str(node["op"]).lower()
        arguments = node.get("args")
        self._count(level)
        if set(node) != {"op", "args"} or not isinstance(arguments, list) or not arguments:
            raise UnknownFilter("An operation has 'op', and in 'args' a list of what it applies to.")
        if name in _SPATIAL:
            return {"op": name, "args": self._spatial(arguments)}
        if name in _TEMPORAL:
            self._need(name, arguments, 2)
            return {"op": name, "args": [self._moment(each, level) for each in arguments]}
        if name in _ARRAYS:
            self._need(name, arguments, 2)
            return {"op": _ARRAYS[name], "args": [self._array(each, level) for each in arguments]}
        if name not in _ARITY:
            raise UnknownFilter(f"There is no operation {name[:40]!r} here.")
        if name == "between" and len(arguments) == 2 and isinstance(arguments[1], list):
            arguments = [arguments[0], *arguments[1]]  # so it was in drafts of CQL2, and clients remember
        self._need(name, arguments, _ARITY[name])
        if name in _LOGICAL:
            return {"op": name, "args": [self._logical(each, level) for each in arguments]}
        if name == "in":
            return {"op": name, "args": [self._value(arguments[0], level), self._list(arguments[1], level)]}
        return {"op": name, "args": [self._value(each, level) for each in arguments]}

    def _count(self, level: int) -> None:
        self._nodes += 1
        if level > MOST_LEVELS or self._nodes > MOST_NODES:
            raise UnknownFilter(f"A filter has at most {MOST_LEVELS} levels and {MOST_NODES} parts.")

    @staticmethod
    def _need(name: str, arguments: list[Any], count: int | None) -> None:
        if count is not None and len(arguments) != count:
            raise UnknownFilter(f"The operation {name!r} applies to {count}, and is given {len(arguments)}.")

    def _logical(self, node: Any, level: int) -> dict[str, Any]:
        if not isinstance(node, dict) or "op" not in node:
            raise UnknownFilter("'and', 'or' and 'not' apply to operations.")
        return self.operation(node, level + 1)

    def _value(self, node: Any, level: int) -> Any:
        self._count(level)
        if not isinstance(node, dict):
            return self._scalar(node)
        if "op" in node:
            if str(node["op"]).lower() not in _CHANGING:
                raise UnknownFilter("A comparison applies to properties, values, 'casei' and 'accenti'.")
            return self.operation(node, level + 1)
        match node:
            case {"property": name, **others} if not others:
                return {"property": checked_name(name)}
            case {"timestamp": str() as moment, **others} if not others:
                return {"timestamp": self._scalar(moment)}
            case {"date": str() as day, **others} if not others:
                return self._scalar(day)  # pgstac knows it as text
        raise UnknownFilter("A value is a property, a number, a text, a moment, or true or false.")

    @staticmethod
    def _scalar(value: Any) -> Any:
        if isinstance(value, str) and len(value) <= LONGEST_TEXT and "\x00" not in value:
            return value
        if isinstance(value, bool) or is_number(value):
            return value
        raise UnknownFilter(f"A value is a number, true, false, or a text of up to {LONGEST_TEXT} characters.")

    def _list(self, node: Any, level: int) -> list[Any]:
        if not isinstance(node, list) or not node:
            raise UnknownFilter("'in' applies to a property and a list of values.")
        return [self._value(each, level) for each in node]

    def _array(self, node: Any, level: int) -> Any:
        if isinstance(node, list):
            return [self._plain(each, level) for each in node]
        return self._property(node)

    def _plain(self, node: Any, level: int) -> Any:
        self._count(level)
        return self._scalar(node)

    @staticmethod
    def _property(node: Any) -> dict[str, str]:
        if not isinstance(node, dict) or set(node) != {"property"}:
            raise UnknownFilter("A property or a list of values is needed there.")
        return {"property": checked_name(node["property"])}

    def _moment(self, node: Any, level: int) -> Any:
        self._count(level)
        if isinstance(node, dict) and set(node) == {"interval"} and isinstance(node["interval"], list):
            self._need("interval", node["interval"], 2)
            return {"interval": [self._moment(each, level + 1) for each in node["interval"]]}
        if isinstance(node, dict) and set(node) <= {"timestamp", "date"} and len(node) == 1:
            return {name: self._text(moment) for name, moment in node.items()}
        return self._text(node) if isinstance(node, str) else self._property(node)

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UnknownFilter("A moment is a text.")
        return str(self._scalar(value))

    def _spatial(self, arguments: list[Any]) -> list[Any]:
        """pgstac compares the items' own geometry with the second argument, whatever the first one is."""
        self._need("spatial", arguments, 2)
        where, shape = arguments
        if where not in ({"property": "geometry"}, {"property": "properties.geometry"}):
            raise UnknownFilter("A spatial operation applies to the property 'geometry' and a shape.")
        if isinstance(shape, dict) and set(shape) == {"bbox"}:
            shape = shape["bbox"]
        is_box = isinstance(shape, list) and len(shape) in {4, 6} and all(map(is_number, shape))
        if not is_box:
            self._check_shape(shape)
        return [{"property": "geometry"}, shape]

    def _check_shape(self, shape: Any) -> None:
        if not isinstance(shape, dict) or "type" not in shape or "coordinates" not in shape:
            raise UnknownFilter("A shape is a GeoJSON geometry with coordinates, or a box.")
        self._vertices += checked_vertices(shape)
        if self._vertices > MOST_VERTICES:
            raise UnknownFilter(f"The shapes of a filter have at most {MOST_VERTICES} vertices.")
