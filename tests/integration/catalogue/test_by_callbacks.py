"""The catalogue by way of an orchestrator: the same rows, and only for a task that is still its worker's."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
import pytest
from tests.integration.catalogue.conftest import TOKEN, WORKER, Orchestrator, Task
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows
from tests.unit.handlers.stac.outputs import item_inputs, source, tile, tiles_inputs

from graticule.core.errors import ConfigurationError, Conflict, InvalidInput
from graticule.core.ids import JobId
from graticule.handlers.catalogue import DatabaseCatalogue
from graticule.handlers.raster.catalogue import stac_register_item, stac_register_items
from graticule.handlers.stac.collections import Holding, wanted_collection
from graticule.handlers.stac.inputs import CollectionText, ItemInputs
from graticule.handlers.stac.items import Stored, Times, output_item
from graticule.handlers.stac.writing import Having, WantedCollection
from graticule.repositories.catalogue import Document
from graticule.repositories.database import Database
from graticule.storage.local import LocalStorage
from graticule.worker.callbacks import catalogue as http_catalogue
from graticule.worker.callbacks.catalogue import HttpCatalogue

AT = datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC)
PREFIX = "direct/d/s/v1/r1"
CALLBACKS = "http://orchestrator/api/v1/callbacks/catalogue"
End = Callable[[str], None]


@pytest.fixture
def end(ask: psycopg.Connection[Any]) -> End:
    """Give what takes the worker's tasks away: they are withdrawn, or another worker has them."""

    def ended(how: str) -> None:
        holder = "'leased', leased_by = 'other'" if how == "lost" else "'withdrawn', leased_by = NULL"
        until = "lease_expires_at" if how == "lost" else "NULL"
        changes = f"SET status = {holder}, lease_expires_at = {until} WHERE leased_by = '{WORKER}'"
        ask.execute(f"UPDATE dagapp.dag_tasks {changes}".encode())

    return ended


@pytest.fixture
def http(orchestrator: Orchestrator, collection_id: str) -> HttpCatalogue:
    """Give the catalogue of a task that the worker holds."""
    return orchestrator.catalogue(orchestrator.leased(collection_id))


def _wanted(collection_id: str) -> WantedCollection:
    return wanted_collection(collection_id, CollectionText(title="It"), "ddh", Holding.RASTERS)


def _item(collection_id: str) -> Document:
    given = ItemInputs.model_validate(item_inputs(stac_collection_id=collection_id))
    return output_item(given, Stored(given.product.path, 5, None), Times(AT, AT))


def _rows(ask: psycopg.Connection[Any], collection_id: str) -> list[Any]:
    """Give all that the catalogue has of a collection, but for its name and for when it was written."""
    collections = "SELECT content, base_item FROM pgstac.collections WHERE id = %s"
    items = (
        "SELECT id, geometry, datetime, end_datetime, content #- '{properties,updated}' #- '{pgstac:base_item}'"
        "       #- '{properties,graticule:files_etag}'"
        " FROM pgstac.items WHERE collection = %s ORDER BY id"
    )
    found = [ask.execute(query.encode(), [collection_id]).fetchall() for query in (collections, items)]
    loaded: list[Any] = json.loads(
        json.dumps(found, default=str).replace(collection_id, "C").replace(collection_id.replace("-", " "), "C")
    )
    return loaded


def _end_holds(ask: psycopg.Connection[Any]) -> None:
    """Let the time of all holds be over."""
    ask.execute("UPDATE dagapp.dag_held_prefixes SET expires_at = clock_timestamp() - interval '1 second'")


