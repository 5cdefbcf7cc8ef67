"""What the demonstration made is served, drawn by a real browser, published, and withdrawn, by real processes."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import rasterio
from tests.browser.maps import LIGHT_BACKGROUND, Box, Picture, colour_at, filled, is_near
from tests.e2e.conftest import first_start, folder, home, start_process, start_up
from tests.e2e.eventually import eventually
from tests.e2e.installation import Program, Up
from tests.e2e.processes import graticule_command, processes_of

from graticule.core.models import TABLES

__all__ = ["first_start", "folder", "home", "start_process", "start_up"]

PUBLIC = "https://maps.example.org/geo"
PAGES = {"tiles": "/WebMercatorQuad/map.html", "features": "/collections/features/tiles/WebMercatorQuad/map.html"}
TILE = "/tiles/WebMercatorQuad/11/675/939.png"
ITEMS = "/collections/features/items?limit=1000"
EXPORTS = {"GeoParquet": "parquet", "PMTiles": "pmtiles"}
Screenshot = Callable[..., Picture]


@pytest.fixture
def demonstration(home: Path) -> Iterator[Program]:
    """Give the demonstration, which has ended; run in a folder of strangers' files, none of which is a module."""
    (home.parent / "typer.py").write_text("raise SystemExit('imported from the current folder')")
    demo = Program(home.parent, graticule_command(), "demo", GRATICULE_HOME=str(home))
    try:
        assert demo.wait(120) == 0, demo.errors
        yield demo
    finally:
        demo.close()


@pytest.mark.timeout(300)
def test_from_the_demonstration_to_the_map_and_to_the_public_and_back(
    home: Path, demonstration: Program, start_up: Any, start_process: Any, screenshot_when_idle: Screenshot
) -> None:
    assets = assert_the_demonstration_tells_its_story(demonstration, home)
    up: Up = start_up(home, serve=True, GRATICULE_EXTERNAL_SERVE_URL=PUBLIC)
    up.until_ready()
    platform = Platform(up, assets)
    assert_maps_are_drawn(platform, home, screenshot_when_idle)
    public: Program = start_process(
        "serve",
        GRATICULE_HOME=str(home),
        GRATICULE_SERVE_AUDIENCE="external",
        GRATICULE_EXTERNAL_SERVE_URL=PUBLIC,
    )
    public.until_status("/readyz", 200)
    assert_nothing_is_public(public, assets)
    assert_both_become_public(platform, public)
    assert_what_is_revoked_is_gone(platform, public, home)
    assert_what_is_unpublished_is_gone(platform, public, home)


def assert_the_demonstration_tells_its_story(demo: Program, home: Path) -> dict[str, str]:
    """Check what it printed, and give the asset of each service."""
    told = demo.output
    assert re.findall(r"^ (\w+) +http://127\.0\.0\.1:\d+ +healthy", told, re.MULTILINE) == [
        *("gateway", "orchestrator", "worker", "serve"),
    ]
    assert f"{len(TABLES)} tables" in told
    assert re.findall(r"^✓ (\w+) [0-9a-f]{32} +completed", told, re.MULTILINE) == ["raster_ingest", "vector_ingest"]
    assert "✓ A reviewer approved both" in demo.errors
    cog = re.search(r"COG +(silver/\S+\.tif)$", told, re.MULTILINE)
    assert cog is not None
    assert (home / "storage" / cog[1]).is_file()
    assert re.search(r"STAC item +island-relief-1-\w+-v0 of collection island-survey-island-relief", told)
    assert re.findall(r"^ +(red|green|blue)(?: +[\d.]+){4}", told, re.MULTILINE) == ["red", "green", "blue"]
    assert re.search(r"table +geo\.island_parcels_1_\w+_v0$", told, re.MULTILINE)
    assert re.search(r"\d+ rows of geometry\(MultiPolygon, 4326\)$", told, re.MULTILINE)
    for name, ending in EXPORTS.items():
        made = re.search(rf"{name} +(silver/\S+\.{ending})$", told, re.MULTILINE)
        assert made is not None
        assert (home / "storage" / made[1]).is_file()
    assert re.search(r"STAC item +island-parcels-1-\w+-v0 of collection island-survey-island-parcels", told)
    assert re.search(
        r"! island_survey/dry_season.tif was sent back: .*\(not_a_raster\)\n· .*how to fix it: \w", demo.errors
    )
    assert re.search(r"✓ The tile service drew a picture of the island \(\d+ kB\)", demo.errors)
    assert re.search(r"✓ The feature service found \d+ parcels", demo.errors)
    assert re.search(r"graticule up ", told)
    assert "Traceback" not in demo.errors
    assert "\x1b" not in told
    assert (home / "admin.key").read_text().strip() not in told + demo.errors
    assert "gtc_" not in told + demo.errors  # how the keys of clients begin
    assert processes_of(home) == []
    assert not (home / "installation.json").exists()
    addresses = re.findall(r"^   (\w+) +http://127\.0\.0\.1:\d+/(tiles|features)/([0-9a-f]{32})$", told, re.MULTILINE)
    assert [name for name, _, _ in addresses] == ["tiles", "features"]
    return {service: asset_id for _, service, asset_id in addresses}


