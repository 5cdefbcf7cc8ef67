"""`publish.reverse` and `publish.unpublish`: what was made for the public goes, all of it and nothing else."""

import asyncio
from typing import Any

import pytest
from tests.integration.handlers.publish.publisher import Publisher, output
from tests.unit.handlers.stac.outputs import tile, tiles_inputs

from graticule.core.errors import Unavailable
from graticule.storage.local import LocalStorage


def removed(blobs: int, tables: int, items: int) -> dict[str, Any]:
    return {"removed": {"blobs": blobs, "tables": tables, "items": items}, "remaining": 0}


async def test_a_reversal_removes_all_copies_of_a_version_and_no_others(publisher: Publisher) -> None:
    first, second = await publisher.made_mosaic(), await publisher.made(ordinal=1)
    tenth = await publisher.made(ordinal=10)
    for ordinal, made in enumerate((first, second)):
        output(await publisher.export(made, ordinal=ordinal))
    output(await publisher.export(tenth, ordinal=10))
    await publisher.storage.put(f"external/{publisher.prefix()}/r7/left.tif", b"of an export that was cancelled")
    assert output(await publisher.reverse()) == removed(6, 0, 1)
    assert list(await publisher.blobs()) == ["v1/r1/cogs/scene.tif", "v10/r1/cogs/scene.tif"]
    assert publisher.items(publisher.public) == sorted([second["stac_item_id"], tenth["stac_item_id"]])
    assert output(await publisher.reverse(ordinal=1)) == removed(1, 0, 1)
    assert await publisher.collection_of(publisher.public) is not None
    assert output(await publisher.reverse(ordinal=10)) == removed(1, 0, 1)
    assert await publisher.collection_of(publisher.public) is None, "an empty collection goes, too"
    assert len(publisher.items(publisher.collection)) == 3
    assert len(await publisher.blobs("silver")) == 7


async def test_a_reversal_of_nothing_is_a_success(publisher: Publisher) -> None:
    made = await publisher.made()
    assert output(await publisher.reverse()) == removed(0, 0, 0)
    output(await publisher.export(made))
    assert output(await publisher.reverse()) == removed(1, 0, 1)
    assert output(await publisher.reverse(external_blob_path=None, copies=[])) == removed(0, 0, 0)


