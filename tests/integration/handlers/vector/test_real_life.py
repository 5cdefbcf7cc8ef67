"""Files as partners really send them: each goes the whole way, and is asked for as a client does."""

import json
import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pyogrio.raw
import pyproj
import pytest
import shapely
from shapely.geometry.base import BaseGeometry
from tests.integration.handlers.vector.ingesting import Ingestion, Loaded, Refused, original
from tests.integration.handlers.vector.writers import write_layer
from tests.integration.handlers.vector.written import wkb_of, zipped

SQUARE = shapely.box(1, 2, 3, 4)
FIJI = [(178.0, -17.8), (177.4, -17.6), (179.3, -16.5)]


def geojson(ingestion: Ingestion, shapes: list[Any], properties: list[dict[str, Any]] | None = None) -> Path:
    """Write shapes, or what stands for them in JSON, as GeoJSON."""
    features = [
        {
            "type": "Feature",
            "properties": {} if properties is None else properties[number],
            "geometry": shapely.geometry.mapping(shape) if isinstance(shape, BaseGeometry) else shape,
        }
        for number, shape in enumerate(shapes)
    ]
    file = ingestion.new_file("geojson")
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


def geopackage(ingestion: Ingestion, shapes: list[Any], crs: str = "EPSG:4326", kind: str = "Unknown") -> Path:
    file = ingestion.new_file("gpkg")
    columns = [("n", "int64", list(range(len(shapes))))]
    write_layer(file, "GPKG", columns, wkb_of(shapes), geometry_type=kind, crs=crs, SPATIAL_INDEX="NO")
    return file


def csv(ingestion: Ingestion, text: str, encoding: str = "utf-8") -> Path:
    file = ingestion.new_file("csv")
    file.write_bytes(text.encode(encoding))
    return file


def projected(shape: BaseGeometry, crs: str) -> BaseGeometry:
    turned: Any = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform
    return shapely.transform(shape, turned, include_z=shape.has_z, interleaved=False)


def only(loaded: Loaded) -> BaseGeometry:
    (shape,) = loaded.shapes
    assert shape is not None
    return shape


def codes(ingestion: Ingestion, file: Path, **options: Any) -> str | None:
    """Give the code with which a file is refused."""
    with pytest.raises(Refused) as refused:
        ingestion.load(file, **options)
    assert not refused.value.retryable
    assert ingestion.rows.tables() == []
    return refused.value.code


# The antimeridian

CROSSING = shapely.box(179, -18, 181, -17)
DIVIDED = shapely.MultiPolygon([shapely.box(179, -18, 180, -17), shapely.box(-180, -18, -179, -17)])


@pytest.mark.parametrize("crs", ["EPSG:3460", "EPSG:3832", "EPSG:2193"], ids=["Fiji", "Pacific", "New Zealand"])
def test_a_projected_polygon_across_the_antimeridian_is_cut(ingestion: Ingestion, crs: str) -> None:
    assert_divided(ingestion.load(geopackage(ingestion, [projected(CROSSING.segmentize(0.05), crs)], crs)))


@pytest.mark.parametrize("west", [179, -181], ids=["beyond 180", "below -180"])
def test_longitudes_beyond_the_antimeridian_are_brought_back(ingestion: Ingestion, west: float) -> None:
    assert_divided(ingestion.load(geojson(ingestion, [shapely.box(west, -18, west + 2, -17)])))


def assert_divided(loaded: Loaded) -> None:
    shape = only(loaded)
    assert shape.is_valid
    assert shape.area == pytest.approx(2, rel=1e-3)
    assert len(shapely.get_parts(shape)) == 2
    assert shape.symmetric_difference(DIVIDED).area == pytest.approx(0, abs=2e-3)
    assert all(abs(longitude) <= 180 for longitude in shapely.get_coordinates(shape)[:, 0])
    west, _, east, _ = loaded.result["bbox"]
    assert (west, east) == (pytest.approx(179, abs=0.05), pytest.approx(-179, abs=0.05))
    assert "across_antimeridian" in loaded.fixes
    assert loaded.result["divided"] == 1


