"""Geometries of a batch become what is stored: where the oracle says, of one shape, valid and on the globe."""

import contextlib
import struct
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import CRS, Transformer
from tests.examples import examples
from tests.unit.handlers.vector.wkb_making import Made, Style, column, flattened, geometries, read_all, square, styles

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Shape, ShapeType
from graticule.handlers.vector.preparing import wkb
from graticule.handlers.vector.preparing.geometries import Prepared, Preparer, target_crs

UTM, DEGREES = "EPSG:32620", "EPSG:4326"
TO_DEGREES = Transformer.from_crs(UTM, DEGREES, always_xy=True)
ANY = Shape(type="Geometry")
SHAPES: dict[tuple[int, ...], ShapeType] = {
    (1, 4): "MultiPoint",
    (2, 5): "MultiLineString",
    (3, 6): "MultiPolygon",
    (7,): "GeometryCollection",
    (1, 2, 3, 4, 5, 6, 7): "Geometry",
}
BATCHES = st.sampled_from(list(SHAPES)).flatmap(
    lambda kinds: st.tuples(
        st.just(SHAPES[kinds]),
        st.lists(st.one_of(st.none(), st.tuples(geometries(kinds=kinds), styles())), max_size=4),
    )
)


def prepared(
    values: list[bytes | None] | pa.Array,
    shape: Shape = ANY,
    *,
    source: str = UTM,
    target: str = DEGREES,
    is_swapped: bool = False,
) -> Prepared:
    given_column = column(values) if isinstance(values, list) else values
    return Preparer(source, target_crs(target), shape, is_swapped).prepared(given_column)


def of_text(*texts: str | None) -> list[Any]:
    return [text and shapely.to_wkb(shapely.from_wkt(text), output_dimension=4, flavor="iso") for text in texts]


def one(text: str, shape: Shape = ANY, source: str = DEGREES, target: str = DEGREES) -> tuple[Any, Prepared]:
    made = prepared(of_text(text), shape, source=source, target=target)
    return read_all(made.wkb)[0], made


def rejection(values: list[bytes | None], shape: Shape = ANY, **how: Any) -> tuple[str, str]:
    with pytest.raises(Rejected) as told:
        prepared(values, shape, **how)
    return told.value.findings[0].code, told.value.findings[0].where


@settings(max_examples=examples(60))
@given(BATCHES, st.booleans(), st.booleans(), st.booleans())
def test_all_is_where_shapely_and_proj_say(
    batch: tuple[ShapeType, list[tuple[Made, Style] | None]], has_z: bool, has_m: bool, is_swapped: bool
) -> None:
    shape = Shape(type=batch[0], has_z=has_z, has_m=has_m)
    values = [each and each[0].wkb(each[1]) for each in batch[1]]
    made = prepared(values, shape, is_swapped=is_swapped)
    assert made.wkb.type == pa.binary()
    boxes = []
    for value, raw, result in zip(values, made.wkb.to_pylist(), read_all(made.wkb), strict=True):
        if value is None:
            assert raw is None
            continue
        _check_shape(raw, shape)
        given_parts, result_parts = flattened(shapely.from_wkb(value)), flattened(result)
        assert len(result_parts) == len(given_parts)
        assert result.is_empty == (not given_parts)
        for given_part, part in zip(given_parts, result_parts, strict=True):
            _check_part(given_part, part, shape, is_swapped=is_swapped)
        boxes.append(shapely.bounds(result))
    assert (made.repaired, made.divided) == (0, 0)
    _check_bounds(made, np.array(boxes).reshape(-1, 4))


def _check_shape(raw: bytes, shape: Shape) -> None:
    order, code = struct.unpack_from("<BI", raw)
    assert order == 1
    assert code // 1000 == shape.has_z + 2 * shape.has_m
    numbers = {"MultiPoint": {4}, "MultiLineString": {5}, "MultiPolygon": {6}, "GeometryCollection": {7}}
    assert code % 1000 in numbers.get(shape.type, {4, 5, 6, 7})


