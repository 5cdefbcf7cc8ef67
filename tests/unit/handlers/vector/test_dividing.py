"""What goes across the antimeridian is divided there, and all else is left as it was sent."""

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import CRS, Transformer
from tests.unit.handlers.vector.test_geometries import DEGREES, of_text, one, prepared
from tests.unit.handlers.vector.wkb_making import read_all

from graticule.handlers.vector.described import Shape

POLYGONS, LINES, POINTS = (Shape(type=name) for name in ("MultiPolygon", "MultiLineString", "MultiPoint"))
FIJI, PACIFIC, ARCTIC, ANTARCTIC = "EPSG:3460", "EPSG:3832", "EPSG:3995", "EPSG:3031"
WEB, EQUAL_EARTH, EQUAL_EARTH_PACIFIC = "EPSG:3857", "EPSG:8857", "EPSG:8859"
ROBINSON = CRS("ESRI:54030").to_wkt()


def box_text(west: float, south: float, east: float, north: float) -> str:
    return str(shapely.box(west, south, east, north).wkt)


def same(made: shapely.Geometry, *boxes: tuple[float, float, float, float]) -> bool:
    wanted = shapely.union_all([shapely.box(*each) for each in boxes])
    return bool(shapely.area(shapely.symmetric_difference(made, wanted)) < 1e-9)


def test_longitudes_beyond_half_a_turn_are_cut() -> None:
    made, result = one(box_text(170, -10, 190, 10), POLYGONS)
    assert same(made, (170, -10, 180, 10), (-180, -10, -170, 10))
    assert (result.divided, result.repaired, result.bounds) == (1, 0, (-180, -10, 180, 10))


def test_what_is_wholly_beyond_is_moved() -> None:
    made, result = one(box_text(190, -10, 200, 10), POLYGONS)
    assert same(made, (-170, -10, -160, 10))
    assert (result.divided, result.bounds) == (0, (-170, -10, -160, 10))
    made, _ = one("MULTIPOINT ((190 1), (-190 2), (180 3), (10 4))", POINTS)
    assert shapely.get_coordinates(made).tolist() == [[-170, 1], [170, 2], [180, 3], [10, 4]]


def test_a_hole_that_is_wholly_beyond_stays_in_its_polygon() -> None:
    hole = "(185 -2, 188 -2, 188 2, 185 2, 185 -2)"
    made, result = one(f"POLYGON ((170 -10, 190 -10, 190 10, 170 10, 170 -10), {hole})", POLYGONS)
    assert made.area == pytest.approx(400 - 12)
    assert (result.divided, result.repaired) == (1, 0)
    made, result = one(f"MULTIPOLYGON (((181 -10, 190 -10, 190 10, 181 10, 181 -10), {hole}), ((0 0, 1 0, 1 1, 0 0)))")
    assert made.area == pytest.approx(180 - 12 + 0.5)
    assert (result.divided, result.repaired, result.bounds) == (0, 0, (-179, -10, 1, 10))


def test_the_whole_world_from_0_to_360() -> None:
    made, result = one(box_text(0, -90, 360, 90), POLYGONS)
    assert same(made, (-180, -90, 180, 90))
    assert made.is_valid
    assert result.divided == 1


@pytest.mark.parametrize("box", [(-179, -10, 179, 10), (-180, -90, 180, 90), (-170, 0, 170, 1)])
def test_a_wide_polygon_within_the_map_stays_as_it_was_sent(box: tuple[float, float, float, float]) -> None:
    made, result = one(box_text(*box), POLYGONS)
    assert made.wkt == shapely.multipolygons([shapely.box(*box)]).wkt
    assert result.divided == 0


def projected(text: str, crs: str, segment: float = 1) -> str:
    """Give a shape of degrees, which may go beyond half a turn, in a projection."""
    move: Any = Transformer.from_crs(DEGREES, crs, always_xy=True).transform
    dense = shapely.segmentize(shapely.from_wkt(text), segment)
    return str(shapely.transform(dense, move, interleaved=False, include_z=dense.has_z).wkt)


