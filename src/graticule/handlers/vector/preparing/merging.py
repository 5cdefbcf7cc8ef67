"""Layers that become one table: the union of their columns, and one that names the layer of each row."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Final

import pyarrow as pa

from graticule.handlers.vector.described import Column, ColumnType
from graticule.handlers.vector.preparing.attributes import ARROW_TYPES, as_text, column_type, converted
from graticule.handlers.vector.preparing.columns import column_names
from graticule.handlers.vector.rejecting import Code, rejected

LAYER_FIELD: Final = "layer"
_INTEGERS: Final[list[ColumnType]] = ["smallint", "integer", "bigint"]
_EXACT_IN_DOUBLE: Final[set[ColumnType]] = {"smallint", "integer", "real", "double precision"}
_Key = tuple[str, int]  # a name in lower case, and how many fields of the layer have it before this one


def merged_columns(layers: Sequence[pa.Schema]) -> list[Column]:
    """Return the columns of all layers, in the order in which they come first, and that of the layers' names."""
    found = _types_of(layers)
    fields = [*(name for name, _ in found), LAYER_FIELD]
    kinds: list[ColumnType] = [*(reduce(common_type, types) for _, types in found), "text"]
    return [
        Column(field=field, name=name, type=kind)
        for field, name, kind in zip(fields, column_names(fields), kinds, strict=True)
    ]


def mixed_fields(layers: Sequence[pa.Schema]) -> list[str]:
    """Return the fields that become text because layers have them in types that no other type holds."""
    return [
        name for name, types in _types_of(layers) if reduce(common_type, types) == "text" and set(types) != {"text"}
    ]


def _types_of(layers: Sequence[pa.Schema]) -> list[tuple[str, list[ColumnType]]]:
    """Return the name of each column, and the types that it has in the layers."""
    found: dict[_Key, tuple[str, list[ColumnType]]] = {}
    for fields in layers:
        for key, field in zip(_keys(fields.names), fields, strict=True):
            found.setdefault(key, (field.name, []))[1].append(column_type(field))
    return list(found.values())


def common_type(first: ColumnType, second: ColumnType) -> ColumnType:
    """Return the type that holds the values of two without a loss; text, if there is no other."""
    if first == second:
        return first
    if first in _INTEGERS and second in _INTEGERS:
        return max(first, second, key=_INTEGERS.index)
    return "double precision" if {first, second} <= _EXACT_IN_DOUBLE else "text"


def merged_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the columns as Arrow has their values."""
    return pa.schema([pa.field(column.field, ARROW_TYPES[column.type]) for column in columns])


class LayerColumns:
    """Puts the attributes of one layer into the columns of the table."""

    def __init__(self, columns: Sequence[Column], fields: pa.Schema, layer: str) -> None:
        self._columns = columns
        self._layer = layer
        self._types = [column_type(field) for field in fields]
        places = {key: place for place, key in enumerate(_keys(fields.names))}
        self._places = [places.pop(key, None) for key in _keys([column.field for column in columns[:-1]])]
        if places:
            raise rejected(Code.SOURCE_CHANGED, "The layer has other fields than it had.", f"layer {layer}")

    def arrays(self, attributes: pa.RecordBatch) -> list[pa.Array]:
        """Return the values of each column of the table."""
        count = attributes.num_rows
        own = [
            pa.nulls(count, ARROW_TYPES[column.type]) if place is None else self._values(attributes, place, column)
            for place, column in zip(self._places, self._columns, strict=False)
        ]
        return [*own, pa.array([self._layer] * count, pa.string())]

    def _values(self, attributes: pa.RecordBatch, place: int, column: Column) -> pa.Array:
        where, kind = f"layer {self._layer}, column {column.field}", self._types[place]
        values = converted(attributes.column(place), kind, where)
        if kind == column.type:
            return values
        return as_text(values) if column.type == "text" else values.cast(ARROW_TYPES[column.type])


def _keys(names: Iterable[str]) -> list[_Key]:
    """Tell fields of one name apart; those of several layers that differ only by case are one column."""
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        folded = name.casefold()
        keys.append((folded, seen[folded]))
        seen[folded] += 1
    return keys


def merged_bbox(boxes: Sequence[Sequence[float]]) -> list[float]:
    """Return the box around boxes in degrees; one across the antimeridian (west > east) makes the whole one so."""
    south, north = min(box[1] for box in boxes), max(box[3] for box in boxes)
    if all(box[0] <= box[2] for box in boxes):
        return [min(box[0] for box in boxes), south, max(box[2] for box in boxes), north]
    spans = sorted((west, east if west <= east else east + 360) for west, _, east, _ in boxes)
    around = max(east for _, east in spans) - 360  # how far the last reach into the next turn
    reached = list(accumulate((max(east, around) for _, east in spans), max))
    wests = [*(west for west, _ in spans), spans[0][0] + 360]
    gaps = [following - east for east, following in zip(reached, wests[1:], strict=True)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    if gaps[widest] <= 0:
        return [-180.0, south, 180.0, north]
    west, east = wests[widest + 1], reached[widest]
    return [_wrapped(west), south, _wrapped(east), north]


def _wrapped(longitude: float) -> float:
    return longitude - 360 if longitude > 180 else longitude