async def test_a_registration_leaves_the_same_rows_by_both_ways(
    storage: LocalStorage,
    database: Database,
    orchestrator: Orchestrator,
    ask: psycopg.Connection[Any],
    collection_id: str,
) -> None:
    rows.add_job(ask, "job-12345678")
    by_http = Task(storage, None, lambda job_id: orchestrator.catalogue(orchestrator.leased(job_id)))
    ways = {f"{collection_id}-d": Task(storage, database), f"{collection_id}-h": by_http}
    for name, task in ways.items():
        await storage.put("silver/12345678/out/cogs/scene.tif", b"content")
        given = item_inputs(stac_collection_id=name)
        tiles = tiles_inputs([[tile(0, 0), tile(1, 0)]], stac_collection_id=name, source=source())
        results = [
            await stac_register_item(task("raster.stac_register_item", **given)),
            await stac_register_items(task("raster.stac_register_items", **tiles)),
        ]
        assert [result.error_message for result in results] == [None, None]
    first, second = (_rows(ask, name) for name in ways)
    assert len(first[1]) == 3
    assert first == second


@pytest.mark.parametrize("how", ["lost", "withdrawn"])
async def test_a_task_that_is_not_the_workers_any_more_changes_nothing(
    http: HttpCatalogue, end: End, how: str, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    wanted, item = _wanted(collection_id), _item(collection_id)
    await http.ensure(wanted, room_for=AT)
    before = _rows(ask, collection_id)
    async with http.holding(PREFIX) as hold:
        end(how)
        renamed = WantedCollection(wanted.document, {"title": "Other"})
        for writing in (
            http.ensure(renamed),
            http.replace_items(collection_id, [item], Having("a", "b")),
            hold.write(wanted, item),
        ):
            with pytest.raises(Conflict):
                await writing
    assert _rows(ask, collection_id) == before


async def test_a_task_whose_job_was_cancelled_can_still_take_back_what_it_moved(http: HttpCatalogue, end: End) -> None:
    end("withdrawn")
    async with http.holding(PREFIX) as hold:
        await hold.item("c", "i")


async def test_a_task_that_is_lost_holds_nothing(http: HttpCatalogue, end: End) -> None:
    end("lost")
    with pytest.raises(Conflict, match="no longer"):
        async with http.holding(PREFIX):
            pass


async def test_one_way_waits_for_the_other(
    http: HttpCatalogue, database: Database, ask: psycopg.Connection[Any]
) -> None:
    order: list[str] = []

    async def by_database() -> None:
        async with DatabaseCatalogue(database, JobId("12345678")).holding(PREFIX):
            order.append("database")

    async with http.holding(PREFIX) as hold:
        waiting = asyncio.create_task(by_database())
        async with asyncio.timeout(20):
            while not _is_locked(ask):  # noqa: ASYNC110 - it has the lock then, and looks whether the task has ended
                await asyncio.sleep(0.01)
        await hold._renew()  # type: ignore[attr-defined] # it goes on while others wait
        order.append("http")
    await waiting
    assert order == ["http", "database"]
    async with DatabaseCatalogue(database, JobId("12345678")).holding(PREFIX):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_held(http), 0.3)
    await asyncio.wait_for(_held(http), 10)


def _is_locked(ask: psycopg.Connection[Any]) -> bool:
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = "
    found = ask.execute(f"{held}(SELECT oid FROM pg_database WHERE datname = current_database())".encode())
    return found.fetchone() != (0,)


async def _held(catalogue: HttpCatalogue) -> datetime:
    async with catalogue.holding(PREFIX) as hold:
        return hold.now


async def test_who_holds_a_prefix_for_too_long_loses_it(
    orchestrator: Orchestrator, http: HttpCatalogue, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    other = orchestrator.catalogue(orchestrator.leased(collection_id))
    async with http.holding(PREFIX) as hold:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_held(other), 0.3)
        _end_holds(ask)
        assert await _held(other) > hold.now
        with pytest.raises(Conflict, match="not held"):
            await hold.write(_wanted(collection_id), _item(collection_id))
    assert _rows(ask, collection_id) == [[], []]


