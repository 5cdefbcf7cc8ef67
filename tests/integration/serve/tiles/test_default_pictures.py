"""What is drawn for a caller who says nothing of bands and ranges: a picture in which something is seen."""

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import morecantile
import numpy as np
import pytest
import rasterio
from affine import Affine
from fastapi import FastAPI
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioIOError
from tests.integration.serve.tiles.served_rasters import IGNORED, cog, fetched, mosaic, pixels

from graticule.serve.tiles.app import create_tiles
from graticule.serve.tiles.rendering import KnownRanges, Range
from graticule.storage.local import LocalStorage

pytestmark = [pytest.mark.filterwarnings(rule) for rule in (*IGNORED, "ignore::RuntimeWarning:titiler")]

SIDE = 300
DEGREES = 0.3
WEST, NORTH = 7.0, 47.0
WEB = morecantile.tms.get("WebMercatorQuad")
INSIDE, OUTSIDE = np.s_[..., 150:250, 20:280], np.s_[..., 60:90, 60:90]  # of the raster's pixels
OPAQUE = 255


def slope(bands: int, low: float, high: float, dtype: str, hole: float) -> NDArray[Any]:
    """Values that rise from west to east, and for each band a little more, with a hole."""
    columns = np.linspace(low, high, SIDE)
    data = np.stack([np.tile(columns + band * (high - low) / 10, (SIDE, 1)) for band in range(bands)]).astype(dtype)
    data[:, 50:100, 50:100] = hole
    return data


def write(root: Path, name: str, data: NDArray[Any], *, tags: Mapping[str, str] | None = None, **profile: Any) -> None:
    colors, table, scale = (profile.pop(name, None) for name in ("colorinterp", "table", "scale"))
    place = {"transform": Affine(DEGREES / SIDE, 0, WEST, 0, -DEGREES / SIDE, NORTH), "crs": "EPSG:4326"}
    shape = {"count": len(data), "height": SIDE, "width": SIDE, "dtype": data.dtype.name}
    file = root / path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(file, "w", driver="GTiff", tiled=True, **place, **shape, **profile) as dataset:
        if colors is not None:
            dataset.colorinterp = colors
        if table is not None:
            dataset.write_colormap(1, table)
        if scale is not None:
            dataset.scales = [scale] * len(data)
        dataset.write(data)
        dataset.update_tags(1, **(tags or {}))


def path(name: str) -> str:
    return f"silver/{name}/cogs/{name}.tif"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    root = tmp_path_factory.mktemp("pictures")
    write(root, "dem", slope(1, 400, 2400, "float32", -9999), nodata=-9999)
    write(root, "gaps", slope(1, 0.1, 0.9, "float32", np.nan))
    write(root, "holes", slope(1, 400, 2400, "float32", -9999))
    write(root, "scaled", slope(1, 100, 900, "int16", -1), nodata=-1, scale=0.01)
    write(root, "int16", slope(1, -900, 900, "int16", -32768), nodata=-32768)
    write(root, "int8", slope(1, -100, 100, "int8", -128), nodata=-128)
    write(root, "four", slope(4, 100, 9000, "uint16", 0), nodata=0, photometric="MINISBLACK")
    write(root, "two", slope(2, 1, 200, "uint8", 0), nodata=0, photometric="MINISBLACK")
    write(root, "many", slope(40, 100, 9000, "uint16", 0), nodata=0, photometric="MINISBLACK")
    write(root, "grey", slope(1, 1, 250, "uint8", 0), nodata=0)
    write(root, "flat", slope(1, 7, 7, "float32", -1), nodata=-1)
    told = {"STATISTICS_MINIMUM": "-100", "STATISTICS_MAXIMUM": "100"}
    write(root, "told", slope(1, 0, 100, "float32", -1), nodata=-1, tags=told)
    table = {value: (value, 255 - value, 40, 255) for value in range(1, 256)} | {0: (0, 0, 0, 0)}
    write(root, "palette", slope(1, 1, 250, "uint8", 0), nodata=0, table=table)
    alphas = slope(4, 1, 190, "uint8", 0)
    alphas[3] = np.where(alphas[3] > 0, 255, 0)
    rgba = (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)
    write(root, "rgba", alphas, photometric="RGB", colorinterp=rgba)
    deep = slope(4, 100, 9000, "uint16", 0)
    deep[3] = np.where(deep[3] > 0, 65535, 0)
    write(root, "deep", deep, photometric="RGB", colorinterp=rgba)
    return create_tiles(LocalStorage(root))


