"""Files that geopandas, DuckDB and topojson wrote, with their own options: what they were given is what we read."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
import shapely
from pyproj import CRS
from tests.integration.handlers.vector.sources import Desk
from tests.integration.handlers.vector.test_other_writers import AREAS, NAMES, NUMBERS, SIZES, check
from topojson.core.topology import Topology

DAYS = ["2024-02-29", "1969-12-31", "2038-01-20"]
COLUMNS: dict[str, list[Any]] = {"title": NAMES, "number": NUMBERS, "size": SIZES, "day": DAYS}
MERCATOR = {"crs": "EPSG:3857"}
GEOPANDAS: dict[str, list[dict[str, Any]]] = {
    "a.parquet": [
        {},
        *({"schema_version": version} for version in ("0.1.0", "0.4.0", "1.0.0-beta.1", "1.0.0", "1.1.0")),
        *({"compression": name} for name in ("snappy", "zstd", "gzip", "brotli", "lz4", None)),
        {"geometry_encoding": "geoarrow"},
        {"geometry_encoding": "geoarrow", "schema_version": "1.1.0", "crs": "EPSG:32631"},
        {"write_covering_bbox": True},
        {"index": True},
        {"index": False, "row_group_size": 1, "data_page_version": "2.0"},
        MERCATOR,
    ],
    "a.gpkg": [
        {},
        {"SPATIAL_INDEX": "NO"},
        {"FID": "nr"},
        {"GEOMETRY_NAME": "shape", "VERSION": "1.0"},
        {"layer": "Ĺ other", "index": True},
        {"use_arrow": True},
        {"promote_to_multi": True},
        MERCATOR,
    ],
    "a.shp.zip": [
        {},
        {"encoding": "UTF-8"},
        {"ENCODING": "CP1252"},
        {"SPATIAL_INDEX": "YES"},
        {"index": True, "SHPT": "POLYGONZ"},
        {"use_arrow": True},
        MERCATOR,
    ],
    "a.geojson": [
        {},
        {"RFC7946": "YES", "WRITE_BBOX": "YES"},
        {"COORDINATE_PRECISION": 9},
        {"ID_GENERATE": "YES", "ID_TYPE": "String"},
        {"use_arrow": True, "WRITE_NAME": "NO"},
        {"to_json": {"show_bbox": True}},
        {"to_json": {"drop_id": True, "to_wgs84": True}, **MERCATOR},
        MERCATOR,
    ],
    "a.fgb": [
        {},
        {"SPATIAL_INDEX": "NO"},
        {"TITLE": "Areas", "DESCRIPTION": "Some areas"},
        {"promote_to_multi": True},
        {"layer": "other", "index": True},
        {"use_arrow": True},
        MERCATOR,
    ],
}
DUCKDB = {
    "a.parquet": [
        "",
        "COMPRESSION zstd, COMPRESSION_LEVEL 9",
        "COMPRESSION brotli",
        "COMPRESSION lz4_raw",
        "COMPRESSION gzip",
        "COMPRESSION uncompressed",
        "PARQUET_VERSION V1",
        "PARQUET_VERSION V2",
        "ROW_GROUP_SIZE 1, FIELD_IDS 'auto'",
        "GEOPARQUET_VERSION 'V1', DICTIONARY_SIZE_LIMIT 0",
        "GEOPARQUET_VERSION 'V2', WRITE_BLOOM_FILTER false",
        "GEOPARQUET_VERSION 'BOTH', KV_METADATA {maker: 'x'}",
        "GEOPARQUET_VERSION 'NONE'",
    ],
    "a.geojson": ["", "DATEFORMAT '%Y/%m/%d'", "TIMESTAMPFORMAT 'iso'", "ARRAY true", "PRESERVE_ORDER true"],
    "a.geojsonl": ["ARRAY false", "ARRAY false, DATEFORMAT '%Y/%m/%d'"],
    "a.csv": ["", "DELIMITER ';'", "DELIMITER '\t'", "FORCE_QUOTE *", "QUOTE '\"', DATEFORMAT '%Y-%m-%d'"],
}
TOPOJSON: list[dict[str, Any]] = [
    {},
    {"prequantize": False},
    {"prequantize": 1e9},
    {"topoquantize": 1e9, "prequantize": False},
    {"topology": False, "prequantize": False},
    {"object_name": "areas"},
    {"winding_order": "CCW_CW"},
    {"shared_coords": False},
]


@dataclass(frozen=True)
class Case:
    """A file to be written, and how."""

    name: str
    number: int
    options: Any

    def __str__(self) -> str:
        return f"{self.name}-{self.options}"

    @property
    def path(self) -> str:
        return f"bronze/{self.number}/{self.name}"


def cases(files: dict[str, list[Any]]) -> list[Case]:
    return [Case(name, number, each) for name, listed in files.items() for number, each in enumerate(listed)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "bronze").mkdir()
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def made_by_geopandas(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk, made = Desk(tmp_path_factory.mktemp("geopandas")), cases(GEOPANDAS)
    for case in made:
        (desk.folder / case.path).parent.mkdir(parents=True, exist_ok=True)
    given = {
        "columns": COLUMNS,
        "wkt": [area.wkt for area in AREAS],
        "files": [(str(desk.folder / case.path), case.options) for case in made],
    }
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("geopandas_files.py"))]
    done = subprocess.run(command, input=json.dumps(given), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return desk


def check_days(rows: list[dict[str, Any]]) -> None:
    assert [str(row["day"])[:10].replace("/", "-") for row in rows] == DAYS


@pytest.mark.parametrize("case", cases(GEOPANDAS), ids=str)
def test_what_geopandas_wrote_is_read(made_by_geopandas: Desk, case: Case) -> None:
    check_days(check(made_by_geopandas, case.path, AREAS, str(case)))


def write_by_duckdb(file: Path, options: str, crs: str = "OGC:CRS84", shapes: list[Any] = AREAS) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    form = file.suffix[1:].replace("jsonl", "json")
    listed = ", ".join(filter(None, (f"FORMAT {form}", options)))
    with duckdb.connect(":memory:", config={"threads": 1}) as database:
        kind = "GEOMETRY('" + crs.replace("'", "''") + "')"
        database.execute(f"CREATE TABLE t (title VARCHAR, number INTEGER, size DOUBLE, day DATE, wkt {kind})")
        rows = zip(*COLUMNS.values(), (shape.wkt for shape in shapes), strict=True)
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", list(rows))
        database.execute(f"COPY t TO '{file}' ({listed})")


@pytest.mark.parametrize("case", cases(DUCKDB), ids=str)
def test_what_duckdb_wrote_is_read(desk: Desk, case: Case) -> None:
    write_by_duckdb(desk.folder / case.path, case.options)
    check_days(check(desk, case.path, AREAS, str(case)))


@pytest.mark.parametrize("version", ["V1", "V2", "BOTH", "NONE"])
def test_a_projected_crs_that_duckdb_wrote_is_known(desk: Desk, version: str) -> None:
    crs = CRS("EPSG:32631")
    shapes = [shapely.box(500_000 + 10 * n, 5_500_000, 500_005 + 10 * n, 5_500_009) for n in range(3)]
    write_by_duckdb(desk.folder / "bronze/a.parquet", f"GEOPARQUET_VERSION '{version}'", crs.to_json(), shapes)
    opened = desk.open("bronze/a.parquet")
    assert CRS(opened.crs) == crs
    read = shapely.from_wkt(desk.read(opened).column("wkt").to_pylist())
    assert shapely.equals_exact(read, shapes, 1e-6, normalize=True).all()


@pytest.mark.parametrize("options", TOPOJSON, ids=str)
def test_what_topojson_wrote_is_read(desk: Desk, options: dict[str, Any]) -> None:
    rows = zip(*COLUMNS.values(), strict=True)
    listed = [
        {"type": "Feature", "properties": dict(zip(COLUMNS, row, strict=True)), "geometry": area.__geo_interface__}
        for row, area in zip(rows, AREAS, strict=True)
    ]
    made = Topology({"type": "FeatureCollection", "features": listed}, **options)
    desk.put("bronze/a.topojson", made.to_json() or "")
    check_days(check(desk, "bronze/a.topojson", AREAS, str(options), tolerance=1e-5))
