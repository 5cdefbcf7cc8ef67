"""The handlers of the catalogue: outputs are promoted and catalogued together, or neither."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.catalogue.conftest import Task, both_ways
from tests.integration.locks import waiting_for_a_lock
from tests.unit.handlers.stac.outputs import cog, item_inputs, mosaic, source, tile, tiles_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.errors import Unavailable
from graticule.core.table import DatabaseRole
from graticule.handlers.outputs.integrity import FILES_ETAG
from graticule.handlers.outputs.staging import Promotion, begin, move_outputs, staged_sizes
from graticule.handlers.raster.catalogue import stac_ensure_collection, stac_register_item, stac_register_items
from graticule.handlers.result import HandlerResult
from graticule.repositories.catalogue import Document, reading
from graticule.repositories.database import Database
from graticule.services.asset_outcomes import VersionOutputs
from graticule.storage.local import LocalStorage
from graticule.storage.protocol import BlobInfo

STAGED, FINAL = "silver/12345678/out", "silver/direct/d/s/v1/r1"
UNDATED = source(facts={"crs": "EPSG:32620"})


async def _stage(storage: LocalStorage, *names: str) -> None:
    for name in names or ("cogs/scene.tif",):
        await storage.put(f"{STAGED}/{name}", f"content of {name}".encode())


async def _blobs(storage: LocalStorage) -> list[str]:
    return [blob.path async for blob in storage.list("silver/")]


async def _contents(storage: LocalStorage) -> dict[str, bytes]:
    return {path: await storage.get(path) for path in await _blobs(storage)}


async def _register(task: Task, collection_id: str, product: Any = None, **more: Any) -> HandlerResult:
    given = item_inputs(product, stac_collection_id=collection_id, **more)
    return await stac_register_item(task("raster.stac_register_item", **given))


def _output(result: HandlerResult) -> dict[str, Any]:
    assert result.error_message is None
    assert isinstance(result.output, dict)
    return result.output


async def _found(database: Database, collection_id: str, item_id: str = "scene-v1") -> tuple[Document, Document]:
    async with reading(database) as catalogue:
        item, collection = await catalogue.item(collection_id, item_id), await catalogue.collection(collection_id)
    assert item is not None
    assert collection is not None
    return item, collection


class PausedStorage(LocalStorage):
    """A storage that waits at a gate when all files have moved, as a process that is stopped there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reached, self.gate = asyncio.Event(), asyncio.Event()

    async def stat(self, path: str) -> BlobInfo:
        self.reached.set()
        await self.gate.wait()
        return await super().stat(path)


class Undeletable(LocalStorage):
    """A storage in which nothing can be removed now."""

    async def delete(self, path: str) -> None:
        raise Unavailable(path)


def _end_silent_sessions(ask: psycopg.Connection[Any]) -> Any:
    """Do what the server does with a session that says nothing in a transaction for a minute."""
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    return ask.execute(f"{query} AND datname = current_database()".encode()).fetchone()


async def _killed_after_a_file(storage: LocalStorage, collection_id: str, names: list[str]) -> None:
    """Leave what a process leaves that is killed while it promotes."""
    confirmed = 0

    async def confirm() -> None:
        nonlocal confirmed
        confirmed += 1
        if confirmed > 1:
            raise InterruptedError

    promotion = Promotion(
        blob_prefix="direct/d/s/v1/r1",
        collection_id=collection_id,
        item_id="scene-v1",
        href=f"{FINAL}/cogs/scene.tif",
        checksum=None,
        sizes=await staged_sizes(storage, "12345678"),
        at=datetime.now(UTC),
    )
    assert set(promotion.sizes) == set(names)
    await begin(storage, "12345678", promotion)
    with pytest.raises(InterruptedError):
        await move_outputs(storage, "12345678", promotion, confirm)


@pytest.fixture
def broken_catalogue(ask: psycopg.Connection[Any], collection_id: str) -> Any:
    """Let the catalogue refuse this collection when all of it is written, until it is mended."""
    ask.execute(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '08006' USING MESSAGE = 'broken'; END $$"
    )
    ask.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON collections INITIALLY DEFERRED FOR EACH ROW"
        f" WHEN (NEW.content ->> 'id' = '{collection_id}') EXECUTE FUNCTION public.refuse()".encode()
    )
    yield lambda: ask.execute("DROP FUNCTION IF EXISTS public.refuse CASCADE")
    ask.execute("DROP FUNCTION IF EXISTS public.refuse CASCADE")


