"""What clients are told of a raster: documents, links, and what it conforms to."""

from typing import Any

import morecantile
import pytest
from fastapi import FastAPI
from tests.integration.serve.described import assert_takes_versions
from tests.integration.serve.tiles.served_rasters import ADDRESS, IGNORED, ROOT, client, cog, fetched, mosaic

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]


async def test_all_links_of_the_landing_page_lead_somewhere(app: FastAPI) -> None:
    async with client(app, cog("dem")) as caller:
        links = (await caller.get("/?version=3")).json()["links"]
        for link in links:
            assert link["href"].startswith(ADDRESS + ROOT)
            assert link["href"].endswith("?version=3")
            answer = await caller.get(link["href"].removeprefix(ADDRESS + ROOT))
            assert answer.status_code == 200, link
            assert answer.headers["content-type"].partition(";")[0] == link["type"].partition(";")[0]
    relations = {link["rel"] for link in links}
    assert {"self", "conformance", "service-desc", "http://www.opengis.net/def/rel/ogc/1.0/tilesets-map"} <= relations


async def test_tilejson(app: FastAPI) -> None:
    asked = "?version=2&rescale=500,1500&colormap_name=viridis&bidx=1&maxzoom=16&tile_format=png"
    told = (await fetched(app, mosaic("dem"), f"/WebMercatorQuad/tilejson.json{asked}")).json()
    kept = "version=2&rescale=500%2C1500&colormap_name=viridis&bidx=1&tilesize=512"
    assert told["tiles"] == [f"{ADDRESS}{ROOT}/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}.png?{kept}"]
    assert (told["tilejson"], told["name"], told["maxzoom"]) == ("3.0.0", "A raster", 16)
    assert "attribution" not in told
    west, south, east, north = told["bounds"]
    assert west < -62.9 < east
    tile = morecantile.tms.get("WebMercatorQuad").tile((west + east) / 2, (south + north) / 2, told["minzoom"])
    place = told["tiles"][0].format(z=tile.z, x=tile.x, y=tile.y)
    assert (await fetched(app, mosaic("dem"), place.removeprefix(ADDRESS + ROOT))).status_code == 200


@pytest.mark.parametrize(
    "path", ["/tiles", "/tiles/WebMercatorQuad", "/tileMatrixSets", "/tileMatrixSets/WorldCRS84Quad"]
)
async def test_pages_load_nothing_from_elsewhere(app: FastAPI, path: str) -> None:
    page = await fetched(app, cog("dem"), f"{path}?f=html")
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "<link" not in page.text
    assert "WorldCRS84Quad" in page.text or "WebMercatorQuad" in page.text


async def test_the_map_gets_all_parameters(app: FastAPI) -> None:
    page = await fetched(app, cog("dem"), "/WebMercatorQuad/map.html?version=2&rescale=1,2")
    assert page.status_code == 200
    assert f"{ROOT}/WebMercatorQuad/tilejson.json?version=2&amp;rescale=1,2" in page.text


async def test_openapi_speaks_of_this_raster_alone(app: FastAPI) -> None:
    for path in (cog("dem"), cog("rgb")):
        document: dict[str, Any] = (await fetched(app, path, "/openapi.json")).json()
        assert document["servers"] == [{"url": ADDRESS + ROOT}]
        parameters = document["paths"]["/tiles/{tileMatrixSetId}/{z}/{x}/{y}"]["get"]["parameters"]
        names = [parameter["name"] for parameter in parameters]
        assert_takes_versions(document)
        assert "url" not in names
        assert len(names) == len(set(names))


async def test_conformance_is_what_is_served(app: FastAPI) -> None:
    declared = (await fetched(app, cog("rgb"), "/conformance")).json()["conformsTo"]
    for name in ("png", "jpeg", "tiff"):
        answer = await fetched(app, cog("rgb"), f"/tiles/WebMercatorQuad/14/5325/7355.{name}")
        assert f"http://www.opengis.net/spec/ogcapi-tiles-1/1.0/conf/{name}" in declared
        assert answer.headers["content-type"].startswith(f"image/{name}")
    assert not any(name in part for part in declared for name in ("mvt", "geojson", "collections", "datetime"))
