"""Direct commands: at once, all or nothing, again without harm, and each with one event."""

import asyncio
from typing import Any, cast

import psycopg
import pytest
from pydantic import ValidationError
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, NOW

from graticule.core.channels import ASSETS
from graticule.core.errors import NotFound, PermissionDenied, Refused, Unavailable
from graticule.core.models import AssetRevision, Event, LayerCatalog, LayerMetadata
from graticule.core.models.engine import EventType
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.core.states import ApprovalState, ClearanceState
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.commands import bound_transaction
from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.events import EventRepository
from graticule.repositories.jobs import JobRepository
from graticule.repositories.layers import LayerCatalogRepository, LayerMetadataRepository
from graticule.repositories.requests import RequestRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.services import commands
from graticule.services.bootstrap import BootstrapService
from graticule.services.commands import (
    COMMANDS,
    Command,
    CommandResult,
    CommandService,
    Done,
    Execution,
    OfCache,
    OfNothing,
    Outcome,
)

OPERATOR = Caller("Otto", frozenset({ClientRole.OPERATOR}))
ADMIN = Caller("Ada", frozenset({ClientRole.ADMIN}))
OF_VERSION: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 0}
CLEARED: dict[str, Any] = {"cleared_at": NOW, "cleared_by": "r"}
OUO: dict[str, Any] = {"clearance_state": ClearanceState.OUO, **CLEARED}
PUBLIC: dict[str, Any] = {
    "clearance_state": ClearanceState.PUBLIC,
    "made_public_at": NOW,
    "made_public_by": "r",
    **CLEARED,
}
APPROVED: dict[str, Any] = {
    "approval_state": ApprovalState.APPROVED,
    "reviewer": "r",
    "reviewed_at": NOW,
    "approved_revision": 1,
    "blob_path": "ours/r1.tif",
    "stac_item_id": "item",
    "external_blob_path": "theirs/r1.tif",
    "bbox": [1.0, 2.0, 3.0, 4.0],
}
GONE: dict[str, Any] = {"deleted_at": NOW, "deleted_by": "x"}


@pytest.fixture
def service(pool: Database, database: TestDatabase) -> CommandService:
    return CommandService(pool, BootstrapService(database.url(), development=False))


async def given(connection: Connection, asset: dict[str, Any] = OUO, version: dict[str, Any] = APPROVED) -> None:
    await AssetRepository(connection).insert(rows.asset(short_id=ASSET[:8], **asset))
    await AssetVersionRepository(connection).insert(rows.version(**version))


async def run(service: CommandService, name: str, caller: Caller = OPERATOR, **parameters: Any) -> CommandResult:
    return await service.execute(name, COMMANDS[name].parameters.model_validate(parameters), caller)


async def events(connection: Connection) -> list[Event]:
    return await EventRepository(connection).between(0, 2**60)


async def shown(connection: Connection) -> LayerCatalog | None:
    return await LayerCatalogRepository(connection).find(**OF_VERSION)


# The catalogue


async def test_a_layer_is_published_as_it_is_described(service: CommandService, connection: Connection) -> None:
    await given(connection)
    described = LayerMetadata(
        **OF_VERSION, title="Höhen", keywords=["dem"], temporal_start=NOW, created_at=NOW, updated_at=NOW
    )
    await LayerMetadataRepository(connection).insert(described)
    result = await run(service, "metadata.publish", **OF_VERSION)
    assert result == CommandResult(command="metadata.publish", outcome=Outcome.CHANGED)
    entry = await shown(connection)
    assert entry is not None
    assert (entry.is_external, entry.published_by) == (False, "Otto")
    expected: dict[str, Any] = {"title": "Höhen", "keywords": ["dem"], "temporal_start": "2026-03-14T15:09:26.535897Z"}
    expected |= {**OF_VERSION, "version_label": "label 0", "revision": 1, "data_type": "raster", "platform_id": "ddh"}
    expected |= {"platform_refs": {"dataset_id": "d"}, "blob_path": "ours/r1.tif", "bbox": [1.0, 2.0, 3.0, 4.0]}
    assert {name: entry.entry[name] for name in expected} == expected
    (event,) = await events(connection)
    assert (event.event_type, event.actor, event.asset_id) == (EventType.COMMAND_EXECUTED, "Otto", ASSET)
    assert event.version_ordinal == 0
    assert event.data == {
        "command": "metadata.publish",
        "outcome": "changed",
        "details": {},
        "parameters": OF_VERSION,
    }


