"""The pass over the features: what is counted, and which examples are told."""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.examining.scanning import MOST_EXAMPLES, Example, Scan
from graticule.handlers.vector.preparing.wkb import DEEPEST

NOTHING = pa.schema([])
BOWTIE = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"
SQUARE = "POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))"


def geometries(*texts: str | None) -> pa.Array:
    return wkb(*(None if text is None else shapely.from_wkt(text) for text in texts))


def wkb(*shapes: Any, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(shapely.to_wkb(np.array(shapes, dtype=object), flavor="iso").tolist(), kind or pa.binary())


def scanned(*batches: pa.Array, **options: Any) -> Scan:
    scan = Scan(NOTHING, **options)
    for batch in batches:
        scan.add(without_attributes(len(batch)), batch)
    return scan


def without_attributes(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def code_of(batch: pa.Array) -> tuple[str, str]:
    with pytest.raises(Rejected) as raised:
        scanned(geometries("POINT (1 1)"), batch)
    return raised.value.findings[0].code, raised.value.findings[0].where


def test_types_and_bounds_are_those_of_what_has_a_place() -> None:
    scan = scanned(geometries(SQUARE, None, "POINT EMPTY"), geometries("MULTIPOINT (5 -3)", SQUARE))
    assert (scan.count, scan.types) == (5, {"Polygon": 2, "MultiPoint": 1})
    assert scan.bounds == (0, -3, 5, 1)
    assert scan.dimensions == {(False, False): 3}


def test_a_layer_without_a_place_has_no_bounds() -> None:
    scan = scanned(geometries(None, "POLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY", "POINT EMPTY"))
    assert (scan.bounds, dict(scan.types), scan.null.count, scan.empty.count) == (None, {}, 1, 3)
    assert scan.invalid.count == 0


def test_dimensions_are_counted() -> None:
    scan = scanned(geometries("POINT Z (1 2 3)", "POINT M (1 2 3)", "POINT ZM (1 2 3 4)", "POINT (1 2)", "POINT (1 3)"))
    assert scan.dimensions == {(True, False): 1, (False, True): 1, (True, True): 1, (False, False): 2}
    assert (scan.has_z, scan.has_m) == (True, True)
    assert not scanned(geometries("POINT M (1 2 3)")).has_z


def test_the_first_examples_are_told_by_the_number_of_the_feature() -> None:
    scan = scanned(geometries(SQUARE, BOWTIE, None, "POINT EMPTY"), geometries(*[BOWTIE, None] * 19))
    assert scan.invalid.count == 20
    assert scan.invalid.examples[:2] == [
        Example(2, "Self-intersection[0.5 0.5]"),
        Example(5, "Self-intersection[0.5 0.5]"),
    ]
    assert len(scan.invalid.examples) == MOST_EXAMPLES
    assert [each.feature for each in scan.null.examples] == [3, *range(6, 24, 2)]
    assert scan.empty.examples == [Example(4)]


def test_longitudes_may_be_the_second_coordinates() -> None:
    scan = scanned(geometries("LINESTRING (-20 179, -10 181)"), half_turn=180)
    assert scan.bounds == (-20, 179, -10, 181)
    assert (scan.beyond(is_swapped=False), scan.beyond(is_swapped=True)) == (0, 1)


@pytest.mark.parametrize(
    ("west", "east", "beyond"), [(-180, 180, 0), (-180.5, 0, 1), (0, 180.5, 1), (0, 180 + 1e-9, 0), (0, 359, 1)]
)
def test_longitudes_on_the_other_side_of_the_antimeridian_are_counted(west: float, east: float, beyond: int) -> None:
    line = wkb(shapely.LineString([(west, 0), (east, 1)]))
    assert scanned(line, half_turn=180).beyond(is_swapped=False) == beyond
    assert scanned(line).beyond(is_swapped=False) == 0  # not every number is a longitude


def test_nulls_and_the_longest_text_are_known_of_each_field() -> None:
    fields = pa.schema([("a", pa.string()), ("A", pa.large_string()), ("n", pa.int64())])
    scan = Scan(fields)
    for texts, numbers in ((["ÄÖÜ", None], [1, None]), (["a", ""], [None, None])):
        batch = pa.RecordBatch.from_arrays(
            [pa.array(texts), pa.array([None] * 2, pa.large_string()), pa.array(numbers, pa.int64())], schema=fields
        )
        scan.add(batch, geometries("POINT (1 1)", "POINT (1 2)"))
    assert [(values.nulls, values.longest) for values in scan.values] == [(1, 3), (4, 0), (3, None)]


def found(scan: Scan, batch: pa.RecordBatch) -> list[str]:
    try:
        scan.add(batch, geometries("POINT (1 1)"))
    except Rejected as told:
        return [each.code for each in told.findings]
    return []


def test_a_text_that_is_none_is_rejected() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(struct.pack("<ii", 0, 2)), pa.py_buffer(b"\xffA")])
    fields = pa.schema([("name", pa.string())])
    with pytest.raises(Rejected) as raised:
        Scan(fields).add(pa.RecordBatch.from_arrays([text], schema=fields), geometries("POINT (1 1)"))
    assert (raised.value.findings[0].code, raised.value.findings[0].where) == ("not_utf8", "field name")


