"""Files that ogr2ogr wrote, with GDAL's own options: what it was given is what we read."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import shapely
from pyproj import Transformer
from tests.integration.handlers.vector.sources import Desk, archive
from tests.integration.handlers.vector.test_more_formats import packed
from tests.integration.handlers.vector.writers import write_layer

OGR2OGR = shutil.which("ogr2ogr")
NAMES, NUMBERS, SIZES = ["Zoë", "b", "c d"], [7, 0, -3], [1.5, 0.1, 250.25]
AREAS = [shapely.box(n, 50 + n, n + 1, 51 + n) for n in range(3)]
POINTS = [shapely.Point(n + 0.25, 50 + n) for n in range(3)]
MERCATOR = "-t_srs EPSG:3857"
# The ending of what is written, the driver, and its options: at least five of each.
WRITERS: dict[str, tuple[str, str, list[str]]] = {
    "GPKG": (
        "gpkg",
        "area",
        ["", "-lco SPATIAL_INDEX=NO", "-lco FID=nr", "-lco GEOMETRY_NAME=shape", "-dsco VERSION=1.0", MERCATOR],
    ),
    "ESRI Shapefile": (
        "shp",
        "area",
        ["", "-lco ENCODING=UTF-8", "-lco ENCODING=CP1252", "-lco SPATIAL_INDEX=YES", "-nlt POLYGONZ", MERCATOR],
    ),
    "GeoJSON": (
        "geojson",
        "area",
        [
            "",
            "-lco RFC7946=YES",
            "-lco WRITE_BBOX=YES",
            "-lco COORDINATE_PRECISION=9",
            "-lco ID_GENERATE=YES",
            MERCATOR,
        ],
    ),
    "GeoJSONSeq": (
        "geojsonl",
        "area",
        ["", "-lco RS=YES", "-lco COORDINATE_PRECISION=9", "-lco SIGNIFICANT_FIGURES=12", "-lco ID_GENERATE=YES"],
    ),
    "FlatGeobuf": (
        "fgb",
        "area",
        ["", "-lco SPATIAL_INDEX=NO", "-nlt MULTIPOLYGON", "-nlt POLYGON25D", "-nln other", MERCATOR],
    ),
    "LIBKML": (
        "kml",
        "area",
        [
            "",
            "-dsco LIBKML_NAME_FIELD=title",
            "-lco ADD_REGION=YES",
            "-lco NAME=Areas",
            "-dsco AUTHOR_NAME=x",
            MERCATOR,
        ],
    ),
    "GML": (
        "gml",
        "area",
        [
            "",
            "-dsco FORMAT=GML2",
            "-dsco FORMAT=GML3.2",
            "-dsco GML3_LONGSRS=NO",
            "-dsco SRSDIMENSION_LOC=POSLIST",
            "-dsco STRIP_PREFIX=TRUE",
            MERCATOR,
        ],
    ),
    "GPX": (
        "gpx",
        "point",
        [
            "-dsco GPX_USE_EXTENSIONS=YES",
            "-dsco GPX_USE_EXTENSIONS=YES -dsco GPX_EXTENSIONS_NS=x",
            "-dsco GPX_USE_EXTENSIONS=YES -lco LINEFORMAT=CRLF",
            "-dsco GPX_USE_EXTENSIONS=YES -dsco LINEFORMAT=LF",
            "-dsco GPX_USE_EXTENSIONS=YES -lco FORCE_GPX_TRACK=YES",
        ],
    ),
    "MapInfo File": (
        "tab",
        "area",
        [
            "",
            "-dsco FORMAT=TAB",
            "-lco ENCODING=CP1252",
            "-dsco SPATIAL_INDEX_MODE=OPTIMIZED",
            "-lco BOUNDS=-180,-90,180,90",
        ],
    ),
    "MapInfo interchange": (
        "mif",
        "area",
        ["", "-dsco FORMAT=MIF", "-lco ENCODING=CP1252", "-lco BOUNDS=-180,-90,180,90", "-nln other"],
    ),
    "OpenFileGDB": (
        "gdb",
        "area",
        ["", "-lco FEATURE_DATASET=set", "-lco FID=nr", "-lco GEOMETRY_NAME=g", "-lco LAYER_ALIAS=x", MERCATOR],
    ),
    "CSV": (
        "csv",
        "point",
        [
            "-lco GEOMETRY=AS_WKT",
            "-lco GEOMETRY=AS_XY",
            "-lco GEOMETRY=AS_WKT -lco SEPARATOR=SEMICOLON",
            "-lco GEOMETRY=AS_XY -lco SEPARATOR=TAB",
            "-lco GEOMETRY=AS_WKT -lco STRING_QUOTING=ALWAYS -lco WRITE_BOM=YES",
        ],
    ),
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def write_original(file: Path, shapes: list[Any]) -> None:
    rows = zip(NAMES, NUMBERS, SIZES, shapes, strict=True)
    listed = [
        {
            "type": "Feature",
            "properties": {"title": name, "number": number, "size": size},
            "geometry": shapely.geometry.mapping(shape),
        }
        for name, number, size, shape in rows
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))


def put(desk: Desk, folder: Path, ending: str) -> str:
    """Put what was written into the storage, as a partner would send it."""
    if ending == "gdb":
        desk.put("bronze/a.zip", packed(folder / "a.gdb", "a.gdb/"))
    elif ending in {"shp", "tab", "mif"}:
        desk.put("bronze/a.zip", archive({file.name: file.read_bytes() for file in folder.iterdir()}))
    else:
        desk.put(f"bronze/a.{ending}", (folder / f"a.{ending}").read_bytes())
        return f"bronze/a.{ending}"
    return "bronze/a.zip"


@pytest.mark.skipif(OGR2OGR is None, reason="there is no ogr2ogr")
@pytest.mark.parametrize("driver", WRITERS)
def test_what_ogr2ogr_wrote_is_read(desk: Desk, tmp_path: Path, driver: str) -> None:
    ending, kind, variants = WRITERS[driver]
    shapes = POINTS if kind == "point" else AREAS
    original = tmp_path / "original.geojson"
    write_original(original, shapes)
    for number, options in enumerate(variants):
        folder = tmp_path / f"made{number}"
        folder.mkdir()
        form = "MapInfo File" if ending == "mif" else driver
        command = [str(OGR2OGR), "-f", form, *options.split(), str(folder / f"a.{ending}"), str(original)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, (options, done.stderr)
        check(desk, put(desk, folder, ending), shapes, options)


def value_of(row: dict[str, Any], *names: str) -> Any:
    """Return the first that a row has of some fields; formats change their case, and GPX puts a prefix before them."""
    values = {key.casefold().removeprefix("ogr_"): value for key, value in row.items()}
    return next(values[name] for name in names if name in values)


def check(desk: Desk, path: str, shapes: list[Any], options: str, tolerance: float = 1e-6) -> list[dict[str, Any]]:
    """Compare what is read with what the writer was given, and return the rows in the order of the original."""
    asked = {"source_crs": "EPSG:4326"} if path.endswith((".csv", ".topojson")) else {}
    opened = desk.open(path, **asked)
    rows: list[dict[str, Any]] = desk.read(opened).to_pylist()
    assert len(rows) == len(shapes), options
    rows.sort(key=lambda row: NUMBERS.index(int(float(value_of(row, "number")))))  # an index changes the order
    to_degrees: Any = Transformer.from_crs(opened.crs, "EPSG:4326", always_xy=True).transform
    for row, name, number, size, shape in zip(rows, NAMES, NUMBERS, SIZES, shapes, strict=True):
        assert str(value_of(row, "title", "name")) == name, options
        assert float(value_of(row, "number")) == number, options
        assert float(value_of(row, "size")) == size, options
        found = shapely.transform(shapely.from_wkt(row["wkt"]), to_degrees, interleaved=False)
        found = shapely.force_2d(found)
        assert found.bounds == pytest.approx(shape.bounds, abs=tolerance), options
        assert found.symmetric_difference(shape).area < 10 * tolerance, options
    return rows


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"WRITE_GEOMETRY": "NO"},
        {"COORDINATE_PRECISION_PLACE": "4"},
        {"ID_GENERATE": "YES"},
        {"WRITE_BBOX": "YES"},
    ],
    ids=str,
)
@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32631"])
def test_json_fg_as_gdal_writes_it_is_read(desk: Desk, options: dict[str, str], crs: str) -> None:
    to_crs: Any = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform
    wkb: list[bytes | None] = [shapely.to_wkb(shapely.transform(each, to_crs, interleaved=False)) for each in AREAS]
    columns: list[tuple[str, str, list[Any]]] = [
        ("title", "text", NAMES),
        ("number", "int32", NUMBERS),
        ("size", "float64", SIZES),
    ]
    file = desk.folder / "bronze/a.json"
    described: dict[str, Any] = {"geometry_type": "Polygon", "crs": crs, **options}
    write_layer(file, "JSONFG", columns, wkb, **described)
    assert desk.open("bronze/a.json").crs == crs
    check(
        desk,
        "bronze/a.json",
        AREAS,
        str(options),
        tolerance=1e-4 if options.get("COORDINATE_PRECISION_PLACE") else 1e-6,
    )