def test_a_projected_polygon_across_is_divided() -> None:
    text = projected(box_text(178, -18, 182, -16), FIJI)
    made, result = one(text, POLYGONS, FIJI)
    assert made.is_valid
    assert (result.divided, result.repaired) == (1, 0)
    assert same(shapely.set_precision(made, 1e-6), (178, -18, 180, -16), (-180, -18, -178, -16))


def test_a_hole_across_is_cut_out_on_both_sides() -> None:
    outer, inner = shapely.box(170, -10, 190, 10), shapely.box(178, -2, 182, 2)
    made, result = one(projected(str(shapely.difference(outer, inner).wkt), PACIFIC), POLYGONS, PACIFIC)
    assert result.divided == 1
    assert made.is_valid
    wanted = shapely.union_all([shapely.box(170, -10, 180, 10), shapely.box(-180, -10, -170, 10)])
    wanted = shapely.difference(
        wanted, shapely.union_all([shapely.box(178, -2, 180, 2), shapely.box(-180, -2, -178, 2)])
    )
    assert shapely.area(shapely.symmetric_difference(made, wanted)) < 1e-6


def test_a_projected_line_across_is_divided() -> None:
    made, result = one(projected("LINESTRING (179 -17, 181 -17)", FIJI), LINES, FIJI)
    assert result.divided == 1
    np.testing.assert_allclose(shapely.bounds(shapely.get_parts(made)), [[179, -17, 180, -17], [-180, -17, -179, -17]])


def test_what_only_touches_is_not_divided() -> None:
    for box in ((179, -17, 180, -16), (180, -17, 181, -16)):
        made, result = one(projected(box_text(*box), FIJI), POLYGONS, FIJI)
        assert (result.divided, made.is_valid, shapely.get_num_geometries(made)) == (0, True, 1)
        assert made.area == pytest.approx(1)


@pytest.mark.parametrize(("crs", "south", "north"), [(ARCTIC, 70, 90), (ANTARCTIC, -90, -70)])
def test_a_polygon_around_a_pole_reaches_it(crs: str, south: float, north: float) -> None:
    latitude = south if north == 90 else north
    angles = np.arange(37, 397, 1)
    x, y = Transformer.from_crs(DEGREES, crs, always_xy=True).transform(angles, np.full(360, latitude))
    cap: Any = shapely.polygons(np.column_stack([x, y]))
    made, result = one(str(cap.wkt), POLYGONS, crs)
    assert made.is_valid
    assert result.divided == 1
    assert result.bounds == pytest.approx((-180, south, 180, north))
    assert made.area == pytest.approx(360 * 20, rel=1e-6)
    without_middle: Any = shapely.difference(cap, shapely.affinity.scale(cap, 0.5, 0.5, origin=(0, 0)))
    ring, _ = one(str(without_middle.wkt), POLYGONS, crs)
    assert ring.is_valid
    assert ring.area < made.area * 0.6


def test_heights_and_measures_are_kept() -> None:
    shape = Shape(type="MultiLineString", has_z=True, has_m=True)
    made, result = one("LINESTRING ZM (170 0 1 10, 190 0 3 30)", shape)
    assert result.divided == 1
    found = shapely.get_coordinates(made, include_z=True, include_m=True)
    np.testing.assert_allclose(found, [[170, 0, 1, 10], [180, 0, 2, 20], [-180, 0, 2, 20], [-170, 0, 3, 30]])


def test_members_of_a_collection_are_divided() -> None:
    made, result = one("GEOMETRYCOLLECTION (POINT (190 0), LINESTRING (170 0, 190 0), POLYGON EMPTY)")
    assert made.wkt == "GEOMETRYCOLLECTION (POINT (-170 0), MULTILINESTRING ((170 0, 180 0), (-180 0, -170 0)))"
    assert result.divided == 1


