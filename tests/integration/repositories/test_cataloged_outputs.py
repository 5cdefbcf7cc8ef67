"""The catalog takes the items and collections of a version from its jobs alone, each what it is for."""

from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.repositories.output_jobs import (
    COLLECTION,
    CURRENT,
    DIRECT,
    ENDED,
    EXPORT,
    INSERT_ITEM,
    ITEM,
    OUTDATED,
    REVERSAL,
    UNPUBLISH,
    at_work,
    outputs,
    pool,
    worker,
)

from graticule.core.ids import JobId

__all__ = ["outputs", "pool", "worker"]


def _write_item(worker: psycopg.Connection[Any], collection: str, named: JobId | None, item_id: str = ITEM) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
    worker.execute(INSERT_ITEM, [item_id, collection])
    worker.execute("DELETE FROM pgstac.items WHERE collection = %s AND id = %s", [collection, item_id])


def test_the_catalog_takes_items_of_an_asset_from_its_jobs(worker: psycopg.Connection[Any]) -> None:
    _write_item(worker, COLLECTION, CURRENT)


@pytest.mark.parametrize("item_id", ["roads-01234567-v1", "roads-01234567-v", "another"])
def test_a_job_of_one_version_writes_no_item_of_another(
    outputs: TestDatabase, worker: psycopg.Connection[Any], item_id: str
) -> None:
    refused = f"{CURRENT} may not write the item '{COLLECTION}/{item_id}'"
    with pytest.raises(psycopg.DatabaseError, match=refused):
        _write_item(worker, COLLECTION, CURRENT, item_id)
    worker.rollback()
    with psycopg.connect(outputs.url()) as admin:
        admin.execute(INSERT_ITEM, [item_id, COLLECTION])
        admin.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
        admin.execute("SET LOCAL ROLE graticule_worker")
        with pytest.raises(psycopg.DatabaseError, match=refused):
            admin.execute("DELETE FROM pgstac.items WHERE collection = %s AND id <> %s", [COLLECTION, ITEM])
        admin.rollback()


@pytest.mark.parametrize("named", [DIRECT, OUTDATED, EXPORT, ENDED])
def test_the_catalog_refuses_items_and_collections_of_an_asset_from_others(
    worker: psycopg.Connection[Any], named: JobId
) -> None:
    with pytest.raises(psycopg.DatabaseError, match=f"{named} may not write the collection '{COLLECTION}'"):
        _write_item(worker, COLLECTION, named)
    worker.rollback()
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    with pytest.raises(psycopg.DatabaseError, match="may not write the collection"):
        worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION])


PARTS_OF_OTHERS: dict[str, tuple[LiteralString, list[str]]] = {
    "the times of a partition": (
        "UPDATE pgstac.partition_stats SET partition_dtrange = '[1900-01-01Z,1900-01-02Z]' WHERE collection = %s",
        [COLLECTION],
    ),
    "a partition taken away": (
        "UPDATE pgstac.partition_stats SET collection = %s WHERE collection = %s",
        ["direct-c", COLLECTION],
    ),
    "a partition of another table": (
        "INSERT INTO pgstac.partition_stats (partition, collection) VALUES ('_items_none', %s)",
        [COLLECTION],
    ),
    "its name": (
        "UPDATE pgstac.collections SET content = jsonb_build_object('id', %s::text) WHERE id = %s",
        ["direct-d", COLLECTION],
    ),
}


@pytest.mark.parametrize("named", [DIRECT, OUTDATED])
@pytest.mark.parametrize("part", PARTS_OF_OTHERS)
def test_the_catalog_refuses_what_makes_up_a_collection_from_others(
    worker: psycopg.Connection[Any], part: str, named: JobId
) -> None:
    statement, given = PARTS_OF_OTHERS[part]
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    with pytest.raises(psycopg.DatabaseError, match="may not write the collection"):
        worker.execute(statement, given)


@pytest.mark.parametrize("named", [CURRENT, EXPORT, None])
def test_nobody_writes_what_the_items_of_a_collection_have_in_common_without_the_collection(
    worker: psycopg.Connection[Any], named: JobId | None
) -> None:
    """pgstac completes each item by it: a row there would change the items of all versions."""
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
    for role in ("graticule_worker", "graticule_orchestrator"):
        query: LiteralString = "SELECT has_table_privilege(%s, 'pgstac.base_items', 'INSERT, UPDATE, DELETE')"
        assert worker.execute(query, [role]).fetchone() == (False,)
    with pytest.raises(InsufficientPrivilege):
        worker.execute("INSERT INTO pgstac.base_items (collection, base_item) VALUES (%s, '{}')", [COLLECTION])


def test_a_job_edits_its_own_collection_with_all_that_makes_it_up(worker: psycopg.Connection[Any]) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
    worker.execute(
        'UPDATE pgstac.collections SET content = content || \'{"item_assets": {"cog": {}}}\' WHERE id = %s',
        [COLLECTION],
    )
    query: LiteralString = "SELECT count(*) FROM pgstac.base_items WHERE collection = %s"
    assert worker.execute(query, [COLLECTION]).fetchone() == (2,), "the first edit keeps what there was before, too"


def _delete_collection(worker: psycopg.Connection[Any], named: JobId, collection: str) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    worker.execute("SELECT dagapp.delete_collection(%s)", [collection])