async def test_to_publish_again_changes_nothing_and_is_told(service: CommandService, connection: Connection) -> None:
    await given(connection)
    await run(service, "metadata.publish", **OF_VERSION)
    before = await shown(connection)
    again = await run(service, "metadata.publish", **OF_VERSION)
    assert again.outcome is Outcome.UNCHANGED
    assert await shown(connection) == before
    assert [event.data["outcome"] for event in await events(connection)] == ["changed", "unchanged"]


async def test_a_layer_is_unpublished_once(service: CommandService, connection: Connection) -> None:
    await given(connection)
    await run(service, "metadata.publish", **OF_VERSION)
    outcomes = [(await run(service, "metadata.unpublish", **OF_VERSION)).outcome for _ in range(2)]
    assert outcomes == [Outcome.CHANGED, Outcome.UNCHANGED]
    assert await shown(connection) is None
    assert len(await events(connection)) == 3


async def test_everyone_is_shown_nothing_of_where_we_keep_it(service: CommandService, connection: Connection) -> None:
    await given(connection, PUBLIC)
    await run(service, "metadata.publish", **OF_VERSION)
    assert (await run(service, "metadata.publish_external", **OF_VERSION)).outcome is Outcome.CHANGED
    entry = await shown(connection)
    assert entry is not None
    assert entry.is_external
    assert entry.entry["external_blob_path"] == "theirs/r1.tif"
    assert {"blob_path", "table_name", "platform_refs", "platform_id"}.isdisjoint(entry.entry)


async def test_the_revision_in_service_is_shown_though_a_newer_one_is_there(
    service: CommandService, connection: Connection
) -> None:
    newer = {"revision": 2, "blob_path": "ours/r2.tif", "approval_state": ApprovalState.PENDING_REVIEW}
    await given(connection, OUO, {**APPROVED, **newer})
    superseded = AssetRevision(
        **OF_VERSION,
        revision=1,
        outputs={"blob_path": "ours/r1.tif", "bbox": [0.0, 0.0, 1.0, 1.0]},
        approval_state=ApprovalState.APPROVED,
        clearance_state=ClearanceState.OUO,
        created_at=NOW,
        superseded_at=NOW,
    )
    await AssetRevisionRepository(connection).insert(superseded)
    await run(service, "metadata.publish", **OF_VERSION)
    entry = await shown(connection)
    assert entry is not None
    told = [entry.entry[name] for name in ("revision", "blob_path", "bbox", "stac_item_id")]
    assert told == [1, "ours/r1.tif", [0.0, 0.0, 1.0, 1.0], None]


@pytest.mark.parametrize(
    ("command", "rows_given", "code"),
    [
        ("metadata.publish", (OUO, {}), Refusal.NOT_APPROVED),
        ("metadata.publish_external", (PUBLIC, {}), Refusal.NOT_APPROVED),
        ("metadata.publish_external", (OUO, APPROVED), Refusal.NOT_PUBLIC),
        ("metadata.publish", (OUO, {**APPROVED, **GONE}), Refusal.VERSION_DELETED),
        ("metadata.publish", ({**OUO, **GONE}, APPROVED), Refusal.ASSET_DELETED),
    ],
)
async def test_what_may_not_be_shown_is_refused_and_nothing_happens(
    service: CommandService,
    connection: Connection,
    command: str,
    rows_given: tuple[dict[str, Any], dict[str, Any]],
    code: Refusal,
) -> None:
    await given(connection, *rows_given)
    with pytest.raises(Refused) as caught:
        await run(service, command, **OF_VERSION)
    assert caught.value.code == code
    assert caught.value.current is not None
    assert await shown(connection) is None
    assert await events(connection) == []


