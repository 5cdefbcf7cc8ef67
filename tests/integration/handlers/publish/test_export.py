"""`publish.export`: what the public reads is whole, is what was approved, and tells nothing internal."""

import asyncio
import hashlib
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
from psycopg import DatabaseError, sql
from psycopg.errors import InsufficientPrivilege
from psycopg.types.json import Jsonb
from tests.integration.handlers.publish.publisher import Publisher, output
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.errors import Unavailable
from graticule.core.models.engine import JobPurpose
from graticule.repositories.overviews import overview_name
from graticule.repositories.publications import Deed, holding
from graticule.services.asset_outcomes import ExternalOutputs
from graticule.storage.local import LocalStorage
from graticule.storage.protocol import Data

TABLE_TEXT = "SELECT fid, name, public.ST_AsText(geom) FROM {}.{} ORDER BY fid"


class Counting(LocalStorage):
    """A storage that counts what is written to the public's zone, and may fail there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.written: list[str] = []
        self.begun = 0
        self.fails_at: int | None = None

    async def put(self, path: str, data: Data, **conditions: Any) -> None:
        is_copy = path.startswith("external/")
        self.begun += is_copy
        if is_copy and self.fails_at is not None and self.begun > self.fails_at:
            raise Unavailable("the disk is gone")
        await super().put(path, data, **conditions)
        if is_copy:
            self.written.append(path.rpartition("/")[2])


def at(revision: int = 1, ordinal: int = 0) -> str:
    return f"v{ordinal}/r{revision}"


async def test_a_raster_is_copied_and_catalogued_for_the_public(publisher: Publisher) -> None:
    made = await publisher.made(b"pixels")
    job_id = publisher.job("export")
    done = output(await publisher.export(made, job_id=job_id))
    path = f"external/{publisher.prefix()}/r1/cogs/scene.tif"
    assert done == {
        "external_blob_path": path,
        "export_run_id": job_id,
        "files": 1,
        "size_bytes": 6,
        "table_name": None,
        "stac_item_id": made["stac_item_id"],
        "stac_collection_id": publisher.public,
    }
    assert ExternalOutputs.model_validate(done).external_blob_path == path
    assert await publisher.blobs() == {"v0/r1/cogs/scene.tif": b"pixels"}
    assert await publisher.blobs("silver") == {"v0/r1/cogs/scene.tif": b"pixels"}, "the original stays"
    assert publisher.told[-1]["percent"] == 100


async def test_an_item_tells_the_public_nothing_internal(publisher: Publisher) -> None:
    made = await publisher.made(b"pixels")
    output(await publisher.export(made))
    original = await publisher.item(made["stac_item_id"], publisher.collection)
    item, collection = await publisher.item(made["stac_item_id"]), await publisher.collection_of(publisher.public)
    assert original is not None
    assert item is not None
    assert collection is not None
    assert_valid(item)
    assert_valid(collection)
    text = orjson.dumps([item, collection]).decode()
    assert [word for word in ("bronze", "silver", "d-1", "lineage", "software", "ef" * 32) if word in text] == []
    assert "bronze" in orjson.dumps(original).decode(), "the original tells it"
    properties = item["properties"]
    assert {name for name in properties if name.startswith("platform:")} == {
        *("platform:asset_id", "platform:version_ordinal", "platform:version_id", "platform:request_id"),
        "platform:revision",
    }
    kept = ("title", "datetime", "proj:code", "proj:shape", "proj:transform")
    assert {name: properties[name] for name in kept} == {name: original["properties"][name] for name in kept}
    asset, before = item["assets"]["data"], original["assets"]["data"]
    same = ("type", "roles", "bands", "raster:bands", "file:size", "file:checksum")
    assert {name: asset[name] for name in same} == {name: before[name] for name in same}
    assert asset["href"] == f"external/{publisher.prefix()}/r1/cogs/scene.tif"
    assert [link["rel"] for link in item["links"]] == ["collection", "tilejson"]
    assert item["links"][0]["href"] == f"/stac/collections/{publisher.public}"


async def test_a_collection_covers_only_what_is_public(publisher: Publisher) -> None:
    first = await publisher.made()
    await publisher.made(ordinal=1)
    output(await publisher.export(first))
    internal, public = [await publisher.collection_of(each) for each in (publisher.collection, publisher.public)]
    assert internal is not None
    assert public is not None
    assert publisher.items(publisher.public) == [first["stac_item_id"]]
    told = ("title", "description", "license", "keywords")
    assert {name: public[name] for name in told} == {name: internal[name] for name in told}
    assert public["extent"]["spatial"]["bbox"] == [[-62.0, 15.0, -58.0, 18.0]]


async def test_a_mosaic_names_its_copies(publisher: Publisher) -> None:
    made = await publisher.made_mosaic()
    done = output(await publisher.export(made))
    blobs = await publisher.blobs()
    assert (done["files"], len(blobs)) == (5, 5)
    text = blobs["v0/r1/mosaics/scene.json"]
    tiles = orjson.loads(text)["tiles"]
    assert tiles == {"0320": [f"external/{publisher.prefix()}/r1/cogs/scene_tile_{n}_0.tif" for n in range(3)]}
    assert orjson.loads(blobs["v0/r1/schemes/scene.geojson"]) == {
        "type": "FeatureCollection",
        "name": "scene",
        "tile_size": 512,
        "features": [],
    }
    assert b"silver" not in b"".join(blobs.values())
    item = await publisher.item(made["stac_item_id"])
    assert item is not None
    asset = item["assets"]["mosaic"]
    assert (asset["href"], asset["file:size"]) == (done["external_blob_path"], len(text))
    assert asset["file:checksum"] == f"1220{hashlib.sha256(text).hexdigest()}"
    assert item["assets"]["scheme"]["href"].startswith("external/")


async def test_a_mosaic_that_names_the_tiles_of_others_is_refused(publisher: Publisher) -> None:
    made = await publisher.made_mosaic()
    path = f"silver/{publisher.prefix()}/r1/mosaics/scene.json"
    text = orjson.dumps({"tiles": {"0": ["silver/other/secret.tif"]}})
    await publisher.storage.put(path, text)
    result = await publisher.export({**made, "stac_item_id": None})
    assert "tile 'silver/other/secret.tif' of the mosaic is missing" in str(result.error_message)
    assert not result.retryable


async def test_a_second_export_changes_nothing(publisher: Publisher) -> None:
    made = await publisher.made_mosaic()
    first = output(await publisher.export(made))
    before = (await publisher.blobs(), await publisher.item(made["stac_item_id"]))
    second = output(await publisher.export(made))
    assert {**second, "export_run_id": None} == {**first, "export_run_id": None}
    assert (await publisher.blobs(), await publisher.item(made["stac_item_id"])) == before


async def test_a_copy_that_is_there_is_not_written_again(publisher: Publisher) -> None:
    publisher.storage = storage = Counting(publisher.folder)
    made = await publisher.made(b"pixels")
    output(await publisher.export(made))
    output(await publisher.export(made))
    assert storage.written == ["scene.tif"]
    await storage.put(f"external/{publisher.prefix()}/r1/cogs/scene.tif", b"pixelz")
    output(await publisher.export(made))
    assert await publisher.blobs() == {"v0/r1/cogs/scene.tif": b"pixels"}


async def test_a_new_revision_takes_the_place_of_the_one_before(publisher: Publisher) -> None:
    first = await publisher.made(b"one")
    output(await publisher.export(first))
    second = await publisher.made(b"two", revision=2)
    other = await publisher.made(b"other", ordinal=1)
    output(await publisher.export(other, ordinal=1))
    stray = f"external/shared/{publisher.asset_id}.tif"
    await publisher.storage.put(stray, b"of a workflow of one's own")
    paths = (f"external/{publisher.prefix()}/r1/cogs/scene.tif", stray)
    copies = [{"external_blob_path": path, "export_run_id": "x"} for path in paths]
    output(await publisher.export(second, revision=2, copies=copies))
    assert await publisher.blobs() == {"v0/r2/cogs/scene.tif": b"two", "v1/r1/cogs/scene.tif": b"other"}
    assert publisher.items(publisher.public) == sorted([second["stac_item_id"], other["stac_item_id"]])
    assert len(publisher.items(publisher.collection)) == 3, "the originals stay"
    assert not await publisher.storage.exists(stray)


async def test_what_the_public_reads_stays_until_the_next_export_or_reversal(publisher: Publisher) -> None:
    made = {number: await publisher.made(b"%d" % number, revision=number) for number in (1, 2, 3)}

    async def there() -> list[list[str]]:
        return [sorted(await publisher.blobs()), publisher.items(publisher.public)]

    def of(*revisions: int) -> list[list[str]]:
        blobs = [f"v0/r{number}/cogs/scene.tif" for number in revisions]
        return [blobs, [str(made[number]["stac_item_id"]) for number in revisions]]

    output(await publisher.export(made[1]))
    output(await publisher.export(made[2], revision=2, exported_revision=1))
    assert await there() == of(1, 2)
    output(await publisher.export(made[3], revision=3, exported_revision=2))
    assert await there() == of(2, 3)
    output(await publisher.export(made[3], revision=3, exported_revision=3))
    assert await there() == of(3), "a copy that is made again has no other beside it"
    output(await publisher.export(made[1], exported_revision=3))
    assert await there() == of(1, 3)
    output(await publisher.reverse())
    assert await there() == of()


async def test_the_table_that_the_public_reads_stays_likewise(publisher: Publisher) -> None:
    names = [f"roads_{publisher.asset_id[:8]}_v0_r{number}" for number in (1, 2, 11)]
    for name in names:
        publisher.made_table(name, (1, "a"))
    output(await publisher.export({"table_name": names[0]}))
    output(await publisher.export({"table_name": names[2]}, revision=11, exported_revision=1))
    assert publisher.tables() == [names[0], names[2]]
    output(await publisher.export({"table_name": names[1]}, revision=2, exported_revision=1))
    assert publisher.tables() == [names[0], names[1]], "1 is not 11"
    output(await publisher.reverse())
    assert publisher.tables() == []


async def test_a_copy_elsewhere_stays_only_while_the_public_reads_it(publisher: Publisher) -> None:
    strays = [f"external/shared/{publisher.asset_id}_{number}.tif" for number in (1, 2)]
    for path in strays:
        await publisher.storage.put(path, b"of a workflow of one's own")
    told: dict[str, Any] = {
        "copies": [{"external_blob_path": path} for path in strays],
        "external_blob_path": strays[1],
    }
    made = await publisher.made(b"three", revision=3)
    output(await publisher.export(made, revision=3, exported_revision=2, **told))
    assert [await publisher.storage.exists(path) for path in strays] == [False, True]
    output(await publisher.export(made, revision=3, **told))
    assert [await publisher.storage.exists(path) for path in strays] == [False, False], "it was withdrawn"


async def test_a_blob_that_is_not_what_the_catalogue_says_is_not_published(publisher: Publisher) -> None:
    made = await publisher.made(b"pixels")
    await publisher.storage.put(made["blob_path"], b"pixelz")
    result = await publisher.export(made)
    assert "was changed" in str(result.error_message)
    assert (await publisher.blobs(), publisher.items(publisher.public)) == ({}, [])


async def test_item_that_was_changed_is_not_published(publisher: Publisher) -> None:
    made = await publisher.made(b"pixels")
    publisher.admin.execute(
        "UPDATE dagapp.asset_versions SET processing_state = 'completed', blob_path = %s, stac_item_id = %s,"
        " stac_collection_id = %s WHERE asset_id = %s",
        (made["blob_path"], made["stac_item_id"], publisher.collection, publisher.asset_id),
    )
    change = "UPDATE pgstac.items SET content = content || %s WHERE collection = %s"
    publisher.admin.execute(change, (Jsonb({"more": 1}), publisher.collection))
    result = await publisher.export(made)
    assert "was changed after its job had registered it" in str(result.error_message)
    assert (await publisher.blobs(), publisher.items(publisher.public)) == ({}, [])
    undo = "UPDATE pgstac.items SET content = content - 'more' WHERE collection = %s"
    publisher.admin.execute(undo, (publisher.collection,))
    output(await publisher.export(made))


class ChangesLate(LocalStorage):
    """A storage in which a tile of a mosaic is written again once its copy is made."""

    async def put(self, path: str, data: Data, **conditions: Any) -> None:
        await super().put(path, data, **conditions)
        if path.startswith("external/") and path.endswith("/mosaics/scene.json"):
            tile = path.replace("external/", "silver/").replace("mosaics/scene.json", "cogs/scene_tile_0_0.tif")
            await super().put(tile, b"of another")


async def test_a_tile_that_changes_while_the_others_are_copied_is_not_published(publisher: Publisher) -> None:
    made = await publisher.made_mosaic()
    publisher.storage = ChangesLate(publisher.folder)
    result = await publisher.export(made)
    assert "tiles was changed" in str(result.error_message)
    assert publisher.items(publisher.public) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"blob_path": "silver/elsewhere/cog.tif"}, "does not lie below"),
        ({"blob_path": None}, "neither a blob nor a table"),
        ({"stac_item_id": "another"}, "is not in the catalogue"),
    ],
)
async def test_what_cannot_be_exported_is_refused_for_good(
    publisher: Publisher, change: dict[str, Any], words: str
) -> None:
    made = await publisher.made()
    result = await publisher.export({**made, **change})
    assert words in str(result.error_message)
    assert not result.retryable
    assert await publisher.blobs() == {}


async def test_a_table_is_copied_with_all_that_it_is(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"), (7, "b"))
    done = output(await publisher.export({"table_name": name}))
    assert (done["external_blob_path"], done["files"], done["table_name"]) == (None, 0, name)
    assert done["size_bytes"] > 0
    rows = [publisher.admin.execute(TABLE_TEXT.format(zone, name).encode()).fetchall() for zone in ("geo", "external")]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2
    described = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull, col_description(attrelid, attnum)"
        " FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )
    columns = [publisher.admin.execute(described, (f"{zone}.{name}",)).fetchall() for zone in ("geo", "external")]
    assert columns[0] == columns[1]
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'external' AND tablename = %s ORDER BY 1"
    found = [row[0] for row in publisher.admin.execute(indexes, (name,))]
    assert ["USING gist (geom)" in found[0], "UNIQUE" in found[1], "(fid)" in found[1]] == [True] * 3
    state = "SELECT obj_description(%(t)s::regclass), reltuples FROM pg_class WHERE oid = %(t)s::regclass"
    comment, analyzed = publisher.admin.execute(state, {"t": f"external.{name}"}).fetchone() or ("", 0)
    assert comment.startswith(f"Public copy of asset {publisher.asset_id}, version 0, revision 1, edition ")
    assert "job" not in comment
    assert analyzed == 2


@pytest.mark.parametrize(
    "passed",
    [
        {"revision": 2, "blob_path": "silver/{prefix}/r2/cogs/scene.tif", "stac_item_id": None},
        {"blob_path": "silver/{prefix}/r1/cogs/other.tif"},
        {"stac_item_id": None},
        {"stac_item_id": "roads-v1"},
        {"stac_collection_id": "ddh-roads"},
    ],
)
async def test_a_workflow_cannot_publish_other_outputs_than_were_approved(
    publisher: Publisher, passed: dict[str, Any]
) -> None:
    first = await publisher.made(b"approved")
    await publisher.made(b"pending", revision=2)
    version = {"asset_id": publisher.asset_id, "version_ordinal": 0, "version_prefix": publisher.prefix()}
    job_id = publisher.job("export", 0, **version, revision=1, data_type="raster", **first)
    changed = {name: value and str(value).format(prefix=publisher.prefix()) for name, value in passed.items()}
    result = await publisher.export({**first, **changed}, job_id=job_id)
    assert "are not those that were approved" in str(result.error_message)
    assert await publisher.blobs() == {}
    assert publisher.items(publisher.public) == []


async def test_prepared_tiles_are_copied_and_dropped_with_their_table(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    tiles = overview_name(name)
    publisher.made_table(name, (1, "a"))
    publisher.admin.execute(
        f"""SET ROLE graticule_worker;
        CREATE TABLE geo.{tiles} (z smallint, x integer, y integer, mvt bytea, shown bigint, merged bigint);
        INSERT INTO geo.{tiles} VALUES (0, 0, 0, 'tile', 1, 2);
        COMMENT ON TABLE geo.{tiles} IS 'Tiles. Made by job x: a table.';
        RESET ROLE;
        SELECT dagapp.take_table('geo', '{tiles}')""".encode()
    )
    output(await publisher.export({"table_name": name}))
    copied = "SELECT z, x, y, mvt, shown, merged FROM external.{}"
    assert publisher.admin.execute(copied.format(tiles).encode()).fetchall() == [(0, 0, 0, b"tile", 1, 2)]
    state = "SELECT obj_description(%s::regclass), has_table_privilege('graticule_serve_external', %s, 'SELECT')"
    (of_tiles, is_served), (of_table, _) = (
        publisher.admin.execute(state, (f"external.{table}", f"external.{table}")).fetchall()[0]
        for table in (tiles, name)
    )
    assert (of_tiles, is_served) == (f"Tiles. {of_table}", True)
    output(await publisher.unpublish(0))
    left = "SELECT to_regclass(%s)"
    assert publisher.admin.execute(left, (f"external.{tiles}",)).fetchone() == (None,)


async def test_a_table_is_published_with_its_item_and_the_files_beside_it(publisher: Publisher) -> None:
    made = await publisher.made_features({"geoparquet": b"rows", "pmtiles": b"tiles"})
    done = output(await publisher.export(made))
    at = f"external/{publisher.prefix()}/r1"
    assert await publisher.blobs() == {
        "v0/r1/geoparquet/roads.geoparquet": b"rows",
        "v0/r1/pmtiles/roads.pmtiles": b"tiles",
    }
    assert (done["external_blob_path"], done["files"]) == (f"{at}/geoparquet/roads.geoparquet", 2)
    assert (done["stac_collection_id"], publisher.tables()) == (publisher.public, [made["table_name"]])
    item = await publisher.item(made["stac_item_id"])
    assert item is not None
    assert_valid(item)
    assert {key: asset["href"] for key, asset in item["assets"].items()} == {
        "geoparquet": f"{at}/geoparquet/roads.geoparquet",
        "pmtiles": f"{at}/pmtiles/roads.pmtiles",
    }
    assert item["properties"]["table:row_count"] == 3
    assert {link["rel"].rpartition("/")[2] for link in item["links"]} == {"collection", "items", "tilejson"}
    assert not any(word in orjson.dumps(item) for word in (b"bronze", b"silver", b"processing:", b"d-1"))
    output(await publisher.unpublish(0))
    assert (await publisher.blobs(), publisher.tables()) == ({}, [])
    assert (publisher.items(publisher.public), publisher.items(publisher.collection)) == ([], [])


async def test_a_table_whose_rows_have_changed_is_not_published(publisher: Publisher) -> None:
    outputs = await publisher.made_features({})
    table = sql.Identifier("geo", outputs["table_name"])
    found = publisher.admin.execute("SELECT dagapp.hash_table('geo', %s)", (outputs["table_name"],)).fetchone()
    comment = sql.Literal(f"Made by job x: a table. Content: {(found or ['none'])[0]}.")
    publisher.admin.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, comment))
    publisher.admin.execute(sql.SQL("UPDATE {} SET name = 'b'").format(table))
    refused = await publisher.export(outputs)
    assert "its rows are not those that were approved" in str(refused.error_message)
    assert not refused.retryable
    assert publisher.tables() == []
    publisher.admin.execute(sql.SQL("UPDATE {} SET name = 'a'").format(table))
    assert output(await publisher.export(outputs))["table_name"] == outputs["table_name"]


async def test_a_table_without_files_is_published_with_its_item(publisher: Publisher) -> None:
    made = await publisher.made_features({})
    done = output(await publisher.export(made))
    assert (done["external_blob_path"], done["files"], done["stac_item_id"]) == (None, 0, made["stac_item_id"])
    item = await publisher.item(made["stac_item_id"])
    assert item is not None
    assert_valid(item)
    features = f"/features/{publisher.asset_id}/collections/features/download.geojson?version=0"
    assert item["assets"] == {"features": {"href": features, "type": "application/geo+json", "roles": ["data"]}}


async def test_the_copy_is_read_by_the_service_of_the_public_and_changed_by_nobody(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"))
    output(await publisher.export({"table_name": name}))
    may = (
        "SELECT has_table_privilege(%s, %s, 'SELECT'), has_table_privilege(%s, %s, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    )
    for role, is_seen in (("serve_external", True), ("serve_internal", False), ("worker", False)):
        given = (f"graticule_{role}", f"external.{name}", f"graticule_{role}", f"external.{name}")
        assert publisher.admin.execute(may, given).fetchone() == (is_seen, False)
    with publisher.admin.transaction(force_rollback=True):
        publisher.admin.execute("SET LOCAL ROLE graticule_worker")
        with pytest.raises(InsufficientPrivilege):
            publisher.admin.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("external", name)))


async def test_only_a_job_that_withdraws_a_version_drops_its_copy(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"))
    output(await publisher.export({"table_name": name}))
    query = "SELECT dagapp.drop_copy(%s, %s)"
    for job_id in (publisher.job("process", table_name=name), publisher.job("reversal", 1), "none"):
        with pytest.raises(DatabaseError, match="no copy of the version that the job works on"):
            publisher.admin.execute(query, (job_id, name))
    publisher.admin.execute(query, (publisher.job("reversal"), name))
    assert publisher.tables() == []


async def test_a_table_is_copied_once_and_the_next_revision_takes_its_place(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"))
    output(await publisher.export({"table_name": name}))
    oid = "SELECT to_regclass(%s)::oid"
    first = publisher.admin.execute(oid, (f"external.{name}",)).fetchone()
    output(await publisher.export({"table_name": name}))
    assert publisher.admin.execute(oid, (f"external.{name}",)).fetchone() == first
    publisher.made_table(f"{name}_r2", (2, "b"))
    output(await publisher.export({"table_name": f"{name}_r2"}, revision=2))
    assert publisher.tables() == [f"{name}_r2"]
    assert len(publisher.tables("geo")) == 2


async def test_a_table_of_another_is_never_replaced(publisher: Publisher) -> None:
    name = f"roads_{publisher.asset_id[:8]}_v0"
    publisher.made_table(name, (1, "a"))
    publisher.admin.execute(sql.SQL("CREATE TABLE {} ()").format(sql.Identifier("external", name)))
    result = await publisher.export({"table_name": name})
    assert "not a copy of this version" in str(result.error_message)


@pytest.mark.parametrize("number", range(5))
async def test_whatever_fails_the_next_attempt_goes_on_from_there(publisher: Publisher, number: int) -> None:
    publisher.storage = storage = Counting(publisher.folder)
    made = await publisher.made_mosaic()
    job_id = publisher.job("export")
    storage.fails_at = number
    failed = await publisher.export(made, job_id=job_id)
    assert (failed.error_message, failed.retryable) == ("the disk is gone", True)
    assert publisher.items(publisher.public) == []
    storage.fails_at = None
    noted = publisher.saved[job_id].all[-1].data["copied"] if publisher.saved[job_id].all else {"count": 0}
    assert isinstance(noted, dict)
    output(await publisher.export(made, job_id=job_id))
    tiles = [f"scene_tile_{n}_0.tif" for n in range(3)]
    assert {*tiles} <= {*storage.written}
    assert {storage.written.count(name) for name in tiles[: int(str(noted["count"]))]} <= {1}, "none is copied twice"
    assert len(await publisher.blobs()) == 5


async def test_a_failure_of_the_catalogue_leaves_nothing_catalogued(publisher: Publisher) -> None:
    made = await publisher.made(b"pixels")
    job_id = publisher.job("export")
    publisher.admin.execute(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '08006' USING MESSAGE = 'broken'; END $$"
    )
    publisher.admin.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pgstac.collections INITIALLY DEFERRED FOR EACH ROW"
        f" WHEN (NEW.content ->> 'id' = '{publisher.public}') EXECUTE FUNCTION public.refuse()".encode()
    )
    try:
        failed = await publisher.export(made, job_id=job_id)
    finally:
        publisher.admin.execute("DROP FUNCTION public.refuse CASCADE")
    assert failed.retryable
    assert failed.error_message is not None
    assert await publisher.collection_of(publisher.public) is None
    output(await publisher.export(made, job_id=job_id))
    assert publisher.items(publisher.public) == [made["stac_item_id"]]


async def test_a_cancelled_export_stops_at_once_and_catalogues_nothing(publisher: Publisher) -> None:
    made = await publisher.made(b"x" * (8 << 20))

    def cancel(told: dict[str, Any]) -> None:
        if told["done"] >= 1 << 20:
            publisher.signals.cancelled = True

    publisher.on_progress = cancel
    result = await publisher.export(made)
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert (await publisher.blobs(), publisher.items(publisher.public)) == ({}, [])


async def test_a_worker_that_stops_hands_the_export_back_and_another_goes_on(publisher: Publisher) -> None:
    publisher.storage = storage = Counting(publisher.folder)
    made, job_id = await publisher.made_mosaic(tiles=12), publisher.job("export")

    def stop(_: dict[str, Any]) -> None:
        publisher.signals.shutdown_requested = len(storage.written) >= 6

    publisher.on_progress = stop
    assert (await publisher.export(made, job_id=job_id)).is_interrupted
    publisher.on_progress = publisher.told.append
    publisher.signals.shutdown_requested = False
    output(await publisher.export(made, job_id=job_id))
    assert len(storage.written) <= 14 + 4, "only what was under way is copied again"
    assert len(await publisher.blobs()) == 14


async def test_a_hard_end_leaves_no_thread_that_writes_on(publisher: Publisher) -> None:
    made = await publisher.made(b"x" * (16 << 20))
    begun = asyncio.Event()
    publisher.on_progress = lambda told: begun.set() if told["done"] else None
    task = asyncio.create_task(publisher.export(made))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await publisher.blobs() == {}
    assert [each.name for each in publisher.folder.rglob("*") if "external" in each.parts and each.is_file()] == []


async def test_an_export_that_is_ended_ends_after_its_threads(publisher: Publisher) -> None:
    """Else a file could come to its place when a reversal has been there."""
    written, may_end = asyncio.Event(), threading.Event()

    class Slow(LocalStorage):
        async def put(self, path: str, data: Data, **conditions: Any) -> None:
            await super().put(path, data, **conditions)
            if path.startswith("external/"):
                written.set()
                await asyncio.to_thread(may_end.wait)

    made = await publisher.made()
    publisher.storage = Slow(publisher.folder)
    task = asyncio.create_task(publisher.export(made))
    await written.wait()
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=0.3)
    may_end.set()
    assert not done
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_at_a_time_makes_or_removes_the_copies_of_a_version(publisher: Publisher) -> None:
    made, job_id = await publisher.made(), publisher.job("export")
    deed = Deed(job_id, JobPurpose.EXPORT, publisher.asset_id, 0)
    async with holding(publisher.database, deed, asyncio.sleep):
        task = asyncio.create_task(publisher.export(made, job_id=job_id))
        done, _ = await asyncio.wait([task], timeout=0.5)
        assert not done
        assert await publisher.blobs() == {}
        output(await publisher.export(await publisher.made(ordinal=1), ordinal=1))
    output(await task)


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        ("nothing", "not started by a decision"),
        ("cancelled", "it was cancelled"),
        ("reversal", "a later job took its place"),
        ("export", "a later job took its place"),
        ("unpublish", "a later job took its place"),
    ],
)
async def test_an_export_that_no_decision_asks_for_writes_nothing(
    publisher: Publisher, decided: str, words: str
) -> None:
    made = await publisher.made()
    job_id = publisher.job("reversal" if decided == "nothing" else "export")
    if decided == "cancelled":
        publisher.cancel(job_id)
    elif decided != "nothing":
        publisher.job(decided)
    result = await publisher.export(made, job_id=job_id)
    assert words in str(result.error_message)
    assert not result.retryable
    assert (await publisher.blobs(), publisher.items(publisher.public)) == ({}, [])
