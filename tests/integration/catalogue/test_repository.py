"""The catalogue on a real pgstac: what is written is found, once, whoever writes beside it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.unit.handlers.stac.outputs import ACROSS, STORED, TIMES, cog, item_inputs, mosaic, tile, tiles_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.errors import Conflict, PermissionDenied
from graticule.core.table import DatabaseRole
from graticule.handlers.stac.collections import Holding, new_collection
from graticule.handlers.stac.inputs import CollectionText, ItemInputs, TilesInputs
from graticule.handlers.stac.items import TILES_OF, output_item, tile_items
from graticule.repositories.catalogue import CatalogueRepository, Document, reading, writing
from graticule.repositories.database import Database

SEARCH = "SELECT feature ->> 'id' FROM jsonb_array_elements(search(%s::jsonb) -> 'features') AS feature"


def _item(collection_id: str, item_id: str = "one", product: dict[str, Any] | None = None) -> Document:
    given = item_inputs(product, stac_item_id=item_id, stac_collection_id=collection_id)
    return output_item(ItemInputs.model_validate(given), STORED, TIMES)


def _tiles(collection_id: str, columns: int, rows: int, **more: Any) -> list[Document]:
    made = [tile(column, row) for row in range(rows) for column in range(columns)]
    given = tiles_inputs(made, stac_collection_id=collection_id, **more)
    return list(tile_items(TilesInputs.model_validate(given), TIMES))


async def _write(
    database: Database, collection_id: str, items: list[Document], *, holds: Holding = Holding.RASTERS
) -> None:
    async with writing(database) as catalogue:
        if await catalogue.collection(collection_id) is None:
            made = new_collection(collection_id, CollectionText(), holds=holds)
            await catalogue.write_collection(made)
        await catalogue.make_room(collection_id, TIMES.at, TIMES.at)
        await catalogue.write_items(collection_id, items)


async def _read(database: Database, collection_id: str, item_id: str) -> Document | None:
    async with reading(database) as catalogue:
        return await catalogue.item(collection_id, item_id)


def _search(ask: psycopg.Connection[Any], collection_id: str, bbox: list[float]) -> list[str]:
    asked = psycopg.types.json.Jsonb({"collections": [collection_id], "bbox": bbox, "limit": 2000})
    return [found for (found,) in ask.execute(SEARCH, [asked])]


@pytest.mark.parametrize("product", [cog(), cog(ACROSS), mosaic()], ids=["single", "antimeridian", "mosaic"])
async def test_an_item_comes_back_as_it_was_written_and_is_valid(
    database: Database, collection_id: str, product: dict[str, Any]
) -> None:
    item = _item(collection_id, product=product)
    await _write(database, collection_id, [item])
    found = await _read(database, collection_id, "one")
    assert found == item
    assert_valid(found)


async def test_items_are_kept_as_pgstac_itself_would_keep_them(
    database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    def rows() -> list[Any]:
        query = "SELECT id, geometry, collection, datetime, end_datetime, content FROM items WHERE collection = %s"
        return ask.execute(query, [collection_id]).fetchall()

    item = _item(collection_id, product=mosaic())
    await _write(database, collection_id, [item])
    ours = rows()
    ask.execute("SELECT delete_item('one', %s), create_item(%s)", [collection_id, psycopg.types.json.Jsonb(item)])
    assert rows() == ours


async def test_the_second_time_replaces_the_first(
    database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    await _write(database, collection_id, [_item(collection_id), _item(collection_id, "two")])
    changed = _item(collection_id, product=mosaic())
    await _write(database, collection_id, [changed])
    assert await _read(database, collection_id, "one") == changed
    counted = ask.execute("SELECT count(*) FROM items WHERE collection = %s", [collection_id]).fetchone()
    assert counted == (2,)


async def test_items_written_before_and_after_a_change_of_what_they_have_in_common_stay_as_they_are(
    database: Database, collection_id: str
) -> None:
    first, second = _item(collection_id), _item(collection_id, "two")
    await _write(database, collection_id, [first])
    async with writing(database) as catalogue:
        present = await catalogue.collection(collection_id) or {}
        assets = {"data": {"title": "Another", "roles": ["data"]}, "thumbnail": {"title": "Small"}}
        await catalogue.write_collection({**present, "item_assets": assets})
    await _write(database, collection_id, [second])
    assert await _read(database, collection_id, "one") == first
    assert await _read(database, collection_id, "two") == second


async def test_a_search_by_place_finds_the_item_also_across_the_antimeridian(
    database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    here, there = _item(collection_id, "here"), _item(collection_id, "there", cog(ACROSS))
    await _write(database, collection_id, [here, there])
    assert _search(ask, collection_id, [-61.0, 16.0, -60.0, 17.0]) == ["here"]
    assert _search(ask, collection_id, [-179.5, -17.0, -179.0, -16.0]) == ["there"]
    assert _search(ask, collection_id, [179.0, -17.0, 179.5, -16.0]) == ["there"]
    assert _search(ask, collection_id, [0.0, -17.0, 10.0, -16.0]) == []


async def test_the_coverage_is_that_of_all_items(database: Database, collection_id: str) -> None:
    async with reading(database) as catalogue:
        assert await catalogue.coverage(collection_id) is None
    await _write(database, collection_id, [_item(collection_id, product=cog(ACROSS))])
    async with reading(database) as catalogue:
        found = await catalogue.coverage(collection_id)
    assert found is not None
    assert found.box == [-180.0, -18.0, 180.0, -15.0]
    assert found.shifted_box == [178.0, -18.0, 182.0, -15.0]
    assert found.start == found.end == TIMES.at
    assert found.projections == ["EPSG:4326"]


async def test_a_thousand_tiles_are_written_at_once_and_replaced_at_once(
    database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    tiles = _tiles(collection_id, 40, 25)
    await _write(database, collection_id, tiles, holds=Holding.TILES)
    counted = ask.execute("SELECT count(*) FROM items WHERE collection = %s", [collection_id]).fetchone()
    assert counted == (1000,)
    assert _search(ask, collection_id, [-61.59, 17.71, -61.21, 17.99]) == ["scene-v1-scene_tile_1_0"]
    assert await _read(database, collection_id, tiles[777]["id"]) == tiles[777]
    async with writing(database) as catalogue:
        assert await catalogue.delete_items_having(collection_id, TILES_OF, "another") == 0
        assert await catalogue.delete_items_having(collection_id, TILES_OF, "scene-v1") == 1000
    assert await _read(database, collection_id, tiles[777]["id"]) is None


async def test_items_can_be_deleted(database: Database, collection_id: str) -> None:
    await _write(database, collection_id, [_item(collection_id), _item(collection_id, "two")])
    async with writing(database) as catalogue:
        assert await catalogue.delete_items(collection_id, ["one", "none"]) == 1
    assert await _read(database, collection_id, "one") is None
    assert await _read(database, collection_id, "two") is not None


async def test_what_goes_wrong_leaves_nothing(database: Database, collection_id: str) -> None:
    async def broken() -> None:
        async with writing(database) as catalogue:
            await catalogue.write_collection(new_collection(collection_id, CollectionText()))
            await catalogue.make_room(collection_id, TIMES.at, TIMES.at)
            await catalogue.write_items(collection_id, [_item(collection_id)])
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        await broken()
    async with reading(database) as catalogue:
        assert await catalogue.collection(collection_id) is None
        assert await catalogue.item(collection_id, "one") is None


async def test_items_of_a_collection_that_is_not_there_are_refused(database: Database, collection_id: str) -> None:
    with pytest.raises(Conflict):
        async with writing(database) as catalogue:
            await catalogue.make_room(collection_id, TIMES.at, TIMES.at)


async def test_many_writers_of_the_same_and_of_new_collections_do_not_hinder_each_other(
    database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    collections = [f"{collection_id}-{number % 4}" for number in range(8)]
    items = {each: [_item(each), _item(each, "two")] for each in collections}
    await asyncio.gather(
        *(_write(database, each, items[each][:: 1 if number < 4 else -1]) for number, each in enumerate(collections))
    )
    found = ask.execute(
        "SELECT collection, count(*) FROM items WHERE collection = ANY (%s) GROUP BY 1 ORDER BY 1", [collections]
    ).fetchall()
    assert found == [(f"{collection_id}-{number}", 2) for number in range(4)]


async def test_items_of_another_time_find_room(database: Database, collection_id: str) -> None:
    await _write(database, collection_id, [_item(collection_id)])
    later = _item(collection_id, "later")
    at = datetime(2031, 2, 3, tzinfo=UTC)
    later["properties"]["datetime"] = "2031-02-03T00:00:00Z"
    async with writing(database) as catalogue:
        await catalogue.make_room(collection_id, at, at)
        await catalogue.write_items(collection_id, [later])
        found = await catalogue.coverage(collection_id)
    assert found is not None
    assert (found.start, found.end) == (TIMES.at, at)


@pytest.mark.parametrize("role", [DatabaseRole.GATEWAY, DatabaseRole.SERVE_INTERNAL])
async def test_only_workers_and_orchestrators_write_the_catalogue(
    shared_catalogue: TestDatabase, collection_id: str, role: DatabaseRole
) -> None:
    async with Database(shared_catalogue.url(role), role) as pool, pool.connection() as connection:
        catalogue = CatalogueRepository(connection)
        with pytest.raises(PermissionDenied):
            await catalogue.write_collection(new_collection(collection_id, CollectionText()))
        with pytest.raises(PermissionDenied):
            await catalogue.make_room(collection_id, TIMES.at, TIMES.at)
        with pytest.raises(PermissionDenied):
            await catalogue.delete_items(collection_id, ["one"])


async def test_a_worker_makes_nothing_of_its_own_in_pgstac(database: Database) -> None:
    with pytest.raises(PermissionDenied):
        async with database.connection() as connection:
            await connection.execute("CREATE FUNCTION pgstac.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    with pytest.raises(PermissionDenied):
        async with database.connection() as connection:
            await connection.execute("DROP TABLE pgstac.items CASCADE")