@both_ways
async def test_an_output_is_promoted_and_catalogued(
    task: Task, storage: LocalStorage, database: Database, collection_id: str
) -> None:
    await _stage(storage)
    output = _output(await _register(task, collection_id))
    assert await _blobs(storage) == [f"{FINAL}/cogs/scene.tif"]
    assert output["blob_path"] == f"{FINAL}/cogs/scene.tif"
    assert output["validation"]["outcome"] == "ok"
    assert output["tile_url"] == f"/tiles/{'a' * 32}/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}?version=1"
    assert [band["name"] for band in output["bands"]] == ["red", "green", "blue"]
    assert VersionOutputs.model_validate(output).bbox == [-62.0, 15.0, -58.0, 18.0]
    item, collection = await _found(database, collection_id)
    assert_valid(item)
    assert_valid(collection)
    assert item["properties"]["datetime"] == "2023-04-05T06:07:08Z"
    assert item["assets"]["data"]["file:size"] == len("content of cogs/scene.tif")
    assert collection["extent"]["spatial"]["bbox"] == [[-62.0, 15.0, -58.0, 18.0]]
    assert collection["extent"]["temporal"]["interval"] == [["2023-04-05T06:07:08Z", "2023-04-05T06:07:08Z"]]


async def test_a_mosaic_is_catalogued_with_all_its_files(
    task: Task, storage: LocalStorage, database: Database, collection_id: str
) -> None:
    await _stage(storage, *mosaic()["files"])
    output = _output(await _register(task, collection_id, mosaic(scheme_checksum="12" * 32)))
    assert await _blobs(storage) == [f"{FINAL}/{name}" for name in sorted(mosaic()["files"])]
    assert (output["mosaic_path"], output["tile_count"]) == (f"{FINAL}/mosaics/scene.json", 1)
    item, _ = await _found(database, collection_id)
    assert_valid(item)
    assert set(item["assets"]) == {"mosaic", "scheme"}
    scheme = item["assets"]["scheme"]
    assert scheme["href"] == f"{FINAL}/schemes/scene.geojson"
    assert (scheme["file:size"], scheme["file:checksum"]) == (
        len("content of schemes/scene.geojson"),
        f"1220{'12' * 32}",
    )


@both_ways
async def test_a_second_run_changes_nothing_but_when_it_was_written(
    task: Task, storage: LocalStorage, database: Database, collection_id: str
) -> None:
    found = []
    for _ in range(2):
        await _stage(storage)
        assert _output(await _register(task, collection_id, source=UNDATED))
        found.append(await _found(database, collection_id))
    (first, collection), (second, same_collection) = found
    assert first["properties"].pop("updated") < second["properties"].pop("updated")
    assert first["properties"].pop(FILES_ETAG) != second["properties"].pop(FILES_ETAG), "the file was written again"
    assert first == second
    assert collection == same_collection
    assert await _blobs(storage) == [f"{FINAL}/cogs/scene.tif"]


async def test_two_registrations_at_once_both_succeed(
    task: Task, storage: LocalStorage, database: Database, collection_id: str
) -> None:
    await _stage(storage)
    await storage.put("silver/12345678/out/cogs/other.tif", b"other")
    other = cog(blob_path="silver/direct/d/s/v2/r1/cogs/other.tif", files=["cogs/other.tif"])
    more = {"stac_item_id": "scene-v2", "blob_prefix": "direct/d/s/v2/r1", "version_ordinal": 2}
    await storage.put("silver/87654321/out/cogs/other.tif", b"other")
    given = item_inputs(other, **{**more, "stac_collection_id": collection_id, "datetime": "2030-01-01T00:00:00Z"})
    second = task("raster.stac_register_item", job_id="job-87654321", **given)
    results = await asyncio.gather(_register(task, collection_id), stac_register_item(second))
    assert [_output(result)["stac_item_id"] for result in results] == ["scene-v1", "scene-v2"]
    _, collection = await _found(database, collection_id, "scene-v2")
    assert collection["extent"]["temporal"]["interval"] == [["2023-04-05T06:07:08Z", "2030-01-01T00:00:00Z"]]


