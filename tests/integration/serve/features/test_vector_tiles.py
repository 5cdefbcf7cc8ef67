"""Vector tiles: decoded by GDAL, bounded, and described."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from morecantile import Tile
from tests.conftest import TestDatabase
from tests.integration.serve.features.conftest import COUNT, ROOT, Serving, served
from tests.integration.serve.features.test_features import BASE, refused
from tests.integration.serve.followed import CRS84, follow, tile_within
from tests.mvt import read_tile

from graticule.repositories import served_tables
from graticule.serve.tilesets import GRIDS

TILES = "/collections/features/tiles"
MERCATOR = f"{TILES}/WebMercatorQuad"
MVT = "application/vnd.mapbox-vector-tile"


async def drawn(client: httpx.AsyncClient, folder: Path, tile: str, **parameters: str) -> list[dict[str, Any]]:
    """Give the features of a tile."""
    return features_of(await client.get(f"{MERCATOR}/{tile}", params=parameters), folder)


def features_of(response: httpx.Response, folder: Path, *, with_buffer: bool = False) -> list[dict[str, Any]]:
    """Give the features of a tile, as GDAL reads them; it has one layer of a known name, or none."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == MVT
    if not response.content:
        return []
    file = folder / "tile.mvt"
    file.write_bytes(response.content)
    return read_tile(file, with_buffer=with_buffer)


async def test_a_tile_has_the_features_that_lie_in_it(client: httpx.AsyncClient, tmp_path: Path) -> None:
    whole = await drawn(client, tmp_path, "0/0/0")
    assert sorted(feature["fid"] for feature in whole) == list(range(1, COUNT + 1))
    assert {feature["name"] for feature in whole} >= {"Straße 1", "Straße 50"}
    north_east = await drawn(client, tmp_path, "1/1/0")
    assert [feature["fid"] for feature in north_east] == list(range(26, COUNT + 1))
    assert await drawn(client, tmp_path, "5/0/0") == []


async def test_a_tile_may_be_asked_for_by_an_ending(client: httpx.AsyncClient) -> None:
    plain = await client.get(f"{MERCATOR}/1/1/0", params={"level": "3"})
    for ending in (".pbf", ".mvt"):
        found = await client.get(f"{MERCATOR}/1/1/0{ending}", params={"level": "3"})
        assert (found.status_code, found.headers["content-type"]) == (200, MVT)
        assert found.content == plain.content != b""
    for wrong in ("0.png", "0.", "x.pbf", "0.pbf.pbf", "-1.mvt", ".pbf"):
        assert (await client.get(f"{MERCATOR}/1/1/{wrong}")).status_code in {400, 404}, wrong
    assert (await client.get(f"{MERCATOR}/1/1/9.pbf")).status_code == 404


async def test_a_tile_can_be_filtered_and_cut_down(client: httpx.AsyncClient, tmp_path: Path) -> None:
    async def ids(**parameters: str) -> list[int]:
        found = await drawn(client, tmp_path, "0/0/0", **{k.replace("_", "-"): v for k, v in parameters.items()})
        return [feature["fid"] for feature in found]

    assert await ids(filter="level = 3 AND open") == [8, 18, 28, 38, 48]
    assert await ids(level="3", open="true", version="1") == [8, 18, 28, 38, 48]
    assert await ids(limit="3") == [1, 2, 3]
    assert await ids(ids="4", simplify="0.01") == [4]
    assert await ids(bbox="-25,-25,-24,-24") == [1, 2]
    assert await ids(datetime="2020-01-02") == [1, 50]
    (only,) = await drawn(client, tmp_path, "0/0/0", ids="4", properties="level")
    assert only == {"level": 4}


async def test_tables_across_the_antimeridian_are_drawn(
    client: httpx.AsyncClient, serving: Serving, tmp_path: Path
) -> None:
    serving.served = served("islands_v1", bbox=(179.0, 0.0, -179.0, 0.0))
    west, east = await drawn(client, tmp_path, "2/0/1"), await drawn(client, tmp_path, "2/3/1")
    assert [[feature["fid"] for feature in tile] for tile in (west, east)] == [[2], [1]]
    tilejson = (await client.get(f"{MERCATOR}/tilejson.json")).json()
    assert tilejson["bounds"] == [-180, 0, 180, 0]
    limits = (await client.get(MERCATOR)).json()["tileMatrixSetLimits"][2]
    assert (limits["minTileCol"], limits["maxTileCol"]) == (0, 3)