def test_longitudes_from_0_to_360_become_those_about_greenwich(ingestion: Ingestion) -> None:
    loaded = ingestion.load(
        geojson(ingestion, [shapely.Point(350, 10), shapely.Point(10, 10), shapely.box(200, 0, 210, 5)])
    )
    points = [shapely.MultiPoint([(-10, 10)]), shapely.MultiPoint([(10, 10)])]
    for sent, found in zip(
        [*points, shapely.MultiPolygon([shapely.box(-160, 0, -150, 5)])], loaded.shapes, strict=True
    ):
        assert found is not None
        assert shapely.equals_exact(found.normalize(), sent.normalize(), 1e-7)


@pytest.mark.parametrize(
    "shape",
    [
        DIVIDED,
        shapely.MultiPolygon([shapely.box(-180, -90, 180, 90)]),
        shapely.MultiPolygon([shapely.box(-170, -80, 170, 80)]),
    ],
    ids=["divided already", "the world", "most of the world"],
)
def test_what_does_not_cross_the_antimeridian_stays_as_it_is(ingestion: Ingestion, shape: BaseGeometry) -> None:
    loaded = ingestion.load(geojson(ingestion, [shape]))
    assert shapely.equals_exact(only(loaded).normalize(), shape.normalize(), 1e-7)
    assert loaded.result["divided"] == 0


def test_a_line_across_the_antimeridian_is_cut(ingestion: Ingestion) -> None:
    shape = only(ingestion.load(geojson(ingestion, [shapely.LineString([(178, 0), (182, 4)])])))
    expected = shapely.MultiLineString([[(178, 0), (180, 2)], [(-180, 2), (-178, 4)]])
    assert shapely.equals_exact(shape.normalize(), expected.normalize(), 1e-7)


# Shapes


@pytest.mark.parametrize("empty", [shapely.Point(), shapely.Polygon(), shapely.GeometryCollection(), None], ids=str)
@pytest.mark.parametrize("write", [geopackage, geojson], ids=["GeoPackage", "GeoJSON"])
def test_features_without_a_place_are_kept(ingestion: Ingestion, write: Callable[..., Path], empty: Any) -> None:
    loaded = ingestion.load(write(ingestion, [shapely.Point(1, 2), empty, shapely.Point(3, 4)]))
    first, second, third = loaded.shapes
    assert second is None or second.is_empty
    assert (first, third) == (shapely.MultiPoint([(1, 2)]), shapely.MultiPoint([(3, 4)]))
    assert loaded.result["row_count"] == 3
    assert loaded.result["bbox"] == pytest.approx([1, 2, 3, 4])


def test_empty_wkt_is_kept_without_a_place(ingestion: Ingestion) -> None:
    rows = "n,wkt\n1,POINT (1 2)\n2,POINT EMPTY\n3,GEOMETRYCOLLECTION EMPTY\n4,\n"
    loaded = ingestion.load(csv(ingestion, rows), wkt_column="wkt", source_crs="EPSG:4326")
    assert loaded.values("n") == [1, 2, 3, 4]
    assert [shape is None or shape.is_empty for shape in loaded.shapes] == [False, True, True, True]


@pytest.mark.parametrize("shapes", [[None, None], [], [shapely.Point()]], ids=["null", "none", "empty"])
def test_a_file_without_any_place_is_refused(ingestion: Ingestion, shapes: list[Any]) -> None:
    assert codes(ingestion, geojson(ingestion, shapes)) in {"no_features", "no_geometry"}


@pytest.mark.parametrize("write", [geopackage, geojson], ids=["GeoPackage", "GeoJSON"])
def test_types_may_be_mixed(ingestion: Ingestion, write: Callable[..., Path]) -> None:
    sent: list[Any] = [
        shapely.Point(1, 2),
        shapely.LineString([(1, 2), (3, 4)]),
        SQUARE,
        shapely.MultiPoint([(5, 6), (7, 8)]),
    ]
    loaded = ingestion.load(write(ingestion, sent))
    assert loaded.geometry == "geometry(Geometry,4326)"
    expected = [
        shapely.MultiPoint([sent[0]]),
        shapely.MultiLineString([sent[1]]),
        shapely.MultiPolygon([SQUARE]),
        sent[3],
    ]
    for one, other in zip(expected, loaded.shapes, strict=True):
        assert other is not None
        assert shapely.equals_exact(one.normalize(), other.normalize(), 1e-7)
    assert "mixed_geometries" in loaded.fixes