def test_a_date_that_no_table_can_hold_is_rejected() -> None:
    fields = pa.schema([("built", pa.date32())])
    for days, codes in ((0, []), (10**7, ["unfit_value"])):
        batch = pa.RecordBatch.from_arrays([pa.array([days], pa.int32()).cast(pa.date32())], schema=fields)
        assert found(Scan(fields), batch) == codes


def raw(*values: bytes) -> pa.Array:
    return pa.array([*shapely.to_wkb([shapely.Point(1, 1)]), *values], pa.large_binary())


@pytest.mark.parametrize("kind", [13, 14, 15, 16, 17, 1015, 3016])
def test_surfaces_of_many_faces_are_rejected_as_such(kind: int) -> None:
    inside = struct.pack("<BII", 1, 7, 1) + struct.pack("<BII", 1, kind, 0)
    assert code_of(raw(struct.pack("<BII", 1, kind, 0))) == ("unsupported_geometry", "feature 3")
    assert code_of(raw(inside)) == ("unsupported_geometry", "feature 3")


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"garbage",
        struct.pack("<BI", 1, 99),
        struct.pack("<BIId", 1, 2, 4_000_000_000, 1),
        struct.pack("<BII", 1, 3, 4_000_000_000),
    ],
)
def test_bytes_that_are_no_geometry_are_rejected(value: bytes) -> None:
    assert code_of(raw(value)) == ("corrupt", "feature 3")


def polygon(*rings: list[tuple[float, float]]) -> bytes:
    counted = (struct.pack("<I", len(ring)) + np.array(ring, "<f8").tobytes() for ring in rings)
    return struct.pack("<BII", 1, 3, len(rings)) + b"".join(counted)


CORNERS: list[tuple[float, float]] = [(0, 0), (0, 9), (9, 9), (9, 0)]


def test_rings_are_closed_and_short_ones_left_out_and_the_features_are_named() -> None:
    scan = scanned(
        geometries("POINT (1 1)"),
        raw(
            polygon(CORNERS),
            polygon([*CORNERS, (0, 0)]),
            polygon([*CORNERS, (0, 0)], [(1, 1), (2, 2)]),
            polygon([(1, 1), (2, 2)]),
            struct.pack("<BIIdd", 1, 2, 1, 1, 1),
        ),
    )
    assert [each.feature for each in scan.unclosed.examples] == [3, 5, 6]
    assert [each.feature for each in scan.shortened.examples] == [5, 6, 7]
    assert scan.types == {"Point": 2, "Polygon": 3}
    assert (scan.bounds, scan.invalid.count, scan.empty.count) == ((0, 0, 9, 9), 0, 2)


def test_flat_geometries_are_told_from_invalid_ones() -> None:
    flat = ("POLYGON ((0 0, 1 1, 2 2, 0 0))", "LINESTRING (1 1, 1 1)", "POLYGON ((3 3, 3 3, 3 3, 3 3))")
    scan = scanned(geometries(SQUARE, BOWTIE, *flat))
    assert [each.feature for each in scan.flat.examples] == [3, 4, 5]
    assert [each.feature for each in scan.invalid.examples] == [2]


