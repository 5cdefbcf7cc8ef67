"""Outputs of approved versions that somebody has dropped or cut off: the answer is 503, and a metric counts it."""

from pathlib import Path

import pytest
from tests.conftest import TestDatabase
from tests.integration.serve.access_table import (
    BY_NAME,
    EXTERNAL,
    INTERNAL,
    LATEST_ONLY,
    NEVER,
    OF_FIRST,
    OUO,
    PUBLIC,
    Asset,
    Version,
)
from tests.integration.serve.running import TILE, Service, World, blob_of, serving, table_of

from graticule.core.models.platform import DataType

VECTOR = Asset(1, DataType.VECTOR, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NEVER),))
RASTER = Asset(2, DataType.RASTER, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NEVER),))
COPIED = Asset(3, DataType.VECTOR, PUBLIC, LATEST_ONLY, (Version(0, BY_NAME["approved"], OF_FIRST),))


def paths_of(asset: Asset) -> tuple[str, ...]:
    collection = f"/features/{asset.asset_id}/collections/features"
    of_rows = ("", "/items", "/items/1", "/download.geojson")
    of_tiles = (f"/tiles/{TILE}.mvt", "/tiles/WebMercatorQuad/tilejson.json")
    return tuple(f"{collection}{path}" for path in (*of_rows, *of_tiles))


OF_FEATURES = paths_of(VECTOR)
OF_RASTER = (f"/tiles/{RASTER.asset_id}/info", f"/tiles/{RASTER.asset_id}/tiles/{TILE}.png")


@pytest.fixture
def world(own_database: TestDatabase, tmp_path: Path) -> World:
    world = World(own_database, tmp_path)
    world.write_data([0], [1])
    world.write_assets([VECTOR, RASTER, COPIED])
    return world


async def assert_unreadable(service: Service, paths: tuple[str, ...], data_type: DataType) -> None:
    before = await counted(service, data_type)
    for path in paths:
        answer = await service.get(path)
        assert (answer.status, answer.document["code"]) == (503, "output_unreadable"), (path, answer.text)
        assert table_of(0, 1) not in answer.text
        assert answer.headers["retry-after"]
    assert await counted(service, data_type) == before + len(paths)


async def counted(service: Service, data_type: DataType) -> float:
    name = f'graticule_outputs_unreadable_total{{data_type="{data_type}"}} '
    lines = (await service.get("/metrics")).text.splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def drop_table(world: World, schema: str = "geo") -> None:
    with world.connected() as connection:
        connection.execute(f"DROP TABLE {schema}.{table_of(0, 1)}".encode())


async def test_a_dropped_table(world: World) -> None:
    drop_table(world)
    async with serving(world) as services:
        await assert_unreadable(services[INTERNAL], OF_FEATURES, DataType.VECTOR)
        assert (await services[EXTERNAL].get(paths_of(COPIED)[0])).status == 200, "it has a table of its own"


async def test_a_dropped_table_of_the_public(world: World) -> None:
    drop_table(world, "external")
    async with serving(world) as services:
        await assert_unreadable(services[EXTERNAL], paths_of(COPIED), DataType.VECTOR)
        assert (await services[INTERNAL].get(paths_of(COPIED)[0])).status == 200, "it has a table of its own"


async def test_a_table_that_is_dropped_after_it_was_read(world: World) -> None:
    async with serving(world) as services:
        service = services[INTERNAL]
        assert (await service.get(OF_FEATURES[0])).status == 200
        drop_table(world)
        assert (await service.get(f"{OF_FEATURES[1]}?limit=1")).status == 503
        await assert_unreadable(service, OF_FEATURES[1:], DataType.VECTOR)


async def test_answers_from_memory_end_when_a_fault_is_seen(world: World) -> None:
    async with serving(world) as services:
        service = services[INTERNAL]
        for path in (*OF_FEATURES, OF_RASTER[0]):
            if path.endswith("download.geojson"):  # streams, and is never kept
                continue
            assert (await service.get(path)).status == 200, path
        drop_table(world)
        (world.folder / "storage" / blob_of(0, 1)).unlink()
        for path in (f"{OF_FEATURES[1]}?limit=1", f"{OF_RASTER[0]}?version=latest"):
            assert (await service.get(path)).status == 503, path
        await assert_unreadable(service, OF_FEATURES, DataType.VECTOR)
        await assert_unreadable(service, OF_RASTER, DataType.RASTER)


@pytest.mark.parametrize("size", [None, 100], ids=["removed", "cut off"])
async def test_a_damaged_raster(world: World, size: int | None) -> None:
    file = world.folder / "storage" / blob_of(0, 1)
    file.write_bytes(file.read_bytes()[:size]) if size else file.unlink()
    async with serving(world) as services:
        await assert_unreadable(services[INTERNAL], OF_RASTER, DataType.RASTER)