BOW_TIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
HOLE_OUTSIDE = shapely.Polygon([(0, 0), (2, 0), (2, 2), (0, 2)], [[(5, 5), (6, 5), (6, 6), (5, 6)]])
OVERLAPPING = shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 0, 3, 2)])


@pytest.mark.parametrize(
    ("shape", "area"), [(BOW_TIE, 2), (HOLE_OUTSIDE, 5), (OVERLAPPING, 6)], ids=["bow tie", "hole outside", "overlap"]
)
def test_a_shape_that_crosses_itself_is_repaired(ingestion: Ingestion, shape: BaseGeometry, area: float) -> None:
    loaded = ingestion.load(geopackage(ingestion, [shape, SQUARE], kind=shape.geom_type))
    found, other = loaded.shapes
    assert found is not None
    assert found.is_valid
    assert found.geom_type == "MultiPolygon"
    assert area - 2 <= found.area <= area
    assert shapely.equals_exact(other, shapely.MultiPolygon([SQUARE]).normalize(), 1e-7) or other.equals(SQUARE)  # type: ignore[union-attr]
    assert loaded.geometry == "geometry(MultiPolygon,4326)"
    assert "invalid_geometries" in loaded.fixes
    assert loaded.result["repaired"] == 1


FLAT = shapely.Polygon([(0, 0), (1, 1), (2, 2), (0, 0)])
SPIKE = shapely.Polygon([(0, 0), (2, 0), (2, 2), (2, 5), (2, 2), (0, 2)])


@pytest.mark.parametrize(("shape", "area"), [(FLAT, 0), (SPIKE, 4)], ids=["flat", "spike"])
def test_what_collapses_does_not_spoil_the_table(ingestion: Ingestion, shape: BaseGeometry, area: float) -> None:
    loaded = ingestion.load(geopackage(ingestion, [shape, SQUARE], kind="Polygon"))
    found = loaded.shapes[0]
    assert found is not None
    assert found.area == pytest.approx(area)
    assert found.bounds == (0, 0, 2, 2)
    assert loaded.geometry == "geometry(MultiPolygon,4326)"
    assert loaded.values("n") == [0, 1]


def test_a_flat_part_of_a_good_geometry_is_left_out_and_named(ingestion: Ingestion) -> None:
    loaded = ingestion.load(geopackage(ingestion, [SQUARE, shapely.MultiPolygon([SQUARE, FLAT])], kind="Unknown"))
    assert loaded.shapes[1] is not None
    assert loaded.shapes[1].equals(SQUARE)
    told = {each["code"]: (each["severity"], each["where"]) for each in loaded.source["findings"]}
    assert told["flat_geometries"] == ("warning", "feature 2")


def test_a_line_of_one_place_does_not_spoil_the_table(ingestion: Ingestion) -> None:
    lines = [shapely.LineString([(1, 1), (1, 1)]), shapely.LineString([(1, 1), (2, 2)])]
    loaded = ingestion.load(geopackage(ingestion, lines, kind="LineString"))
    assert loaded.geometry == "geometry(MultiLineString,4326)"
    assert loaded.values("n") == [0, 1]
    assert loaded.shapes[0] is not None
    assert loaded.shapes[0].bounds == (1, 1, 1, 1)


def test_curves_of_a_geopackage_become_lines(ingestion: Ingestion) -> None:
    circle = struct.pack("<BII", 1, 10, 1) + struct.pack("<BII6d", 1, 8, 3, 0, 0, 2, 0, 0, 0)
    file = ingestion.new_file("gpkg")
    values = np.array([shapely.to_wkb(SQUARE), circle], dtype=object)
    pyogrio.raw.write(
        file, values, [np.arange(2)], ["n"], crs="EPSG:4326", driver="GPKG", geometry_type="Unknown", layer="a"
    )
    loaded = ingestion.load(file)
    assert loaded.geometry == "geometry(MultiPolygon,4326)"
    assert "curved_geometries" in loaded.fixes
    assert loaded.shapes[1] is not None
    assert loaded.shapes[1].area == pytest.approx(math.pi, rel=1e-2)


