"""Tiles of many features show what the data show: the large features themselves, and all others merged and counted."""

import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import numpy as np
import psycopg
import pytest
import shapely
from psycopg import sql
from pyproj import Transformer
from tests.conftest import TestDatabase
from tests.integration.handlers.vector.ingesting import Gate
from tests.integration.handlers.vector.vector_chain import FILE, JOB, TABLE, Chain, begin_job, write_features
from tests.integration.repositories import rows
from tests.tile_coverage import COUNT, PIXELS, WORLD, Agreement, decode_tile, in_pixels, random_features, touched

from graticule.core.table import DatabaseRole
from graticule.repositories import overviews, statements
from graticule.repositories.database import Database
from graticule.repositories.overviews import overview_name
from graticule.serve.features.app import create_features
from graticule.serve.features.connections import SESSION_SETTINGS

TILES = "/collections/features/tiles/WebMercatorQuad"
GEOMETRY_TYPES = {"polygons": "Polygon", "lines": "LineString", "points": "Point"}
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY tablename"


@pytest.fixture
async def chain(emptied_database: TestDatabase, tmp_path: Path) -> AsyncIterator[Chain]:
    with psycopg.connect(emptied_database.url(DatabaseRole.ORCHESTRATOR)) as connection:
        workflow = rows.workflow()
        connection.execute(statements.insert(type(workflow)), statements.parameters(workflow))
    begin_job(emptied_database.url(DatabaseRole.ORCHESTRATOR), JOB)
    async with Database(emptied_database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=6) as database:
        yield Chain(tmp_path, database)
    with psycopg.connect(emptied_database.url(), autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("geo", table)))


@pytest.fixture
async def client(emptied_database: TestDatabase) -> AsyncIterator[httpx.AsyncClient]:
    app = create_features()
    settings = {**SESSION_SETTINGS, "statement_timeout": "30s"}
    url = emptied_database.url(DatabaseRole.SERVE_INTERNAL)
    async with asyncpg.create_pool(url, min_size=0, max_size=2, server_settings=settings) as app.state.pool:
        transport = httpx.ASGITransport(Gate(app, TABLE))
        async with httpx.AsyncClient(transport=transport, base_url="https://maps.example") as opened:
            yield opened


@dataclass
class Zoom:
    """What all tiles of a zoom have together."""

    agreement: Agreement = field(default_factory=Agreement)
    fids: set[int] = field(default_factory=set)
    merged: int = 0
    missing: int = 0  # features of four pixels and more that are not there themselves
    bytes: int = 0
    seconds: float = 0.0
    prepared: int = 0


class World:
    """Features, and the tiles that are served of them."""

    def __init__(self, client: httpx.AsyncClient, shapes: Any) -> None:
        self._client = client
        to_metres = Transformer.from_crs(4326, 3857, always_xy=True)
        self._shapes = shapely.transform(shapes, lambda at: np.stack(to_metres.transform(*at.T), axis=1))
        bounds = shapely.bounds(self._shapes)
        self._sizes = np.maximum(bounds[:, 2] - bounds[:, 0], bounds[:, 3] - bounds[:, 1])
        self._tree = shapely.STRtree(self._shapes)

    async def look(self, zoom: int) -> Zoom:
        found = Zoom()
        for x in range(2**zoom):
            for y in range(2**zoom):
                await self._look_at(found, zoom, x, y)
        return found

    async def look_at_some(self, zoom: int, count: int) -> Zoom:
        """Look at the tiles of some features: there are too many tiles to look at all."""
        found, rng = Zoom(), np.random.default_rng(zoom)
        middles = shapely.get_coordinates(shapely.centroid(rng.choice(self._shapes, count)))
        columns = np.clip((middles[:, 0] / WORLD + 0.5) * 2**zoom, 0, 2**zoom - 1).astype(int)
        rows = np.clip((0.5 - middles[:, 1] / WORLD) * 2**zoom, 0, 2**zoom - 1).astype(int)
        for x, y in sorted(set(zip(columns.tolist(), rows.tolist(), strict=True))):
            await self._look_at(found, zoom, x, y)
        return found

    async def _look_at(self, found: Zoom, zoom: int, x: int, y: int) -> None:
        began = time.perf_counter()
        response = await self._client.get(f"{TILES}/{zoom}/{x}/{y}")
        found.seconds = max(found.seconds, time.perf_counter() - began)
        assert response.status_code == 200, response.text
        found.bytes = max(found.bytes, len(response.content))
        shown, merged, total = (int(response.headers[f"Graticule-Features-{n}"]) for n in ("Shown", "Merged", "Total"))
        features = decode_tile(response.content)
        themselves = [properties for properties, _ in features if COUNT not in properties]
        beyond = 0 if merged else sum(not _is_inside(shape) for _, shape in features)  # of a tile that is made live
        assert len(themselves) == shown + beyond
        assert sum(properties.get(COUNT, 0) for properties, _ in features) == merged
        assert shown + merged == total
        fids = {properties["fid"] for properties in themselves}
        assert {properties["n"] for properties in themselves} == {fid - 1 for fid in fids}  # with their attributes
        found.fids |= fids
        found.merged += merged
        found.prepared += merged > 0
        size = WORLD / 2**zoom
        west, north = x * size - WORLD / 2, WORLD / 2 - y * size
        here = self._tree.query(shapely.box(west, north - size, west + size, north), predicate="intersects")
        drawn = touched(np.array([shape for _, shape in features], object))
        found.agreement.add(drawn, touched(in_pixels(self._shapes[here], zoom, x, y)))
        large = here[self._sizes[here] >= 4 * size / PIXELS]
        found.missing += len(set((large + 1).tolist()) - fids)


