"""Rasters whose longitudes go on beyond 180 degrees are seen on both sides of the antimeridian."""

import math
from typing import Any

import morecantile
import numpy as np
import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, fetched, pixels

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

BEYOND, BEFORE = "silver/dateline/cogs/columns.tif", "silver/before/cogs/columns.tif"  # 179 to 181, -181 to -179
SIZE = 2 / 400  # degrees of a pixel
SETS = {name: morecantile.tms.get(name) for name in ("WebMercatorQuad", "WorldCRS84Quad", "WorldMercatorWGS84Quad")}


def columns_at(longitudes: Any) -> Any:
    """Give the columns, which are the values, at longitudes from -180 to 180."""
    return ((longitudes - 179) % 360) / SIZE


@pytest.mark.parametrize("path", [BEYOND, BEFORE])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("zoom", [6, 12])
async def test_tiles_on_both_sides_show_the_right_pixels(app: FastAPI, path: str, name: str, zoom: int) -> None:
    for longitude in (179.99, -179.99):
        tile = SETS[name].tile(longitude, 0.5, zoom)
        values, mask = await pixels(app, path, f"/tiles/{name}/{zoom}/{tile.x}/{tile.y}.npy")
        bounds = SETS[name].bounds(tile)
        centres = bounds.left + (np.arange(256) + 0.5) / 256 * (bounds.right - bounds.left)
        rows, columns = np.nonzero(mask > 0)
        assert len(rows) > 0
        pixel = (bounds.right - bounds.left) / 256 / SIZE
        assert np.abs(values[rows, columns] + 0.5 - columns_at(centres[columns])).max() <= 1 + max(1, pixel)


@pytest.mark.parametrize("path", [BEYOND, BEFORE])
async def test_a_tile_of_all_the_world_shows_both_ends(app: FastAPI, path: str) -> None:
    values, mask = await pixels(app, path, "/tiles/WebMercatorQuad/0/0/0.npy?tilesize=512")
    assert set(np.nonzero(mask > 0)[1]) == {0, 511}
    assert values[mask > 0][0] != values[mask > 0][-1]


async def test_clients_are_told_bounds_that_they_can_use(app: FastAPI) -> None:
    told = (await fetched(app, BEYOND, "/WebMercatorQuad/tilejson.json")).json()
    assert told["bounds"] == pytest.approx([-180, 0, 180, 1])  # TileJSON: "must not wrap"
    assert told["data_bounds"] == pytest.approx([179, 0, 181, 1])
    assert (abs(told["center"][0]), told["center"][1]) == pytest.approx((180, 0.5))
    assert told["maxzoom"] == round(math.log2(360 / SIZE / 256))
    shown = (await fetched(app, BEYOND, "/info.geojson")).json()
    assert shown["bbox"] == pytest.approx([179, 0, -179, 1])
    assert shown["geometry"]["type"] == "MultiPolygon"


@pytest.mark.parametrize(("longitude", "column"), [(179.5, 100), (-179.5, 300), (180.5, 300), (-180.5, 100)])
async def test_points_are_found_in_any_turn(app: FastAPI, longitude: float, column: int) -> None:
    for path in (BEYOND, BEFORE):
        [value] = (await fetched(app, path, f"/point/{longitude},0.5")).json()["values"]
        assert value == pytest.approx(column, abs=1)
    assert (await fetched(app, BEYOND, "/point/0,0.5")).status_code == 404


@pytest.mark.parametrize("box", ["179.5,0.2,-179.5,0.8", "179.5,0.2,180.5,0.8", "-180.5,0.2,-179.5,0.8"])
async def test_a_box_may_go_across(app: FastAPI, box: str) -> None:
    for path in (BEYOND, BEFORE):
        values, mask = await pixels(app, path, f"/bbox/{box}.npy")
        assert (mask > 0).all()
        assert (values[0, 0], values[0, -1]) == pytest.approx((100, 299), abs=1)


async def test_shapes_that_are_cut_at_the_antimeridian_count_as_one(app: FastAPI) -> None:
    sides = [
        [[(west, 0.2), (east, 0.2), (east, 0.8), (west, 0.8), (west, 0.2)]]
        for west, east in ((179.5, 180), (-180, -179.5))
    ]
    shape = {"type": "Feature", "properties": None, "geometry": {"type": "MultiPolygon", "coordinates": sides}}
    for path in (BEYOND, BEFORE):
        answer = await fetched(app, path, "/statistics", json=shape)
        assert answer.status_code == 200, answer.text
        counted = answer.json()["properties"]["statistics"]["b1"]
        assert (counted["min"], counted["max"]) == pytest.approx((100, 299), abs=1)
        assert counted["count"] == pytest.approx(200 * 120, rel=0.02)