def test_unclosed_rings_of_geojson_are_closed_and_named(ingestion: Ingestion) -> None:
    file = ingestion.new_file("geojson")
    ring = [[0, 0], [2, 0], [2, 2], [0, 2]]
    shapes: list[dict[str, Any]] = [
        {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
        {"type": "Polygon", "coordinates": [ring]},
        {"type": "MultiPolygon", "coordinates": [[[*ring, ring[0]]], [[[5, 5], [6, 6]]]]},
    ]
    features = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in shapes]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    loaded = ingestion.load(file)
    assert [shape and shape.area for shape in loaded.shapes] == [4, 4, 4]
    found = {each["code"]: each["where"] for each in loaded.result["validation"]["findings"]}
    assert found["unclosed_rings"] == "features 2, 3"
    assert found["short_rings"] == "feature 3"


@pytest.mark.parametrize("number", [float("nan"), float("inf")], ids=str)
def test_coordinates_that_are_no_numbers_end_in_a_clear_state(ingestion: Ingestion, number: float) -> None:
    with np.errstate(invalid="ignore"):
        line = shapely.linestrings([[0, 0], [number, 1], [2, 2]])
    file = geopackage(ingestion, [line, shapely.LineString([(1, 1), (2, 2)])], kind="LineString")
    found = ingestion.attempted(file)
    if isinstance(found, Loaded):
        assert found.shapes[0] is None or shapely.get_coordinates(found.shapes[0]).max() < 3


@pytest.mark.parametrize("write", [geopackage, geojson], ids=["GeoPackage", "GeoJSON"])
def test_a_collection_of_geometries_stays_one(ingestion: Ingestion, write: Callable[..., Path]) -> None:
    parts = [shapely.Point(1, 2), shapely.LineString([(1, 2), (3, 4)]), SQUARE]
    loaded = ingestion.load(
        write(ingestion, [shapely.GeometryCollection(parts), shapely.GeometryCollection(parts[:1])])
    )
    assert loaded.geometry in {"geometry(GeometryCollection,4326)", "geometry(Geometry,4326)"}
    first, second = loaded.shapes
    assert first is not None
    assert second is not None
    kinds = [part.geom_type.removeprefix("Multi") for part in shapely.get_parts(first)]
    assert kinds == ["Point", "LineString", "Polygon"]
    assert first.equals(shapely.GeometryCollection(parts))
    assert second.equals(shapely.Point(1, 2))


def test_a_collection_with_an_invalid_part_is_repaired(ingestion: Ingestion) -> None:
    found = only(ingestion.load(geojson(ingestion, [shapely.GeometryCollection([shapely.Point(9, 9), BOW_TIE])])))
    assert found.is_valid
    assert found.area == pytest.approx(2)
    assert found.intersects(shapely.Point(9, 9))


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32660"])
def test_heights_are_kept(ingestion: Ingestion, crs: str) -> None:
    shape = shapely.from_wkt("POLYGON Z ((177 1 5.5, 178 1 6.5, 178 2 7.5, 177 1 5.5))")
    loaded = ingestion.load(
        geopackage(ingestion, [projected(shape, crs) if crs != "EPSG:4326" else shape], crs, "Polygon Z")
    )
    assert loaded.geometry == "geometry(MultiPolygonZ,4326)"
    assert sorted(shapely.get_coordinates(only(loaded), include_z=True)[:, 2])[1:] == pytest.approx([5.5, 6.5, 7.5])


def test_a_repaired_shape_keeps_its_heights(ingestion: Ingestion) -> None:
    shape = shapely.from_wkt("POLYGON Z ((0 0 5, 2 2 5, 2 0 5, 0 2 5, 0 0 5))")
    found = only(ingestion.load(geopackage(ingestion, [shape], kind="Polygon Z")))
    assert found.is_valid
    assert set(shapely.get_coordinates(found, include_z=True)[:, 2]) == {5.0}


def test_heights_of_some_are_heights_of_all(ingestion: Ingestion) -> None:
    loaded = ingestion.load(geojson(ingestion, [shapely.Point(1, 2), shapely.Point(3, 4, 5)]))
    assert loaded.geometry == "geometry(MultiPointZ,4326)"
    assert [shapely.get_coordinates(shape, include_z=True)[0, 2] for shape in loaded.shapes] == [0, 5]


def parquet(ingestion: Ingestion, wkb: list[bytes]) -> Path:
    file = ingestion.new_file("parquet")
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "geometry_types": []}}}
    pa.parquet.write_table(pa.table({"g": wkb}).replace_schema_metadata({"geo": json.dumps(geo)}), file)
    return file


