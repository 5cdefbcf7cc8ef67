"""A mosaic is served as if it were the one file that it could have been."""

import json
from pathlib import Path
from typing import Any

import morecantile
import numpy as np
import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, cog, fetched, mosaic, pixels

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

WEB = morecantile.tms.get("WebMercatorQuad")
KINDS = ["rgb", "dem", "categorical", "rgba", "antimeridian"]


async def described(app: FastAPI, path: str) -> dict[str, Any]:
    found: dict[str, Any] = (await fetched(app, path, "/WebMercatorQuad/tilejson.json")).json()
    return found


async def assert_same(app: FastAPI, kind: str, address: str, **given: Any) -> None:
    expected = await pixels(app, cog(kind), address, **given)
    found = await pixels(app, mosaic(kind), address, **given)
    np.testing.assert_array_equal(found, expected, err_msg=address)
    assert (expected[-1] > 0).any(), "nothing is seen"


@pytest.mark.parametrize("kind", KINDS)
async def test_tiles_are_the_same(app: FastAPI, kind: str) -> None:
    document = await described(app, cog(kind))
    assert await described(app, mosaic(kind)) == document
    west, south, east, north = document.get("data_bounds", document["bounds"])
    # Of the others no file has an overview, and all of the raster has: that one is made when it is read.
    first = document["maxzoom"] - (kind == "dem")
    for zoom in (first, document["maxzoom"] + 1):
        # The seams of the tiles lie at 448 of about 620 columns, and at 960 of about 1300.
        for across in (0.2, 0.72):
            tile = WEB.tile((west + (east - west) * across + 180) % 360 - 180, (south + north) / 2, zoom)
            place = f"/tiles/WebMercatorQuad/{tile.z}/{tile.x}/{tile.y}.npy"
            await assert_same(app, kind, place)
            if kind != "categorical":
                await assert_same(app, kind, f"{place}?resampling=bilinear&reproject=cubic&buffer=1&padding=2")


@pytest.mark.parametrize("kind", KINDS)
async def test_pictures_and_parts_are_the_same(app: FastAPI, kind: str) -> None:
    info = (await fetched(app, cog(kind), "/info")).json()
    left, _, right, top = info["bounds"]
    size = (right - left) / info["width"]  # of a pixel: both sides of the seams are in the box
    west, south, east, north = left + 350 * size, top - 220 * size, left + 600 * size, top - 20 * size
    await assert_same(app, kind, "/preview.npy?max_size=2000")
    await assert_same(app, kind, f"/bbox/{west},{south},{east},{north}.npy")
    await assert_same(
        app, kind, f"/bbox/{west},{south},{east},{north}/300x260.npy?dst_crs=EPSG:3395&resampling=average"
    )
    ring = [[west, south], [east, south], [east, north], [west, south]]
    shape = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    await assert_same(app, kind, "/feature.npy", json=shape)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_told_is_the_same(app: FastAPI, kind: str) -> None:
    info = (await fetched(app, cog(kind), "/info")).json()
    assert {**(await fetched(app, mosaic(kind), "/info")).json(), "driver": "GTiff"} == info
    assert info["band_descriptions"][0] == ["b1", "first band"]
    west, south, east, north = info["bounds"]
    ring = [[west, south], [east, south], [east, north], [west, south]]
    shape = {"type": "Feature", "properties": {"is": 1}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/statistics?max_size=2000&p=5&histogram_bins=4", {}),
        ("/statistics?max_size=2000&cover_scale=2", {"json": shape}),
        (f"/point/{west + (east - west) * 0.7},{(south + north) / 2}", {}),
        ("/info.geojson", {}),
        ("/tiles/WebMercatorQuad", {}),
    ]
    for address, given in asked:
        expected = await fetched(app, cog(kind), address, **given)
        found = await fetched(app, mosaic(kind), address, **given)
        assert expected.status_code == 200, expected.text
        assert found.text.replace('"VRT"', '"GTiff"') == expected.text, address


async def test_a_change_of_the_mosaic_is_seen(app: FastAPI, rasters: Path) -> None:
    """It is known again by the etag of its document, not by its path alone."""
    path = mosaic("categorical")
    assert (await fetched(app, path, "/point/-62.96,18.08")).status_code == 200
    file = rasters / path
    before = file.read_bytes()
    named = json.loads(before)
    named["tiles"] = {key: [] for key in named["tiles"]}
    try:
        file.write_text(json.dumps(named))
        assert (await fetched(app, path, "/point/-62.96,18.08")).status_code == 503
    finally:
        file.write_bytes(before)
    assert (await fetched(app, path, "/point/-62.96,18.08")).status_code == 200
