"""Items of tables: what they say, and that they are valid STAC."""

import re
from typing import Any

import pytest
from tests.unit.handlers.stac.outputs import TIMES
from tests.unit.handlers.stac.schemas import VERSIONS, uri
from tests.unit.handlers.stac.table_outputs import (
    BBOX,
    GEOPARQUET,
    OTHER_SHA,
    PMTILES,
    SHA,
    geoparquet,
    pmtiles,
    source,
    table,
    table_inputs,
)
from tests.unit.handlers.stac.valid import assert_valid

from graticule.handlers.stac.footprint import box_footprint
from graticule.handlers.stac.items import Stored
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.stac.tables import table_item
from graticule.handlers.vector.exporting import Export
from graticule.handlers.vector.registration import output_hash

ITEMS = f"/features/{'a' * 32}/collections/features/items?version=1"
DOWNLOAD = f"/features/{'a' * 32}/collections/features/download.geojson?version=1"


def _item(**more: Any) -> dict[str, Any]:
    given = TableInputs.model_validate(table_inputs(**more))
    stored = {key: Stored(file.path, 4321, file.checksum) for key, file in given.exports.items()}
    item = table_item(given, stored, TIMES)
    assert_valid(item)
    return item


def test_an_item_says_what_the_table_is() -> None:
    item = _item(geoparquet=geoparquet(), title="Parcels")
    assert item["stac_extensions"] == sorted(map(uri, VERSIONS.keys() - {"raster"}))
    properties = item["properties"]
    assert (item["bbox"], item["geometry"]["type"]) == (BBOX, "Polygon")
    assert (properties["datetime"], properties["title"]) == ("2024-05-06T07:08:09Z", "Parcels")
    assert (properties["proj:code"], properties["proj:bbox"]) == ("EPSG:4326", BBOX)
    assert (properties["table:row_count"], properties["table:primary_geometry"]) == (3, "geom")
    assert properties["table:columns"] == [
        {"name": "fid", "type": "bigint"},
        {"name": "nutzungsart_2023", "type": "text", "description": "Nutzungsart (2023)"},
        {"name": "height", "type": "double precision"},
        {"name": "geom", "type": "geometry(MultiPolygon, 4326)"},
    ]
    assert (properties["platform:dataset_id"], properties["platform:revision"]) == ("d-1", 1)
    assert (properties["platform:request_id"], properties["platform:version_id"]) == ("r-1", "v1")
    lineage = properties["processing:lineage"]
    assert lineage.startswith(
        f"Made from bronze/in/parcels.zip (SHA-256 {'ef' * 32}), layer parcels, by a reprojection"
    )
    assert lineage.endswith("from EPSG:32620 to EPSG:4326. Geometries that were repaired: 1.")
    assert set(properties["processing:software"]) == {"graticule", "pyogrio"}


def test_files_are_assets_and_the_service_is_linked() -> None:
    item = _item(geoparquet=geoparquet(), pmtiles=pmtiles())
    told = {
        key: (asset["href"], asset["type"], asset["roles"], asset["file:checksum"])
        for key, asset in item["assets"].items()
    }
    assert told == {
        "geoparquet": (GEOPARQUET, "application/vnd.apache.parquet", ["data"], f"1220{SHA}"),
        "pmtiles": (PMTILES, "application/vnd.pmtiles", ["data"], f"1220{OTHER_SHA}"),
    }
    assert item["assets"]["pmtiles"]["file:size"] == 4321
    links = {link["rel"].rpartition("/")[2]: link["href"] for link in item["links"]}
    tiles = f"/features/{'a' * 32}/collections/features/tiles/WebMercatorQuad/tilejson.json?version=1"
    assert links == {"collection": "/stac/collections/ddh-d", "items": ITEMS, "tilejson": tiles}


