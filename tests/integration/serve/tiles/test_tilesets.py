"""What is told of a raster's tiles, in the words of OGC API Tiles."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.integration.serve.followed import CRS84, follow, tile_within
from tests.integration.serve.tiles.served_rasters import ADDRESS, IGNORED, ROOT, client, cog, mosaic

from graticule.serve.tilesets import GRIDS

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]
BASE = ADDRESS + ROOT


async def told(caller: httpx.AsyncClient, address: str) -> dict[str, Any]:
    answer = await caller.get(address)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("blob", [cog("rgb"), mosaic("dem")])
async def test_all_links_give_what_they_say(app: FastAPI, blob: str) -> None:
    async with client(app, blob) as caller:
        await follow(caller, BASE, (await told(caller, "/?version=0"))["links"], {})
        listed = await told(caller, "/tiles?version=0")
        await follow(caller, BASE, listed["links"], {})
        assert [tileset["tileMatrixSetURI"].rpartition("/")[2] for tileset in listed["tilesets"]] == [*GRIDS]
        for name, brief in zip(GRIDS, listed["tilesets"], strict=True):
            whole = await told(caller, f"/tiles/{name}?version=0")
            limits = whole.pop("tileMatrixSetLimits")
            tile = tile_within(limits[-1])
            await follow(caller, BASE, whole["links"] if name == "WebMercatorQuad" else brief["links"], tile)
            assert {link["href"] for link in whole["links"]} == {link["href"] for link in brief["links"]}
            assert {**whole, "links": []} == {**brief, "links": []}


async def test_tiles_come_in_the_formats_that_are_named(app: FastAPI) -> None:
    async with client(app, cog("rgb")) as caller:
        links = (await told(caller, "/tiles/WebMercatorQuad"))["links"]
    place = f"{BASE}/tiles/WebMercatorQuad/{{tileMatrix}}/{{tileCol}}/{{tileRow}}"
    assert {(link["href"], link["type"]) for link in links if link["rel"] == "item"} == {
        (f"{place}.png", "image/png"),
        (f"{place}.jpeg", "image/jpeg"),
        (f"{place}.tiff", "image/tiff; application=geotiff"),
    }


async def test_what_was_asked_for_goes_on_to_the_tiles(app: FastAPI) -> None:
    asked = "rescale=0%2C9&bidx=1&tilesize=128"
    async with client(app, cog("rgb")) as caller:
        listed = await told(caller, f"/tiles?{asked}&version=0&f=json")
        whole = await told(caller, f"/tiles/WebMercatorQuad?{asked}&version=0&f=json&maxzoom=18")
        for links in (listed["tilesets"][0]["links"], whole["links"]):
            by_relation = {link["rel"]: link["href"].partition("?")[2] for link in links}
            assert by_relation["item"] == by_relation["alternate"] == f"version=0&{asked}"
            assert by_relation["http://www.opengis.net/def/rel/ogc/1.0/tiling-scheme"] == "version=0"
            await follow(caller, BASE, links, tile_within(whole["tileMatrixSetLimits"][-1]))
        assert [limits["tileMatrix"] for limits in whole["tileMatrixSetLimits"]][-1] == "18"
        for wrong in ("rescale=x", "tilesize=100000", "bidx=0", "minzoom=9&maxzoom=3", "crs=EPSG:4326", "url=x"):
            assert (await caller.get(f"/tiles/WebMercatorQuad?{wrong}")).status_code in {400, 422}, wrong


@pytest.mark.parametrize("name", GRIDS)
async def test_boxes_have_longitudes_first_and_limits_are_where_the_raster_is(app: FastAPI, name: str) -> None:
    async with client(app, mosaic("dem")) as caller:
        whole = await told(caller, f"/tiles/{name}")
        west, south, east, north = (await told(caller, "/WorldCRS84Quad/tilejson.json"))["bounds"]
        box = whole["boundingBox"]
        assert box["crs"] == CRS84
        assert [*box["lowerLeft"], *box["upperRight"]] == pytest.approx([west, south, east, north])
        assert west < east < 0 < north  # the columns of a tile follow from the longitudes, and not from the others
        for limits in whole["tileMatrixSetLimits"]:
            zoom = int(limits["tileMatrix"])
            first, last = GRIDS[name].tile(west, north, zoom), GRIDS[name].tile(east, south, zoom)
            assert (limits["minTileCol"], limits["maxTileCol"]) == (first.x, last.x)
            assert (limits["minTileRow"], limits["maxTileRow"]) == (first.y, last.y)


async def test_across_the_antimeridian_there_are_all_columns(app: FastAPI) -> None:
    async with client(app, "silver/dateline/cogs/columns.tif") as caller:
        whole = await told(caller, "/tiles/WorldCRS84Quad")
    assert (whole["boundingBox"]["lowerLeft"][0], whole["boundingBox"]["upperRight"][0]) == (-180, 180)
    for limits in whole["tileMatrixSetLimits"]:
        matrix = GRIDS["WorldCRS84Quad"].matrix(int(limits["tileMatrix"]))
        assert (limits["minTileCol"], limits["maxTileCol"]) == (0, matrix.matrixWidth - 1)
        assert limits["maxTileRow"] < matrix.matrixHeight
