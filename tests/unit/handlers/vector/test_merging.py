"""Layers that become one table."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import ColumnType
from graticule.handlers.vector.preparing.attributes import as_text
from graticule.handlers.vector.preparing.merging import (
    LayerColumns,
    common_type,
    merged_bbox,
    merged_columns,
    mixed_fields,
)


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("smallint", "bigint", "bigint"),
        ("integer", "double precision", "double precision"),
        ("smallint", "real", "double precision"),
        ("bigint", "double precision", "text"),  # a double has no room for all of its digits
        ("numeric", "integer", "text"),
        ("date", "timestamp", "text"),
        ("timestamp", "timestamptz", "text"),
        ("jsonb", "text", "text"),
        ("boolean", "boolean", "boolean"),
    ],
)
def test_the_common_type_loses_nothing(first: ColumnType, second: ColumnType, common: ColumnType) -> None:
    assert common_type(first, second) == common_type(second, first) == common


def test_columns_are_the_union_of_the_fields() -> None:
    layers = [
        pa.schema([("Name", pa.string()), ("n", pa.int32())]),
        pa.schema([("name", pa.string()), ("NAME", pa.string()), ("n", pa.date32()), ("layer", pa.int64())]),
    ]
    columns = merged_columns(layers)
    assert [(column.field, column.name, column.type) for column in columns] == [
        ("Name", "name", "text"),
        ("n", "n", "text"),
        ("NAME", "name_2", "text"),
        ("layer", "layer", "bigint"),
        ("layer", "layer_2", "text"),
    ]
    assert mixed_fields(layers) == ["n"]
    rows = pa.RecordBatch.from_pydict({"Name": ["a"], "n": pa.array([5], pa.int32())})
    assert [column.to_pylist() for column in LayerColumns(columns, layers[0], "one").arrays(rows)] == [
        ["a"],
        ["5"],
        [None],
        [None],
        ["one"],
    ]


def test_a_field_that_was_not_there_is_told() -> None:
    columns = merged_columns([pa.schema([("a", pa.string())]), pa.schema([])])
    with pytest.raises(Rejected, match="source_changed"):
        LayerColumns(columns, pa.schema([("b", pa.string())]), "one")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        (date(2020, 1, 2), "2020-01-02"),
        (datetime(2020, 1, 2, 3), "2020-01-02 03:00:00.000000"),  # noqa: DTZ001 - it has no zone
        (b"\x00\xff", "\\x00ff"),
        (Decimal("1.50"), "1.5"),
        (Decimal(100), "100"),
        (None, None),
    ],
)
def test_values_of_several_types_become_texts(value: object, text: str | None) -> None:
    assert as_text(pa.array([value])).to_pylist() == [text]


@pytest.mark.parametrize(
    ("boxes", "box"),
    [
        ([[0, 0, 1, 1], [5, -5, 6, 0]], [0, -5, 6, 1]),
        ([[-180, 0, -170, 1], [170, 0, 180, 1]], [-180, 0, 180, 1]),
        ([[170, 0, -170, 1]], [170, 0, -170, 1]),
        ([[170, 0, -170, 1], [-175, 0, -160, 2]], [170, 0, -160, 2]),
        ([[170, 0, -60, 1], [-100, 0, -90, 1]], [170, 0, -60, 1]),
        ([[170, 0, -170, 1], [0, 0, 10, 1]], [0, 0, -170, 1]),
        ([[170, 0, 160, 1], [150, 0, 175, 1]], [-180, 0, 180, 1]),
    ],
)
def test_the_box_around_boxes(boxes: list[list[float]], box: list[float]) -> None:
    assert merged_bbox(boxes) == box