async def test_tables_of_another_projection_are_drawn_at_every_zoom(
    client: httpx.AsyncClient, serving: Serving, tmp_path: Path
) -> None:
    serving.served = served("swiss_v1")
    for tile in ("0/0/0", "3/4/2", "6/33/22"):
        assert [feature["fid"] for feature in await drawn(client, tmp_path, tile)] == [1, 2], tile
    assert await drawn(client, tmp_path, "3/0/6") == []


EDGES = """
    CREATE TABLE geo.edges_4326_v1 (fid bigint PRIMARY KEY, geom geometry(Point, 4326));
    INSERT INTO geo.edges_4326_v1 SELECT row_number() OVER (), ST_SetSRID(ST_MakePoint(x / 5.0, y / 5.0), 4326)
    FROM generate_series(-30, 900, 2) AS x, unnest(ARRAY[-20, -14, -13, 100, 210, 220, 236, 240]) AS y;
    CREATE TABLE geo.edges_3857_v1 (fid bigint PRIMARY KEY, geom geometry(Point, 3857));
    INSERT INTO geo.edges_3857_v1 SELECT fid, ST_Transform(geom, 3857) FROM geo.edges_4326_v1;
    GRANT SELECT ON geo.edges_4326_v1, geo.edges_3857_v1 TO graticule_serve_internal;
"""
# All that PostGIS draws in a tile with its buffer: every feature is tried.
DRAWN = """
    SELECT fid, drawn.* FROM geo.edges_4326_v1, ST_MakeEnvelope(%s, %s, %s, %s, %s) AS tile,
    LATERAL (SELECT ST_AsMVTGeom(ST_Transform(geom, ST_SRID(tile)), tile, 4096, 256, true)) AS drawn (geom)
    WHERE drawn.geom IS NOT NULL ORDER BY fid
"""


@pytest.fixture(scope="module")
def edges(tables: TestDatabase) -> Iterator[psycopg.Connection]:
    """Give a connection to a database that has points on all sides of a tile."""
    with psycopg.connect(tables.url(), autocommit=True) as connection:
        connection.execute(EDGES.encode())
        yield connection
        connection.execute("DROP TABLE geo.edges_4326_v1, geo.edges_3857_v1")


@pytest.mark.parametrize(
    "where",
    [
        ("WebMercatorQuad", 3857, "3/4/3"),
        ("WebMercatorQuad", 3857, "3/7/3"),
        ("WorldMercatorWGS84Quad", 3395, "3/4/3"),
        ("WorldCRS84Quad", 4326, "2/4/1"),
        ("WorldCRS84Quad", 4326, "2/7/1"),
    ],
)
async def test_a_tile_has_what_lies_just_beyond_its_edges(
    client: httpx.AsyncClient, serving: Serving, tmp_path: Path, edges: psycopg.Connection, where: tuple[str, int, str]
) -> None:
    grid, srid, tile = where
    zoom, column, row = map(int, tile.split("/"))
    expected = [fid for fid, _ in edges.execute(DRAWN, (*GRIDS[grid].xy_bounds(Tile(column, row, zoom)), srid))]
    for table in ("edges_4326_v1", "edges_3857_v1"):
        serving.served = served(table)
        response = await client.get(f"{TILES}/{grid}/{tile}")
        found = features_of(response, tmp_path, with_buffer=True)
        assert [feature["fid"] for feature in found] == expected, table
        inside = len(features_of(response, tmp_path))
        assert 0 < inside < len(expected)
        assert [response.headers[f"Graticule-Features-{name}"] for name in ("Shown", "Total")] == [str(inside)] * 2
        cut = await client.get(f"{TILES}/{grid}/{tile}", params={"limit": len(expected) - 1})
        assert int(cut.headers["Graticule-Features-Total"]) == pytest.approx(inside, abs=1), "one is on the edge"


async def test_a_tile_is_answered_although_its_features_cannot_be_counted_in_time(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_tables, "MAX_COUNT_SECONDS", 1e-9)
    tile = await client.get(f"{MERCATOR}/0/0/0", params={"limit": 10})
    assert (tile.status_code, tile.headers["Graticule-Features-Shown"]) == (200, "10")
    assert "Graticule-Features-Total" not in tile.headers
    whole = await client.get(f"{MERCATOR}/0/0/0")
    assert whole.headers["Graticule-Features-Total"] == str(COUNT)


