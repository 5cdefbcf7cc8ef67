"""MapLibre in a real browser draws what the tiles hold: looked at in pixels."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import shapely
import uvicorn
from affine import Affine
from fastapi import FastAPI, HTTPException, Request, Response
from playwright.sync_api import Page
from rio_tiler.errors import TileOutsideBounds
from rio_tiler.io import Reader
from tests.browser.conftest import Browser
from tests.browser.maps import (
    DARK_BACKGROUND,
    LIGHT_BACKGROUND,
    Box,
    Colour,
    Picture,
    colour_at,
    decoded,
    filled,
    is_near,
    spot,
)
from tests.mvt import write_tiles

from graticule.http.problems import install_problem_handlers
from graticule.serve.viewer import raster_page, static_files, vector_page

ROOT = "/maps"  # where the process is reached from outside
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"

RASTER_BOUNDS: Box = (8.0, 46.0, 10.0, 48.0)
RED, GREEN, BLUE = (200, 30, 40), (20, 160, 60), (30, 60, 190)

VECTOR_ZOOM = 3
VECTOR_BOUNDS: Box = (-60.0, -40.0, 60.0, 40.0)
ACROSS_BOUNDS: Box = (100.0, -20.0, -178.0, 20.0)
ONE_TILE: Box = (20.0, 20.0, 60.0, 50.0)
COUNTS = {
    f"Graticule-Features-{name}": count for name, count in (("Shown", "10"), ("Merged", "1000"), ("Total", "1020"))
}
FEATURES = {
    "land": shapely.box(-50, -30, -10, 30).difference(shapely.box(-40, -20, -20, 20)),
    HOSTILE: shapely.box(10, 10, 50, 30),
    "buoy": shapely.Point(30, -20),
    "west of the line": shapely.box(165, -10, 179, 10),
    "east of the line": shapely.box(-179.5, -10, -178.2, 10),
}

Screenshot = Callable[..., Picture]

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # rasterio 1.4 with affine 3
    # rio-tiler ignores it while it makes an image; with many at a time, in threads, that goes wrong.
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]


@pytest.fixture(scope="module")
def raster(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three coloured quarters; the fourth, in the south-east, has no data."""
    pixels = np.zeros((4, 400, 400), np.uint8)
    for rows, columns, colour in (
        (slice(0, 200), slice(0, 200), RED),
        (slice(0, 200), slice(200, 400), GREEN),
        (slice(200, 400), slice(0, 200), BLUE),
    ):
        pixels[:, rows, columns] = np.array([*colour, 255], np.uint8)[:, None, None]
    path = tmp_path_factory.mktemp("raster") / "quarters.tif"
    transform = Affine(2 / 400, 0, RASTER_BOUNDS[0], 0, -2 / 400, RASTER_BOUNDS[3])
    options = {"dtype": "uint8", "crs": "EPSG:4326", "transform": transform, "photometric": "RGB", "alpha": "YES"}
    with rasterio.open(path, "w", driver="GTiff", width=400, height=400, count=4, tiled=True, **options) as file:
        file.write(pixels)
    return str(path)