@pytest.mark.parametrize("command", ["metadata.publish", "metadata.publish_external"])
async def test_a_version_that_is_not_there_is_not_found(
    service: CommandService, connection: Connection, command: str
) -> None:
    await given(connection)
    with pytest.raises(NotFound):
        await run(service, command, asset_id=ASSET, version_ordinal=7)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "schema.migrate"])
async def test_an_asset_that_is_not_there_is_not_found(
    service: CommandService, connection: Connection, command: str
) -> None:
    of_version: dict[str, Any] = {"version_ordinal": 0} if command.startswith("metadata.") else {}
    with pytest.raises(NotFound, match="There is no asset"):
        await run(service, command, asset_id=ASSET, **of_version)
    assert await events(connection) == []


# Reindex


async def test_a_version_whose_job_ended_without_it_can_be_retried_again(
    service: CommandService, connection: Connection
) -> None:
    await WorkflowRepository(connection).insert(rows.workflow())
    await AssetRepository(connection).insert(rows.asset(short_id=ASSET[:8]))
    await AssetVersionRepository(connection).insert(rows.version(0, last_request_id=rows.request().request_id))
    work = {"asset_id": ASSET, "version_ordinal": 0, "purpose": "process"}
    await JobRepository(connection).insert(rows.job("ended", status="completed", ended_at=rows.NOW, **work))
    await connection.execute(
        "UPDATE dagapp.asset_versions SET processing_state = 'processing', current_job_id = 'ended'"
    )
    await RequestRepository(connection).insert(rows.request(status="processing"))
    result = await run(service, "asset.reindex", asset_id=ASSET)
    assert result.details == {"corrected": {}, "ended": [0]}
    version = await AssetVersionRepository(connection).get(asset_id=ASSET, version_ordinal=0)
    request = await RequestRepository(connection).get(request_id=rows.request().request_id)
    assert (version.processing_state, request.status) == ("failed", "failed")
    assert (await run(service, "asset.reindex", asset_id=ASSET)).details["ended"] == []


async def test_what_an_asset_says_of_its_versions_is_set_right(service: CommandService, connection: Connection) -> None:
    assets, versions = AssetRepository(connection), AssetVersionRepository(connection)
    other = rows.asset(ASSET[:9] + "f" * 23, short_id=ASSET[:8])  # has the shortest name already
    await assets.insert(other)
    await assets.insert(rows.asset(latest_approved_version_ordinal=4))
    for ordinal in (0, 2):
        await versions.insert(rows.version(ordinal, **APPROVED))
    await versions.insert(rows.version(3, **APPROVED, **GONE))
    await versions.insert(rows.version(4))
    result = await run(service, "asset.reindex", asset_id=ASSET)
    short_id = {"from": None, "to": ASSET[:12]}
    latest = {"from": 4, "to": 2}
    assert result.details == {
        "corrected": {"latest_approved_version_ordinal": latest, "short_id": short_id},
        "ended": [],
    }
    asset = await assets.get(asset_id=ASSET)
    assert (asset.latest_approved_version_ordinal, asset.short_id, asset.version) == (2, ASSET[:12], 2)
    again = await run(service, "asset.reindex", asset_id=ASSET)
    assert (again.outcome, again.details) == (Outcome.UNCHANGED, {"corrected": {}, "ended": []})
    assert await assets.get(asset_id=ASSET) == asset
    assert [event.data["outcome"] for event in await events(connection)] == ["changed", "unchanged"]


async def test_an_asset_of_which_nothing_is_in_service_says_so(service: CommandService, connection: Connection) -> None:
    await given(connection, {"latest_approved_version_ordinal": 0}, {})
    await run(service, "asset.reindex", asset_id=ASSET)
    assert (await AssetRepository(connection).get(asset_id=ASSET)).latest_approved_version_ordinal is None


# Caches and the schema


