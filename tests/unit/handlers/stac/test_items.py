"""Items: what they say, that they say the same each time, and that they are valid STAC."""

import copy
from typing import Any

import pytest
from pyproj import CRS
from pystac.errors import STACValidationError
from tests.unit.handlers.stac.outputs import (
    ACROSS,
    COG,
    MOSAIC,
    SHA,
    STORED,
    TIMES,
    UTM,
    band,
    cog,
    item_inputs,
    mosaic,
    source,
    tile,
    tiles_inputs,
)
from tests.unit.handlers.stac.schemas import VERSIONS, uri
from tests.unit.handlers.stac.valid import assert_valid

from graticule.handlers.stac.inputs import ItemInputs, Source, TilesInputs
from graticule.handlers.stac.items import Stored, multihash, output_item, tile_items

ALBERS = CRS.from_proj4("+proj=aea +lat_1=10 +lat_2=20 +lat_0=15 +lon_0=-60 +datum=WGS84").to_wkt()  # has no code


def _item(product: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    given = ItemInputs.model_validate(item_inputs(product, **more))
    return output_item(given, Stored(given.product.path, 4321, given.product.checksum), TIMES)


def test_an_item_says_all_that_the_contract_asks_for() -> None:
    item = _item()
    assert_valid(item)
    assert (item["id"], item["collection"]) == ("scene-v1", "ddh-d")
    assert item["stac_extensions"] == sorted(map(uri, VERSIONS.keys() - {"table"}))
    properties = item["properties"]
    assert properties["datetime"] == "2024-05-06T07:08:09Z"
    assert properties["proj:code"] == "EPSG:4326"
    assert properties["proj:shape"] == [300, 400]
    assert properties["proj:transform"] == [0.01, 0.0, -62.0, 0.0, -0.01, 18.0]
    assert properties["proj:bbox"] == item["bbox"] == [-62.0, 15.0, -58.0, 18.0]
    assert properties["platform:dataset_id"] == "d-1"
    assert properties["platform:resource_id"] == 7
    assert properties["platform:asset_id"] == "a" * 32
    assert properties["platform:version_ordinal"] == 1
    assert (properties["platform:request_id"], properties["platform:version_id"]) == ("r-1", "v1")
    assert "platform:empty" not in properties
    assert "bronze/in/scene.tif" in properties["processing:lineage"]
    assert "EPSG:32620 to EPSG:4326" in properties["processing:lineage"]
    assert set(properties["processing:software"]) == {"graticule", "rasterio"}


def test_the_file_and_its_bands_are_described() -> None:
    asset = _item()["assets"]["data"]
    assert asset["href"] == COG
    assert asset["type"] == "image/tiff; application=geotiff; profile=cloud-optimized"
    assert (asset["file:size"], asset["file:checksum"]) == (4321, f"1220{SHA}")
    assert [each["name"] for each in asset["bands"]] == ["red", "green", "blue"]
    statistics = {"minimum": 1, "maximum": 200, "mean": 10, "stddev": 4.0823, "valid_percent": 50}
    assert asset["raster:bands"][0] == {"data_type": "uint8", "nodata": 0, "statistics": statistics}
    assert asset["bands"][0]["statistics"] == {**statistics, "count": 60000}


@pytest.mark.parametrize(
    "described",
    [
        band(data_type="float32", nodata="nan", unit="m", scale=0.1, offset=-5.0),
        band(data_type="complex_int16", nodata=-3.4e38),
        band(statistics={"count": 0, "min": None, "max": None, "sum": 0, "sum_of_squares": 0}),
        {"statistics": None},
    ],
)
def test_bands_of_every_kind_are_valid(described: dict[str, Any]) -> None:
    item = _item(cog(bands=[described]))
    assert_valid(item)
    (told,) = item["assets"]["data"]["raster:bands"]
    assert told.get("scale") == (0.1 if described.get("scale") == 0.1 else None)
    assert told.get("nodata") == (None if "data_type" not in described else described["nodata"])


def test_a_projected_item_has_its_outline_in_both_projections() -> None:
    item = _item(cog(UTM))
    assert_valid(item)
    assert item["properties"]["proj:bbox"] == [500000.0, 1997000.0, 504000.0, 2000000.0]
    assert item["properties"]["proj:geometry"]["coordinates"][0][0] == [500000.0, 2000000.0]
    assert item["bbox"][0] == pytest.approx(-63.0, abs=0.1)


def test_an_item_across_the_antimeridian_is_valid() -> None:
    item = _item(cog(ACROSS))
    assert_valid(item)
    assert item["bbox"] == [178.0, -18.0, -178.0, -15.0]
    assert item["geometry"]["type"] == "MultiPolygon"


def test_an_output_without_a_grid_or_with_a_projection_without_a_code_is_valid() -> None:
    assert_valid(_item(cog(None, bbox=[1.0, 2.0, 3.0, 4.0])))
    item = _item(cog({**UTM, "crs": ALBERS, "transform": [100.0, 0, 0, 0, -100.0, 0]}))
    assert_valid(item)
    assert item["properties"]["proj:wkt2"] == ALBERS
    assert "proj:code" not in item["properties"]


def test_a_mosaic_is_one_asset_and_its_tile_grid_another() -> None:
    item = _item(mosaic())
    assert_valid(item)
    assert set(item["assets"]) == {"mosaic", "scheme"}
    assert item["assets"]["mosaic"]["href"] == MOSAIC
    assert item["assets"]["mosaic"]["type"] == "application/json"
    assert item["assets"]["scheme"]["href"] == "silver/direct/d/s/v1/r1/schemes/scene.geojson"
    assert "file:checksum" not in item["assets"]["scheme"], "an earlier release made the mosaic"
    assert {link["rel"]: link["href"] for link in item["links"]} == {
        "collection": "/stac/collections/ddh-d",
        "tilejson": f"/tiles/{'a' * 32}/WebMercatorQuad/tilejson.json?version=1",
    }


def test_the_same_inputs_give_the_same_item() -> None:
    assert _item() == _item()
    backwards = item_inputs()
    backwards["platform_refs"] = dict(reversed(backwards["platform_refs"].items()))
    given = ItemInputs.model_validate(dict(reversed(backwards.items())))
    assert list(output_item(given, STORED, TIMES)["properties"]) == list(_item()["properties"])


def test_a_signature_in_a_sources_address_is_not_told() -> None:
    item = _item(source=source(source="https://example.org/a.tif?sig=secret"))
    assert "https://example.org/a.tif" in item["properties"]["processing:lineage"]
    assert "secret" not in str(item)


def test_the_source_tells_when_the_picture_was_taken() -> None:
    taken = Source.model_validate(source()).acquired_at
    assert taken is not None
    assert taken.isoformat() == "2023-04-05T06:07:08+00:00"
    silent: list[Any] = [{}, {"tags": {}}, {"tags": None}, {"tags": {"TIFFTAG_DATETIME": "yesterday"}}]
    for facts in silent:
        assert Source.model_validate({"facts": facts}).acquired_at is None


def test_tiles_have_their_own_place_and_their_own_statistics() -> None:
    batches = [{"tiles": [tile(1, 0), tile(0, 0)]}, [tile(0, 1)], tile(1, 1)]
    items = list(tile_items(TilesInputs.model_validate(tiles_inputs(batches)), TIMES))
    for item in items:
        assert_valid(item)
    assert [item["id"] for item in items] == [f"scene-v1-scene_tile_{place}" for place in ("0_0", "0_1", "1_0", "1_1")]
    last = items[-1]
    assert last["properties"]["proj:transform"] == pytest.approx([0.01, 0, -61.6, 0, -0.01, 17.7])
    assert last["bbox"] == [-61.6, 17.4, -61.2, 17.7]
    assert last["assets"]["data"]["bands"][1]["name"] == "green"
    assert last["assets"]["data"]["raster:bands"][1]["statistics"]["mean"] == 2.0
    assert last["assets"]["data"]["raster:bands"][1]["statistics"]["stddev"] == pytest.approx(0.5**0.5)


def test_a_tile_whose_window_is_not_known_is_where_its_bounds_are() -> None:
    (item,) = tile_items(TilesInputs.model_validate(tiles_inputs([tile(0, 0, window=None)])), TIMES)
    assert_valid(item)
    assert item["properties"]["proj:shape"] == [30, 40]
    assert item["bbox"] == [-62.0, 17.7, -61.6, 18.0]


@pytest.mark.parametrize("given", [SHA, f"1220{SHA}", f"sha256:{SHA}", SHA.upper()])
def test_a_checksum_is_a_multihash(given: str) -> None:
    assert multihash(given) == f"1220{SHA}"


def test_what_is_no_sha_256_is_no_checksum() -> None:
    assert [multihash(given) for given in (None, "", "abc", "zz" * 32)] == [None] * 4


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("properties/proj:shape", [1]),
        ("properties/proj:unheard_of", 1),
        ("properties/datetime", "yesterday"),
        ("properties/processing:software", {"a": 1}),
        ("assets/data/file:checksum", "XYZ"),
        ("assets/data/file:size", -1),
        ("assets/data/raster:bands", []),
        ("assets/data/raster:bands", [{"statistics": {"count": 1}}]),
        ("assets/data/bands", [{"data_type": "colour"}]),
        ("links", []),
    ],
)
def test_the_validation_refuses_what_is_wrong(path: str, value: Any) -> None:
    item = copy.deepcopy(_item())
    *parents, name = path.split("/")
    place = item
    for parent in parents:
        place = place[parent]
    place[name] = value
    with pytest.raises(STACValidationError):
        assert_valid(item)