class Platform:
    """The installation that runs, as its admin sees it."""

    def __init__(self, up: Up, assets: dict[str, str]) -> None:
        self.assets = assets
        self._gateway = f"http://127.0.0.1:{up.port}"
        self.services = f"http://127.0.0.1:{up.port + 3}"
        self._key = {"X-API-Key": up.admin_key}

    def address(self, service: str) -> str:
        return f"{self.services}/{service}/{self.assets[service]}"

    def status(self, service: str) -> dict[str, Any]:
        answer = httpx.get(f"{self._gateway}/api/platform/status/{self.assets[service]}", headers=self._key)
        return dict(answer.raise_for_status().json())

    def change(self, path: str, **body: Any) -> None:
        httpx.post(f"{self._gateway}{path}", json=body, headers=self._key, timeout=30).raise_for_status()


def assert_maps_are_drawn(platform: Platform, home: Path, screenshot: Screenshot) -> None:
    """Compare pictures with the data: pixels of the file, and the places of features."""
    assert platform.status("tiles")["service_urls"]["tiles"] == platform.address("tiles")
    raster = screenshot(platform.address("tiles") + PAGES["tiles"])
    (cog,) = (home / "storage/silver").rglob("island.tif")
    bounds, samples = pixels_of(cog)
    near = [is_near(colour_at(raster, *place, bounds), colour, 40) for place, colour in samples.items()]
    assert sum(near) > 0.9 * len(near), f"{sum(near)} of {len(near)} places have the colour of the file"
    assert len({colour_at(raster, *place, bounds) for place in samples}) > 20
    collection = httpx.get(f"{platform.address('features')}{ITEMS}").json()
    vector = screenshot(platform.address("features") + PAGES["features"])
    tilejson = httpx.get(platform.address("features") + PAGES["features"].replace("map.html", "tilejson.json")).json()
    inside = [centre_of(each["geometry"]) for each in collection["features"][::40]]
    box: Box = tuple(tilejson["bounds"])
    drawn = [is_near(colour_at(vector, *place, box), filled(), 30) for place in inside]
    assert sum(drawn) > 0.7 * len(drawn), f"{sum(drawn)} of {len(drawn)} parcels are filled"
    assert is_near(tuple(vector[5, 5].tolist()), LIGHT_BACKGROUND)


def pixels_of(cog: Path) -> tuple[Box, dict[tuple[float, float], Any]]:
    """Give the bounds of a raster, and the colours at a lattice of places where it is smooth."""
    with rasterio.open(cog) as source:
        bands = source.read()
        places = [
            (row, column)
            for row in range(100, source.height - 100, 97)
            for column in range(100, source.width - 100, 97)
        ]
        smooth = [place for place in places if around(bands, place).std(axis=(1, 2)).max() < 6]
        samples = {source.xy(*place): tuple(int(band[place]) for band in bands) for place in smooth}
        return tuple(source.bounds), samples