async def test_tilejson_says_when_a_tile_may_not_show_all(client: httpx.AsyncClient) -> None:
    cut = (await client.get(f"{MERCATOR}/tilejson.json", params={"limit": 10})).json()
    assert cut["description"] == "A tile shows at most 10 features; its headers give the number shown and the total."
    assert "description" not in (await client.get(f"{MERCATOR}/tilejson.json")).json()


FLAT = {  # without area or length, around 11 degrees east and 41 degrees north
    "diagonal": "MULTIPOLYGON (((10 40, 11 41, 12 42, 10 40)))",
    "level": "MULTIPOLYGON (((10 41, 11 41, 12 41, 10 41)))",
    "upright": "MULTIPOLYGON (((11 40, 11 41.5, 11 42, 11 40)))",
    "back and forth": "MULTIPOLYGON (((10 40, 11 41.2, 12 41, 11 41.2, 10 40)))",
    "with a hole": "MULTIPOLYGON (((10 40, 11 41, 12 42, 10 40), (10.5 40.5, 11 41, 11.5 41.5, 10.5 40.5)))",
    "one place": "MULTIPOLYGON (((11 41, 11 41, 11 41, 11 41)))",
    "line": "MULTILINESTRING ((11 41, 11 41))",
    "two parts": "MULTIPOLYGON (((10 40, 11 41, 12 42, 10 40)), ((11 41, 11.1 41, 11.2 41, 11 41)))",
}


@pytest.fixture(scope="module")
def _flat(tables: TestDatabase) -> Iterator[None]:
    with psycopg.connect(tables.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE geo.flat_v1 (fid bigint PRIMARY KEY, name text, geom geometry(Geometry, 4326))"
        )
        insert = "INSERT INTO geo.flat_v1 VALUES (%s, %s, ST_GeomFromText(%s, 4326))"
        for fid, (name, wkt) in enumerate(FLAT.items()):
            connection.execute(insert, (fid, name, wkt))
        connection.execute("GRANT SELECT ON geo.flat_v1 TO graticule_serve_internal")
        yield
        connection.execute("DROP TABLE geo.flat_v1")


@pytest.mark.usefixtures("_flat")
@pytest.mark.parametrize("zoom", [0, 3, 6, 7, 10, 14])
async def test_flat_geometries_are_drawn(
    client: httpx.AsyncClient, serving: Serving, tmp_path: Path, zoom: int
) -> None:
    serving.served = served("flat_v1")
    tile = GRIDS["WebMercatorQuad"].tile(11, 41, zoom)
    found = await drawn(client, tmp_path, f"{zoom}/{tile.x}/{tile.y}")
    elsewhere = {"back and forth"} if zoom == 14 else set()  # it does not go through that place
    assert {feature["name"] for feature in found} == FLAT.keys() - elsewhere


@pytest.mark.usefixtures("_flat")
@pytest.mark.parametrize("place", [(10.1, 40.1), (10.7, 40.7), (11.3, 41.3), (11.9, 41.9)])
async def test_flat_geometries_are_drawn_from_end_to_end(
    client: httpx.AsyncClient, serving: Serving, tmp_path: Path, place: tuple[float, float]
) -> None:
    serving.served = served("flat_v1")
    tile = GRIDS["WebMercatorQuad"].tile(*place, 9)
    found = await drawn(client, tmp_path, f"9/{tile.x}/{tile.y}")
    assert {feature["name"] for feature in found} >= {"diagonal", "with a hole", "two parts"}


@pytest.mark.parametrize(
    ("tile", "status"),
    [
        ("60/0/0", 400),
        ("25/0/0", 400),
        ("-1/0/0", 400),
        ("2/4/0", 404),
        ("2/0/4", 404),
        ("2/-1/0", 400),
        ("24/99999999999999999999/0", 404),
        ("0/0/x", 400),
        ("0/0/0?limit=0", 400),
        ("0/0/0?limit=10001", 400),
        ("0/0/0?simplify=inf", 400),
        ("0/0/0?filter=pg_sleep(1)=1", 400),
        ("0/0/0?url=x", 400),
        ("0/0/0?sortby=fid", 400),
        ("0/0/0?f=mvt", 400),
    ],
)
async def test_tiles_that_cannot_be_are_refused(client: httpx.AsyncClient, tile: str, status: int) -> None:
    await refused(client, f"{MERCATOR}/{tile}", status)