async def test_a_write_that_comes_after_the_end_of_its_hold_is_refused(
    orchestrator: Orchestrator, database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    """Its worker gave up waiting for the answer, and has taken the files back under another hold."""
    message = orchestrator.leased(collection_id)
    subject = {"task_id": message.task_id, "worker_id": WORKER, "delivery_count": 1, "prefix": PREFIX}
    wanted = {"document": _wanted(collection_id).document}

    async def post(path: str, hold_id: str, **more: Any) -> httpx.Response:
        asked = {**subject, "hold_id": hold_id * 32, **more}
        return await orchestrator.client.post(
            f"{CALLBACKS}/{path}", json=asked, headers={"Authorization": f"Bearer {TOKEN}"}
        )

    assert (await post("prefix", "a")).json()["held"]
    ask.execute("SELECT pg_advisory_lock(hashtextextended('graticule catalogue', 0))")
    late = asyncio.create_task(post("registration", "a", collection=wanted, item=_item(collection_id)))
    async with database.connection() as connection:
        await waiting_for_a_lock(connection)
    assert (await post("prefix/release", "a")).status_code == 204
    assert (await post("prefix", "b")).json()["held"]
    ask.execute("SELECT pg_advisory_unlock_all()")
    assert (await late).status_code == 409
    assert _rows(ask, collection_id) == [[], []]


async def test_many_items_go_in_several_requests(
    http: HttpCatalogue, ask: psycopg.Connection[Any], collection_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_catalogue, "MOST_ITEMS", 2)
    item, mark = _item(collection_id), Having("mark", "m")
    await http.ensure(_wanted(collection_id), room_for=AT)
    for count in (5, 3):
        made = [
            {**item, "id": f"i{number}", "properties": {**item["properties"], "mark": "m"}} for number in range(count)
        ]
        collection = await http.replace_items(collection_id, made, mark)
        assert collection["id"] == collection_id
        assert len(_rows(ask, collection_id)[1]) == count


async def test_what_the_catalogue_cannot_keep_is_refused_for_good(http: HttpCatalogue, collection_id: str) -> None:
    wanted, item = _wanted(collection_id), _item(collection_id)
    ring = [[0, 0], [1, 0], [1, 1], [0, 1]]
    for spoilt in (
        {"type": "Thing"},
        {"id": "../other"},
        {"collection": "other"},
        {"properties": {"datetime": "2023-04-05"}},
        {"properties": {"datetime": 5}},
        {"geometry": None},
        {"geometry": {"type": "Polygon", "coordinates": [ring]}},  # it does not end where it begins
        {"geometry": {"type": "Point", "coordinates": ["a", "b"]}},
        {"properties": {**item["properties"], "text": "nul \0"}},
        {"assets": {"data": "a path"}},
    ):
        async with http.holding(PREFIX) as hold:
            with pytest.raises(InvalidInput):
                await hold.write(wanted, {**item, **spoilt})
    for document, text in (({"id": "../x"}, {}), ({"type": "Thing"}, {}), ({"summaries": 5}, {}), ({}, {"extent": {}})):
        unsound = WantedCollection({**wanted.document, **document}, text)
        with pytest.raises(InvalidInput):
            await http.ensure(unsound)
        async with http.holding(PREFIX) as hold:
            with pytest.raises(InvalidInput):
                await hold.write(unsound, item)
    with pytest.raises(Conflict):
        await http.replace_items("direct-missing", [{**item, "collection": "direct-missing"}], Having("a", "b"))
    with pytest.raises(InvalidInput):
        async with http.holding("../bronze"):
            pass


@pytest.mark.parametrize("prefix", ["ddh/roads/01234567/v0/r1", "ddh", "direct", "directory/x", "silver/direct/x"])
async def test_a_task_does_not_hold_the_prefix_of_another_job(
    http: HttpCatalogue, ask: psycopg.Connection[Any], prefix: str
) -> None:
    """It would keep the other job from putting its files there for as long as it likes."""
    with pytest.raises(InvalidInput, match="not one of its job"):
        async with http.holding(prefix):
            pass
    assert ask.execute("SELECT count(*) FROM dagapp.dag_held_prefixes WHERE prefix = %s", [prefix]).fetchone() == (0,)


async def test_what_only_the_database_can_check_needs_one(http: HttpCatalogue, collection_id: str) -> None:
    async def check(_: object) -> None:
        pytest.fail("nobody can check that here")

    async with http.holding(PREFIX) as hold:
        with pytest.raises(ConfigurationError, match="GRATICULE_DATABASE_URL"):
            await hold.write(_wanted(collection_id), _item(collection_id), check)
