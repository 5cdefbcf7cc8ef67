"""The API as others' programs see it, by HTTP: pystac-client walks through it, and stac-api-validator checks it.

Nothing is fetched from elsewhere. The validator is given the schemas of the core that pystac brings, and in place of
those of the extensions, which no package brings, the rules in `tests/unit/handlers/stac/schemas.py`.
"""

import dataclasses
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from pystac_client import Client
from stac_api_validator.validations import QueryConfig, validate_api
from stac_validator import utilities
from tests.conftest import TestDatabase
from tests.integration.serve.live import LiveServer
from tests.integration.serve.stac.conftest import serving
from tests.unit.handlers.stac.schemas import VERSIONS, uri, validator

from graticule.core.audience import Audience

CLASSES = ["core", "collections", "features", "features#filter", "item-search", "item-search#filter"]
POINT = json.dumps({"type": "Point", "coordinates": [-60.0, 16.0]})


@pytest.fixture(scope="module")
def address(served_catalogue: TestDatabase) -> Iterator[str]:
    """Give the address of a server for the house."""
    with LiveServer(lambda: serving(served_catalogue, Audience.INTERNAL)) as found:
        yield f"{found}/stac/"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Give the validator its schemas, and tell which it has asked for; one that is not there is an error."""
    folder = Path(str(files("pystac.validation"))) / "jsonschemas"
    core = [json.loads(each.read_text()) for each in folder.rglob("*.json")]
    known = {**{schema["$id"].rstrip("#"): schema for schema in core}, **validator().schema_cache}
    asked: set[str] = set()

    def schema(path: str, *_: object) -> Any:
        asked.add(path)
        return known[path.partition("#")[0]]

    monkeypatch.setattr(utilities, "fetch_and_parse_file", schema)
    return asked


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pystac")  # the validator uses what pystac wants to drop
def test_the_validator_finds_no_fault(address: str, offline: set[str]) -> None:
    nothing = QueryConfig(*[None] * len(dataclasses.fields(QueryConfig)))
    _, errors = validate_api(address, CLASSES, "many", POINT, None, None, None, True, nothing, None, None)
    assert list(errors) == []
    of_rasters = VERSIONS.keys() - {"table"}  # which all items of this catalogue are
    assert {uri(extension) for extension in of_rasters} <= offline, "items were validated against their extensions"


def test_a_client_walks_through_the_catalogue(address: str) -> None:
    catalogue = Client.open(address)
    assert catalogue.title == "Graticule"
    assert {collection.id for collection in catalogue.get_collections()} == {"many", "latest"}
    collection = catalogue.get_collection("many")
    assert collection is not None
    assert {item.id for item in collection.get_items()} == {"many-v0", "many-v1"}
    item = collection.get_item("many-v0")
    assert item is not None
    assert item.assets["data"].get_absolute_href() == "urn:graticule:blob:silver/ddh/many-v0%20%C3%A9.tif"
    assert item.get_root_link() is not None


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_client_searches_page_by_page(address: str, method: str) -> None:
    catalogue = Client.open(address)
    search = catalogue.search(method=method, limit=1, bbox=[-63, 15, -57, 19], datetime="2020-01-01/2030-01-01")
    assert [len(page) for page in search.pages()] == [1, 1, 1]
    assert search.matched() == 3
    assert {item.id for item in search.items()} == {"many-v0", "many-v1", "latest-v1"}


def test_a_client_filters_and_sorts(address: str) -> None:
    catalogue = Client.open(address)
    text = "platform:version_ordinal >= 1"
    found = catalogue.search(method="GET", filter=text, filter_lang="cql2-text", sortby="+id")
    assert [item.id for item in found.items()] == ["latest-v1", "many-v1"]
    given = {"op": "like", "args": [{"property": "id"}, "many-%"]}
    ordered = [{"field": "id", "direction": "desc"}]
    assert [item.id for item in catalogue.search(filter=given, sortby=ordered).items()] == ["many-v1", "many-v0"]
    assert [each.id for each in catalogue.collection_search(q="many").collections()] == ["many"]