@both_ways
async def test_if_the_catalogue_cannot_be_written_the_outputs_are_staged_again(
    task: Task, storage: LocalStorage, database: Database, collection_id: str, broken_catalogue: Any
) -> None:
    await _stage(storage)
    result = await _register(task, collection_id)
    assert result.error_message is not None
    assert result.retryable
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]
    async with reading(database) as catalogue:
        assert await catalogue.collection(collection_id) is None
    broken_catalogue()
    assert _output(await _register(task, collection_id))["stac_item_id"] == "scene-v1"
    assert await _blobs(storage) == [f"{FINAL}/cogs/scene.tif"]


@both_ways
async def test_a_cancellation_in_between_stages_the_outputs_again(
    task: Task, storage: LocalStorage, database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    await _stage(storage)
    ask.execute("SELECT pg_advisory_lock(hashtextextended('graticule catalogue', 0))")
    try:
        running = asyncio.create_task(_register(task, collection_id))
        async with database.connection() as connection:
            await waiting_for_a_lock(connection)
        assert await _blobs(storage) == ["silver/12345678/promoted.json", f"{FINAL}/cogs/scene.tif"]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    finally:
        ask.execute("SELECT pg_advisory_unlock_all()")
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]


@both_ways
async def test_a_rerun_that_cannot_be_catalogued_leaves_the_earlier_result_as_it_was(
    task: Task, storage: LocalStorage, database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    await _stage(storage, *mosaic()["files"])
    assert _output(await _register(task, collection_id, mosaic()))
    before = await _contents(storage), await _found(database, collection_id)
    rerun = cog(blob_path=f"{FINAL}/cogs/scene_tile_0_0.tif", files=["cogs/scene_tile_0_0.tif"], checksum="12" * 32)
    staged = {f"{STAGED}/cogs/scene_tile_0_0.tif": b"of the rerun"}
    await storage.put(*staged.copy().popitem())
    ask.execute("ALTER FUNCTION check_partition(text, tstzrange, tstzrange) RENAME TO away")
    try:
        assert (await _register(task, collection_id, rerun)).error_message is not None
    finally:
        ask.execute("ALTER FUNCTION away(text, tstzrange, tstzrange) RENAME TO check_partition")
    assert (await _contents(storage), await _found(database, collection_id)) == ({**before[0], **staged}, before[1])
    assert _output(await _register(task, collection_id, rerun))
    assert await _contents(storage) == {f"{FINAL}/cogs/scene_tile_0_0.tif": b"of the rerun"}


async def test_an_attempt_that_was_stopped_and_lost_its_task_disturbs_nothing_when_it_goes_on(
    tmp_path: Path, task: Task, database: Database, ask: psycopg.Connection[Any], collection_id: str
) -> None:
    storage = LocalStorage(tmp_path)
    await _stage(storage)
    paused = PausedStorage(tmp_path)
    first = asyncio.create_task(_register(Task(paused, database), collection_id))
    await paused.reached.wait()
    assert _end_silent_sessions(ask) == (1,)  # as the server does after a minute
    second = _output(await _register(task, collection_id))
    registered = await _contents(storage), await _found(database, collection_id)
    paused.gate.set()
    assert (await first).error_message is not None
    assert (await _contents(storage), await _found(database, collection_id)) == registered
    again = _output(await _register(task, collection_id))
    assert again == second
    assert await _contents(storage) == registered[0] == {f"{FINAL}/cogs/scene.tif": b"content of cogs/scene.tif"}


async def test_two_attempts_of_one_job_at_once_both_succeed(
    storage: LocalStorage, task: Task, collection_id: str
) -> None:
    names = [*(f"cogs/s{number}.tif" for number in range(20)), "cogs/scene.tif"]
    for number in range(3):
        await _stage(storage, *names)
        results = await asyncio.gather(
            *(_register(task, f"{collection_id}-{number}", cog(files=names)) for _ in range(2))
        )
        assert _output(results[0]) == _output(results[1])
        assert await _blobs(storage) == sorted(f"{FINAL}/{name}" for name in names)
        await storage.delete_below("silver/ddh")


@both_ways
async def test_two_jobs_of_one_prefix_take_turns_and_the_files_are_those_of_the_item(
    storage: LocalStorage, task: Task, database: Database, collection_id: str
) -> None:
    given = item_inputs(stac_collection_id=collection_id)
    product = cog(files=["cogs/scene.tif", "cogs/more.tif"], checksum="12" * 32)
    other = item_inputs(product, stac_collection_id=collection_id)
    await _stage(storage)
    for name in ("cogs/scene.tif", "cogs/more.tif"):
        await storage.put(f"silver/87654321/out/{name}", b"other")
    await asyncio.gather(
        stac_register_item(task("raster.stac_register_item", **given)),
        stac_register_item(task("raster.stac_register_item", job_id="job-87654321", **other)),
    )
    item, _ = await _found(database, collection_id)
    is_other = item["assets"]["data"]["file:checksum"] == f"1220{'12' * 32}"
    names = ["cogs/more.tif", "cogs/scene.tif"] if is_other else ["cogs/scene.tif"]
    assert await _blobs(storage) == [f"{FINAL}/{name}" for name in names]
    assert item["assets"]["data"]["file:size"] == len(await storage.get(f"{FINAL}/cogs/scene.tif"))


async def test_a_cancel_that_comes_while_files_move_is_heard_before_the_catalogue_is_written(
    storage: LocalStorage, database: Database, collection_id: str, tmp_path: Path
) -> None:
    await _stage(storage)
    paused = PausedStorage(tmp_path)
    context = Task(paused, database)("raster.stac_register_item", **item_inputs(stac_collection_id=collection_id))
    running = asyncio.create_task(stac_register_item(context))
    await paused.reached.wait()
    context.signals.cancelled = True
    paused.gate.set()
    result = await running
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]
    async with reading(database) as catalogue:
        assert await catalogue.collection(collection_id) is None