@pytest.mark.parametrize("wkt", ["POINT M (1 2 7.5)", "POINT ZM (1 2 3 7.5)"])
def test_measures_are_kept(ingestion: Ingestion, wkt: str) -> None:
    job, file = ingestion.rows.new_job(), parquet(ingestion, wkb_of([shapely.from_wkt(wkt)]))  # type: ignore[arg-type]
    ingestion.loaded(job, ingestion.validated(job, file), "direct_measured")
    (row,) = ingestion.rows.ask(
        "SELECT ST_M(ST_GeometryN(geom, 1)) AS m, ST_Z(ST_GeometryN(geom, 1)) AS z FROM geo.direct_measured"
    )
    assert row == {"m": 7.5, "z": 3 if "Z" in wkt else None}


@pytest.mark.parametrize("crs", ["EPSG:2056", "EPSG:3857", "EPSG:4258", "EPSG:31468", "EPSG:3035", "EPSG:32632"])
def test_every_projection_ends_in_degrees(ingestion: Ingestion, crs: str) -> None:
    """Some of them have north before east by their definition; files do not."""
    sent = shapely.LineString([(8.5, 47.3), (11.5, 48.1)])
    loaded = ingestion.load(geopackage(ingestion, [projected(sent, crs)], crs, "LineString"))
    assert shapely.equals_exact(only(loaded), shapely.MultiLineString([sent]), 1e-7)


# Axes


def swapped_geopackage(ingestion: Ingestion) -> tuple[Path, dict[str, str]]:
    return geopackage(ingestion, [shapely.Point(y, x) for x, y in FIJI], kind="Point"), {}


def swapped_geojson(ingestion: Ingestion) -> tuple[Path, dict[str, str]]:
    return geojson(ingestion, [shapely.Point(y, x) for x, y in FIJI]), {}


def swapped_wkt(ingestion: Ingestion) -> tuple[Path, dict[str, str]]:
    rows = "".join(f"POINT ({y} {x})\n" for x, y in FIJI)
    return csv(ingestion, f"wkt,\n{rows}".replace("wkt,", "wkt")), {"wkt_column": "wkt", "source_crs": "EPSG:4326"}


def swapped_columns(ingestion: Ingestion) -> tuple[Path, dict[str, str]]:
    rows = "".join(f"{y},{x}\n" for x, y in FIJI)
    return csv(ingestion, f"a,b\n{rows}"), {"x_column": "a", "y_column": "b", "source_crs": "EPSG:4326"}


@pytest.mark.parametrize("write", [swapped_geopackage, swapped_geojson, swapped_wkt, swapped_columns])
def test_north_before_east_is_seen_and_mended(ingestion: Ingestion, write: Callable[..., tuple[Path, Any]]) -> None:
    file, options = write(ingestion)
    loaded = ingestion.load(file, **options)
    assert [shapely.get_coordinates(shape)[0].tolist() for shape in loaded.shapes] == [list(place) for place in FIJI]
    assert "swapped_axes" in loaded.fixes
    assert loaded.result["bbox"] == pytest.approx([177.4, -17.8, 179.3, -16.5])


# Columns

STRANGE = [
    *(
        "geom",
        "id",
        "select",
        "FID",
        "fid",
        "ogc_fid",
        "Name",
        "NAME",
        "name",
        "Größe",
        "名前",
        "",
        "ctid",
        "order by 1",
    ),
    *("x" * 200, "x" * 199 + "y", "X" * 200, "user", "version", "limit", "bbox"),
]


def test_columns_of_any_name_are_kept_in_their_order(ingestion: Ingestion) -> None:
    values = {name: f"value {number}" for number, name in enumerate(STRANGE)}
    loaded = ingestion.load(geojson(ingestion, [shapely.Point(1, 2)], [values]))
    names = [column["name"] for column in loaded.columns]
    assert [loaded.values(name) for name in names] == [[value] for value in values.values()]
    assert [original(column) for column in loaded.columns] == STRANGE
    assert len({name.lower() for name in names} | {"fid", "geom"}) == len(STRANGE) + 2
    assert all(len(name.encode()) <= 63 for name in names)