def test_an_invalid_polygon_across_is_repaired_and_divided() -> None:
    made, result = one("POLYGON ((160 0, 190 20, 190 0, 160 20, 160 0))", POLYGONS)
    assert made.is_valid
    assert made.area == pytest.approx(300)
    assert (result.repaired, result.divided) == (1, 1)


def test_another_datum_does_not_tear_apart_what_goes_beyond() -> None:
    made, result = one(box_text(170, -10, 190, 10), POLYGONS, "EPSG:4322")  # WGS 72
    assert result.divided == 1
    assert made.is_valid
    assert made.area == pytest.approx(400, rel=1e-3)


def test_longitudes_about_another_pole_are_none() -> None:
    turned = CRS("+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=40 +lon_0=170 +type=crs").to_wkt()
    for box in ((178, 10, 182, 12), (-172, 10, -168, 12), (10, 10, 14, 12)):
        made, result = one(projected(box_text(*box), turned), POLYGONS, turned)
        assert made.area == pytest.approx(8, rel=1e-3)
        assert (made.is_valid, result.divided) == (True, box[2] > 180)


def test_gons_are_degrees_in_the_end() -> None:
    made, result = one(box_text(190, 50, 210, 52), POLYGONS, "EPSG:4807", "EPSG:4807")
    assert same(made, (190, 50, 200, 52), (-200, 50, -190, 52))
    assert result.divided == 1


@pytest.mark.parametrize(
    ("crs", "box"),
    [
        *((crs, (-100, -30, 100, 30)) for crs in (WEB, ROBINSON, EQUAL_EARTH)),
        *((crs, (-80, -10, 120, 10)) for crs in (WEB, ROBINSON, EQUAL_EARTH)),
        *((crs, (-180, -60, 180, 60)) for crs in (WEB, EQUAL_EARTH)),
    ],
)
def test_an_edge_of_a_map_may_go_the_long_way_round(crs: str, box: tuple[float, float, float, float]) -> None:
    made, result = one(projected(box_text(*box), crs, segment=1000), POLYGONS, crs)
    assert shapely.area(shapely.symmetric_difference(made, shapely.box(*box))) < 0.01
    assert (result.divided, result.repaired) == (0, 0)
    line, result = one(projected(f"LINESTRING ({box[0]} 0, {box[2]} 0)", crs, segment=1000), LINES, crs)
    np.testing.assert_allclose(shapely.get_coordinates(line), [[box[0], 0], [box[2], 0]], atol=1e-5)
    assert result.divided == 0


@pytest.mark.parametrize(("west", "east"), [(-30, 330), (-21, 321), (-29, 170)])
def test_an_edge_across_may_go_the_long_way_round(west: float, east: float) -> None:
    unit = 20037508.342789244 / 180
    text = projected(box_text(0, -10, 1, 10), PACIFIC)
    _, south, _, north = shapely.bounds(shapely.from_wkt(text))
    made, result = one(box_text((west - 150) * unit, south, (east - 150) * unit, north), POLYGONS, PACIFIC)
    beyond = [(-180, -10, east - 360, 10)] if east > 180 else []
    assert same(shapely.set_precision(made, 1e-6), (west, -10, min(east, 180), 10), *beyond)
    assert (made.is_valid, result.divided) == (True, len(beyond))


def test_nothing_is_left_of_what_is_collapsed_across_the_antimeridian() -> None:
    made, result = one("POLYGON ((170 0, 190 0, 170 0, 170 0))", POLYGONS)
    assert (made.wkt, result.repaired, result.divided) == ("MULTIPOLYGON EMPTY", 1, 0)


END = 180 - 1e-9


