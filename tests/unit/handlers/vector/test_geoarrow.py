"""Geometries of Arrow become the WKB that shapely would write."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.handlers.vector.sources.geoarrow import LEVELS, UnfitType, has_type_of, write_wkb

KINDS = dict(
    zip(LEVELS, ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"), strict=True)
)


def nested(shapes: list[Any], *, is_interleaved: bool, has_z: bool) -> pa.Array:
    """Write shapes of one type as lists within lists."""
    _, coordinates, offsets = shapely.to_ragged_array(np.array(shapes), include_z=has_z)
    width = 2 + has_z
    if is_interleaved:
        values = pa.FixedSizeListArray.from_arrays(pa.array(coordinates.ravel()), width)
    else:
        values = pa.StructArray.from_arrays([pa.array(column) for column in coordinates.T], names=list("xyz"[:width]))
    for each in offsets:
        values = pa.LargeListArray.from_arrays(pa.array(each.astype(np.int64)), values)
    return values


def line(count: int, at: int, has_z: bool) -> list[tuple[float, ...]]:
    return [(at + n, n * n, *([float(n)] if has_z else [])) for n in range(count)]


def ring(at: int, has_z: bool) -> list[tuple[float, ...]]:
    corners = [(at, 0), (at + 1, 0), (at + 1, 1), (at, 0)]
    return [(*corner, *([5.0] if has_z else [])) for corner in corners]


def shape(kind: str, sizes: list[int], has_z: bool) -> Any:
    made: Any
    if kind == "Point":
        return shapely.Point(*line(1, sizes[0], has_z)[0])
    if kind == "LineString":
        return shapely.LineString(line(sizes[0] + 1, sizes[0], has_z) if sizes[0] else None)
    if kind == "Polygon":
        return shapely.Polygon(ring(0, has_z), [ring(n, has_z) for n in range(sizes[0])])
    parts = {"MultiPoint": "Point", "MultiLineString": "LineString", "MultiPolygon": "Polygon"}[kind]
    made = [shape(parts, [size + 1], has_z) for size in sizes[1:]]
    return getattr(shapely, kind)(made)


@settings(max_examples=examples(60))
@given(
    st.sampled_from(list(LEVELS)),
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_it_is_what_shapely_writes(encoding: str, sizes: list[list[int]], is_interleaved: bool, has_z: bool) -> None:
    shapes = [shape(KINDS[encoding], each, has_z) for each in sizes]
    if any(each.is_empty for each in shapes) and has_z:
        shapes = [each for each in shapes if not each.is_empty] or [shape(KINDS[encoding], [1, 1], has_z)]
    column = nested(shapes, is_interleaved=is_interleaved, has_z=has_z)
    expected = shapely.to_wkb(shapes, byte_order=1, flavor="iso").tolist()
    assert write_wkb(column, encoding).to_pylist() == expected
    assert write_wkb(column[1:], encoding).to_pylist() == expected[1:]


@pytest.mark.parametrize("encoding", LEVELS)
def test_what_is_null_is_none(encoding: str) -> None:
    column = nested([shape(KINDS[encoding], [1, 1], False)], is_interleaved=False, has_z=False)
    with_null = pa.concat_arrays([column, pa.nulls(2, column.type), column])
    found = write_wkb(with_null, encoding).to_pylist()
    assert found[1:3] == [None, None]
    assert found[0] == found[3] == write_wkb(column, encoding)[0].as_py()
    assert write_wkb(pa.nulls(3, column.type), encoding).to_pylist() == [None] * 3
    assert len(write_wkb(column[:0], encoding)) == 0


def test_measures_are_known_by_their_name() -> None:
    column = pa.array([{"x": 1.0, "y": 2.0, "m": 7.0}], pa.struct(dict.fromkeys("xym", pa.float64())))
    assert shapely.from_wkb(write_wkb(column, "point")[0].as_py()).wkt == "POINT M (1 2 7)"


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.float64(),
        pa.list_(pa.float64()),
        pa.struct({"x": pa.float64()}),
        pa.struct({"y": pa.float64(), "x": pa.float64()}),
        pa.struct({"x": pa.string(), "y": pa.string()}),
        pa.struct(dict.fromkeys("xyzmn", pa.float64())),
        pa.list_(pa.float64(), 1),
        pa.list_(pa.float64(), 9),
    ],
)
@pytest.mark.parametrize("encoding", LEVELS)
def test_other_types_do_not_fit(kind: pa.DataType, encoding: str) -> None:
    assert not has_type_of(kind, encoding)
    with pytest.raises(UnfitType):
        write_wkb(pa.nulls(2, kind), encoding)