@pytest.mark.parametrize("named", [DIRECT, OUTDATED, EXPORT, ENDED])
def test_only_a_job_of_its_asset_deletes_a_collection(worker: psycopg.Connection[Any], named: JobId) -> None:
    with pytest.raises(psycopg.DatabaseError, match=f"{named} may not write the collection '{COLLECTION}'"):
        _delete_collection(worker, named, COLLECTION)
    worker.rollback()
    with pytest.raises(InsufficientPrivilege):
        worker.execute("SELECT pgstac.delete_collection(%s)", [COLLECTION])


def test_a_collection_is_deleted_when_it_is_empty(worker: psycopg.Connection[Any]) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
    worker.execute(INSERT_ITEM, [ITEM, COLLECTION])
    with pytest.raises(psycopg.DatabaseError, match="still has items"), worker.transaction():
        _delete_collection(worker, UNPUBLISH, COLLECTION)
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [UNPUBLISH])
    worker.execute("DELETE FROM pgstac.items WHERE collection = %s", [COLLECTION])
    _delete_collection(worker, UNPUBLISH, COLLECTION)
    query: LiteralString = "SELECT count(*) FROM pgstac.collections WHERE id = %s"
    assert worker.execute(query, [COLLECTION]).fetchone() == (0,)


def test_a_process_of_an_older_release_writes_while_the_job_of_its_version_is_at_work(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    with at_work(outputs, CURRENT):
        _write_item(worker, COLLECTION, None)
        _write_item(worker, COLLECTION, None, f"{ITEM}-tile-1")
        worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION])
        with pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{COLLECTION}/roads-01234567-v1'"):
            _write_item(worker, COLLECTION, None, "roads-01234567-v1")
        worker.rollback()
    for jobs in ([], [OUTDATED]):
        with at_work(outputs, *jobs):
            with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"):
                _write_item(worker, COLLECTION, None)
            worker.rollback()
            _write_item(worker, "direct-c", None)
            worker.rollback()


def test_a_process_of_an_older_release_exports_and_changes_nothing_of_what_was_approved(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    public = f"{COLLECTION}-public"
    with at_work(outputs, EXPORT):
        worker.execute("SELECT pgstac.upsert_collection(%s)", [Jsonb({"id": public})])
        worker.execute(
            "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')", [public]
        )
        _write_item(worker, public, None)
        worker.execute("SELECT pgstac.upsert_collection(%s)", [Jsonb({"id": public, "title": "Roads"})])
        for refused in (
            lambda: _write_item(worker, COLLECTION, None),
            lambda: worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION]),
        ):
            with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"), worker.transaction():
                refused()
        worker.rollback()


def test_a_worker_cannot_write_in_the_name_of_a_decision(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    with at_work(outputs):
        worker.execute("SELECT set_config('graticule.asset_id', %s, true)", [rows.ASSET])
        with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"):
            _write_item(worker, COLLECTION, None)


@pytest.mark.parametrize("named", [EXPORT, REVERSAL, None])
@pytest.mark.parametrize("item_id", ["roads-01234567-v1", "roads-01234567-v00", "another"])
def test_the_copy_of_one_version_is_no_reason_to_touch_another(
    outputs: TestDatabase, worker: psycopg.Connection[Any], item_id: str, named: JobId | None
) -> None:
    public = f"{COLLECTION}-public"
    with at_work(outputs, EXPORT, REVERSAL) as admin, admin.transaction(force_rollback=True):
        admin.execute("SET LOCAL search_path = pgstac, public")
        admin.execute("SELECT pgstac.create_collection(%s)", [Jsonb({"id": public})])
        admin.execute(
            "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')", [public]
        )
        for name in (item_id, ITEM, f"{ITEM}-r2"):
            admin.execute(INSERT_ITEM, [name, public])
        admin.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
        admin.execute("SET LOCAL ROLE graticule_worker")
        refused = pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{public}/{item_id}")
        with refused, admin.transaction():
            admin.execute("DELETE FROM pgstac.items WHERE collection = %s", [public])
        with refused, admin.transaction():
            admin.execute(INSERT_ITEM, [f"{item_id}-x", public])
        own: LiteralString = "DELETE FROM pgstac.items WHERE collection = %s AND id ~ %s"
        assert admin.execute(own, [public, f"^{ITEM}(-r2)?$"]).rowcount == 2


def test_a_reversal_writes_no_item(outputs: TestDatabase, worker: psycopg.Connection[Any]) -> None:
    public = f"{COLLECTION}-public"
    with at_work(outputs, REVERSAL) as admin, admin.transaction(force_rollback=True):
        admin.execute("SET LOCAL search_path = pgstac, public")
        admin.execute("SELECT pgstac.create_collection(%s)", [Jsonb({"id": public})])
        admin.execute(
            "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')", [public]
        )
        admin.execute("SELECT set_config('graticule.job_id', %s, true)", [REVERSAL])
        admin.execute("SET LOCAL ROLE graticule_worker")
        with pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{public}/{ITEM}'"):
            admin.execute(INSERT_ITEM, [ITEM, public])


@pytest.mark.parametrize("named", [UNPUBLISH, None])
def test_a_job_that_withdraws_deletes_items_and_writes_none(
    outputs: TestDatabase, worker: psycopg.Connection[Any], named: JobId | None
) -> None:
    with at_work(outputs, UNPUBLISH):
        with pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{COLLECTION}/{ITEM}'"):
            _write_item(worker, COLLECTION, named)
        worker.rollback()
        with psycopg.connect(outputs.url()) as admin:
            admin.execute(INSERT_ITEM, [ITEM, COLLECTION])
            admin.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
            admin.execute("SET LOCAL ROLE graticule_worker")
            deleted = admin.execute("DELETE FROM pgstac.items WHERE collection = %s", [COLLECTION])
            assert deleted.rowcount == 1
            admin.rollback()
