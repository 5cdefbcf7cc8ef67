"""Every deed in every state: what is refused has its name and changes nothing, what is done leaves its event."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.services.asset_table import DEEDS, NOW, State, events_of, rows_of, states
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import AlreadyExists, Conflict, PermissionDenied, Refused
from graticule.core.exchange import AssetChange
from graticule.core.states import ApprovalState, ClearanceState
from graticule.core.table import DatabaseRole
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.requests import RequestRepository

REPOSITORIES: tuple[Any, ...] = (
    *(AssetRepository, RequestRepository, AssetVersionRepository, AssetRevisionRepository),
)


@pytest.fixture
async def table(database: TestDatabase, tmp_path: Path) -> AsyncIterator[Desk]:
    """Give the services; what stands in the rows was written by the test, so nothing is held against it."""
    async with Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=3) as pool:
        yield Desk(pool, tmp_path)


async def set_up(desk: Desk, found: list[State]) -> None:
    async with desk.pool.connection() as connection, connection.transaction():
        for repository, given in zip(REPOSITORIES, rows_of(found), strict=True):
            await repository(connection).insert_many(given)


async def outcome(desk: Desk, name: str, state: State) -> str:
    try:
        done = await DEEDS[name].act(desk, state)
    except Refused as refused:
        return code_of(refused)
    return "same" if isinstance(done, AssetChange) and not done.changed else "ok"


@pytest.mark.parametrize("name", DEEDS)
async def test_what_is_refused_has_its_name_and_changes_nothing(table: Desk, name: str) -> None:
    refused = [state for state in states() if DEEDS[name].expected(state) != "ok"]
    await set_up(table, refused)
    before = await table.snapshot()
    found = {str(state): await outcome(table, name, state) for state in refused}
    assert found == {str(state): DEEDS[name].expected(state) for state in refused}
    assert await table.snapshot() == before


@pytest.mark.parametrize("name", [name for name, deed in DEEDS.items() if "ok" in map(deed.expected, states())])
async def test_what_is_done_leaves_its_one_event_with_who_did_it_and_a_new_version_of_the_asset(
    table: Desk, name: str
) -> None:
    allowed = [state for state in states() if DEEDS[name].expected(state) == "ok"]
    await set_up(table, allowed)
    found = {str(state): await outcome(table, name, state) for state in allowed}
    assert found == dict.fromkeys(map(str, allowed), "ok")
    told = await table.rows(
        "SELECT asset_id, event_type::text, actor FROM dagapp.dag_job_events WHERE asset_id IS NOT NULL"
        " AND event_type NOT IN ('asset_processing_started', 'asset_processing_completed') ORDER BY event_id"
    )
    assert {event["actor"] for event in told} == {"rita"}
    by_asset: dict[str, list[str]] = {}
    for event in told:
        by_asset.setdefault(event["asset_id"], []).append(event["event_type"].removeprefix("asset_"))
    assert {str(state): by_asset.get(state.asset_id) for state in allowed} == {
        str(state): events_of(DEEDS[name], state) for state in allowed
    }
    raised = await table.rows("SELECT count(*) AS assets FROM dagapp.geospatial_assets WHERE version > 1")
    assert raised == [{"assets": len(allowed)}]


def test_the_table_has_refusals_of_every_kind() -> None:
    expected = {deed.expected(state) for deed in DEEDS.values() for state in states()}
    assert expected == {
        *("ok", "same", "version_exists", "version_processing", "version_unresolved", "asset_deleted"),
        *("version_deleted", "not_failed", "version_rejected", "version_approved", "not_processed", "not_approved"),
    }


# What no rule allows, the database refuses as well


VERSION_RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "approved without a reviewer": ({}, {"approval_state": "approved", "reviewed_at": NOW, "approved_revision": 1}),
    "approved without a time": ({}, {"approval_state": "approved", "reviewer": "r", "approved_revision": 1}),
    "approved without a revision": ({}, {"approval_state": "approved", "reviewer": "r", "reviewed_at": NOW}),
    "a revision in service that was not made": ({}, {"approved_revision": 2}),
    "rejected without a reason": ({}, {"approval_state": "rejected"}),
    "revoked and pending": ({}, {"revoked_at": NOW}),
    "a negative ordinal": ({}, {"version_ordinal": -1}),
    "revision zero": ({}, {"revision": 0}),
    "deleted by nobody": ({}, {"deleted_at": NOW}),
    "never deleted by somebody": ({}, {"deleted_by": "r"}),
    "a box upside down": ({}, {"bbox": [0.0, 9.0, 1.0, -9.0]}),
    "a box of three": ({}, {"bbox": [0.0, 1.0, 2.0]}),
    "of no asset": ({}, {"asset_id": "f" * 32}),
    "with a job that is not there": ({}, {"current_job_id": "gone"}),
    "a second that is unresolved": ({"version_label": "other"}, {"version_ordinal": 1}),
    "a second that is rejected": (
        {"version_label": "other"},
        {"version_ordinal": 1, "approval_state": "rejected", "rejection_reason": "x"},
    ),
    "a label for the second time": (
        rows.APPROVED | {"approved_revision": 1, "version_label": "label 1"},
        {"version_ordinal": 1},
    ),
    "an ordinal for the second time": (rows.APPROVED | {"approved_revision": 1, "version_label": "other"}, {}),
}


async def test_a_version_that_cannot_be_is_refused_by_the_database(
    connection: Connection, subtests: pytest.Subtests
) -> None:
    await AssetRepository(connection).insert(rows.asset())
    versions = AssetVersionRepository(connection)
    for what, (other, given) in VERSION_RULES.items():
        with subtests.test(what):
            async with connection.transaction(force_rollback=True):
                if other:
                    await versions.insert(rows.version(0, **other))
                with pytest.raises((Conflict, AlreadyExists)):
                    async with connection.transaction():
                        await versions.insert(rows.version(**given))
                assert len(await versions.of_asset(rows.ASSET)) == bool(other)


RESOLVED: dict[str, dict[str, Any]] = {
    "deleted": {"deleted_at": NOW, "deleted_by": "r"},
    "revoked": {"approval_state": "rejected", "rejection_reason": "x", "revoked_at": NOW},
    "approved": rows.APPROVED,
    "overwritten": {"revision": 2, "approved_revision": 1},
}


@pytest.mark.parametrize("what", RESOLVED)
async def test_one_unresolved_version_may_stand_beside_any_number_of_others(connection: Connection, what: str) -> None:
    await AssetRepository(connection).insert(rows.asset())
    versions = AssetVersionRepository(connection)
    for ordinal in range(3):
        await versions.insert(rows.version(ordinal, **RESOLVED[what]))
    await versions.insert(rows.version(3))
    with pytest.raises(AlreadyExists):
        await versions.insert(rows.version(4))


ASSET_RULES: dict[str, dict[str, Any]] = {
    "public without a time": {"clearance_state": "public", "cleared_at": NOW, "cleared_by": "r", "made_public_by": "r"},
    "public by nobody": {"clearance_state": "public", "cleared_at": NOW, "cleared_by": "r", "made_public_at": NOW},
    "cleared without a time": {"clearance_state": "ouo", "cleared_by": "r"},
    "cleared by nobody": {"clearance_state": "ouo", "cleared_at": NOW},
    "deleted by nobody": {"deleted_at": NOW},
    "of no platform": {"platform_id": "nobody"},
    "a short id that is none of its own": {"short_id": "ffffffff"},
    "the short id of another": {"short_id": rows.ASSET[:8]},
}


async def test_an_asset_that_cannot_be_is_refused_by_the_database(
    connection: Connection, subtests: pytest.Subtests
) -> None:
    assets = AssetRepository(connection)
    await assets.insert(rows.asset(short_id=rows.ASSET[:8]))
    for what, given in ASSET_RULES.items():
        with subtests.test(what), pytest.raises((Conflict, AlreadyExists)):
            await assets.insert(rows.asset(rows.ASSET[:8] + "e" * 24, **given))


async def test_a_revision_is_only_ever_added(table: Desk) -> None:
    receipt = await table.submit()
    await table.process(receipt)
    await table.submit(overwrite=True)
    for statement in ("UPDATE dagapp.asset_revisions SET revision = 7", "DELETE FROM dagapp.asset_revisions"):
        with pytest.raises(PermissionDenied):
            await table.execute(statement)


def test_the_states_are_those_of_the_design() -> None:
    assert [*ApprovalState] == ["pending_review", "approved", "rejected", "failed"]
    assert [*ClearanceState] == ["uncleared", "ouo", "public"]