@pytest.mark.parametrize(
    ("source", "target", "box", "ends"),
    [
        (DEGREES, WEB, (170, 10, 190, 20), (END, -END)),
        (DEGREES, WEB, (-190, 10, -170, 20), (END, -END)),
        (DEGREES, "EPSG:3395", (170, 10, 190, 20), (END, -END)),
        (DEGREES, EQUAL_EARTH, (170, -20, 190, 70), (END, -END)),
        (PACIFIC, WEB, (170, 10, 190, 20), (END, -END)),
        (FIJI, WEB, (178, -18, 182, -16), (END, -END)),
        (DEGREES, PACIFIC, (-40, 0, -20, 10), (END - 210, 150 - END)),  # where its own map ends
        (DEGREES, EQUAL_EARTH_PACIFIC, (-40, 0, -20, 10), (END - 210, 150 - END)),
        (DEGREES, PACIFIC, (170, 10, 190, 20), None),
        (DEGREES, EQUAL_EARTH_PACIFIC, (170, 10, 190, 20), None),
        (DEGREES, "EPSG:32660", (178, 10, 182, 11), None),
        (FIJI, FIJI, (178, -18, 182, -16), None),
        (DEGREES, WEB, (190, 10, 200, 20), None),
        (DEGREES, WEB, (-170, 10, 170, 20), None),
        (DEGREES, WEB, (-END, -80, END, 80), None),
        (WEB, WEB, (-170, 10, 170, 20), None),
        (ROBINSON, WEB, (-100, -30, 100, 30), None),
    ],
)
def test_what_goes_across_the_end_of_a_projected_map_is_divided_there(
    source: str, target: str, box: tuple[float, float, float, float], ends: tuple[float, float] | None
) -> None:
    text = box_text(*box) if source == DEGREES else projected(box_text(*box), source, segment=1000)
    made, result = one(text, POLYGONS, source, target)
    west, south, east, north = box
    wanted = [box] if ends is None else [(west, south, ends[0], north), (ends[1], south, east, north)]
    areas = [shapely.area(shapely.from_wkt(projected(box_text(*each), target, segment=1000))) for each in wanted]
    assert sorted(shapely.area(shapely.get_parts(made))) == pytest.approx(sorted(areas), rel=1e-3)
    assert (made.is_valid, result.repaired, result.divided) == (True, 0, len(wanted) - 1)
    assert result.bounds == pytest.approx(made.bounds)


def test_lines_and_members_are_divided_on_a_projected_map() -> None:
    width = 20037508.342789244
    made, result = one("LINESTRING Z (175 0 1, 185 0 3)", Shape(type="MultiLineString", has_z=True), DEGREES, WEB)
    found = shapely.get_coordinates(made, include_z=True)
    x = width * 175 / 180
    np.testing.assert_allclose(found, [[x, 0, 1], [width, 0, 2], [-width, 0, 2], [-x, 0, 3]], atol=1e-6)
    assert result.divided == 1
    texts = ["POINT (1 1)", "GEOMETRYCOLLECTION (POINT (190 0), LINESTRING (170 0, 190 0))", "POINT (2 2)"]
    several = prepared(of_text(*texts), source=DEGREES, target=WEB)
    assert [each.geom_type for each in read_all(several.wkb)] == ["MultiPoint", "GeometryCollection", "MultiPoint"]
    assert several.divided == 1
    assert several.bounds is not None
    assert several.bounds[::2] == pytest.approx((-width, width))


@settings(max_examples=40)
@given(st.floats(-300, 300), st.floats(0.5, 170), st.integers(-80, 60))
def test_nothing_is_lost_or_left_outside(west: float, width: float, south: int) -> None:
    given_box = (west, south, west + width, south + 10)
    result = prepared(of_text(box_text(*given_box)), POLYGONS, source=DEGREES)
    (made,) = read_all(result.wkb)
    assert made.is_valid
    assert made.area == pytest.approx(width * 10)
    assert result.bounds is not None
    assert result.bounds[0] >= -180 - 1e-6
    assert result.bounds[2] <= 180 + 1e-6