def _check_part(expected: tuple[str, Any], part: tuple[str, Any], shape: Shape, *, is_swapped: bool) -> None:
    assert part[0] == expected[0]
    for ring, made in zip(expected[1], part[1], strict=True):
        x, y = TO_DEGREES.transform(*(ring[:, [1, 0]] if is_swapped else ring[:, :2]).T)
        np.testing.assert_allclose(made[:, :2], np.column_stack([x, y]), rtol=0, atol=1e-12)
        for place, is_wanted in ((2, shape.has_z), (3, shape.has_m)):
            wanted = np.nan_to_num(ring[:, place], nan=0.0) if is_wanted else np.full(len(ring), np.nan)
            np.testing.assert_array_equal(made[:, place], wanted)


def _check_bounds(made: Prepared, boxes: Any) -> None:
    known = boxes[~np.isnan(boxes).any(axis=1)]
    if not len(known):
        assert made.bounds is None
        return
    assert made.bounds is not None
    np.testing.assert_allclose(made.bounds, [*known[:, :2].min(axis=0), *known[:, 2:].max(axis=0)], rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(st.lists(st.tuples(geometries(), styles(has_z=True)), min_size=1, max_size=4))
def test_both_ways_lead_to_the_same_bytes(made: list[tuple[Made, Style]]) -> None:
    values: list[bytes | None] = [each.wkb(style) for each, style in made]
    shape = Shape(type="Geometry", has_z=True)
    fast = prepared(values, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wkb, "MOST_ROUNDS", 0)
        slow = prepared(values, shape)
    assert fast.wkb.to_pylist() == slow.wkb.to_pylist()
    assert fast.bounds == slow.bounds


@settings(max_examples=examples(80))
@given(st.binary(max_size=40), geometries(), styles(), st.integers(0, 200), st.integers(0, 255))
def test_broken_bytes_are_prepared_or_rejected(tail: bytes, made: Made, style: Style, place: int, byte: int) -> None:
    broken = bytearray(made.wkb(style) + tail)
    broken[place % len(broken)] = byte
    with contextlib.suppress(Rejected):
        assert shapely.is_valid(read_all(prepared([bytes(broken)], source=DEGREES).wkb)).all()


def test_equal_projections_change_no_bit() -> None:
    place = (0.1 + 0.2, 1 / 3)
    made = prepared([Made(1, [[place]]).wkb(Style())], source=DEGREES)
    assert tuple(shapely.get_coordinates(read_all(made.wkb))[0]) == place


def test_a_geometry_of_very_many_parts_is_like_others() -> None:
    islands = Made(6, members=[Made(3, [square(3 * each, 0)]) for each in range(150)])
    made = prepared([islands.wkb(Style()), Made(3, [square(0, 0)]).wkb(Style())], Shape(type="MultiPolygon"))
    assert [shapely.get_num_geometries(each) for each in read_all(made.wkb)] == [150, 1]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", 2.0),  # it crosses itself
        ("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 9 1, 9 2, 1 2, 1 1))", None),  # a hole that leaves it
        ("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)), ((1 0, 3 0, 3 2, 1 2, 1 0)))", 6.0),  # parts that overlap
    ],
)
def test_invalid_polygons_are_repaired_and_stay_polygons(text: str, kept: float | None) -> None:
    made, result = one(text, Shape(type="MultiPolygon"))
    assert made.geom_type == "MultiPolygon"
    assert made.is_valid
    assert kept is None or made.area == pytest.approx(kept)
    assert result.repaired == 1
    assert result.bounds == made.bounds


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("POLYGON ((0 0, 1 1, 2 2, 0 0))", "MULTIPOLYGON (((0 0, 1 1, 2 2, 0 0)))"),
        ("MULTIPOLYGON (((0 0, 1 1, 2 2, 0 0)))", "MULTIPOLYGON (((0 0, 1 1, 2 2, 0 0)))"),
        ("POLYGON ((3 3, 3 3, 3 3, 3 3))", "MULTIPOLYGON (((3 3, 3 3, 3 3, 3 3)))"),
        ("LINESTRING (1 1, 1 1)", "MULTILINESTRING ((1 1, 1 1))"),
    ],
)
def test_what_is_flat_stays_where_it_is(text: str, kept: str) -> None:
    made, result = one(text)
    assert (made.wkt, result.repaired) == (kept, 1)
    assert result.bounds == made.bounds


