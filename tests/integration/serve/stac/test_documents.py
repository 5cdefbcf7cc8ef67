"""Documents as they leave: nothing of the storage can be opened by what they say, and the tiles are found."""

import copy
from typing import Any

import pytest
from tests.unit.handlers.stac.outputs import STORED, TIMES, item_inputs, mosaic, tile, tiles_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.handlers.stac.inputs import ItemInputs, TilesInputs
from graticule.handlers.stac.items import output_item, tile_items
from graticule.serve.stac.documents import ItemVersion, blob_name, served_collection, served_item

BASE = "https://maps.test/data/stac/"
LATEST = ItemVersion("a" * 32, 1, "latest_only")
EACH = ItemVersion("a" * 32, 1, "all_versions")


def _item(product: dict[str, Any] | None = None) -> dict[str, Any]:
    return output_item(ItemInputs.model_validate(item_inputs(product)), STORED, TIMES)


def _tile() -> dict[str, Any]:
    return next(tile_items(TilesInputs.model_validate(tiles_inputs([tile(0, 0)])), TIMES))


@pytest.mark.parametrize(
    ("version", "tiles", "picture"),
    [
        (LATEST, "WebMercatorQuad/tilejson.json", "preview.png?max_size=512"),
        (EACH, "WebMercatorQuad/tilejson.json?version=1", "preview.png?version=1&max_size=512"),
    ],
)
def test_an_item_leads_to_the_tiles_beside_the_catalogue(version: ItemVersion, tiles: str, picture: str) -> None:
    served = served_item(_item(), version, BASE)
    (link,) = [link for link in served["links"] if link["rel"] == "tilejson"]
    assert link["href"] == f"https://maps.test/data/tiles/{'a' * 32}/{tiles}"
    assert served["assets"]["thumbnail"]["href"] == f"https://maps.test/data/tiles/{'a' * 32}/{picture}"
    assert served["assets"]["thumbnail"]["roles"] == ["thumbnail"]


@pytest.mark.parametrize("item", [_item(), _item(mosaic()), _tile()], ids=["raster", "mosaic", "tile"])
def test_files_keep_all_but_their_place(item: dict[str, Any]) -> None:
    before = copy.deepcopy(item)
    served = served_item(item, LATEST, BASE)
    assert item == before
    for key, asset in before["assets"].items():
        assert served["assets"][key]["href"] == f"urn:graticule:blob:{asset['href']}"
        assert served["assets"][key]["description"]
        assert {**served["assets"][key], "href": asset["href"]} == asset | {
            "description": served["assets"][key]["description"]
        }
    assert_valid(served)


def test_what_is_not_served_has_no_tiles() -> None:
    served = served_item(_item(), None, BASE)
    assert "tilejson" not in {link["rel"] for link in served["links"]}
    assert set(served["assets"]) == {"data"}
    assert set(served_item(_tile(), LATEST, BASE)["assets"]) == {"data"}, "a tile is a part of what has a picture"


def test_nothing_is_added_to_chosen_fields() -> None:
    chosen = {"id": "x", "collection": "c", "assets": {"data": {"href": "silver/x.tif"}}, "links": _item()["links"]}
    served = served_item(chosen, LATEST, BASE, whole=False)
    assert served["assets"] == {"data": {"href": "urn:graticule:blob:silver/x.tif"}}
    assert served_item({"id": "x", "assets": {"data": {"type": "t"}}}, LATEST, BASE, whole=False)["assets"] == {
        "data": {"type": "t"}
    }
    assert served_item({"id": "x"}, LATEST, BASE, whole=False) == {"id": "x"}


def test_a_collection_names_its_files() -> None:
    assert served_collection({"id": "c"}) == {"id": "c"}
    assert served_collection({"assets": {"a": {"href": "silver/a b"}}})["assets"]["a"]["href"] == (
        "urn:graticule:blob:silver/a%20b"
    )


@pytest.mark.parametrize("address", ["https://elsewhere.test/a.tif", "urn:other:thing"])
def test_addresses_stay(address: str) -> None:
    assert blob_name(address) == address
