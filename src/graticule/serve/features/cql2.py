"""CQL2 filters: read, checked against a list of what is allowed, and written as a condition with numbered parameters.

The condition has nothing of the caller's text in it: names are those of the table's columns, operators are taken from
the tables below, and all values go to the database apart from the SQL. There are no functions but the standard's.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NoReturn

from graticule.repositories.served_tables import ServedColumn
from graticule.serve.cql2_text import Node, UnreadableFilter, parse
from graticule.serve.features.geometries import DEFAULT_CRS, FeatureCrs, box_as_geometry, checked_box, checked_geometry
from graticule.serve.features.instants import read_date, read_either, read_timestamp
from graticule.serve.features.limits import MOST_DEPTH, MOST_NODES, MOST_TEXT, MOST_VERTICES, FilterError

Language = Literal["cql2-text", "cql2-json"]


class Kind(StrEnum):
    """What can be compared with what."""

    NUMBER = "a number"
    TEXT = "a text"
    BOOLEAN = "true or false"
    INSTANT = "a date or time"
    GEOMETRY = "a geometry"
    OTHER = "neither number, text, date nor geometry"


_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "real", "double precision"), Kind.NUMBER),
    **dict.fromkeys(("text", "character varying", "character"), Kind.TEXT),
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), Kind.INSTANT),
    "boolean": Kind.BOOLEAN,
    "geometry": Kind.GEOMETRY,
}
_ORDERED: Final = (Kind.NUMBER, Kind.TEXT, Kind.INSTANT)
_COMPARISONS: Final = frozenset({"=", "<>", "<", ">", "<=", ">="})
_SPATIAL: Final = {
    "s_contains": "ST_Contains",
    "s_crosses": "ST_Crosses",
    "s_disjoint": "ST_Disjoint",
    "s_equals": "ST_Equals",
    "s_intersects": "ST_Intersects",
    "s_overlaps": "ST_Overlaps",
    "s_touches": "ST_Touches",
    "s_within": "ST_Within",
}
# Of two periods, each from its first moment to its last.
_TEMPORAL: Final = {
    "t_after": "{a} > {z2}",
    "t_before": "{z} < {a2}",
    "t_contains": "{a} < {a2} AND {z} > {z2}",
    "t_disjoint": "({a} > {z2} OR {z} < {a2})",
    "t_during": "{a} > {a2} AND {z} < {z2}",
    "t_equals": "{a} = {a2} AND {z} = {z2}",
    "t_finishedby": "{a} < {a2} AND {z} = {z2}",
    "t_finishes": "{a} > {a2} AND {z} = {z2}",
    "t_intersects": "{a} <= {z2} AND {z} >= {a2}",
    "t_meets": "{z} = {a2}",
    "t_metby": "{a} = {z2}",
    "t_overlappedby": "{a} > {a2} AND {a} < {z2} AND {z} > {z2}",
    "t_overlaps": "{a} < {a2} AND {z} > {a2} AND {z} < {z2}",
    "t_startedby": "{a} = {a2} AND {z} > {z2}",
    "t_starts": "{a} = {a2} AND {z} < {z2}",
}
_ARITHMETIC: Final = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "/": "(CAST({} AS double precision) / {})",
    "%": "(CAST({} AS numeric) % CAST({} AS numeric))",
    "div": "div(CAST({} AS numeric), CAST({} AS numeric))",
    "^": "power(CAST({} AS double precision), {})",
}
_LARGEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a condition; a date also has the last moment of its day."""

    sql: str
    kind: Kind
    until: str | None = None