def test_without_files_the_service_is_the_asset() -> None:
    assert _item()["assets"] == {"features": {"href": DOWNLOAD, "type": "application/geo+json", "roles": ["data"]}}
    direct = _item(asset_id=None, stac_item_id=None, stac_collection_id=None, blob_prefix=None)
    assert (direct["assets"], len(direct["links"])) == ({}, 1)
    assert re.fullmatch("direct-bronze-parcels-[0-9a-f]{8}-parcels_v1", direct["id"])
    assert direct["collection"] == "direct-bronze"


def test_tables_of_one_source_have_files_and_items_of_their_own() -> None:
    names = {"asset_id": None, "stac_item_id": None, "stac_collection_id": None, "blob_prefix": None}
    made = [TableInputs(**table_inputs(table=table(table_name=name), **names)) for name in ("roads", "parcels")]
    assert len({each.stac_item_id for each in made} | {each.blob_prefix for each in made}) == 4
    exports = [Export(source=source(), table_name=name).prefix for name in ("roads", "parcels")]
    assert exports == [each.blob_prefix for each in made]


def test_a_projected_table_tells_its_projection() -> None:
    item = _item(table=table(srid=32620, bbox=None))
    assert item["properties"]["proj:code"] == "EPSG:32620"
    assert "proj:bbox" not in item["properties"]
    assert "reprojection" not in item["properties"]["processing:lineage"]
    assert item["bbox"] == BBOX


def test_a_table_across_the_antimeridian_is_in_two_parts() -> None:
    item = _item(table=table(bbox=[178.0, -18.0, -178.0, -15.0]))
    assert item["geometry"]["type"] == "MultiPolygon"
    assert [part[0][0] for part in item["geometry"]["coordinates"]] == [[178.0, -18.0], [-180.0, -18.0]]
    assert item["bbox"] == [178.0, -18.0, -178.0, -15.0]
    assert item["properties"]["proj:bbox"] == [-180.0, -18.0, 180.0, -15.0]


@pytest.mark.parametrize(
    ("bbox", "kind", "first"),
    [
        ([7.0, 46.0, 7.0, 46.0], "Point", 7.0),
        ([7.0, 46.0, 8.0, 46.0], "LineString", [7.0, 46.0]),
        ([7.0, 46.0, 7.0, 47.0], "LineString", [7.0, 46.0]),
        ([179.0, 1.0, -179.0, 1.0], "MultiLineString", [[179.0, 1.0], [180.0, 1.0]]),
        ([180.0, 1.0, -179.0, 2.0], "Polygon", [[-180.0, 1.0], [-179.0, 1.0], [-179.0, 2.0], [-180.0, 2.0]]),
    ],
)
def test_a_box_without_an_area_is_no_polygon(bbox: list[float], kind: str, first: Any) -> None:
    found = box_footprint(bbox)
    assert (found.geometry["type"], found.bbox) == (kind, bbox)
    begin = found.geometry["coordinates"][0]
    assert (begin[:-1] if kind == "Polygon" else begin) == first
    assert_valid(_item(table=table(bbox=bbox)))


def test_the_digest_is_that_of_the_same_work() -> None:
    def digest(**more: Any) -> str:
        return output_hash(TableInputs.model_validate(table_inputs(**more)))

    elsewhere = source(etag="f", source="bronze/in/copy.zip")
    elsewhere["opening"] = {**elsewhere["opening"], "path": "silver/87654321/source/parcels.shp", "etag": "f"}
    assert digest(revision=2, stac_item_id="other", source=elsewhere) == digest()
    other_layer = source()
    other_layer["opening"] = {**other_layer["opening"], "layer": "roads"}
    others = [
        digest(source=other_layer),
        digest(source=source(content_hash="ee" * 32)),
        digest(table=table(srid=3857)),
        digest(table=table(table_hash="aa" * 32)),
        digest(table=table(table_hash="bb" * 32)),
        digest(pmtiles=pmtiles()),
    ]
    assert len({digest(), *others}) == 7
