"""What the public is told of the platform's own documents."""

from typing import Any

import orjson
import pytest
from tests.unit.handlers.stac.outputs import AT, SHA, STORED, TIMES, cog, item_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.errors import InvalidInput
from graticule.handlers.publish.documents import Copied, public_collection, public_item, public_mosaic, public_scheme
from graticule.handlers.publish.inputs import Export, Unpublish, Version
from graticule.handlers.stac.inputs import ItemInputs
from graticule.handlers.stac.items import output_item

EXPORT = Export.model_validate(
    {
        "asset_id": "a" * 32,
        "version_ordinal": 1,
        "revision": 2,
        "version_prefix": "ddh/d_dem/aaaaaaaa/v1",
        "data_type": "raster",
    }
)
COPY = Copied(STORED.path, "external/x.tif", 7, None)


def item(**more: Any) -> dict[str, Any]:
    return {**output_item(ItemInputs.model_validate(item_inputs(cog(), title="Scene")), STORED, TIMES), **more}


def test_only_what_is_named_is_told() -> None:
    before = item()
    before["properties"]["platform:request_id"] = "r"
    before["properties"] |= {"secret:thing": 1, "platform:dataset_id": "d-1", "processing:lineage": "from bronze"}
    before["assets"]["log"] = {"href": "silver/log.txt"}
    before["assets"]["data"] |= {"alternate": {"s3": "s3://inside"}, "storage:tier": "hot"}
    before["links"].append({"rel": "derived_from", "href": "silver/source"})
    told = public_item(before, "c-public", EXPORT, {STORED.path: COPY})
    assert_valid(told)
    text = orjson.dumps(told)
    hidden = (b"secret", b"dataset_id", b"bronze", b"silver", b"inside", b"storage")
    assert [word for word in hidden if word in text] == []
    assert told["properties"]["platform:request_id"] == "r"
    assert told["properties"]["title"] == "Scene"
    assert told["properties"]["platform:revision"] == 2
    assert told["properties"]["datetime"] == AT.isoformat().replace("+00:00", "Z")
    assert told["assets"]["data"]["file:checksum"] == f"1220{SHA}"
    assert told["assets"]["data"]["file:size"] == 7


def test_an_item_of_other_files_is_refused() -> None:
    with pytest.raises(InvalidInput, match="other files"):
        public_item(item(), "c-public", EXPORT, {})


def test_a_collection_keeps_its_words_and_loses_its_links() -> None:
    links = [{"rel": "self", "href": "silver/x"}, {"rel": "license", "href": "https://example.org/licence"}]
    told = public_collection({"id": "c", "title": "T", "license": "MIT", "links": links, "internal": 1})
    assert told == {"id": "c-public", "title": "T", "license": "MIT", "links": links[1:], "stac_extensions": []}


def test_a_mosaic_is_rewritten_tile_by_tile() -> None:
    text = orjson.dumps({"minzoom": 3, "tiles": {"0": ["silver/p/a.tif", "silver/p/b.tif"]}})
    told = orjson.loads(public_mosaic(text, "silver/p/", "external/p/"))
    assert told == {"minzoom": 3, "tiles": {"0": ["external/p/a.tif", "external/p/b.tif"]}}
    with pytest.raises(InvalidInput, match="not its own"):
        public_mosaic(text, "silver/q/", "external/q/")


@pytest.mark.parametrize("text", [b"", b"[]", b"{"])
def test_a_document_that_cannot_be_read_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        public_scheme(text)


@pytest.mark.parametrize(
    "prefix", ["", "ddh", "ddh/d/aaaaaaaa", "ddh/../aaaaaaaa/v1", "ddh/d/aaaaaaaa/v1/", "/ddh/d/aaaaaaaa/v1"]
)
def test_a_prefix_leads_to_one_version(prefix: str) -> None:
    with pytest.raises(ValueError, match="version_prefix"):
        Version(version_ordinal=1, version_prefix=prefix)


def test_a_version_knows_where_its_items_may_be() -> None:
    version = Version(version_ordinal=1, version_prefix="ddh/a_b/aaaaaaaa/v1", stac_collection_id="mine")
    assert version.public_collections == ["mine-public", "ddh-a-b-aaaaaaaa-public"]
    with pytest.raises(ValueError, match="versions"):
        Unpublish(asset_id="a" * 32, versions=[])
