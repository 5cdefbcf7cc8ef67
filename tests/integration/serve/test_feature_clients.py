"""The feature service as others' programs see it, by HTTP: GDAL, OWSLib and pystac-client on the whole service."""

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pyogrio
import pytest
from fastapi import FastAPI
from openapi_spec_validator import OpenAPIV30SpecValidator
from owslib.ogcapi.features import Features  # type: ignore[import-untyped]
from psycopg.types.json import Jsonb
from pyproj import Transformer
from pystac_client import Client
from tests.conftest import new_database
from tests.integration.serve.access_table import BY_NAME, INTERNAL, LATEST_ONLY, OUO, Asset, Version
from tests.integration.serve.access_table import NEVER as NOT_EXPORTED
from tests.integration.serve.gdal_reader import read_layers
from tests.integration.serve.live import LiveServer
from tests.integration.serve.running import World, collection, serving, table_of

from graticule.core.models.platform import DataType

ROWS = 12_345  # more than a page can have
VECTOR = Asset(1, DataType.VECTOR, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NOT_EXPORTED),))
RASTER = Asset(2, DataType.RASTER, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NOT_EXPORTED),))
ITEM = "points-of-interest-2024-1a2b3c4d-v0"
TABLE = f"geo.{table_of(0, 1)}"
FILL = f"""
    DELETE FROM {TABLE};
    ALTER TABLE {TABLE} ADD name text;
    INSERT INTO {TABLE}
    SELECT i, i % 7, ST_Point(8 + i % 100 / 100.0, 47 + i / 100 / 200.0, 4326), 'Zürich ' || i
    FROM generate_series(1, {ROWS}) AS i;
    UPDATE dagapp.asset_versions
    SET stac_item_id = '{ITEM}', stac_collection_id = 'places', bbox = '{{8,47,9,47.7}}'
    WHERE asset_id = '{VECTOR.asset_id}';
"""
FIRST = (8.01, 47.0)