async def test_processes_are_told_to_forget_an_asset_or_all(
    service: CommandService, connection: Connection, database: TestDatabase
) -> None:
    await given(connection)
    async with await psycopg.AsyncConnection.connect(database.url(), autocommit=True) as listener:
        await listener.execute(f"LISTEN {ASSETS}".encode())
        await run(service, "cache.invalidate", asset_id=ASSET)
        await run(service, "cache.invalidate", all=True)
        await run(service, "metadata.publish", **OF_VERSION)
        await run(service, "metadata.publish", **OF_VERSION)  # nothing new: nobody has to forget
        heard = [each.payload async for each in listener.notifies(timeout=5, stop_after=3)]
        heard += [each.payload async for each in listener.notifies(timeout=0.05)]
    assert heard == [ASSET, "", ASSET]
    parameters = [event.data["parameters"] for event in await events(connection)]
    assert parameters[:2] == [{"asset_id": ASSET, "all": False}, {"all": True}]


@pytest.mark.parametrize("values", [{}, {"asset_id": ASSET, "all": True}, {"asset_id": "x"}, {"every": True}])
def test_it_is_said_whether_one_or_all(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OfCache(**values)


async def test_an_admin_migrates_the_schema_and_an_operator_does_not(
    service: CommandService, connection: Connection
) -> None:
    with pytest.raises(PermissionDenied):
        await run(service, "schema.migrate")
    result = await run(service, "schema.migrate", ADMIN)
    assert result.outcome is Outcome.UNCHANGED
    assert result.details["current"] is True
    assert [(event.actor, event.data["command"]) for event in await events(connection)] == [("Ada", "schema.migrate")]


# All of them


async def test_a_command_that_takes_too_long_is_ended_and_leaves_nothing(
    service: CommandService, pool: Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await given(connection)
    monkeypatch.setattr(commands, "LONGEST_SECONDS", 0.1)
    async with pool.connection() as other, other.transaction():
        await AssetRepository(other).lock(ASSET)
        with pytest.raises(Unavailable, match="took"):
            await run(service, "asset.reindex", asset_id=ASSET)
    assert await events(connection) == []
    assert (await AssetRepository(connection).get(asset_id=ASSET)).latest_approved_version_ordinal is None


async def test_the_server_ends_a_statement_of_a_command_too(
    service: CommandService, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probe(execution: Execution, _: OfNothing) -> Done:
        await bound_transaction(execution.connection, 0.01)
        with domain_errors("wait"):
            await execution.connection.execute("SELECT pg_sleep(20)")
        return True, {}

    monkeypatch.setitem(cast("dict[str, Command]", COMMANDS), "probe", Command(probe, OfNothing))
    with pytest.raises(Unavailable, match="it took too long"):
        await run(service, "probe")
    assert await events(connection) == []


async def test_every_command_is_bounded_by_the_server_and_leaves_no_bound_behind(
    service: CommandService, pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bound(connection: Connection) -> Any:
        row = await (await connection.execute("SELECT current_setting('statement_timeout') AS bound")).fetchone()
        return row and row["bound"]

    async def probe(execution: Execution, _: OfNothing) -> Done:
        return False, {"bound": await bound(execution.connection)}

    monkeypatch.setitem(cast("dict[str, Command]", COMMANDS), "probe", Command(probe, OfNothing))
    assert (await run(service, "probe")).details == {"bound": "10s"}
    async with pool.connection() as connection:
        assert await bound(connection) == "0"


async def test_an_unknown_command_is_told_with_those_that_there_are(service: CommandService) -> None:
    with pytest.raises(NotFound) as caught:
        await service.execute("cache.warm", OfCache(all=True), ADMIN)
    assert caught.value.hint is not None
    assert all(name in caught.value.hint for name in COMMANDS)


async def test_commands_of_one_asset_come_one_after_the_other(service: CommandService, connection: Connection) -> None:
    await given(connection)
    results = await asyncio.gather(*(run(service, "metadata.publish", **OF_VERSION) for _ in range(4)))
    assert sorted(each.outcome for each in results) == ["changed", "unchanged", "unchanged", "unchanged"]
    assert len(await events(connection)) == 4


def test_every_command_says_what_it_does() -> None:
    assert all(command.summary.endswith(".") for command in COMMANDS.values())