def _is_inside(shape: Any) -> bool:
    """Its bounds are counted, as those of the features in the table are."""
    west, north, east, south = shape.bounds
    return bool(east >= 0 and west <= PIXELS and south >= 0 and north <= PIXELS)


async def ingest(chain: Chain, kind: str, count: int, fields: dict[str, Any] | None = None) -> Any:
    shapes = random_features(kind, count, seed=27)
    write_features(chain.folder / FILE, list(shapes), fields, crs="EPSG:4326", geometry_type=GEOMETRY_TYPES[kind])
    assert (await chain.run())["row_count"] == count
    return shapes


@pytest.mark.parametrize("kind", ["polygons", "lines", "points"])
async def test_tiles_cover_what_the_features_cover(
    chain: Chain, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    count = 4_000
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 600)
    world = World(client, await ingest(chain, kind, count))
    for zoom in range(3):
        found = await world.look(zoom)
        assert found.agreement.near / found.agreement.pixels > 0.9999, zoom
        assert found.agreement.exact / found.agreement.pixels > 0.999, zoom
        assert found.missing == 0, zoom
        assert found.bytes < 2_000_000
        if found.prepared == 4**zoom:
            assert len(found.fids) + found.merged == count  # each is shown itself, or counted once
        else:
            assert len(found.fids) + found.merged >= count
    tilejson = (await client.get(f"{TILES}/tilejson.json")).json()
    assert tilejson["feature_count"] == count
    assert tilejson["merged_below_zoom"] >= 2
    assert COUNT in tilejson["vector_layers"][0]["fields"]


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kind", "count"), [("polygons", 1_000_000), ("points", 1_000_000), ("lines", 100_000)])
async def test_tiles_of_a_million_features_are_true_small_and_quick(
    chain: Chain, client: httpx.AsyncClient, kind: str, count: int
) -> None:
    world = World(client, await ingest(chain, kind, count))
    for zoom in range(16):
        found = await (world.look(zoom) if zoom < 6 else world.look_at_some(zoom, 100))
        assert found.agreement.near / found.agreement.pixels > 0.999, zoom
        assert found.missing == 0, zoom
        assert found.bytes < 2_000_000, zoom
        assert found.seconds < 3, zoom
        assert zoom >= 6 or len(found.fids) + found.merged >= count, zoom
        exact = found.agreement.exact / found.agreement.pixels
        print(f"{kind} z{zoom}: same pixel {exact:.5f}, {found.bytes} bytes, {found.seconds:.2f} s")  # noqa: T201


async def test_features_that_do_not_fit_into_a_tile_are_merged_and_counted(
    chain: Chain, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 100)
    monkeypatch.setattr(overviews, "MAX_TILE_BYTES", 40_000)
    boxes = shapely.box(*(np.array([[x, y, x + 1.5, y + 1.5] for x in range(-60, 60, 2) for y in range(-30, 30, 2)]).T))
    write_features(chain.folder / FILE, list(boxes), crs="EPSG:4326")
    await chain.run()
    response = await client.get(f"{TILES}/0/0/0")
    shown, merged, total = (int(response.headers[f"Graticule-Features-{n}"]) for n in ("Shown", "Merged", "Total"))
    assert total == len(boxes) == shown + merged
    assert 0 < merged < total
    assert len(response.content) <= 40_000
    drawn = touched(np.array([shape for _, shape in decode_tile(response.content)], object))
    assert drawn[150:350].mean() > 0.05


