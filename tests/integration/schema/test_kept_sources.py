"""A database of an older release: partners keep what they have used, and the migration says who has more."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase
from tests.unit.cli.conftest import run

from graticule.core.errors import Unavailable
from graticule.core.sources import MAX_PATTERNS, admits, pattern_fault
from graticule.schema import deploy
from graticule.schema.sources import covering
from graticule.services.bootstrap import BootstrapService

USED = {
    "ddh": ["bronze/ddh/a.tif", "bronze/ddh/b/c.tif"],
    "arcgis": ["bronze/shared/a.tif", "bronze/shared/b/c.tif", "bronze/arcgis/x.tif", "legacy/d.tif", "legacy/e/f.tif"],
    "geonode": ["bronze/top.tif"],
}
KEPT = {
    "ddh": None,
    "arcgis": ["bronze/arcgis/", "bronze/shared/", "legacy"],
    "geonode": ["bronze"],
    "atlas": None,
}


def _make_older(database: TestDatabase) -> None:
    """Let the database be as the release before left it, with submissions of its time."""
    with psycopg.connect(database.url(), autocommit=True) as admin:
        admin.execute("ALTER TABLE dagapp.platforms DROP COLUMN source_containers")
        admin.execute(
            "INSERT INTO dagapp.platforms (platform_id, display_name, required_refs, version_ref)"
            " VALUES ('atlas', 'Atlas', '{sheet}', 'release')"
        )
        for platform_id, paths in USED.items():
            for container, _, name in (path.partition("/") for path in paths):
                body = {"submission": {"container_name": container, "file_name": name}}
                admin.execute(
                    "INSERT INTO dagapp.platform_requests (request_id, platform_id, asset_id, version_ordinal,"
                    " request_body) VALUES (%s, %s, %s, 0, %s)",
                    [uuid4(), platform_id, "a" * 32, Jsonb(body)],
                )


def _kept(database: TestDatabase) -> dict[str, Any]:
    with psycopg.connect(database.url(), autocommit=True) as admin:
        return dict(admin.execute("SELECT platform_id, source_containers FROM dagapp.platforms").fetchall())


async def test_partners_go_on_sending_from_where_they_did(own_database: TestDatabase) -> None:
    _make_older(own_database)
    report = await BootstrapService(own_database.url(), development=False).migrate()
    assert report.current
    assert _kept(own_database) == KEPT
    arcgis, geonode = report.notices
    assert "bronze/arcgis/, bronze/shared/, legacy" in arcgis
    assert arcgis.endswith("graticule platform change arcgis --source bronze/arcgis/")
    assert geonode.endswith("graticule platform change geonode --source bronze/geonode/")

    with psycopg.connect(own_database.url(), autocommit=True) as admin:  # sent meanwhile to an older orchestrator
        admin.execute("UPDATE dagapp.platform_requests SET platform_id = 'ddh'")
    again = await BootstrapService(own_database.url(), development=False).migrate()
    assert (again.notices, again.applied) == ([], [])
    assert _kept(own_database) == KEPT


async def test_a_migration_that_goes_on_after_a_failure_says_what_the_first_one_did_not(
    own_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_older(own_database)
    with psycopg.connect(own_database.url(), autocommit=True) as admin:
        admin.execute("COMMENT ON SCHEMA serving IS 'older'")
    monkeypatch.setattr(deploy, "WAIT_BRIEFLY", "SET LOCAL lock_timeout = '10ms'")
    service = BootstrapService(own_database.url(), development=False)
    with psycopg.connect(own_database.url()) as reader:
        reader.execute("SELECT FROM pgstac.collections")  # a long query of a service, or a backup
        with pytest.raises(Unavailable):
            await service.migrate()
    assert _kept(own_database) == KEPT
    report = await service.migrate()
    assert report.current
    assert ["arcgis" in report.notices[0], "geonode" in report.notices[1]] == [True, True]
    assert (await service.migrate()).notices == []


async def test_a_partner_that_was_narrowed_is_not_named_by_the_next_release(own_database: TestDatabase) -> None:
    _make_older(own_database)
    await BootstrapService(own_database.url(), development=False).migrate()
    with psycopg.connect(own_database.url(), autocommit=True) as admin:
        admin.execute("UPDATE dagapp.platforms SET source_containers = '{bronze/arcgis/}' WHERE platform_id = 'arcgis'")
        admin.execute("UPDATE dagapp.platforms SET source_containers = '{legacy}' WHERE platform_id = 'geonode'")
        admin.execute("COMMENT ON SCHEMA serving IS 'older'")
    (notice,) = (await BootstrapService(own_database.url(), development=False).migrate()).notices
    assert notice.startswith("The platform geonode may name files outside of its own folder: legacy.")


def test_the_command_says_which_partners_have_files_elsewhere(own_database: TestDatabase) -> None:
    _make_older(own_database)
    migrated = run("schema", "migrate", variables={"GRATICULE_OWNER_DATABASE_URL": own_database.url()})
    assert migrated.code == 0, migrated.err
    for partner in ("arcgis", "geonode"):
        assert f"graticule platform change {partner} --source bronze/{partner}/" in migrated.err


NAME = st.sampled_from(["ddh", "shared", "a*b", "x y", "é"])
PATTERN = st.builds(lambda container, name: f"{container}/{name}/" if name else container, NAME, NAME | st.none())


@given(st.lists(st.from_regex(r"[a-z]{1,3}(/[a-z*]{1,2}/)?", fullmatch=True), max_size=2 * MAX_PATTERNS))
def test_what_is_kept_covers_all_that_was_used_and_can_be_written(used: list[str]) -> None:
    kept = covering("ddh", used)
    assert all(pattern_fault(pattern) is None for pattern in kept)
    assert len(set(kept)) == len(kept) <= MAX_PATTERNS
    for pattern in used[: MAX_PATTERNS - 1]:
        assert admits(kept, f"{pattern.removesuffix('/')}/a.tif")


@pytest.mark.parametrize("count", [MAX_PATTERNS - 1, MAX_PATTERNS])
def test_of_many_folders_the_container_is_kept(count: int) -> None:
    kept = covering("ddh", [f"old/{number}/" for number in range(count)])
    assert len(kept) == (1 + count if count < MAX_PATTERNS else 2)


async def test_of_more_containers_than_there_can_be_the_last_used_are_kept_and_the_others_named(
    own_database: TestDatabase,
) -> None:
    with psycopg.connect(own_database.url(), autocommit=True) as admin:
        admin.execute("ALTER TABLE dagapp.platforms DROP COLUMN source_containers")
        admin.execute(
            "INSERT INTO dagapp.platform_requests (request_id, platform_id, asset_id, version_ordinal, request_body,"
            " created_at) SELECT gen_random_uuid(), 'ddh', repeat('a', 32), 0, jsonb_build_object('submission',"
            " jsonb_build_object('container_name', 'c' || number, 'file_name', 'a.tif')),"
            " now() - number * interval '1h' FROM generate_series(1, %s) AS number",
            [MAX_PATTERNS],
        )
    report = await BootstrapService(own_database.url(), development=False).migrate()
    assert report.current
    kept = _kept(own_database)["ddh"]
    assert set(kept) == {"bronze/ddh/", *(f"c{number}" for number in range(1, MAX_PATTERNS))}
    assert report.notices[1].endswith(f"may no longer name: c{MAX_PATTERNS}. Move those files below bronze/ddh/.")