def around(bands: Any, place: tuple[int, int]) -> Any:
    row, column = place
    return bands[:, row - 3 : row + 4, column - 3 : column + 4].astype(float)


def centre_of(geometry: dict[str, Any]) -> tuple[float, float]:
    """Give a place in the first polygon: parcels are convex enough for the mean of their corners."""
    ring = geometry["coordinates"][0][0][:-1]
    return sum(x for x, _ in ring) / len(ring), sum(y for _, y in ring) / len(ring)


def assert_nothing_is_public(public: Program, assets: dict[str, str]) -> None:
    for service, asset_id in assets.items():
        assert public.status(f"/{service}/{asset_id}") == 404
    assert public.get("/stac/search").json()["features"] == []
    assert public.get("/stac/collections").json()["collections"] == []
    assert public.status(f"/preview/{assets['tiles']}/0") == 404


def assert_both_become_public(platform: Platform, public: Program) -> None:
    """Clear both: the worker copies them, and the public is shown the same."""
    for service, asset_id in platform.assets.items():
        platform.change(f"/api/assets/{asset_id}/clearance", clearance_level="public")
        public.until_status(f"/{service}/{asset_id}", 200)
    tiles, features = (platform.assets[service] for service in ("tiles", "features"))
    inside = httpx.get(f"{platform.address('tiles')}{TILE}")
    assert inside.status_code == 200
    assert public.get(f"/tiles/{tiles}{TILE}").content == inside.content
    assert public.get(f"/features/{features}{ITEMS}").json()["numberMatched"] == 572
    assert public.status(f"/features/{features}/collections/features/tiles/WebMercatorQuad/11/675/939") == 200
    items = public.get("/stac/search").json()["features"]
    assert "silver" not in str(items)
    assert "bronze" not in str(items)
    item, table = sorted(items, key=lambda each: "table:row_count" in each["properties"])
    assert item["collection"].endswith("-public")
    assert table["properties"]["table:row_count"] == 572
    assert table["assets"].keys() >= {"geoparquet", "pmtiles"}
    urls = platform.status("tiles")["service_urls"]
    assert urls["external_tiles"] == f"{PUBLIC}/tiles/{tiles}"
    assert urls["external_stac"] == f"{PUBLIC}/stac/collections/{item['collection']}"
    assert public.status(urls["external_stac"].removeprefix(PUBLIC)) == 200
    assert f"{PUBLIC}/stac/collections/{item['collection']}" in {link["href"] for link in item["links"]}


def assert_what_is_revoked_is_gone(platform: Platform, public: Program, home: Path) -> None:
    asset_id = platform.assets["tiles"]
    (copy,) = (home / "storage/external").rglob("island.tif")
    platform.change("/api/platform/revoke", asset_id=asset_id, reason="a survey error")
    public.until_status(f"/tiles/{asset_id}{TILE}", 410)
    assert httpx.get(f"{platform.address('tiles')}{TILE}").status_code == 410
    for answer in (public.get("/stac/search"), httpx.get(f"{platform.services}/stac/search")):
        assert ["table:row_count" in each["properties"] for each in answer.json()["features"]] == [True]
    eventually(lambda: not copy.exists(), "the copy for the public to be removed")


def assert_what_is_unpublished_is_gone(platform: Platform, public: Program, home: Path) -> None:
    asset_id = platform.assets["features"]
    copies = [copy for ending in EXPORTS.values() for copy in (home / "storage/external").rglob(f"*.{ending}")]
    assert len(copies) == len(EXPORTS)
    platform.change("/api/platform/unpublish", asset_id=asset_id, reason="not ours")
    public.until_status(f"/features/{asset_id}", 410)
    assert httpx.get(platform.address("features")).status_code == 410
    assert public.get("/stac/search").json()["features"] == []
    eventually(lambda: not any(copy.exists() for copy in copies), "the copies for the public to be removed")