class EndsJob(LocalStorage):
    """A storage in which the job ends as soon as its files have moved."""

    def __init__(self, root: Path, ask: psycopg.Connection[Any]) -> None:
        super().__init__(root)
        self._ask = ask

    async def stat(self, path: str) -> BlobInfo:
        self._ask.execute(
            "UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now() WHERE job_id = 'job-12345678'"
        )
        return await super().stat(path)


class Moved(LocalStorage):
    """A storage that knows what was moved in it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.targets: list[str] = []

    async def move(self, source: str, target: str) -> None:
        self.targets.append(target)
        await super().move(source, target)


@both_ways
async def test_no_file_moves_to_a_prefix_that_is_not_the_jobs(
    task: Task, storage: LocalStorage, tmp_path: Path, collection_id: str
) -> None:
    await _stage(storage)
    moved, product = Moved(tmp_path), cog(blob_path="silver/ddh/d/v1/r1/cogs/scene.tif")
    result = await _register(task.on(moved), collection_id, product, blob_prefix="ddh/d/v1/r1")
    assert re.search("may not (write|hold) the prefix", str(result.error_message))
    assert moved.targets == []
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]


@both_ways
async def test_outputs_are_asked_for_again_when_the_item_is_written(
    task: Task, storage: LocalStorage, ask: psycopg.Connection[Any], tmp_path: Path, collection_id: str
) -> None:
    await _stage(storage)
    try:
        result = await _register(task.on(EndsJob(tmp_path, ask)), collection_id)
    finally:
        ask.execute("UPDATE dagapp.dag_jobs SET status = 'running', ended_at = NULL WHERE job_id = 'job-12345678'")
    assert "may not write" in str(result.error_message)
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]


async def test_a_lost_output_is_not_mistaken_for_what_lies_at_its_place(
    task: Task, storage: LocalStorage, database: Database, collection_id: str
) -> None:
    await storage.put(f"{FINAL}/cogs/scene.tif", b"what an earlier run made")
    result = await _register(task, collection_id)
    assert result.error_message is not None
    assert await _contents(storage) == {f"{FINAL}/cogs/scene.tif": b"what an earlier run made"}
    async with reading(database) as catalogue:
        assert await catalogue.collection(collection_id) is None


@both_ways
async def test_the_next_attempt_goes_on_after_one_that_was_killed_while_files_moved(
    task: Task, storage: LocalStorage, collection_id: str
) -> None:
    names = ["cogs/more.tif", "cogs/scene.tif"]
    await _stage(storage, *names)
    await storage.put(f"{FINAL}/cogs/more.tif", b"of an earlier run")
    await _killed_after_a_file(storage, collection_id, names)
    assert await _blobs(storage) == [
        "silver/12345678/before/cogs/more.tif",
        f"{STAGED}/cogs/scene.tif",
        "silver/12345678/promoted.json",
        f"{FINAL}/cogs/more.tif",
    ]
    assert _output(await _register(task, collection_id, cog(files=names)))
    assert await _contents(storage) == {f"{FINAL}/{name}": f"content of {name}".encode() for name in names}


@both_ways
async def test_what_cannot_be_tidied_up_is_no_failure_and_the_next_attempt_does_it(
    task: Task, storage: LocalStorage, collection_id: str, tmp_path: Path
) -> None:
    await _stage(storage)
    await storage.put(f"{FINAL}/cogs/orphan.tif", b"of an earlier run")
    first = _output(await _register(task.on(Undeletable(tmp_path)), collection_id))
    assert await _blobs(storage) == [
        "silver/12345678/promoted.json",
        f"{FINAL}/cogs/orphan.tif",
        f"{FINAL}/cogs/scene.tif",
    ]
    assert _output(await _register(task, collection_id)) == first
    assert await _blobs(storage) == [f"{FINAL}/cogs/scene.tif"]


async def test_without_a_catalogue_nothing_is_promoted(
    storage: LocalStorage, shared_catalogue: TestDatabase, collection_id: str
) -> None:
    await _stage(storage)
    closed = Database(shared_catalogue.url(DatabaseRole.WORKER), DatabaseRole.WORKER)
    for database in (closed, None):
        result = await _register(Task(storage, database), collection_id)
        assert result.error_message is not None
        assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]


async def test_a_cancelled_job_is_not_registered(task: Task, storage: LocalStorage, collection_id: str) -> None:
    await _stage(storage)
    given = item_inputs(stac_collection_id=collection_id)
    result = await stac_register_item(task("raster.stac_register_item", cancelled=True, **given))
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert await _blobs(storage) == [f"{STAGED}/cogs/scene.tif"]


async def test_a_prefix_that_leads_elsewhere_is_refused_for_good(task: Task, collection_id: str) -> None:
    result = await _register(task, collection_id, blob_prefix="../bronze")
    assert not result.retryable


@both_ways
async def test_a_collection_is_made_once_and_described_anew(task: Task, database: Database, collection_id: str) -> None:
    async def ensure(**text: Any) -> Any:
        given = {"stac_collection_id": collection_id, "platform_id": "ddh", **text}
        return _output(await stac_ensure_collection(task("raster.stac_ensure_collection", **given)))["created"]

    assert [await ensure(title="First", description="Of it."), await ensure(title="Second"), await ensure()] == [
        True,
        False,
        False,
    ]
    async with reading(database) as catalogue:
        found = await catalogue.collection(collection_id)
    assert found is not None
    assert_valid(found)
    assert (found["title"], found["description"], found["license"]) == ("Second", "Of it.", "other")


@both_ways
async def test_tiles_replace_those_of_before_and_keep_their_date(
    task: Task, database: Database, collection_id: str
) -> None:
    async def register(*tiles: Any) -> dict[str, Any]:
        given = tiles_inputs([list(tiles)], stac_collection_id=collection_id, source=UNDATED)
        return _output(await stac_register_items(task("raster.stac_register_items", **given)))

    assert (await register(tile(0, 0), tile(1, 0), tile(0, 1)))["item_count"] == 3
    before, _ = await _found(database, collection_id, "scene-v1-scene_tile_0_0")
    output = await register(tile(0, 0), tile(1, 0))
    after, collection = await _found(database, collection_id, "scene-v1-scene_tile_0_0")
    assert before["properties"]["datetime"] == after["properties"]["datetime"]
    assert output["bbox"] == collection["extent"]["spatial"]["bbox"][0] == [-62.0, 17.7, -61.2, 18.0]
    assert_valid(after)
    assert_valid(collection)
    async with reading(database) as catalogue:
        assert await catalogue.item(collection_id, "scene-v1-scene_tile_0_1") is None
    assert [(each["done"], each["total"]) for each in task.progress[:3]] == [(0, 3), (0, 3), (3, 3)]