def bow_ties(count: int, size: float) -> str:
    ties = (f"(({x} 0, {x + size} {size}, {x + size} 0, {x} {size}, {x} 0))" for x in range(count))
    return f"MULTIPOLYGON ({', '.join(ties)})"


@pytest.mark.parametrize("size", [0.5, 1.5], ids=["apart", "overlapping"])
def test_parts_are_repaired_one_by_one(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many at once the time of GEOS grows with the square of their number: minutes for a file of two megabytes."""
    at_once, make_valid = [], shapely.make_valid

    def noted(geometry: Any, **options: Any) -> Any:
        at_once.append(int(np.max(shapely.get_num_geometries(geometry))))
        return make_valid(geometry, **options)

    monkeypatch.setattr(shapely, "make_valid", noted)
    made, result = one(bow_ties(300, size), Shape(type="MultiPolygon"), UTM, UTM)
    assert set(at_once) == {1}
    monkeypatch.undo()
    assert (made.is_valid, result.repaired) == (True, 1)
    few = shapely.make_valid(shapely.from_wkt(bow_ties(4, size)), method="structure", keep_collapsed=False)
    three = shapely.make_valid(shapely.from_wkt(bow_ties(3, size)), method="structure", keep_collapsed=False)
    assert made.area == pytest.approx(few.area + 296 * (few.area - three.area))


def comb(count: int, apart: float, height: float = 1000) -> Any:
    """A polygon of teeth of different heights: valid as long as their sides are at different places."""
    teeth = np.arange(count)
    outline = np.empty((4 * count + 2, 2))
    outline[0], outline[-1] = (-apart, 0), (2 * count * apart, 0)
    for place, (side, foot) in enumerate([(0, 0.0), (0, None), (1, None), (1, 0.5)]):
        along = 1e-3 + (teeth + foot) / count * 0.3 * height if foot is not None else (1 + teeth / count) * height
        outline[1 + place : -1 : 4] = np.column_stack([(2 * teeth + side) * apart, along])
    return shapely.polygons(outline)


def test_a_comb_that_collapses_in_the_target_is_rejected() -> None:
    """Its 200 teeth take GEOS four seconds, 300 half a minute and a gigabyte, which grows with their square."""
    good, bad = shapely.box(0, 0, 1, 1), comb(200, 1e-17)
    assert shapely.is_valid(bad)
    given: list[bytes | None] = [shapely.to_wkb(each, flavor="iso") for each in (good, bad)]
    begun = time.process_time()
    assert rejection(given, source="EPSG:32631") == ("geometry_too_complex", "feature 2")
    assert time.process_time() - begun < 2


def test_many_combs_that_collapse_are_rejected_together() -> None:
    given: list[bytes | None] = [shapely.to_wkb(comb(48, 1e-17), flavor="iso")] * 100
    code, where = rejection(given, source="EPSG:32631")
    assert (code, 20 < int(where.removeprefix("feature ")) < 100) == ("geometry_too_complex", True)


def test_a_polygon_with_a_hole_that_collapses_is_rejected_where_it_is_divided() -> None:
    across = shapely.Polygon(shapely.box(-1e6, -1e5, 4e6, 2e6).exterior, [comb(200, 1e-17).exterior])
    assert shapely.is_valid(across)
    given: list[bytes | None] = [shapely.to_wkb(across, flavor="iso")]
    assert rejection(given, source="EPSG:3832") == ("geometry_too_complex", "feature 1")


@pytest.mark.parametrize(
    "text",
    [
        "MULTIPOLYGON (((0 0, 2 2, 2 0, 0 2, 0 0)), ((1 0, 3 0, 3 2, 1 2, 1 0)), ((9 9, 10 9, 10 10, 9 9)))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((1 0, 2 0, 2 1, 1 1, 1 0)), ((2 1, 3 1, 3 2, 2 2, 2 1)))",
        "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 9, 0 0)), ((1 1, 2 1, 2 2, 1 2, 1 1)))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((5 5, 6 5, 5 5, 5 5)))",
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 3, 3 1, 1 3, 1 1))",
    ],
    ids=["crossed and overlapping", "a common border and a common point", "nested", "collapsed", "a crossed hole"],
)
def test_parts_are_repaired_as_geos_does(text: str) -> None:
    made, _ = one(text, Shape(type="MultiPolygon"))
    whole = shapely.make_valid(shapely.from_wkt(text), method="structure", keep_collapsed=False)
    assert made.is_valid
    assert shapely.equals(made, whole)


def test_heights_and_measures_survive_a_repair() -> None:
    text = "POLYGON ZM ((0 0 5 7, 2 2 5 7, 2 0 5 7, 0 2 5 7, 0 0 5 7))"
    made, _ = one(text, Shape(type="MultiPolygon", has_z=True, has_m=True))
    found = shapely.get_coordinates(made, include_z=True, include_m=True)
    was_there = (found[:, :2] != 1).any(axis=1)
    assert set(found[:, 2]) == {5}
    assert set(found[was_there, 3]) == {7}
    assert not np.isnan(found).any()


def _polygon(*rings: list[tuple[float, float]]) -> Made:
    return Made(3, list(rings))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Made(2, [[(1, 1)]]), "MULTILINESTRING EMPTY"),
        (Made(5, members=[Made(2, [[(1, 1)]]), Made(2, [[(0, 0), (1, 1)]])]), "MULTILINESTRING ((0 0, 1 1))"),
        (_polygon(square(0, 0)[:-1]), "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)))"),
        (_polygon(square(0, 0), [(0.2, 0.2), (0.3, 0.3)]), "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)))"),
        (_polygon([(0, 0), (1, 1)]), "MULTIPOLYGON EMPTY"),
        (
            _polygon([(0, 0), (1, 0), (float("nan"), 5), (1, 1), (0, 1), (0, 0)]),
            "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)))",
        ),
        (Made(4, members=[Made(1), Made(1, [[(1, 2)]])]), "MULTIPOINT ((1 2))"),
    ],
)
def test_what_has_too_few_vertices_is_left_out(made: Made, expected: str) -> None:
    result = prepared([made.wkb(Style()), Made(1, [[(0, 0)]]).wkb(Style())], source=DEGREES)
    assert shapely.equals(shapely.normalize(read_all(result.wkb)[0]), shapely.normalize(shapely.from_wkt(expected)))
    assert read_all(result.wkb)[0].geom_type == shapely.from_wkt(expected).geom_type
    assert result.repaired == (made.kind != 4)


def test_empties_are_of_the_type_of_the_column() -> None:
    empties = of_text("POLYGON EMPTY", "POINT EMPTY", "GEOMETRYCOLLECTION EMPTY", None)
    as_lines = prepared(empties, Shape(type="MultiLineString"))
    assert [None if each is None else each.wkt for each in read_all(as_lines.wkb)] == ["MULTILINESTRING EMPTY"] * 3 + [
        None
    ]
    as_any = prepared(empties)
    wanted = ["MULTIPOLYGON EMPTY", "MULTIPOINT EMPTY", "GEOMETRYCOLLECTION EMPTY", None]
    assert [None if each is None else each.wkt for each in read_all(as_any.wkb)] == wanted
    assert as_any.bounds is None


def test_a_collection_takes_what_is_none() -> None:
    made, _ = one("POINT (1 2)", Shape(type="GeometryCollection"))
    assert made.wkt == "GEOMETRYCOLLECTION (POINT (1 2))"


def test_an_invalid_member_of_a_collection_is_repaired() -> None:
    made, result = one("GEOMETRYCOLLECTION (POINT (9 9), POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0)))")
    assert (made.geom_type, made.is_valid, result.repaired) == ("GeometryCollection", True, 1)
    assert shapely.get_num_geometries(made) == 2


def test_rejections_name_the_feature() -> None:
    good, triangle = Made(1, [[(0, 0)]]).wkb(Style()), struct.pack("<BII", 1, 17, 0)
    assert rejection([None, good, b"\x01\x03"]) == ("corrupt", "feature 3")
    assert rejection([good, triangle]) == ("unsupported_geometry", "feature 2")
    assert rejection([good, *of_text("POINT (1e30 1e30)")]) == ("absurd_bounds", "feature 2")
    assert rejection([good, *of_text("POINT (0 91)")], source=DEGREES) == ("absurd_bounds", "feature 2")
    assert rejection([good, *of_text("POINT (700 0)")], source=DEGREES) == ("absurd_bounds", "feature 2")
    infinite = Made(1, [[(float("inf"), 0)]]).wkb(Style())
    assert rejection([good, infinite], source=UTM, target=UTM) == ("absurd_bounds", "feature 2")
    both = Made(2, [[(float("inf"), 0), (-float("inf"), 0)]]).wkb(Style())
    assert rejection([good, both], source="EPSG:4322") == ("absurd_bounds", "feature 2")
    assert rejection([good], Shape(type="MultiPolygon")) == ("corrupt", "feature 1")


def test_unknown_projections_are_rejected() -> None:
    for name in ("EPSG:1", "nonsense", "EPSG:5703", "+proj=longlat"):
        with pytest.raises(Rejected) as told:
            target_crs(name)
        assert told.value.findings[0].code == "unknown_target_crs"
    with pytest.raises(Rejected) as told:
        prepared([], source="EPSG:1")
    assert told.value.findings[0].code == "unknown_source_crs"


def test_heights_are_not_moved_with_a_compound_projection() -> None:
    made, _ = one(
        "POINT Z (500000 1500000 12.5)", Shape(type="MultiPoint", has_z=True), CRS("EPSG:32620+5773").to_wkt()
    )
    x, y = TO_DEGREES.transform(500000, 1500000)
    np.testing.assert_allclose(shapely.get_coordinates(made, include_z=True), [[x, y, 12.5]])


def test_no_features_are_no_features() -> None:
    assert prepared(pa.array([], pa.large_binary())) == Prepared(pa.array([], pa.binary()), 0, 0, None)
    assert prepared([None, None]).wkb.to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("texts", "bounds"),
    [
        (["POINT (-179 1)", "POINT (179 2)"], (179, 1, 181, 2)),
        (["POLYGON ((179 0, 182 0, 182 1, 179 0))", "POINT (178 2)"], (178, 0, 182, 2)),
        (["POINT (-179 1)"], (181, 1, 181, 1)),
    ],
    ids=["nothing divided", "divided", "all on one side"],
)
def test_bounds_are_no_wider_than_a_layer_across_the_antimeridian(texts: list[str], bounds: Any) -> None:
    preparer = Preparer(DEGREES, target_crs(DEGREES), ANY, False, gap=0)
    assert preparer.prepared(column(of_text(*texts))).bounds == bounds
    in_metres = Preparer(DEGREES, target_crs(UTM), ANY, False, gap=0).prepared(column(of_text("POINT (-63 1)")))
    assert in_metres.bounds == pytest.approx((500_000, 110_530, 500_000, 110_530), abs=1)