def test_values_of_several_kinds_in_one_column_are_kept(ingestion: Ingestion) -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": 2**60 + 1, "c": 1},
        {"a": "one", "b": 0.5, "c": True},
        {"a": [1], "b": None, "c": None},
    ]
    loaded = ingestion.load(geojson(ingestion, [shapely.Point(1, 2)] * 3, rows))
    assert [str(value) for value in loaded.values("a")] in (["1", "one", "[1]"], ["1", "one", "[ 1 ]"])
    assert loaded.values("b")[1:] == [0.5, None]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z"], "timestamp with time zone"),
        (["2024-05-01T12:00:00", "2024-05-01T10:00:00"], "timestamp without time zone"),
    ],
    ids=["zones", "none"],
)
def test_zones_of_times_are_right(ingestion: Ingestion, texts: list[str], kind: str) -> None:
    loaded = ingestion.load(geojson(ingestion, [shapely.Point(1, 2)] * 2, [{"at": text} for text in texts]))
    assert [column["type"] for column in loaded.columns] == [kind]
    first, second = loaded.values("at")
    if kind == "timestamp with time zone":
        assert first == second == "2024-05-01T10:00:00+00:00"
    else:
        assert (first, second) == tuple(texts)


# Shapefiles


def shapefile(ingestion: Ingestion, text: str = "Zürich", encoding: str = "utf-8", named: str = "UTF-8") -> list[Path]:
    """Write a Shapefile whose text is in an encoding, whatever it names, and give its parts."""
    folder = ingestion.new_file("shp").parent / "parts"
    data = text.encode(encoding)
    columns: list[Any] = [("name", "text", ["x" * len(data), None]), ("n", "int64", [1, 2])]
    shapes = wkb_of([shapely.Point(8.5, 47.3), shapely.Point(7.4, 46.9)])
    write_layer(folder / "places.shp", "ESRI Shapefile", columns, shapes, geometry_type="Point")
    table = folder / "places.dbf"
    table.write_bytes(table.read_bytes().replace(b"x" * len(data), data))
    (folder / "places.cpg").write_text(named)
    return sorted(folder.iterdir())


def marked(parts: list[Path], mark: int) -> list[Path]:
    """Set the mark of the encoding in the table."""
    (table,) = [part for part in parts if part.suffix == ".dbf"]
    data = bytearray(table.read_bytes())
    data[29] = mark
    table.write_bytes(data)
    return parts


def packed(ingestion: Ingestion, parts: list[Path], *leave_out: str) -> Path:
    file = ingestion.new_file("zip")
    zipped(file, [part for part in parts if part.suffix not in leave_out])
    return file


def test_a_shapefile_without_prj_needs_a_crs(ingestion: Ingestion) -> None:
    file = packed(ingestion, shapefile(ingestion), ".prj")
    assert codes(ingestion, file) == "no_crs"
    loaded = ingestion.load(file, source_crs="EPSG:4326")
    assert shapely.equals_exact(loaded.shapes[0], shapely.MultiPoint([(8.5, 47.3)]), 1e-7)


def test_a_shapefile_without_dbf_has_shapes_alone_or_is_refused(ingestion: Ingestion) -> None:
    file = packed(ingestion, shapefile(ingestion), ".dbf")
    found = ingestion.attempted(file)
    if isinstance(found, Refused):
        assert found.code == "missing_part"
    else:
        assert found.columns == []
        assert len(found.features) == 2


@pytest.mark.parametrize("part", [".shp", ".shx"])
def test_a_shapefile_without_its_other_parts_is_refused_or_read(ingestion: Ingestion, part: str) -> None:
    file = packed(ingestion, shapefile(ingestion), part)
    found = ingestion.attempted(file)
    if isinstance(found, Refused):
        assert found.code in {"missing_part", "not_a_vector"}
    else:
        assert part == ".shx"
        assert found.values("n") == [1, 2]


def test_texts_that_are_not_in_the_encoding_that_the_file_names(ingestion: Ingestion) -> None:
    file = packed(ingestion, shapefile(ingestion, encoding="cp1252", named="UTF-8"))
    found = ingestion.attempted(file)
    if isinstance(found, Refused):
        assert found.code in {"unknown_encoding", "not_utf8"}
    else:
        assert found.values("name") == ["Zürich", None]
        assert "other_encoding" in found.fixes
    assert ingestion.load(file, encoding="CP1252").values("name") == ["Zürich", None]