async def test_an_unknown_grid_is_not_there(client: httpx.AsyncClient) -> None:
    for path in (f"{TILES}/CanadianNAD83_LCC/0/0/0", f"{TILES}/GNOSISGlobalGrid", "/tileMatrixSets/Nowhere"):
        await refused(client, path, 404)


async def test_tilejson_leads_to_the_tiles_with_all_that_was_asked_for(client: httpx.AsyncClient) -> None:
    query = {"version": "1", "filter": "level = 3", "open": "true", "minzoom": "2", "maxzoom": "9"}
    tilejson = (await client.get(f"{MERCATOR}/tilejson.json", params=query)).json()
    assert (tilejson["tilejson"], tilejson["minzoom"], tilejson["maxzoom"]) == ("3.0.0", 2, 9)
    (layer,) = tilejson["vector_layers"]
    assert (layer["id"], layer["fields"]["name"], layer["fields"]["fid"]) == ("features", "string", "integer")
    (tiles,) = tilejson["tiles"]
    assert tiles.startswith(f"https://maps.example{ROOT}{MERCATOR}/{{z}}/{{x}}/{{y}}?version=1&")
    assert "minzoom" not in tiles
    url = tiles.removeprefix(f"https://maps.example{ROOT}").format(z=0, x=0, y=0)
    assert (await client.get(url)).content
    await refused(client, f"{MERCATOR}/tilejson.json", filter="pg_sleep(1) = 1")
    await refused(client, f"{MERCATOR}/tilejson.json", minzoom=9, maxzoom=2)
    await refused(client, f"{MERCATOR}/tilejson.json", url="x")


async def test_tilesets_tell_where_there_is_something(client: httpx.AsyncClient) -> None:
    tileset = (await client.get(MERCATOR)).json()
    assert tileset["dataType"] == "vector"
    assert tileset["boundingBox"]["lowerLeft"] == pytest.approx([-25, -25], abs=1)
    limits = {each["tileMatrix"]: each for each in tileset["tileMatrixSetLimits"]}
    assert limits["1"] == {"tileMatrix": "1", "minTileRow": 0, "maxTileRow": 1, "minTileCol": 0, "maxTileCol": 1}
    assert (limits["4"]["minTileCol"], limits["4"]["maxTileCol"]) == (6, 9)
    (item,) = [link for link in tileset["links"] if link["rel"] == "item"]
    assert item["href"].endswith(f"{MERCATOR}/{{tileMatrix}}/{{tileCol}}/{{tileRow}}")


async def test_all_links_of_tilesets_give_what_they_say(client: httpx.AsyncClient, serving: Serving) -> None:
    serving.served = served("islands_v1", title="Islands", bbox=(7.0, 46.0, 9.0, 48.0))
    listed = (await client.get(f"{TILES}?version=0")).json()
    await follow(client, BASE, listed["links"], {})
    assert len(listed["tilesets"]) == len(GRIDS)
    for name, brief in zip(GRIDS, listed["tilesets"], strict=True):
        whole = (await client.get(f"{TILES}/{name}?version=0")).json()
        limits = whole.pop("tileMatrixSetLimits")
        await follow(client, BASE, whole["links"], tile_within(limits[3]))
        assert {link["href"] for link in whole["links"]} == {link["href"] for link in brief["links"]}
        assert {**whole, "links": []} == {**brief, "links": []}
        assert whole["boundingBox"] == {"lowerLeft": [7, 46], "upperRight": [9, 48], "crs": CRS84}
        first = GRIDS[name].tile(7, 48, 8)
        assert (limits[8]["minTileCol"], limits[8]["minTileRow"]) == (first.x, first.y)


async def test_the_map_says_what_it_shows(client: httpx.AsyncClient, serving: Serving) -> None:
    assert "<title>Roads</title>" in (await client.get(f"{MERCATOR}/map.html")).text
    serving.served = served("roads_v1")
    assert "<title>Features</title>" in (await client.get(f"{MERCATOR}/map.html")).text


async def test_the_map_shows_these_tiles(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{MERCATOR}/map.html", params={"version": "1", "level": "3"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert f"{ROOT}{MERCATOR}/tilejson.json?version=1&amp;level=3" in response.text
    await refused(client, f"{MERCATOR}/map.html", filter="pg_sleep(1) = 1")
    await refused(client, f"{TILES}/WorldCRS84Quad/map.html", 404)