class Parameters:
    """The values of a condition, which stand in its SQL as numbers only."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def add(self, value: object, kind: str) -> str:
        """Take a value, and give what stands for it."""
        self.values.append(value)
        return f"CAST(${len(self.values)} AS {kind})"


def read_filter(text: str, language: Language) -> Node:
    """Read a filter in one of the two forms of CQL2."""
    if len(text) > MOST_TEXT:
        raise FilterError(f"A filter has at most {MOST_TEXT} characters.")
    return _read_text(text) if language == "cql2-text" else _read_json(text)


def _read_text(text: str) -> Node:
    try:
        return parse(text, most_depth=MOST_DEPTH)
    except UnreadableFilter as error:
        raise FilterError(str(error)) from None


def _read_json(text: str) -> Node:
    def refuse(constant: str) -> NoReturn:
        raise FilterError(f"{constant} is no number of JSON.")

    try:
        return json.loads(text, parse_constant=refuse)
    except FilterError:
        raise
    except (ValueError, RecursionError):
        raise FilterError("The filter is not valid JSON. For CQL2 as text, say filter-lang=cql2-text.") from None


def kind_of(column: ServedColumn) -> Kind:
    """Tell what a column can be compared with."""
    return _KINDS.get(column.type, Kind.OTHER)


def column_term(column: ServedColumn) -> Term:
    """Give a column as it is compared. All times are without zone, in UTC, whatever zone a session has."""
    match column.type:
        case "timestamp with time zone":
            return Term(f"({column.quoted} AT TIME ZONE 'UTC')", Kind.INSTANT)
        case "date":
            return _day(f"CAST({column.quoted} AS timestamp)")
    return Term(column.quoted, kind_of(column))


class Compiler:
    """Writes filters on one table's columns; what it has counted holds for one request."""

    def __init__(
        self,
        columns: Mapping[str, ServedColumn],
        parameters: Parameters,
        srid: int,
        shapes_crs: FeatureCrs = DEFAULT_CRS,
    ) -> None:
        self._columns = columns
        self._parameters = parameters
        self._srid = srid
        self._shapes_crs = shapes_crs
        self._nodes = 0
        self._vertices = 0
        self._operators = self._all_operators()

    def condition(self, node: Node) -> str:
        """Write a filter as a condition."""
        return self._of_kind(node, 0, Kind.BOOLEAN).sql

    def _all_operators(self) -> dict[str, Callable[[str, list[Node], int], Term]]:
        return {
            **dict.fromkeys(("and", "or"), self._joined),
            **dict.fromkeys(_COMPARISONS, self._compared),
            **dict.fromkeys(_ARITHMETIC, self._calculated),
            **dict.fromkeys(_SPATIAL, self._spatial),
            **dict.fromkeys(_TEMPORAL, self._temporal),
            "not": self._negated,
            "between": self._between,
            "in": self._among,
            "like": self._like,
            "isnull": self._is_null,
            "casei": self._folded,
        }

    def _term(self, node: Node, depth: int) -> Term:
        self._count(depth)
        match node:
            case {"op": str(name), "args": list(arguments)}:
                return self._applied(name, arguments, depth)
            case {"property": str(name)}:
                return column_term(self._column(name))
            case {"bbox": box}:
                return self._placed(box_as_geometry(checked_box(box, self._shapes_crs)))
            case {"type": str()}:
                return self._shape(node)
        return self._literal(node)

    def _literal(self, node: Node) -> Term:
        match node:
            case bool():
                return Term("true" if node else "false", Kind.BOOLEAN)
            case int() | float():
                return Term(self._number(node), Kind.NUMBER)
            case str():
                return Term(self._parameters.add(_storable(node), "text"), Kind.TEXT)
            case {"date": str(text)}:
                return _day(self._moment(read_date(text)[0]))
            case {"timestamp": str(text)}:
                return Term(self._moment(read_timestamp(text)), Kind.INSTANT)
        raise FilterError("The filter has a part that CQL2 does not know, or does not know at that place.")

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise FilterError(f"A filter has at most {MOST_NODES} parts.")
        if depth > MOST_DEPTH:
            raise FilterError(f"The filter is nested more than {MOST_DEPTH} times.")

    def _applied(self, name: str, arguments: list[Node], depth: int) -> Term:
        known = name.lower()
        if known not in self._operators:
            there_are = ", ".join(sorted(self._operators))
            raise FilterError(f"There is no operator or function {name[:40]!r} here. There are: {there_are}.")
        return self._operators[known](known, arguments, depth + 1)

    def _of_kind(self, node: Node, depth: int, *kinds: Kind) -> Term:
        term = self._term(node, depth)
        if term.kind not in kinds:
            raise FilterError(f"The filter has {term.kind} where {' or '.join(kinds)} is expected.")
        return term

    # Conditions

    def _joined(self, name: str, arguments: list[Node], depth: int) -> Term:
        if len(arguments) < 2:
            raise FilterError(f"{name!r} joins two conditions or more.")
        parts = [self._of_kind(each, depth, Kind.BOOLEAN).sql for each in arguments]
        return _condition(f" {name.upper()} ".join(parts))

    def _negated(self, name: str, arguments: list[Node], depth: int) -> Term:
        (part,) = _exactly(1, name, arguments)
        return _condition(f"NOT {self._of_kind(part, depth, Kind.BOOLEAN).sql}")

    def _compared(self, name: str, arguments: list[Node], depth: int) -> Term:
        left, right = self._alike(_exactly(2, name, arguments), depth, *_ORDERED, Kind.BOOLEAN)
        return _condition(f"{left.sql} {name} {right.sql}")

    def _between(self, name: str, arguments: list[Node], depth: int) -> Term:
        value, low, high = self._alike(_exactly(3, name, arguments), depth, *_ORDERED)
        return _condition(f"{value.sql} BETWEEN {low.sql} AND {high.sql}")

    def _among(self, name: str, arguments: list[Node], depth: int) -> Term:
        value, listed = _exactly(2, name, arguments)
        if not isinstance(listed, list) or not listed:
            raise FilterError("'in' takes a list of values.")
        first, *others = self._alike([value, *listed], depth, *_ORDERED, Kind.BOOLEAN)
        return _condition(f"{first.sql} IN ({', '.join(each.sql for each in others)})")

    def _like(self, name: str, arguments: list[Node], depth: int) -> Term:
        value, pattern = (self._of_kind(each, depth, Kind.TEXT) for each in _exactly(2, name, arguments))
        written = arguments[1]
        if isinstance(written, str) and (len(written) - len(written.rstrip("\\"))) % 2:
            raise FilterError("A pattern must not end with a single backslash.")
        return _condition(f"{value.sql} LIKE {pattern.sql}")

    def _is_null(self, name: str, arguments: list[Node], depth: int) -> Term:
        (part,) = _exactly(1, name, arguments)
        return _condition(f"{self._term(part, depth).sql} IS NULL")

    def _folded(self, name: str, arguments: list[Node], depth: int) -> Term:
        (part,) = _exactly(1, name, arguments)
        return Term(f"lower({self._of_kind(part, depth, Kind.TEXT).sql})", Kind.TEXT)

    def _alike(self, arguments: Sequence[Node], depth: int, *kinds: Kind) -> list[Term]:
        """Give terms that are all of one kind."""
        first = self._of_kind(arguments[0], depth, *kinds)
        return [first, *(self._of_kind(each, depth, first.kind) for each in arguments[1:])]

    def _calculated(self, name: str, arguments: list[Node], depth: int) -> Term:
        terms = [self._of_kind(each, depth, Kind.NUMBER).sql for each in _exactly(2, name, arguments)]
        return Term(_ARITHMETIC[name].format(*terms), Kind.NUMBER)

    # Places

    def _spatial(self, name: str, arguments: list[Node], depth: int) -> Term:
        left, right = self._alike(_exactly(2, name, arguments), depth, Kind.GEOMETRY)
        return _condition(f"{_SPATIAL[name]}({left.sql}, {right.sql})")

    def _shape(self, geometry: dict[str, Any]) -> Term:
        """Take a geometry to the CRS of the table."""
        checked, vertices = checked_geometry(geometry, self._shapes_crs)
        self._vertices += vertices
        if self._vertices > MOST_VERTICES:
            raise FilterError(f"The geometries of a filter have at most {MOST_VERTICES} vertices.")
        return self._placed(checked, is_north_first=self._shapes_crs.is_north_first)

    def _placed(self, geometry: dict[str, Any], *, is_north_first: bool = False) -> Term:
        srid = self._shapes_crs.srid
        shape = f"ST_SetSRID(ST_GeomFromGeoJSON({self._parameters.add(json.dumps(geometry), 'text')}), {srid:d})"
        if is_north_first:
            shape = f"ST_FlipCoordinates({shape})"
        return Term(shape if self._srid == srid else f"ST_Transform({shape}, {self._srid:d})", Kind.GEOMETRY)

    # Times

    def _temporal(self, name: str, arguments: list[Node], depth: int) -> Term:
        (a, z), (a2, z2) = (self._period(each, depth) for each in _exactly(2, name, arguments))
        return _condition(_TEMPORAL[name].format(a=a, z=z, a2=a2, z2=z2))

    def _period(self, node: Node, depth: int) -> tuple[str, str]:
        """Give the first and the last moment of an instant or an interval."""
        match node:
            case {"interval": [first, last]}:
                self._count(depth)
                return self._end(first, depth + 1, is_last=False), self._end(last, depth + 1, is_last=True)
        term = self._of_kind(node, depth, Kind.INSTANT)
        return term.sql, term.until or term.sql

    def _end(self, node: Node, depth: int, *, is_last: bool) -> str:
        if node == "..":
            return f"CAST('{'' if is_last else '-'}infinity' AS timestamp)"
        if isinstance(node, str):
            return self._moment(read_either(node)[is_last])
        term = self._of_kind(node, depth, Kind.INSTANT)
        return term.until or term.sql if is_last else term.sql

    def _moment(self, moment: datetime) -> str:
        return self._parameters.add(moment, "timestamp")

    # Values

    def _column(self, name: str) -> ServedColumn:
        if name not in self._columns:
            raise FilterError(f"There is no property {name[:80]!r}. There are: {', '.join(self._columns)}.")
        return self._columns[name]

    def _number(self, value: float) -> str:
        if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
            return self._parameters.add(value, "bigint")
        if abs(value) > 1e308 or not math.isfinite(value):
            raise FilterError("The filter has a number that is too large.")
        return self._parameters.add(float(value), "double precision")


def _storable(text: str) -> str:
    """Refuse what no text of the database can hold."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise FilterError("The filter has a text with a character that no text can have.")
    return text


def _exactly(count: int, name: str, arguments: list[Node]) -> list[Node]:
    if len(arguments) != count:
        raise FilterError(f"{name!r} takes {count} values, not {len(arguments)}.")
    return arguments


def _condition(sql: str) -> Term:
    return Term(f"({sql})", Kind.BOOLEAN)


def _day(start: str) -> Term:
    return Term(start, Kind.INSTANT, f"({start} + interval '1 day' - interval '1 microsecond')")