@pytest.mark.parametrize(
    ("mark", "text", "encoding"), [(0x57, "Zürich", "cp1252"), (0x65, "Москва", "cp866"), (0xC9, "Москва", "cp1251")]
)
def test_the_encoding_is_known_from_the_mark_in_the_table(
    ingestion: Ingestion, mark: int, text: str, encoding: str
) -> None:
    parts = marked(shapefile(ingestion, text, encoding), mark)
    assert ingestion.load(packed(ingestion, parts, ".cpg")).values("name") == [text, None]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_an_encoding_that_the_file_does_not_name(ingestion: Ingestion, encoding: str) -> None:
    parts = marked(shapefile(ingestion, encoding=encoding), 0)
    file = packed(ingestion, parts, ".cpg")
    assert ingestion.load(file, encoding=encoding).values("name") == ["Zürich", None]
    found = ingestion.attempted(file)
    if isinstance(found, Refused):
        assert found.code == "unknown_encoding"
    else:
        assert found.values("name") == ["Zürich", None]


def test_one_of_several_shapefiles_has_to_be_named(ingestion: Ingestion) -> None:
    parts = shapefile(ingestion)
    file = ingestion.new_file("zip")
    with zipfile.ZipFile(file, "w") as archive:
        for part in parts:
            archive.write(part, f"folder/{part.name}")
            archive.write(part, f"folder/other{part.suffix}")
            archive.writestr(f"__MACOSX/folder/._{part.name}", b"\0\x05\x16\x07")
    assert codes(ingestion, file) == "several_layers"
    assert codes(ingestion, file, layer="none") == "unknown_layer"
    assert ingestion.load(file, layer="other").values("name") == ["Zürich", None]


def test_names_of_parts_may_have_any_case(ingestion: Ingestion) -> None:
    file = ingestion.new_file("zip")
    with zipfile.ZipFile(file, "w") as archive:
        for part in shapefile(ingestion):
            archive.write(part, f"PLACES{part.suffix.upper()}")
    assert ingestion.load(file).values("name") == ["Zürich", None]


# Texts with coordinates

CITY: dict[str, Any] = {"x_column": "lon", "y_column": "lat", "source_crs": "EPSG:4326"}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,lon,lat,name\n007,8.5,47.3,Zürich\n008,7.4,46.9,Bern\n", CITY),
        ("\ufeffid;lon;lat;name\r\n007;8.5;47.3;Zürich\r\n008;7.4;46.9;Bern\r\n", CITY),
        ("id\tlon\tlat\tname\n007\t8.5\t47.3\tZürich\n008\t7.4\t46.9\tBern\n", CITY),
        (
            'id;wkt;name\n007;"POINT (8.5 47.3)";Zürich\n008;"POINT(7.4 46.9)";Bern\n',
            {"wkt_column": "wkt", "source_crs": "EPSG:4326"},
        ),
        ("id,lon,lat,name\n007,8.5,47.3,Zürich\n008,7.4,46.9,Bern\n", {}),
        ("id,longitude,latitude,name\n007,8.5,47.3,Zürich\n008,7.4,46.9,Bern\n", {}),
    ],
    ids=["commas", "BOM and semicolons", "tabs", "WKT", "lon and lat by themselves", "longitude and latitude"],
)
def test_a_text_with_coordinates(ingestion: Ingestion, text: str, options: dict[str, Any]) -> None:
    loaded = ingestion.load(csv(ingestion, text), **options)
    assert [shapely.get_coordinates(shape)[0].tolist() for shape in loaded.shapes] == [[8.5, 47.3], [7.4, 46.9]]
    assert loaded.values("id") == ["007", "008"]
    assert loaded.values("name") == ["Zürich", "Bern"]


def test_commas_in_numbers_are_read_or_refused(ingestion: Ingestion) -> None:
    """A half-read number would put the feature elsewhere."""
    file = csv(ingestion, "name;lon;lat\nZürich;8,5;47,3\n")
    found = ingestion.attempted(file, **CITY)
    if isinstance(found, Loaded):
        assert shapely.get_coordinates(found.shapes[0])[0].tolist() == [8.5, 47.3]


