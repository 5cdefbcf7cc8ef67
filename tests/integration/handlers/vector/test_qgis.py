"""Layers that QGIS exported, with the options of its dialogue: what it was given is what we read."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.handlers.qgis import needs_qgis, write_by_qgis
from tests.integration.handlers.vector.sources import Desk, archive
from tests.integration.handlers.vector.test_other_libraries import COLUMNS, Case, cases, check_days
from tests.integration.handlers.vector.test_other_writers import AREAS, check

MERCATOR = {"crs": "EPSG:3857"}
DRIVERS = {
    "gpkg": "GPKG",
    "shp": "ESRI Shapefile",
    "geojson": "GeoJSON",
    "geojsonl.json": "GeoJSONSeq",
    "kml": "KML",
    "fgb": "FlatGeobuf",
    "csv": "CSV",
    "gml": "GML",
    "tab": "MapInfo File",
    "mif": "MapInfo MIF",
}
FILES: dict[str, list[dict[str, Any]]] = {
    "a.gpkg": [
        {},
        {"layerOptions": ["SPATIAL_INDEX=NO", "FID=nr"]},
        {"layerOptions": ["GEOMETRY_NAME=shape", "IDENTIFIER=areas", "DESCRIPTION=some"]},
        {"layerName": "Ĺ other", "forceMulti": True},
        {"includeZ": True, "geometry_type": "PolygonZ"},
        MERCATOR,
    ],
    "a.shp": [
        {},
        {"fileEncoding": "UTF-8"},
        {"fileEncoding": "CP1252"},
        {"layerOptions": ["SHPT=POLYGONZ"]},
        {"layerOptions": ["RESIZE=YES"], "forceMulti": True},
        {"crs": "EPSG:32631"},
        MERCATOR,
    ],
    "a.geojson": [
        {},
        {"layerOptions": ["RFC7946=YES"]},
        {"layerOptions": ["WRITE_BBOX=YES", "COORDINATE_PRECISION=9"]},
        {"forceMulti": True},
        {"includeZ": True, "geometry_type": "PolygonZ"},
        MERCATOR,
    ],
    "a.geojsonl.json": [
        {},
        {"layerOptions": ["RS=YES"]},
        {"layerOptions": ["COORDINATE_PRECISION=9"]},
        {"forceMulti": True},
        {"includeZ": True, "geometry_type": "PolygonZ"},
    ],
    "a.kml": [
        {},
        {"datasourceOptions": ["NameField=title"]},
        {"datasourceOptions": ["AltitudeMode=absolute"], "includeZ": True, "geometry_type": "PolygonZ"},
        {"datasourceOptions": ["DOCUMENT_ID=x", "DescriptionField=note"]},
        {"symbologyExport": 1},
        MERCATOR,
    ],
    "a.fgb": [
        {},
        {"layerOptions": ["SPATIAL_INDEX=NO"]},
        {"layerName": "other"},
        {"forceMulti": True},
        {"includeZ": True, "geometry_type": "PolygonZ"},
        MERCATOR,
    ],
    "a.csv": [
        {"layerOptions": ["GEOMETRY=AS_WKT"]},
        {"layerOptions": ["GEOMETRY=AS_WKT", "SEPARATOR=SEMICOLON"]},
        {"layerOptions": ["GEOMETRY=AS_WKT", "SEPARATOR=TAB", "LINEFORMAT=CRLF"]},
        {"layerOptions": ["GEOMETRY=AS_WKT", "STRING_QUOTING=ALWAYS", "WRITE_BOM=YES"]},
        {"layerOptions": ["GEOMETRY=AS_WKT", "CREATE_CSVT=YES"]},
    ],
    "a.gml": [
        {},
        {"datasourceOptions": ["FORMAT=GML2"]},
        {"datasourceOptions": ["FORMAT=GML3.2", "GML3_LONGSRS=NO"]},
        {"datasourceOptions": ["STRIP_PREFIX=TRUE", "WRITE_FEATURE_BOUNDED_BY=NO"]},
        {"datasourceOptions": ["XSISCHEMA=OFF", "PREFIX=x", "TARGET_NAMESPACE=http://example.com/x"]},
        MERCATOR,
    ],
    "a.tab": [
        {},
        {"datasourceOptions": ["SPATIAL_INDEX_MODE=OPTIMIZED"]},
        {"datasourceOptions": ["BLOCK_SIZE=1024"]},
        {"layerOptions": ["BOUNDS=-180,-90,180,90"]},
        {"symbologyExport": 1},
    ],
    "a.mif": [
        {},
        {"layerOptions": ["BOUNDS=-180,-90,180,90"]},
        {"fileEncoding": "CP1252"},
        {"forceMulti": True},
        {"symbologyExport": 1},
    ],
}
pytestmark = needs_qgis


def with_driver(case: Case) -> dict[str, Any]:
    return {"driverName": DRIVERS[case.name.partition(".")[2]], **case.options}


@pytest.fixture(scope="session")
def made_by_qgis(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk, made = Desk(tmp_path_factory.mktemp("qgis")), cases(FILES)
    for case in made:
        (desk.folder / case.path).parent.mkdir(parents=True, exist_ok=True)
    layers = [(str(desk.folder / case.path), with_driver(case)) for case in made]
    write_by_qgis(desk.folder, columns=COLUMNS, wkt=[area.wkt for area in AREAS], layers=layers)
    return desk


def put(desk: Desk, path: str) -> str:
    """Zip files of several parts, as people send them."""
    file = Path(path)
    if file.suffix not in {".shp", ".tab", ".mif"}:
        return path
    parts = (desk.folder / file.parent).glob("a.*")
    beside = {".shp": {".shp", ".shx", ".dbf", ".prj", ".cpg"}, ".tab": {".tab", ".dat", ".map", ".id"}}
    wanted = beside.get(file.suffix, {".mif", ".mid"})
    target = str(file.with_name(f"{file.suffix[1:]}.zip"))
    desk.put(target, archive({part.name: part.read_bytes() for part in parts if part.suffix in wanted}))
    return target


@pytest.mark.parametrize("case", cases(FILES), ids=str)
def test_what_qgis_wrote_is_read(made_by_qgis: Desk, case: Case) -> None:
    check_days(check(made_by_qgis, put(made_by_qgis, case.path), AREAS, str(case)))