def _item() -> dict[str, Any]:
    items = f"/features/{VECTOR.asset_id}/collections/features/items?version=0"
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "id": ITEM,
        "collection": "places",
        "geometry": {"type": "Point", "coordinates": [8.5, 47.5]},
        "bbox": [8.5, 47.5, 8.5, 47.5],
        "properties": {"datetime": "2026-01-01T00:00:00Z"},
        "assets": {},
        "links": [{"rel": "http://www.opengis.net/def/rel/ogc/1.0/items", "href": items}],
    }


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of the service for the house."""
    with new_database() as created:
        world = World(created, tmp_path_factory.mktemp("served"))
        world.write_data([0], [1])
        world.write_assets([VECTOR, RASTER])
        with world.connected() as connection:
            connection.execute(FILL.encode())
            connection.execute("SET search_path = pgstac, public")
            connection.execute("SELECT create_collection(%s)", [Jsonb(collection("places"))])
            connection.execute("SELECT create_item(%s)", [Jsonb(_item())])
        with LiveServer(lambda: _opened(world)) as found:
            yield found


@asynccontextmanager
async def _opened(world: World) -> AsyncIterator[FastAPI]:
    async with serving(world) as services:
        yield services[INTERNAL].app


@pytest.fixture
def features(address: str) -> str:
    return f"{address}/features/{VECTOR.asset_id}"


def _json(url: str, **headers: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return json.load(answer)


# OpenAPI


def test_every_service_is_described_in_both_versions(address: str) -> None:
    for base in (f"{address}/features/{VECTOR.asset_id}", f"{address}/tiles/{RASTER.asset_id}", f"{address}/stac"):
        links = _json(f"{base}/")["links"]
        old, new = [link for link in links if link["rel"] == "service-desc"]
        (page,) = [link for link in links if link["rel"] == "service-doc"]
        OpenAPIV30SpecValidator(_json(old["href"])).validate()
        assert _json(new["href"])["openapi"].startswith("3.1")
        assert _json(new["href"], Accept=old["type"]) == _json(old["href"]), "the client decides, too"
        with urllib.request.urlopen(page["href"]) as answer:
            text = answer.read().decode()
            assert answer.headers["content-type"].startswith("text/html")
        assert "limit" in text or "bidx" in text


def test_owslib_reads_the_description(features: str) -> None:
    service = Features(features)
    described = service.api()
    assert described["openapi"].startswith("3.0")
    parameters = described["paths"]["/collections/features/items"]["get"]["parameters"]
    (limit,) = [each["schema"] for each in parameters if each["name"] == "limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 10_000, 10)
    assert service.conformance()["conformsTo"]


def test_titles_are_names(features: str) -> None:
    title = "points of interest 2024"  # the words of the item's id
    assert Features(features).response["title"] == title
    assert [each["title"] for each in Features(features).collections()["collections"]] == [title]
    tiles = f"{features}/collections/features/tiles/WebMercatorQuad/tilejson.json"
    assert _json(tiles)["name"] == title


# Coordinate reference systems


def test_owslib_asks_for_another_crs(features: str) -> None:
    service = Features(features)
    offered = service.collection("features")["crs"]
    assert "http://www.opengis.net/def/crs/EPSG/0/2056" in offered
    found = service.collection_items("features", ids="1", crs="http://www.opengis.net/def/crs/EPSG/0/2056")
    expected = Transformer.from_crs("OGC:CRS84", "EPSG:2056").transform(*FIRST)
    assert found["features"][0]["geometry"]["coordinates"] == pytest.approx(expected, abs=0.01)
    assert service.response_headers["Content-Crs"] == "<http://www.opengis.net/def/crs/EPSG/0/2056>"
    assert len(service.collection_items("features", bbox=[8.0, 47.0, 8.015, 47.004])["features"]) == 1


def test_gdal_reads_another_crs(features: str) -> None:
    names = ["EPSG:2056", "EPSG:4326", "EPSG:3857", "EPSG:3035", "EPSG:25832", "OGC:CRS84"]
    expected = [Transformer.from_crs("OGC:CRS84", crs, always_xy=True).transform(*FIRST) for crs in names]
    margins = [1e-4 if abs(east) < 181 else 5 for east, _ in expected]
    boxes = [
        (east - margin, north - margin, east + margin, north + margin)
        for (east, north), margin in zip(expected, margins, strict=True)
    ]
    source = {"source": f"OAPIF:{features}", "layer": "features"}
    found = read_layers(*({**source, "bbox": box, "CRS": crs} for box, crs in zip(boxes, names, strict=True)))
    for crs, place, margin, read in zip(names, expected, margins, found, strict=True):
        named = "CRS84" if crs == "EPSG:4326" else crs.partition(":")[2]  # GDAL takes the first that means the same
        assert named in read["crs"], crs
        assert read["fids"] == [1], crs
        assert read["positions"] == [pytest.approx(place, abs=margin / 100)], crs


def test_gdal_reads_all_pages(features: str) -> None:
    source = {"source": f"OAPIF:{features}", "layer": "features"}
    whole, filtered = read_layers(source, {**source, "where": "mark = 3"})
    assert whole["fids"] == list(range(1, ROWS + 1))
    assert filtered["fids"] == [row for row in range(1, ROWS + 1) if row % 7 == 3]


# All rows


def test_the_asset_of_an_item_has_all_rows(address: str) -> None:
    places = Client.open(f"{address}/stac").get_collection("places")
    assert places is not None
    item = places.get_item(ITEM)
    assert item is not None
    href = item.assets["features"].get_absolute_href()
    assert href is not None
    with urllib.request.urlopen(href) as answer:
        _, fids, geometry, _ = pyogrio.raw.read(answer.read(), return_fids=True)
    assert len(geometry) == ROWS
    assert fids.tolist() == list(range(1, ROWS + 1))
    (read,) = read_layers({"source": f"/vsicurl_streaming/{href}"})
    assert read["fids"] == list(range(1, ROWS + 1)), "GDAL reads the address itself"
    assert read["values"]["name"][0] == "Zürich 1"


def test_a_head_costs_no_download(features: str) -> None:
    url = f"{features}/collections/features/download.geojson"
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
        assert answer.headers["content-type"] == "application/geo+json"
        assert answer.headers.get("content-length") is None, "nobody knows it yet"
        assert answer.read() == b""
    small = f"{url}?ids=1"
    for method, rows in (("HEAD", None), ("GET", 1), ("HEAD", None), ("GET", 1)):
        with urllib.request.urlopen(urllib.request.Request(small, method=method)) as answer:
            body = answer.read()
        assert (len(json.loads(body)["features"]) if body else None) == rows


def test_what_is_not_there_is_not_described_either(features: str) -> None:
    other = features.replace(VECTOR.asset_id, "f" * 32)
    for path in ("collections/features/download.geojson", "openapi-3.0.json", "api.html"):
        with pytest.raises(urllib.error.HTTPError) as raised:
            _json(f"{other}/{path}")
        assert raised.value.code == 404
        raised.value.close()