@pytest.fixture(scope="module")
def vector_tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiles; where no feature is, there is none."""
    folder = tmp_path_factory.mktemp("vector") / "tiles"
    write_tiles(folder, [shapely.to_wkb(geometry) for geometry in FEATURES.values()], list(FEATURES), VECTOR_ZOOM)
    return folder


def tiles_of(raster: str) -> FastAPI:
    """What `/tiles/<asset>` does, as far as the page asks for it."""
    app = FastAPI()

    @app.get("/tilejson.json")
    def tilejson(request: Request) -> dict[str, Any]:
        # Under another name of the host than the browser's: a public address may not be the one at hand.
        tiles = f"http://public.example{request.scope['root_path']}/{{z}}/{{x}}/{{y}}?tilesize=512"
        with Reader(raster) as reader:
            zooms = {"minzoom": reader.minzoom, "maxzoom": reader.maxzoom}
        return {"tilejson": "3.0.0", "tiles": [tiles], "bounds": RASTER_BOUNDS, **zooms}

    @app.get("/{z}/{x}/{y}")
    def tile(z: int, x: int, y: int, tilesize: int) -> Response:
        with Reader(raster) as reader:
            try:
                image = reader.tile(x, y, z, tilesize=tilesize)
            except TileOutsideBounds as error:
                raise HTTPException(404) from error
        return Response(image.render(img_format="PNG"), media_type="image/png")

    @app.get("/map.html")
    def page(request: Request) -> Response:
        prefix = request.scope["root_path"]
        return raster_page(request, tilejson_url=f"http://public.example{prefix}/tilejson.json", title="Quarters")

    @app.get("/gone.html")
    def without_tiles(request: Request) -> Response:
        return raster_page(request, tilejson_url=f"{request.scope['root_path']}/no-such.json", title="Gone")

    return app


def features_of(tiles: Path, bounds: Box, counts: dict[str, str] | None = None) -> FastAPI:
    """What `/features/<asset>` does, as far as the page asks for it."""
    app = FastAPI()

    @app.get("/tilejson.json")
    def tilejson(request: Request) -> dict[str, Any]:
        address = f"{request.scope['root_path']}/{{z}}/{{x}}/{{y}}"
        layers = [{"id": "features", "fields": {"name": "string"}}]
        attribution = f"Survey <b>2026</b>{HOSTILE}"
        described = {"bounds": bounds, "maxzoom": VECTOR_ZOOM, "vector_layers": layers, "attribution": attribution}
        return {"tiles": [address], **described}

    @app.get("/{z}/{x}/{y}")
    def tile(z: int, x: int, y: int) -> Response:
        path = tiles / f"{z}/{x}/{y}.pbf"
        content = path.read_bytes() if path.exists() else b""
        return Response(content, media_type="application/vnd.mapbox-vector-tile", headers=counts)

    @app.get("/map.html")
    def page(request: Request) -> Response:
        address = f"{request.scope['root_path']}/tilejson.json"
        return vector_page(request, tilejson_url=address, title="Parcels & <shores> of a long name " * 5)

    return app


@pytest.fixture(scope="module")
def site(raster: str, vector_tiles: Path) -> Iterator[str]:
    """The address of a process that serves the pages and their tiles."""
    inner = FastAPI()

    @inner.middleware("http")
    async def place(request: Request, call_next: Callable[[Request], Any]) -> Any:
        request.state.root = ROOT
        return await call_next(request)

    install_problem_handlers(inner)
    inner.mount("/static", static_files())
    inner.mount("/tiles/quarters", tiles_of(raster))
    inner.mount("/features/parcels", features_of(vector_tiles, VECTOR_BOUNDS))
    inner.mount("/features/across", features_of(vector_tiles, ACROSS_BOUNDS))
    inner.mount("/features/many", features_of(vector_tiles, ONE_TILE, COUNTS))
    outer = FastAPI()
    outer.mount(ROOT, inner)
    with listening(outer) as address:
        yield f"{address}{ROOT}"


class listening:  # noqa: N801 - used as a word
    """Serve an application in a thread, on a free port."""

    def __init__(self, app: FastAPI) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"  # connections wait until it accepts them

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


def test_a_raster_is_drawn_in_its_colours(site: str, screenshot_when_idle: Screenshot) -> None:
    picture = screenshot_when_idle(f"{site}/tiles/quarters/map.html")
    expected: dict[tuple[float, float], Colour] = {
        (8.5, 47.5): RED,
        (9.5, 47.5): GREEN,
        (8.5, 46.5): BLUE,
        (9.5, 46.5): LIGHT_BACKGROUND,  # no data
        (8.95, 47.05): RED,
        (9.05, 47.05): GREEN,
        (7.95, 47.5): LIGHT_BACKGROUND,  # outside
        (10.05, 47.5): LIGHT_BACKGROUND,
    }
    seen = {place: colour_at(picture, *place, RASTER_BOUNDS) for place in expected}
    assert all(is_near(seen[place], colour) for place, colour in expected.items()), seen


def test_features_are_drawn_where_they_are(site: str, screenshot_when_idle: Screenshot) -> None:
    picture = screenshot_when_idle(f"{site}/features/parcels/map.html")
    expected: dict[tuple[float, float], Colour] = {
        (-45, 0): filled(),
        (-30, 25): filled(),
        (-30, 0): LIGHT_BACKGROUND,  # a hole
        (0, 0): LIGHT_BACKGROUND,
        (20, 20): filled(),
        (30, -20): (0x1F, 0x6F, 0xB2),  # a point
        (40, -20): LIGHT_BACKGROUND,
    }
    seen = {place: colour_at(picture, *place, VECTOR_BOUNDS) for place in expected}
    assert all(is_near(seen[place], colour) for place, colour in expected.items()), seen


def test_data_across_the_antimeridian_are_drawn_in_one_piece(site: str, screenshot_when_idle: Screenshot) -> None:
    # So wide that there is a whole tile between the western edge and the antimeridian.
    picture = screenshot_when_idle(f"{site}/features/across/map.html", size=(1000, 600))
    bounds = (100.0, -20.0, 182.0, 20.0)
    seen = [colour_at(picture, longitude, 0, bounds) for longitude in (99, 150, 172, 179.8, 181, 182.5)]
    expected = [LIGHT_BACKGROUND, LIGHT_BACKGROUND, filled(), LIGHT_BACKGROUND, filled(), LIGHT_BACKGROUND]
    assert all(map(is_near, seen, expected)), seen


def test_a_click_tells_a_features_properties_as_text(site: str, browser: Browser) -> None:
    def click(page: Page) -> tuple[str | None, str | None, str]:
        page.mouse.click(*spot(30, 20, VECTOR_BOUNDS, (800, 600)))
        told = page.locator(".features dl").text_content()
        return told, page.locator(".attribution").text_content(), page.title()

    told, attribution, title = browser.visit(f"{site}/features/parcels/map.html", click)
    assert told == f"name{HOSTILE}"
    assert attribution == "Survey 2026"
    assert title.startswith("Parcels & <shores>")


def test_it_is_told_how_many_features_are_not_shown_individually(site: str, browser: Browser) -> None:
    def read(page: Page) -> str | None:
        counts = page.locator("#counts")
        return counts.text_content() if counts.is_visible() else None

    told = browser.visit(f"{site}/features/many/map.html", read, size=(400, 300))
    assert told is not None
    assert told.startswith("10 of 1,020 features in view are shown individually;")
    assert told.endswith("; 1,000 are merged into shapes, 10 are not shown. Zoom in to see more.")
    assert browser.visit(f"{site}/features/parcels/map.html", read) is None


def test_a_small_dark_screen_is_used_whole(site: str, browser: Browser) -> None:
    def measure(page: Page) -> tuple[bytes, dict[str, Any] | None, int]:
        width: int = page.evaluate("document.documentElement.scrollWidth")
        return page.screenshot(), dict(page.locator("h1").bounding_box() or {}), width

    shot, heading, width = browser.visit(
        f"{site}/features/parcels/map.html", measure, size=(390, 844), colour_scheme="dark"
    )
    assert is_near(colour_at(decoded(shot), 0, 0, VECTOR_BOUNDS), DARK_BACKGROUND)
    assert heading is not None
    assert heading["x"] + heading["width"] <= 390 - 50  # beside the buttons
    assert heading["height"] < 70  # two lines
    assert width == 390


def test_a_map_that_cannot_be_drawn_says_why(site: str, browser: Browser) -> None:
    def read(page: Page) -> str | None:
        return page.get_by_role("alert").text_content()

    told = browser.visit(f"{site}/tiles/quarters/gone.html", read, state="error")
    assert told == "The map cannot be shown whole: Not Found"