async def picture(app: FastAPI, blob_path: str, address: str) -> NDArray[Any]:
    answer = await fetched(app, blob_path, address)
    assert answer.status_code == 200, answer.text
    with rasterio.open(io.BytesIO(answer.content)) as dataset:
        drawn: NDArray[Any] = dataset.read()
    return drawn


KINDS = ["dem", "gaps", "int16", "int8", "four", "two", "many", "grey", "palette", "rgba", "deep"]
COLORED = {"four": 3, "many": 3, "palette": 3, "rgba": 3, "deep": 3}


@pytest.mark.parametrize("kind", KINDS)
async def test_something_is_seen_of_every_kind(pictures: FastAPI, kind: str) -> None:
    drawn = await picture(pictures, path(kind), "/preview.png")
    assert drawn.dtype == np.uint8
    assert len(drawn) == COLORED.get(kind, 1) + 1
    *colors, alpha = drawn
    assert (alpha[INSIDE] == OPAQUE).all()
    assert (alpha[OUTSIDE] == 0).all()
    assert all(np.ptp(color[INSIDE].astype(int)) > 100 for color in colors[:2])


@pytest.mark.parametrize("kind", KINDS)
async def test_tiles_are_drawn_as_the_picture_is(pictures: FastAPI, kind: str) -> None:
    tile = WEB.tile(WEST + DEGREES / 2, NORTH - DEGREES / 2, 9)
    for suffix in ("", ".png", ".webp"):
        place = f"/tiles/WebMercatorQuad/{tile.z}/{tile.x}/{tile.y}{suffix}"
        *colors, alpha = await picture(pictures, path(kind), place)
        assert set(np.unique(alpha)) == {0, OPAQUE}
        assert np.ptp(colors[0][alpha == OPAQUE].astype(int)) > 60


async def assert_one_range(app: FastAPI, blob_path: str, middle: tuple[float, float], zoom: int) -> None:
    """Learn from one tile which value has which grey, and see that its neighbour has the same."""
    tile = WEB.tile(*middle, zoom)
    learnt = np.zeros(2)
    for x in (tile.x, tile.x + 1):
        place = f"/tiles/WebMercatorQuad/{zoom}/{x}/{tile.y}"
        values = await pixels(app, blob_path, f"{place}.npy")
        grey, alpha = await picture(app, blob_path, f"{place}.png")
        np.testing.assert_array_equal(alpha, np.where(values[1] > 0, OPAQUE, 0))
        inner = (alpha > 0) & (grey > 0) & (grey < OPAQUE)  # the others are at the ends of the range, or beyond them
        assert np.ptp(grey[inner].astype(int)) > 20
        if x == tile.x:
            learnt = np.polyfit(values[0][inner], grey[inner], 1)
        assert np.abs(np.polyval(learnt, values[0][inner]) - grey[inner]).max() < 1.5


async def test_neighbours_have_one_range(pictures: FastAPI) -> None:
    await assert_one_range(pictures, path("dem"), (WEST + DEGREES / 2, NORTH - DEGREES / 2), 12)


@pytest.mark.parametrize("blob_path", [cog("dem"), mosaic("dem")])
async def test_neighbours_of_a_mosaic_have_one_range(app: FastAPI, blob_path: str) -> None:
    west, south, east, north = (await fetched(app, blob_path, "/info.geojson")).json()["bbox"]
    middle = (west + (east - west) * 0.45, (south + north) / 2)
    await assert_one_range(app, blob_path, middle, 14)
    await assert_one_range(app, blob_path, (west + (east - west) * 0.1, middle[1]), 15)