def test_flat_parts_of_good_geometries_are_told() -> None:
    flat_part = "MULTIPOLYGON (((0 0, 0 1, 1 1, 1 0, 0 0)), ((5 5, 6 6, 7 7, 5 5)))"
    bowtie_part = "MULTIPOLYGON (((5 0, 5 1, 6 1, 6 0, 5 0)), ((0 0, 1 1, 1 0, 0 1, 0 0)))"
    wholly_flat = "MULTIPOLYGON (((0 0, 1 1, 2 2, 0 0)), ((5 5, 6 6, 7 7, 5 5)))"
    still_line = "MULTILINESTRING ((0 0, 1 1), (2 2, 2 2))"
    mixed = f"GEOMETRYCOLLECTION (POINT (1 1), {flat_part})"
    scan = scanned(geometries(SQUARE, None), geometries(flat_part, bowtie_part, wholly_flat, BOWTIE, still_line, mixed))
    assert [each.feature for each in scan.partly_flat.examples] == [3, 7, 8]
    assert [each.feature for each in scan.invalid.examples] == [3, 4, 6, 7, 8]
    assert [each.feature for each in scan.flat.examples] == [5]


def test_the_outermost_features_are_known() -> None:
    scan = scanned(geometries("POINT (5 5)", None, "POINT (-7 0)"), geometries("POINT (0 99)", "POINT (8 -3)"))
    assert scan.outermost == [3, 5, 5, 4]


@given(st.binary(max_size=60))
@settings(max_examples=examples(200))
def test_any_bytes_are_a_geometry_or_rejected(tail: bytes) -> None:
    for head in (b"", struct.pack("<BII", 1, 7, 2)):
        try:
            assert scanned(pa.array([head + tail], pa.binary())).count == 1
        except Rejected as told:
            codes = {each.code for each in told.findings}
            assert codes <= {"corrupt", "unsupported_geometry"}


def nested(depth: int, kind: int = 7, order: str = "<", inside: bytes | None = None) -> bytes:
    point = struct.pack("<BIdd", 1, 1, 1, 2) if inside is None else inside
    return struct.pack(f"{order}BII", int(order == "<"), kind, 1) * depth + point


@pytest.mark.parametrize("kind", [4, 6, 7, 9, 1007, 0x80000007, 65007])
@pytest.mark.parametrize("order", ["<", ">"])
def test_what_is_nested_too_deep_never_reaches_geos(kind: int, order: str) -> None:
    code = "corrupt" if kind == 65007 else "unsupported_geometry"  # GEOS would take it for a collection
    assert code_of(raw(nested(100_000, kind, order))) == (code, "feature 3")


def test_nesting_is_found_wherever_it_begins() -> None:
    before = shapely.to_wkb(shapely.from_wkt("LINESTRING Z (0 0 1, 1 1 1)"), flavor="iso") + shapely.to_wkb(
        shapely.from_wkt("POLYGON ((0 0, 0 9, 9 9, 0 0), (1 2, 1 3, 2 3, 1 2))")
    )
    marked = shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True)
    value = struct.pack("<BII", 1, 7, 4) + before + marked
    assert scanned(raw(value + nested(DEEPEST - 2))).count == 2
    assert code_of(raw(value + nested(DEEPEST - 1))) == ("unsupported_geometry", "feature 3")


def test_what_is_nested_as_deep_as_it_may_be_is_read() -> None:
    scan = scanned(raw(nested(DEEPEST - 1)))
    assert scan.types == {"Point": 1, "GeometryCollection": 1}


def test_geometries_of_many_parts_are_not_nested() -> None:
    parts = shapely.MultiPolygon([shapely.box(place, 0, place + 0.5, 1) for place in range(400)])
    assert scanned(wkb(parts, shapely.MultiPoint(np.ones((2000, 3))), kind=pa.large_binary())).invalid.count == 0
