"""How a request stands, as partners and operators are told; and what a change is asked for."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows

from graticule.core.asset_views import OperatorStatus
from graticule.core.errors import InvalidInput, NotFound
from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import AssetRevision
from graticule.core.models.engine import EventType, JobPurpose
from graticule.core.models.platform import ClientRole, DataType, UrlMode
from graticule.core.permissions import Caller
from graticule.core.states import (
    ApprovalState,
    ClearanceState,
    JobStatus,
    NodeStatus,
    ProcessingState,
    RequestStatus,
)
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.requests import RequestRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.asset_reading import AssetReader, Target
from graticule.services.service_addresses import ServiceAddresses

PARTNER = Caller("client", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
REVIEWER = Caller("rita", frozenset({ClientRole.REVIEWER}))
OPERATOR = Caller("olaf", frozenset({ClientRole.OPERATOR}))
SERVE = ServiceAddresses("https://serve.example.org", "https://maps.example.org")
JOB = JobId("0" * 31 + "a")
OLDER, NEWER = UUID(int=1), rows.REQUEST
IN_SERVICE: dict[str, Any] = {**rows.APPROVED, "approved_revision": 1}


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
def reader(pool: Database) -> AssetReader:
    return AssetReader(pool)


async def add(
    connection: Connection,
    *,
    asset: dict[str, Any] | None = None,
    version: dict[str, Any] | None = None,
    request: dict[str, Any] | None = None,
) -> None:
    """Add an asset with one version and its request."""
    await AssetRepository(connection).insert(rows.asset(**(asset or {})))
    given = {"processing_state": ProcessingState.COMPLETED, "last_request_id": NEWER, **(version or {})}
    await AssetVersionRepository(connection).insert(rows.version(**given))
    asked = {"status": RequestStatus.COMPLETED, "created_at": rows.LATER, **(request or {})}
    await RequestRepository(connection).insert(rows.request(NEWER, **asked))


async def add_job(connection: Connection, *statuses: NodeStatus, **changes: Any) -> None:
    """Add a job of the version, with nodes."""
    names = [f"node{number}" for number in range(len(statuses))]
    await WorkflowRepository(connection).insert(rows.workflow(definition={"nodes": {name: {} for name in names}}))
    given = {"status": JobStatus.RUNNING, "asset_id": rows.ASSET, "version_ordinal": 0, "purpose": JobPurpose.PROCESS}
    await JobRepository(connection).insert(rows.job(JOB, **{**given, **changes}))
    for name, status in zip(names, statuses, strict=True):
        ended = {"ended_at": rows.NOW} if status is NodeStatus.COMPLETED else {}
        await NodeRepository(connection).insert(rows.node(name, job_id=JOB, status=status, **ended))


async def test_a_completed_request_in_the_words_of_a_partner(reader: AssetReader, connection: Connection) -> None:
    await add(connection, version={"estimated_completion_at": datetime.now(UTC) + timedelta(hours=1)})
    status = await reader.status(str(NEWER), PARTNER)
    assert status.model_dump(mode="json") == {
        "request_id": str(NEWER),
        "asset_id": rows.ASSET,
        "data_type": "raster",
        "status": "completed",
        "state_reason": None,
        "next_step": None,
        "progress": 100.0,
        "eta": None,
        "version": {"ordinal": 0, "label": "label 0", "revision": 1},
        "superseded_by": None,
        "processing_state": "completed",
        "approval_state": "pending_review",
        "decision": None,
        "clearance_state": "uncleared",
        "clearance_requested": None,
        "export": {"state": "none", "error": None, "at": None},
        "in_service": None,
        "service_urls": {},
        "accepted_at": rows.LATER.isoformat().replace("+00:00", "Z"),
        "processing_started_at": None,
        "processing_completed_at": None,
        "reviewed_at": None,
        "cleared_at": None,
        "made_public_at": None,
        "exported_at": None,
        "superseded_at": None,
        "withdrawn_at": None,
        "removed_at": None,
        "error": None,
        "validation": None,
        "revision": 1,
    }


async def test_a_partner_is_told_what_was_found_in_its_file(reader: AssetReader, connection: Connection) -> None:
    finding = {
        "code": "no_crs",
        "severity": "reject",
        "what": "The raster has no coordinate reference system.",
        "where": "bronze/a.tif",
        "how_to_fix": "Declare one.",
    }
    report = {"outcome": "reject", "findings": [finding], "facts": {"driver": "GTiff"}}
    await add(connection, version={"processing_state": ProcessingState.FAILED, "validation": report})
    status = await reader.status(str(NEWER), PARTNER)
    assert status.model_dump(mode="json")["validation"] == report


async def test_progress_is_that_of_the_nodes_of_the_job(reader: AssetReader, connection: Connection) -> None:
    await add(connection, request={"status": RequestStatus.PROCESSING})
    await add_job(connection, NodeStatus.COMPLETED, NodeStatus.RUNNING, NodeStatus.PENDING)
    await connection.execute("UPDATE dagapp.asset_versions SET current_job_id = %s", [JOB])
    assert (await reader.status(str(NEWER), PARTNER)).progress == 33.3
    status = await reader.status(str(NEWER), OPERATOR)
    assert isinstance(status, OperatorStatus)
    assert (status.job_id, status.current_nodes, status.progress) == (JOB, ["node1"], 33.3)
    assert type(await reader.status(str(NEWER), REVIEWER)) is type(await reader.status(str(NEWER), PARTNER))


@pytest.mark.parametrize(("hours", "is_told"), [(1, True), (-1, False), (None, False)])
async def test_the_estimated_end_is_never_in_the_past(
    reader: AssetReader, connection: Connection, hours: int | None, is_told: bool
) -> None:
    eta = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
    await add(connection, version={"estimated_completion_at": eta}, request={"status": RequestStatus.ACCEPTED})
    assert (await reader.status(str(NEWER), PARTNER)).eta == (eta if is_told else None)


async def test_an_asset_means_its_newest_request(reader: AssetReader, connection: Connection) -> None:
    await add(connection)
    await RequestRepository(connection).insert(rows.request(OLDER, created_at=rows.NOW))
    assert (await reader.status(rows.ASSET, PARTNER)).request_id == NEWER
    assert (await reader.status(str(OLDER), PARTNER)).status is RequestStatus.ACCEPTED


async def test_a_job_means_its_request_but_only_to_operators(reader: AssetReader, connection: Connection) -> None:
    await add(connection, request={"job_id": JOB})
    assert (await reader.status(JOB, OPERATOR)).request_id == NEWER
    for caller in (PARTNER, REVIEWER):
        with pytest.raises(NotFound, match=f"There is no request or asset {JOB}."):
            await reader.status(JOB, caller)


async def test_a_job_that_came_later_means_the_last_request_of_its_version(
    reader: AssetReader, connection: Connection
) -> None:
    await add(connection)
    await add_job(connection, purpose=JobPurpose.EXPORT)
    assert (await reader.status(JOB, OPERATOR)).request_id == NEWER


async def test_an_error_is_told_as_it_is_stored_and_to_the_request_that_met_it(
    reader: AssetReader, connection: Connection
) -> None:
    error = "No such file: bronze/a.tif\n(é, <tag>)"
    told = {"processing_state": ProcessingState.FAILED, "last_error": "all of it", "told_error": error}
    await add(connection, version=told, request={"status": RequestStatus.FAILED, "last_error": error})
    await RequestRepository(connection).insert(rows.request(OLDER, created_at=rows.NOW))
    assert (await reader.status(str(NEWER), PARTNER)).error == error
    assert (await reader.status(str(NEWER), OPERATOR)).error == "all of it"
    assert (await reader.status(str(OLDER), PARTNER)).error is None
    await connection.execute(
        "UPDATE dagapp.platform_requests SET status = 'failed', last_error = 'earlier' WHERE request_id = %s", [OLDER]
    )
    assert (await reader.status(str(OLDER), PARTNER)).error == "earlier"


def served(kind: str, query: str = "") -> dict[str, str]:
    return {kind: f"https://serve.example.org/{kind}/{rows.ASSET}{query}"}


FEATURES = served("features") | {
    "vector_tiles": f"https://serve.example.org/features/{rows.ASSET}/collections/features/tiles"
}
EXPORTED = {"exported_revision": 1, "export_run_id": "run", "stac_collection_id": "ddh-hills"}
PUBLIC = {
    "latest_approved_version_ordinal": 0,
    "clearance_state": ClearanceState.PUBLIC,
    "cleared_at": rows.NOW,
    "cleared_by": "rita",
    "made_public_at": rows.NOW,
    "made_public_by": "rita",
}
IN_CATALOGUE = {"stac": "https://serve.example.org/stac/collections/ddh-hills"}
FOR_THE_PUBLIC = {
    "external_tiles": f"https://maps.example.org/tiles/{rows.ASSET}",
    "external_stac": "https://maps.example.org/stac/collections/ddh-hills-public",
}


@pytest.mark.parametrize(
    ("asset", "version", "expected"),
    [
        ({}, {}, {}),
        ({"latest_approved_version_ordinal": 0}, IN_SERVICE, served("tiles")),
        ({"latest_approved_version_ordinal": 0, "data_type": DataType.VECTOR}, IN_SERVICE, FEATURES),
        ({"latest_approved_version_ordinal": 0, "url_mode": UrlMode.ALL_VERSIONS}, IN_SERVICE, served("tiles")),
        (
            {"latest_approved_version_ordinal": 1, "url_mode": UrlMode.ALL_VERSIONS},
            IN_SERVICE,
            served("tiles", "?version=0"),
        ),
        ({"latest_approved_version_ordinal": 1}, IN_SERVICE, {}),
        (PUBLIC, {**IN_SERVICE, **EXPORTED}, served("tiles") | IN_CATALOGUE | FOR_THE_PUBLIC),
        # Public, and not copied yet; copied, and not public any more.
        (PUBLIC, IN_SERVICE, served("tiles")),
        ({"latest_approved_version_ordinal": 0}, {**IN_SERVICE, **EXPORTED}, served("tiles") | IN_CATALOGUE),
        # Overwritten: what was approved stays in service until the new revision is.
        ({"latest_approved_version_ordinal": 0}, {"revision": 2, "approved_revision": 1}, served("tiles")),
        (
            {"latest_approved_version_ordinal": 0},
            {**IN_SERVICE, "deleted_at": rows.NOW, "deleted_by": "olaf"},
            {},
        ),
        (
            {"latest_approved_version_ordinal": 0, "deleted_at": rows.NOW, "deleted_by": "olaf"},
            IN_SERVICE,
            {},
        ),
    ],
)
async def test_addresses_are_given_only_for_what_is_in_service_at_them(
    reader: AssetReader,
    connection: Connection,
    asset: dict[str, Any],
    version: dict[str, Any],
    expected: dict[str, str],
) -> None:
    await add(connection, asset=asset, version=version)
    assert (await reader.status(rows.ASSET, PARTNER, SERVE)).service_urls == expected
    assert (await reader.status(rows.ASSET, PARTNER)).service_urls == {}


async def test_a_change_is_asked_for_by_asset_or_by_request(reader: AssetReader, connection: Connection) -> None:
    await add(connection)
    assert await reader.target(rows.ASSET, None, PARTNER) == Target(rows.ASSET)
    assert await reader.target(None, NEWER, PARTNER) == Target(rows.ASSET, 0)
    assert await reader.target(rows.ASSET, NEWER, PARTNER) == Target(rows.ASSET, 0)
    with pytest.raises(InvalidInput, match="another asset"):
        await reader.target(AssetId("f" * 32), NEWER, PARTNER)
    with pytest.raises(InvalidInput, match="Neither"):
        await reader.target(None, None, PARTNER)


async def test_versions_and_revisions_come_newest_first_and_in_pages(
    reader: AssetReader, connection: Connection
) -> None:
    await add(connection, version=IN_SERVICE)
    deleted = {**IN_SERVICE, "deleted_at": rows.NOW, "deleted_by": "olaf"}
    await AssetVersionRepository(connection).insert_many([rows.version(2, **IN_SERVICE), rows.version(5, **deleted)])
    states: Any = {"approval_state": ApprovalState.APPROVED, "clearance_state": ClearanceState.OUO}
    times: Any = {"created_at": rows.NOW, "superseded_at": rows.LATER}
    for ordinal, revision in ((0, 1), (0, 2), (2, 1)):
        await AssetRevisionRepository(connection).insert(
            AssetRevision(asset_id=rows.ASSET, version_ordinal=ordinal, revision=revision, **states, **times)
        )
    assert [each.version_ordinal for each in await reader.versions(rows.ASSET, PARTNER)] == [5, 2, 0]
    assert [each.version_ordinal for each in await reader.versions(rows.ASSET, PARTNER, 5, 1)] == [2]
    assert (await reader.version(rows.ASSET, 5, PARTNER)).deleted_by == "olaf"
    with pytest.raises(NotFound, match="There is no version 1 of the asset"):
        await reader.version(rows.ASSET, 1, PARTNER)
    found = [(each.version_ordinal, each.revision) for each in await reader.revisions(rows.ASSET, PARTNER)]
    assert found == [(2, 1), (0, 2), (0, 1)]
    assert [each.revision for each in await reader.revisions(rows.ASSET, PARTNER, 0)] == [2, 1]
    after = await reader.revisions(rows.ASSET, PARTNER, before=(2, 1), limit=1)
    assert [(each.version_ordinal, each.revision) for each in after] == [(0, 2)]
    with pytest.raises(NotFound, match="There is no version 7 of the asset"):
        await reader.revisions(rows.ASSET, PARTNER, 7)


async def test_history_comes_in_order_and_partners_are_told_of_what_concerns_them(
    reader: AssetReader, connection: Connection
) -> None:
    await add(connection)
    types = [EventType.ASSET_CREATED, EventType.JOB_CREATED, EventType.ASSET_EXPORT_FAILED, EventType.ASSET_APPROVED]
    for event_type in types:
        await EventRepository(connection).insert(rows.event(event_type=event_type, asset_id=rows.ASSET, job_id=None))
    everything = await reader.history(rows.ASSET, REVIEWER)
    assert [event.event_type for event in everything] == types
    assert everything[0].event_id is not None
    after = await reader.history(rows.ASSET, REVIEWER, everything[0].event_id, limit=2)
    assert [event.event_type for event in after] == types[1:3]
    told = await reader.history(rows.ASSET, PARTNER)
    assert [event.event_type for event in told] == [EventType.ASSET_CREATED, EventType.ASSET_APPROVED]
    assert [event.event_type for event in await reader.history(rows.ASSET, PARTNER, limit=1)] == types[:1]