async def test_tables_are_found_by_whose_they_are(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v"
    for ordinal in (0, 1):
        publisher.made_table(f"{name}{ordinal}", (1, "a"))
        output(await publisher.export({"table_name": f"{name}{ordinal}"}, ordinal=ordinal))
    assert output(await publisher.reverse()) == removed(0, 1, 0)
    assert publisher.tables() == [f"{name}1"]
    assert publisher.tables("geo") == [f"{name}0", f"{name}1"]


async def test_copies_that_another_workflow_has_put_elsewhere_go_too(publisher: Publisher) -> None:
    strays = [f"external/shared/{publisher.asset_id}.tif", f"silver/shared/{publisher.asset_id}.tif"]
    for path in strays:
        await publisher.storage.put(path, b"stray")
    copies = [{"external_blob_path": path, "export_run_id": "x"} for path in strays]
    assert output(await publisher.reverse(copies=copies)) == removed(1, 0, 0)
    assert [await publisher.storage.exists(path) for path in strays] == [False, True]


async def test_what_remains_is_named_and_tried_again(publisher: Publisher) -> None:
    class Sticky(LocalStorage):
        async def delete(self, path: str) -> None:
            """Say that it is done."""

        async def delete_below(self, prefix: str) -> int:
            return 0

    made = await publisher.made()
    output(await publisher.export(made))
    publisher.storage = Sticky(publisher.folder)
    job_id = publisher.job("reversal")
    result = await publisher.reverse(job_id=job_id)
    assert result.retryable
    assert "1 copies are still there" in str(result.error_message)
    assert "scene.tif" in str(result.error_message)
    publisher.storage = LocalStorage(publisher.folder)
    assert output(await publisher.reverse(job_id=job_id)) == removed(1, 0, 0)


@pytest.mark.parametrize("fails_after", [0, 1, 2])
async def test_whatever_fails_the_next_attempt_goes_on(publisher: Publisher, fails_after: int) -> None:
    class Failing(LocalStorage):
        left = fails_after

        async def delete(self, path: str) -> None:
            if self.left == 0:
                raise Unavailable("the disk is gone")
            self.left -= 1
            await super().delete(path)

    output(await publisher.export(await publisher.made_mosaic()))
    publisher.storage, job_id = Failing(publisher.folder), publisher.job("reversal")
    failed = await publisher.reverse(job_id=job_id)
    assert (failed.error_message, failed.retryable) == ("the disk is gone", True)
    assert len(publisher.items(publisher.public)) == 1, "rows go when the blobs are gone"
    publisher.storage = LocalStorage(publisher.folder)
    assert output(await publisher.reverse(job_id=job_id)) == removed(5 - fails_after, 0, 1)


async def test_a_reversal_that_a_later_export_took_the_place_of_removes_nothing(publisher: Publisher) -> None:
    made = await publisher.made()
    output(await publisher.export(made))
    reversal = publisher.job("reversal")
    output(await publisher.export(made))
    result = await publisher.reverse(job_id=reversal)
    assert "a later job took its place" in str(result.error_message)
    assert len(await publisher.blobs()) == len(publisher.items(publisher.public)) == 1


async def test_a_reversal_waits_for_the_export_that_it_ends_and_removes_what_that_made(publisher: Publisher) -> None:
    made, export = await publisher.made(b"x" * (32 << 20)), publisher.job("export")
    begun, reversing = asyncio.Event(), asyncio.Event()

    def told(_: dict[str, Any]) -> None:
        begun.set()
        if reversing.is_set():
            publisher.signals.cancelled = True

    publisher.on_progress = told
    exporting = asyncio.create_task(publisher.export(made, job_id=export))
    await begun.wait()
    publisher.cancel(export)
    other = Publisher(publisher.admin, publisher.database, publisher.folder)
    other.asset_id = publisher.asset_id
    reversal = asyncio.create_task(other.reverse())
    reversing.set()
    ended, done = await asyncio.gather(exporting, reversal)
    assert not ended.retryable
    assert output(done)["remaining"] == 0
    assert (await publisher.blobs(), publisher.items(publisher.public)) == ({}, [])


async def test_an_export_that_did_not_hear_of_its_end_finds_out_before_it_catalogues(publisher: Publisher) -> None:
    """Its worker is cut off from notifications, and the reversal comes before it has copied all."""
    made, export = await publisher.made(b"x" * (4 << 20)), publisher.job("export")
    publisher.on_progress = lambda _: publisher.cancel(export)
    result = await publisher.export(made, job_id=export)
    assert result.error_message == "The job must not go on: it was cancelled."
    assert publisher.items(publisher.public) == []
    output(await publisher.reverse())
    assert await publisher.blobs() == {}


async def test_unpublish_removes_copies_and_entries_of_the_versions_that_it_names(publisher: Publisher) -> None:
    for ordinal in (0, 1, 2):
        output(await publisher.export(await publisher.made(ordinal=ordinal), ordinal=ordinal))
    await publisher.made(b"two", ordinal=1, revision=2)
    table = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(table, (1, "a"))
    output(await publisher.export({"table_name": table}))  # of the first version, which had a raster before
    assert output(await publisher.unpublish(0, 1)) == removed(1, 1, 4)
    assert list(await publisher.blobs()) == ["v2/r1/cogs/scene.tif"], "it was revived meanwhile"
    assert len(publisher.items(publisher.collection)) == len(publisher.items(publisher.public)) == 1
    assert len(await publisher.blobs("silver")) == 4, "the data stay"
    assert publisher.tables("geo") == [table]
    assert output(await publisher.unpublish(0, 1)) == removed(0, 0, 0)
    assert output(await publisher.unpublish(2)) == removed(1, 0, 2)
    assert await publisher.collection_of(publisher.collection) is None
    assert await publisher.collection_of(publisher.public) is None


async def test_unpublish_takes_the_items_of_tiles_along(publisher: Publisher) -> None:
    made = await publisher.made_mosaic()
    tiles = f"{made['stac_item_id']}-tiles"
    version = {"asset_id": publisher.asset_id, "version_ordinal": 0, "stac_item_id": made["stac_item_id"]}
    given = tiles_inputs([tile(0, 0), tile(1, 0)], stac_collection_id=tiles, **version)
    job_id = publisher.job("process", **made)
    output(await publisher.run("raster.stac_register_items", job_id, **given))
    versions = [{"version_ordinal": 0, "version_prefix": publisher.prefix(), **made}]
    done = await publisher.run(
        "publish.unpublish",
        publisher.job("unpublish", versions=versions),
        asset_id=publisher.asset_id,
        versions=versions,
    )
    assert output(done) == removed(0, 0, 3)
    assert await publisher.collection_of(tiles) is None


async def test_a_cancelled_removal_stops(publisher: Publisher) -> None:
    output(await publisher.export(await publisher.made()))
    publisher.signals.cancelled = True
    result = await publisher.reverse()
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert len(await publisher.blobs()) == 1