def test_a_text_in_another_encoding_can_be_read(ingestion: Ingestion) -> None:
    file = csv(ingestion, "name,lon,lat\nZürich,8.5,47.3\n", "cp1252")
    assert ingestion.load(file, encoding="CP1252", **CITY).values("name") == ["Zürich"]


def test_a_text_without_coordinates_is_refused(ingestion: Ingestion) -> None:
    assert codes(ingestion, csv(ingestion, "a,b\n1,2\n"), source_crs="EPSG:4326") == "no_coordinates"


def test_a_column_with_some_wkt_has_the_geometries_unless_others_have_coordinates(ingestion: Ingestion) -> None:
    assert codes(ingestion, csv(ingestion, 'id,wkt\n1,x\n2,"POINT (1 2)"\n')) == "unreadable_row"
    loaded = ingestion.load(csv(ingestion, "lon,lat,shape\n1,2,Point (a bend)\n1,2,round\n"))
    assert loaded.values("shape") == ["Point (a bend)", "round"]


def test_whole_numbers_beyond_64_bits_keep_all_their_digits(ingestion: Ingestion) -> None:
    file = csv(ingestion, "n,lon,lat\n123456789012345678901234567890,8.5,47.3\n")
    assert str(ingestion.load(file, **CITY).values("n")[0]) == "123456789012345678901234567890"


# Others


def test_a_flatgeobuf_with_an_index_has_the_order_of_its_file(ingestion: Ingestion) -> None:
    file = ingestion.new_file("fgb")
    shapes = [shapely.Point((n * 37) % 100, (n * 59) % 80) for n in range(20)]
    columns = [("n", "int32", list(range(20)))]
    write_layer(file, "FlatGeobuf", columns, wkb_of(shapes), geometry_type="Point", SPATIAL_INDEX="YES")
    loaded = ingestion.load(file)
    numbers = loaded.values("n")
    assert sorted(numbers) == list(range(20))
    assert loaded.shapes == [shapely.MultiPoint([shapes[n]]) for n in numbers]


def test_one_layer_of_a_geopackage_is_chosen_and_read_in_parts(ingestion: Ingestion) -> None:
    file = ingestion.new_file("gpkg")
    for layer, first in (("one", 0), ("two", 10)):
        columns = [("n", "int32", list(range(first, first + 7)))]
        shapes = wkb_of([shapely.Point(n, n) for n in range(7)])
        write_layer(file, "GPKG", columns, shapes, geometry_type="Point", layer=layer, append=first > 0)
    assert codes(ingestion, file) == "several_layers"
    loaded = ingestion.load(file, layer="two", rows_per_chunk=2)
    assert len(ingestion.chunks(loaded.source, 2)) == 4
    assert loaded.values("n") == list(range(10, 17))


KML = """<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<Folder><name>only</name>
<Placemark><name>Zürich</name><description>&lt;b&gt;bold&lt;/b&gt;</description>
<ExtendedData><Data name="people"><value>400000</value></Data></ExtendedData>
<Point><coordinates>8.5,47.3,400</coordinates></Point></Placemark>
<Placemark><name>Bern</name><Point><coordinates>7.4,46.9,500</coordinates></Point></Placemark>
</Folder></Document></kml>"""


def test_a_map_of_google_earth(ingestion: Ingestion) -> None:
    file = ingestion.new_file("kml")
    file.write_text(KML)
    loaded = ingestion.load(file)
    by_comment = {(column["comment"] or column["name"]).lower(): column["name"] for column in loaded.columns}
    assert loaded.values(by_comment["name"]) == ["Zürich", "Bern"]
    assert loaded.values(by_comment["description"]) == ["<b>bold</b>", None]
    assert [None if value is None else str(value) for value in loaded.values(by_comment["people"])] == ["400000", None]
    assert shapely.get_coordinates(loaded.shapes[0], include_z=True)[0].tolist() == [8.5, 47.3, 400]


def test_big_endian_shapes_in_parquet(ingestion: Ingestion) -> None:
    wkb = [shapely.to_wkb(shapely.Point(1, 2), byte_order=0), shapely.to_wkb(shapely.Point(3, 4))]
    assert ingestion.load(parquet(ingestion, wkb)).shapes == [
        shapely.MultiPoint([(1, 2)]),
        shapely.MultiPoint([(3, 4)]),
    ]