async def test_features_that_are_all_everywhere_are_prepared_for_few_tiles(
    chain: Chain, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is in four times as many tiles at each zoom: 11,000 boxes around the world became more than 14 GB."""
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 50)
    monkeypatch.setattr(overviews, "MAX_MORE_TILES", 10)
    monkeypatch.setattr(overviews, "MAX_ZOOM", 4)
    boxes = [shapely.box(-170 - n / 10, -80, 170 + n / 10, 80) for n in range(60)]
    write_features(chain.folder / FILE, boxes, crs="EPSG:4326")
    await chain.run()
    async with chain.database.connection() as connection:
        names = [row["tablename"] for row in await (await connection.execute(TABLES)).fetchall()]
    assert names == sorted([TABLE, overview_name(TABLE)])
    assert (await client.get(f"{TILES}/tilejson.json")).json()["merged_below_zoom"] == 3  # the first that is made live
    for zoom in range(6):
        headers = (await client.get(f"{TILES}/{zoom}/0/{2**zoom // 2}")).headers
        shown, merged, total = (int(headers[f"Graticule-Features-{name}"]) for name in ("Shown", "Merged", "Total"))
        assert shown + merged == total == 60, zoom


async def test_columns_may_have_the_names_that_the_statements_use(
    chain: Chain, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 100)
    monkeypatch.setattr(overviews, "MAX_TILE_BYTES", 500_000)
    folder = Path(overviews.__file__).parent
    texts = "".join((folder / name).read_text() for name in ("overviews.sql", "tile_shapes.sql"))
    words = sorted(set(re.findall(r"[a-z][a-z0-9_]+", re.sub("--.*", "", texts))) - {"fid", "geom"})
    assert {"size", "zoom", "merge_zoom", "u0", "pixels", "dimension"} <= set(words)
    await ingest(chain, "polygons", 1000, {word: np.zeros(1000, dtype=np.int8) for word in words})
    response = await client.get(f"{TILES}/0/0/0")
    shown, merged = (int(response.headers[f"Graticule-Features-{name}"]) for name in ("Shown", "Merged"))
    assert shown + merged == 1000
    assert merged


async def test_no_table_is_left_where_no_tile_has_to_be_prepared(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 100)
    shapes = [*random_features("points", 90, seed=27), *[None] * 90]
    write_features(chain.folder / FILE, shapes, crs="EPSG:4326", geometry_type="Point")
    await chain.run()
    async with chain.database.connection() as connection:
        names = [row["tablename"] for row in await (await connection.execute(TABLES)).fetchall()]
    assert names == [TABLE]


async def test_a_small_table_has_no_prepared_tiles(chain: Chain, client: httpx.AsyncClient) -> None:
    await ingest(chain, "polygons", 500)
    async with chain.database.connection() as connection:
        names = [row["tablename"] for row in await (await connection.execute(TABLES)).fetchall()]
    assert names == [TABLE]
    response = await client.get(f"{TILES}/0/0/0")
    assert response.headers["Graticule-Features-Shown"] == response.headers["Graticule-Features-Total"] == "500"
    assert "merged_below_zoom" not in (await client.get(f"{TILES}/tilejson.json")).json()
    limited = await client.get(f"{TILES}/0/0/0", params={"limit": 20})
    assert (limited.headers["Graticule-Features-Shown"], limited.headers["Graticule-Features-Total"]) == ("20", "500")


async def test_prepared_tiles_go_with_their_table(
    chain: Chain, emptied_database: TestDatabase, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 100)
    await ingest(chain, "points", 300)
    async with chain.database.connection() as connection:
        names = [row["tablename"] for row in await (await connection.execute(TABLES)).fetchall()]
    assert names == sorted([TABLE, overview_name(TABLE)])
    # An older release replaces the table alone: what is prepared is of another one then, and is not shown.
    with psycopg.connect(emptied_database.url(), autocommit=True) as admin:
        admin.execute(f"COMMENT ON TABLE geo.{TABLE} IS 'Made by another job.'".encode())
    response = await client.get(f"{TILES}/0/0/0")
    assert response.headers["Graticule-Features-Merged"] == "0"
    assert response.headers["Graticule-Features-Shown"] == "300"
    # The same job may run again, with fewer features now.
    monkeypatch.setattr(overviews, "MAX_LIVE_FEATURES", 1000)
    await ingest(chain, "points", 200)
    async with chain.database.connection() as connection:
        names = [row["tablename"] for row in await (await connection.execute(TABLES)).fetchall()]
    assert names == [TABLE]