async def test_what_a_caller_says_stands(pictures: FastAPI) -> None:
    dem = path("dem")
    wide = await picture(pictures, dem, "/preview.png?rescale=0,25500")
    assert wide[0][INSIDE].max() <= 24
    assert (wide[1][INSIDE] == OPAQUE).all()
    by_color = await picture(pictures, dem, "/preview.png?rescale=400,2400&colormap_name=viridis")
    assert len(by_color) == 4
    bare = await picture(pictures, dem, "/preview.png?return_mask=false")
    assert len(bare) == 1
    assert np.ptp(bare[0][INSIDE].astype(int)) > 100
    four = path("four")
    last = await picture(pictures, four, "/preview.png?bidx=4")
    assert len(last) == 2
    assert np.ptp(last[0][INSIDE].astype(int)) > 100
    three = await picture(pictures, four, "/preview.png?rescale=0,9000&rescale=0,90000&rescale=0,900&rescale=0,1")
    assert [band[INSIDE].max() > 200 for band in three] == [True, False, True, True]
    index = await picture(pictures, four, "/preview.png?expression=(b4-b1)/(b4%2Bb1)")
    assert np.ptp(index[0][INSIDE].astype(int)) > 100
    shaded = await picture(pictures, dem, "/preview.png?algorithm=hillshade")
    assert shaded.dtype == np.uint8
    assert (await fetched(pictures, four, "/preview.png?bidx=1&bidx=2&bidx=3&bidx=4")).status_code == 422


async def test_a_value_that_is_taken_for_missing_is_not_in_the_range(pictures: FastAPI) -> None:
    dark, light = [
        (await picture(pictures, path("holes"), f"/preview.png?return_mask=false{asked}"))[0]
        for asked in ("", "&nodata=-9999")
    ]
    assert dark[INSIDE].min() > 200
    assert np.ptp(light[INSIDE].astype(int)) > 200
    scaled, unscaled = [
        (await picture(pictures, path("scaled"), f"/preview.png{asked}"))[0] for asked in ("", "?unscale=true")
    ]
    assert np.abs(scaled.astype(int) - unscaled).max() <= 1


async def test_data_stay_as_they_are(pictures: FastAPI) -> None:
    values = await pixels(pictures, path("dem"), "/preview.npy")
    assert values.dtype == np.float32
    assert 2200 < values[0][INSIDE].max() <= 2400
    assert len(await pixels(pictures, path("four"), "/preview.npy")) == 5
    tif = await picture(pictures, path("four"), "/preview.tif")
    assert (tif.dtype.name, len(tif)) == ("uint16", 5)
    told = (await fetched(pictures, path("four"), "/statistics")).json()
    assert list(told) == ["b1", "b2", "b3", "b4"]


async def test_the_range_of_a_file_is_taken_from_it(pictures: FastAPI) -> None:
    """It says that its values go from -100 to 100: those from 0 on are the lighter half."""
    drawn = await picture(pictures, path("told"), "/preview.png")
    assert drawn[0][INSIDE].min() > 120
    flat = await picture(pictures, path("flat"), "/preview.png")
    assert (flat[0][INSIDE] == 127).all()
    assert (flat[1][INSIDE] == OPAQUE).all()


def test_a_range_is_looked_for_once() -> None:
    known, looks, ready = KnownRanges(), [], Barrier(4)

    def look() -> Sequence[Range]:
        looks.append(1)
        if len(looks) == 1:
            raise RasterioIOError("not now")
        return [(0.0, 9.0)]

    with pytest.raises(RasterioIOError):  # which is not kept
        known.find("dem", look)

    def ask() -> Sequence[Range]:
        ready.wait(10)
        return known.find("dem", look)

    with ThreadPoolExecutor(4) as threads:
        found = [each.result() for each in [threads.submit(ask) for _ in range(4)]]
    assert found == [[(0.0, 9.0)]] * 4
    assert len(looks) == 2
