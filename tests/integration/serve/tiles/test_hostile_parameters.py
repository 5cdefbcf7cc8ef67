"""Whatever a caller sends, it is told quickly what is wrong with it, and nothing else is read."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, client, cog, fetched

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

TILE = "/tiles/WebMercatorQuad/14/5325/7355.png"
DATA_TILE = "/tiles/WebMercatorQuad/14/5325/7355.npy"
BOX = "/bbox/-62.99,18.07,-62.97,18.08.png"
MANY = "&".join(f"bidx={1 + number % 3}" for number in range(17))


def shape(*rings: list[Any], kind: str = "Polygon") -> dict[str, Any]:
    return {"type": "Feature", "properties": {}, "geometry": {"type": kind, "coordinates": rings}}


def ring(count: int) -> list[list[float]]:
    corners = [[-62.99 + 0.01 * place / count, 18.07 + 0.01 * (place % 2)] for place in range(count)]
    return [*corners, corners[0]]


def nested(depth: int) -> dict[str, Any]:
    properties: Any = 1
    for _ in range(depth):
        properties = {"within": properties}
    return {**shape(ring(3)), "properties": {"outer": properties}}


TRIANGLE = shape(ring(3))
QUERIES = [
    (TILE, "url=https://example.org/other.tif"),
    (TILE, "url=/etc/passwd"),
    (TILE, "path=../../other.tif"),
    (TILE, "src_path=/vsicurl/https://example.org/a.tif"),
    (TILE, "env=GDAL_DATA"),
    ("/tiles/WebMercatorQuad/60/0/0", ""),
    ("/tiles/WebMercatorQuad/25/0/0", ""),
    ("/tiles/WebMercatorQuad/-1/0/0", ""),
    ("/tiles/WebMercatorQuad/14/99999/7355", ""),
    ("/tiles/WebMercatorQuad/14/-3/7355", ""),
    ("/tiles/WebMercatorQuad/14/1e5/7355", ""),
    (f"/tiles/WebMercatorQuad/{'9' * 400}/1/1", ""),
    ("/tiles/CanadianNAD83_LCC/1/1/1", ""),
    ("/tiles/..%2f..%2fetc/1/1/1", ""),
    ("/tiles/WebMercatorQuad/14/1/1", ""),
    ("/tiles/WebMercatorQuad", "maxzoom=1000000000"),
    ("/tiles/WebMercatorQuad", "minzoom=-5"),
    ("/WebMercatorQuad/tilejson.json", "maxzoom=60"),
    ("/WebMercatorQuad/tilejson.json", "minzoom=20&maxzoom=3"),
    ("/WorldCRS84Quad/map.html", ""),
    (TILE, "tilesize=1025"),
    (TILE, "tilesize=0"),
    (DATA_TILE, "tilesize=1024&" + "&".join(["bidx=1"] * 16)),
    (DATA_TILE, "tilesize=1024&expression=b1;b2;b3;b1"),
    (DATA_TILE, "tilesize=1024&unscale=true&" + "&".join(["bidx=1"] * 4)),
    (TILE, f"tilesize=1024&bidx=1&colormap={quote(json.dumps([[[0, 9], '#ff0000']] * 65))}"),
    (TILE, "tilesize=1024&expression=b1&algorithm=hillshade&color_formula=gamma b 2&reproject=cubic"),
    (TILE, "buffer=17"),
    (TILE, "buffer=0.3"),
    (TILE, "buffer=nan"),
    (TILE, "padding=1000000"),
    (TILE, "bidx=0"),
    (TILE, "bidx=4"),
    (TILE, MANY),
    (TILE, "nodata=1e400"),
    (TILE, "nodata=300"),
    (TILE, f"nodata={'9' * 1000}"),
    (TILE, "nodata=nan"),
    (TILE, "resampling=best"),
    (TILE, "reproject=best"),
    (TILE, "rescale=1"),
    (TILE, "rescale=5,5"),
    (TILE, "rescale=nan,1"),
    (TILE, "rescale=-1e308,1e308"),
    (TILE, "&".join(["rescale=0,1"] * 17)),
    (TILE, f"rescale={'0' * 100},1"),
    (TILE, "color_formula=explode"),
    (TILE, f"color_formula={'gamma r 2 ' * 50}"),
    (TILE, "color_formula=gamma rgb -1"),
    (TILE, "colormap_name=../../secret"),
    (TILE, "colormap=nonsense"),
    (TILE, f"colormap={quote('{}')}"),
    (TILE, f"colormap={quote(json.dumps({str(key): '#ff0000' for key in range(257)}))}"),
    (TILE, "colormap=" + quote('{"1": [1, 2, 999]}')),
    (TILE, "colormap=" + quote('{"1": [[1]]}')),
    (TILE, f"colormap={quote('[' * 4000)}"),
    (TILE, f"bidx=1&colormap={quote('[[[0, 1], 5]]')}"),
    (TILE, "colormap_name=viridis"),  # of three bands
    ("/tiles/WebMercatorQuad/14/5325/7355.jpg", "bidx=1&bidx=2"),
    ("/tiles/WebMercatorQuad/14/5325/7355.exe", ""),
    (TILE, "expression=9**9**9**9*b1"),
    (TILE, "expression=b1**99"),
    (TILE, "expression=((((((b1**10)**10)**10)**10)**10)**10)**10"),
    (TILE, "expression=__import__('os')"),
    (TILE, "expression=b9"),
    (TILE, f"expression={quote('(b1*0-2147483647-1)//(b1*0-1)')}"),
    (TILE, f"expression={'(' * 500}b1{')' * 500}"),
    (TILE, f"expression={';'.join(['b1'] * 9)}"),
    (TILE, f"expression={quote('+'.join(['b1'] * 200))}"),
    (TILE, "expression="),
    (TILE, "algorithm=os"),
    (TILE, "algorithm=hillshade&algorithm_params=" + quote('{"output_dtype": "U100000"}')),
    (TILE, "algorithm=hillshade&algorithm_params=" + quote('{"buffer": 100000}')),
    (TILE, "algorithm=hillshade&bidx=1&algorithm_params=" + quote('{"buffer": 99}') + "&tilesize=64"),
    (TILE, "algorithm=hillshade&algorithm_params=7"),
    ("/preview/100000x100000.png", ""),
    ("/preview.png", "max_size=100000"),
    ("/preview.png", "max_size=0"),
    ("/preview.png", "width=2049"),
    ("/preview.npy", "width=2048&height=2048&bidx=1&bidx=2&bidx=3&bidx=1"),
    ("/preview.npy", "width=2048&height=2048&expression=b1"),
    ("/preview.png", "width=2048&height=2048&color_formula=gamma rgb 2"),
    ("/preview.png", "width=2048&height=2048&bidx=1&algorithm=hillshade"),
    ("/preview.png", f"width=2048&height=2048&bidx=1&colormap={quote(json.dumps({'1': '#ff0000'}))}"),
    (BOX, "width=2048&height=2048&reproject=lanczos&dst_crs=EPSG:3857"),
    ("/preview.png", "width=-1"),
    ("/preview.png", "dst_crs=/etc/passwd"),
    ("/preview.png", f"dst_crs={quote('+proj=utm +zone=1')}"),
    ("/preview.png", f"dst_crs={quote('https://example.org/crs')}"),
    ("/preview.png", "dst_crs=EPSG:999999"),
    ("/preview.png", "dst_crs=EPSG:5773"),  # heights
    (BOX, "width=2049"),
    (BOX, "max_size=2049"),
    (BOX, "coord_crs=GEOGCRS[]"),
    ("/bbox/-63,18,-62.9999999999,18.1.png", "width=2048"),  # narrow, and high
    ("/bbox/nan,18,-62,18.1.png", ""),
    ("/bbox/-inf,18,inf,18.1.png", ""),
    ("/bbox/-62,18,-62,18.1.png", ""),
    ("/bbox/-62,19,-61,18.png", ""),
    ("/bbox/10,10,11,11.png", ""),
    ("/bbox/500000,0,400000,10.png", "coord_crs=EPSG:32620"),
    ("/bbox/1e300,1e300,2e300,2e300.png", "coord_crs=EPSG:3857"),
    ("/point/nan,18", ""),
    ("/point/1e308,1e308", ""),
    ("/point/10,10", ""),
    ("/point/1e30,1e30", "coord_crs=EPSG:32620"),
    ("/point/-62.98,18.07", "coord_crs=EPSG:4326&bidx=70000"),
    ("/statistics", "histogram_bins=100000"),
    ("/statistics", "histogram_bins=3,2,1"),
    ("/statistics", "histogram_range=5,1"),
    ("/statistics", "p=101"),
    ("/statistics", "&".join(["p=1"] * 21)),
    ("/statistics", "&".join(["c=1"] * 1001)),
    ("/statistics", "max_size=100000"),
    ("/statistics", "width=1025&height=1024&bidx=1"),
    ("/statistics", "width=1024&height=1024&expression=b1;b2;b3;b1;b2"),
    ("/info.geojson", "crs=EPSG:0001"),
    ("/tiles", "f=xml"),
    ("/algorithms", ""),
    ("/nothing", ""),
]
BODIES: list[tuple[str, Any]] = [
    ("/statistics", {"type": "FeatureCollection", "features": [TRIANGLE] * 11}),
    ("/statistics", {"type": "FeatureCollection", "features": []}),
    ("/statistics", shape(ring(2000))),
    ("/statistics", {"type": "FeatureCollection", "features": [shape(ring(1000))] * 2}),
    ("/statistics", {"type": "FeatureCollection", "features": [nested(300)]}),
    ("/statistics", nested(300)),
    ("/statistics", nested(12)),
    ("/statistics?width=1024&height=1024", {"type": "FeatureCollection", "features": [TRIANGLE] * 2}),
    ("/statistics", shape([[0, 0], [1, 1], [2, 0]])),
    ("/statistics?cover_scale=1000", TRIANGLE),
    ("/statistics?max_size=100000", TRIANGLE),
    ("/statistics?width=1025&height=1024", TRIANGLE),
    ("/statistics", {"type": "Feature", "properties": {}, "geometry": None}),
    ("/statistics", "nonsense"),
    ("/feature.png", shape(ring(2000))),
    ("/feature/100000x100000.png", TRIANGLE),
    ("/feature.png?coord_crs=EPSG:3857", shape([[0, 0], [1, 0], [1, 1], [0, 0]])),
    ("/feature.png", shape([[0, 0], [0, 0], [0, 0], [0, 0]])),
]


async def assert_refused(app: FastAPI, rasters: Path, address: str, **given: Any) -> None:
    begun = time.process_time()
    answer = await fetched(app, cog("rgb"), address, **given)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert time.process_time() - begun < 1
    for secret in (str(rasters), "rgb.tif", "silver"):
        assert secret not in answer.text + str(answer.headers)


@pytest.mark.parametrize(("path", "query"), QUERIES, ids=lambda text: text[:60])
async def test_queries(app: FastAPI, rasters: Path, path: str, query: str) -> None:
    await assert_refused(app, rasters, f"{path}?{query}" if query else path)


@pytest.mark.parametrize(("path", "body"), BODIES, ids=lambda part: str(part)[:60])
async def test_bodies(app: FastAPI, rasters: Path, path: str, body: Any) -> None:
    await assert_refused(app, rasters, path, json=body)


async def test_a_header_that_cannot_be_read(app: FastAPI) -> None:
    async with client(app, cog("rgb")) as caller:
        assert (await caller.get("/tiles", headers={"Accept": "text/html;q"})).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "",
        "tilesize=64&buffer=1.5&padding=4",
        "bidx=3&bidx=2&bidx=1",
        "bidx=1&colormap_name=viridis&rescale=0,200",
        f"bidx=1&colormap={quote(json.dumps({str(key): '#ff000080' for key in range(256)}))}",
        "bidx=1&colormap=" + quote('[[[0, 100], "#ffffff"]]'),
        "expression=(b1-b2)/(b1%2Bb2)&rescale=-1,1",
        f"expression={quote('where((b1>100)&(b2<50), sqrt(b3), b1**2//3%7);b2;abs(b3)')}&rescale=0,50",
        "color_formula=gamma rgb 1.5 sigmoidal rgb 10 0.3",
        "algorithm=hillshade&bidx=1&buffer=3",
        "algorithm=slope&bidx=1&rescale=0,90&algorithm_params=" + quote('{"z_exaggeration": 2}'),
        "algorithm=contours&bidx=1",
        "algorithm=terrarium&bidx=1",
        "nodata=0&resampling=average&reproject=bilinear&unscale=true&rescale=0,255",
        "return_mask=false&version=7",
    ],
    ids=lambda text: text[:60],
)
async def test_what_is_allowed_is_drawn(app: FastAPI, query: str) -> None:
    answer = await fetched(app, cog("rgb"), f"{TILE}?{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
