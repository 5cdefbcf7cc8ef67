"""The database refuses impossible rows, whoever writes them: each constraint of the models refuses a row of its own."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import AsyncConnection
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW

from graticule.core.columns import column_definitions
from graticule.core.models import (
    TABLES,
    AssetRevision,
    Checkpoint,
    HeldPrefix,
    LayerCatalog,
    LayerMetadata,
    Orchestrator,
    OutputCheck,
    Platform,
    SchemaDeployment,
    Worker,
)
from graticule.core.table import Row
from graticule.repositories import statements
from graticule.schema.ddl import index_name

KEY: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 0}
TIMES: dict[str, Any] = {"created_at": NOW, "updated_at": NOW}
PROCESS: dict[str, Any] = {
    "hostname": "h",
    "process_id": 1,
    "program_version": "1",
    "started_at": NOW,
    "heartbeat_at": NOW,
}
CHECKPOINT = Checkpoint.model_validate(
    {"job_id": "job", "node_id": "node", "task_id": "t", "phase": "p", "saved_at": NOW}
)
HELD_PREFIX = HeldPrefix.model_validate(
    {
        "prefix": "p",
        "hold_id": "h",
        "task_id": rows.task().task_id,
        "worker_id": "w",
        "delivery_count": 1,
        "expires_at": NOW,
    }
)
REVISION = AssetRevision.model_validate(
    {
        **KEY,
        "revision": 1,
        "approval_state": "approved",
        "clearance_state": "ouo",
        "created_at": NOW,
        "superseded_at": NOW,
    }
)
METADATA = LayerMetadata.model_validate({**KEY, **TIMES})
CHECKED = OutputCheck.model_validate({**KEY, "audience": "internal", "revision": 1, "checked_at": NOW})
CATALOG = LayerCatalog.model_validate({**KEY, "entry": {}, "published_at": NOW})
ORCHESTRATOR = Orchestrator.model_validate({**PROCESS, "owner_id": "o", "lock_key": 1})
WORKER = Worker.model_validate({**PROCESS, "worker_id": "w", "queues": ["q"], "concurrency": 1})
PLATFORM = Platform.model_validate(
    {"platform_id": "p", "display_name": "P", "required_refs": ["a"], "version_ref": "v", **TIMES}
)
DEPLOYMENT = SchemaDeployment.model_validate(
    {"fingerprint": "0" * 64, "program_version": "1", "deployed_by": "d", "deployed_at": NOW}
)
CHILD: dict[str, Any] = {"parent_node_id": "split", "fan_out_index": 0}
SHORT_ID = ASSET[:8]
ONE_APPROVED = rows.version(0, **rows.APPROVED)
# Sound rows, in an order in which they can be inserted.
SOUND: list[Row] = [
    DEPLOYMENT,
    PLATFORM,
    rows.workflow(),
    rows.workflow_definition(),
    rows.asset(short_id=SHORT_ID),
    ONE_APPROVED,
    rows.version(1),
    rows.job(idempotency_key="key"),
    rows.node(),
    rows.node("split__0", **CHILD),
    rows.task(),
    rows.result(),
    rows.event(),
    CHECKPOINT,
    HELD_PREFIX,
    rows.message(),
    rows.callback(),
    ORCHESTRATOR,
    WORKER,
    REVISION,
    rows.request(idempotency_key="key"),
    rows.client(),
    METADATA,
    CATALOG,
    CHECKED,
]
OTHER_REQUEST = UUID(int=7)


def changed(row: Row, **changes: Any) -> Row:
    """Give a row as no model would allow it."""
    return row.model_copy(update=changes)


NODE, TASK, MESSAGE = rows.node("n2"), rows.task("t2"), rows.message("m2")
LIVE, DONE = rows.job("j2"), rows.job("j2", ended_at=NOW)
THIRD = rows.version(2, **rows.APPROVED)
SECOND_ASSET = rows.asset("a" * 32)
# The constraint, and rows that only it forbids.
FORBIDDEN: dict[str, list[Row]] = {
    "dag_workflows_pkey": [rows.workflow(name="other")],
    "dag_definitions_pkey": [rows.workflow_definition(superseded_at=NOW)],
    "dag_definitions_current": [rows.workflow_definition(workflow_hash="cd" * 32)],
    "dag_jobs_pkey": [rows.job()],
    "dag_jobs_workflow_hash_fkey": [changed(LIVE, workflow_hash="f" * 64)],
    "dag_jobs_asset_id_version_ordinal_fkey": [changed(LIVE, asset_id=ASSET, version_ordinal=99, purpose="process")],
    "dag_jobs_idempotency_key_idx": [changed(LIVE, idempotency_key="key")],
    "dag_jobs_priority_range": [changed(LIVE, priority=-1), changed(LIVE, priority=11)],
    "dag_jobs_version_needs_asset": [
        changed(LIVE, asset_id=ASSET, purpose="process"),
        changed(LIVE, version_ordinal=0),
    ],
    "dag_jobs_purpose_needs_asset": [
        changed(LIVE, asset_id=ASSET, version_ordinal=0),
        changed(LIVE, purpose="process"),
    ],
    "dag_jobs_failed_has_reason": [changed(DONE, status="failed")],
    "dag_jobs_ended_has_time": [
        *(changed(LIVE, status=status, error_message="e") for status in ("completed", "failed", "cancelled")),
        *(changed(DONE, status=status) for status in ("pending", "running")),
    ],
    "dag_nodes_pkey": [rows.node()],
    "dag_nodes_job_id_fkey": [changed(NODE, job_id="missing")],
    "dag_nodes_ended_has_time": [
        *(changed(NODE, status=status, error_message="e") for status in ("completed", "failed", "skipped")),
        *(changed(NODE, status=status, ended_at=NOW) for status in ("pending", "ready", "dispatched", "running")),
    ],
    "dag_nodes_failed_has_reason": [changed(NODE, status="failed", ended_at=NOW)],
    "dag_nodes_child_has_index": [changed(NODE, parent_node_id="split"), changed(NODE, fan_out_index=3)],
    "dag_nodes_deadline_while_under_way": [
        changed(NODE, deadline_at=NOW),
        changed(NODE, status="completed", ended_at=NOW, deadline_at=NOW),
    ],
    "dag_nodes_counters_agree": [
        changed(NODE, children_done=1),
        changed(NODE, children_failed=1),
        changed(NODE, children_total=2, children_started=1, children_done=1, children_failed=1),
        changed(NODE, children_total=1, children_started=2),
        changed(NODE, children_done=-1),
        changed(NODE, children_total=1, children_started=1, children_done=2, children_failed=-1),
    ],
    "dag_nodes_job_id_parent_node_id_fan_out_index_idx": [changed(NODE, **CHILD)],
    "dag_tasks_pkey": [rows.task()],
    "dag_tasks_job_id_fkey": [changed(TASK, job_id="missing")],
    "dag_tasks_priority_range": [changed(TASK, priority=11), changed(TASK, priority=-1)],
    "dag_tasks_lease_is_whole": [
        changed(TASK, status="leased"),
        changed(TASK, status="leased", leased_by="w"),
        changed(TASK, status="leased", lease_expires_at=NOW),
        changed(TASK, leased_by="w", lease_expires_at=NOW),
        changed(TASK, status="done", leased_by="w", lease_expires_at=NOW),
        changed(TASK, leased_by="w"),
    ],
    "dag_tasks_dead_has_reason": [changed(TASK, status="dead")],
    "dag_checkpoints_pkey": [CHECKPOINT],
    "dag_checkpoints_job_id_fkey": [changed(CHECKPOINT, job_id="missing")],
    "dag_held_prefixes_pkey": [HELD_PREFIX],
    "dag_held_prefixes_task_id_fkey": [changed(HELD_PREFIX, prefix="other", task_id="missing")],
    "dag_job_messages_pkey": [rows.message()],
    "dag_job_messages_priority_range": [changed(MESSAGE, priority=11), changed(MESSAGE, priority=-1)],
    "dag_job_messages_lease_is_whole": [
        changed(MESSAGE, status="leased"),
        changed(MESSAGE, status="leased", leased_by="o"),
        changed(MESSAGE, leased_by="o", lease_expires_at=NOW),
        changed(MESSAGE, lease_expires_at=NOW),
    ],
    "dag_job_messages_dead_has_reason": [changed(MESSAGE, status="dead")],
    "dag_callbacks_job_id_fkey": [rows.callback(job_id="missing")],
    "dag_orchestrators_pkey": [ORCHESTRATOR],
    "dag_workers_pkey": [WORKER],
    "platforms_pkey": [PLATFORM],
    "platforms_platform_id_form": [
        *(changed(PLATFORM, platform_id=wrong) for wrong in ("", "P", "1a", "a-b", "ä", "a b", "_a", "a\nb", "a\n"))
    ],
    "platforms_source_containers_form": [
        changed(PLATFORM, platform_id="q", source_containers=patterns)
        for patterns in (
            *(
                [],
                ["bronze/"],
                ["bronze/q"],
                ["/bronze/"],
                ["bronze//"],
                ["bronze/../"],
                ["bronze/q/./"],
                ["bronze", ""],
            ),
            *(["bronze\n"], ["a b"], ["bronze"] * 51),
        )
    ],
    "platforms_has_identity": [changed(PLATFORM, platform_id="q", required_refs=[])],
    "geospatial_assets_pkey": [rows.asset()],
    "geospatial_assets_platform_id_fkey": [changed(SECOND_ASSET, platform_id="missing")],
    "geospatial_assets_public_has_time": [
        changed(SECOND_ASSET, clearance_state="public", cleared_at=NOW, cleared_by="x", **given)
        for given in ({}, {"made_public_at": NOW}, {"made_public_by": "x"})
    ],
    "geospatial_assets_cleared_has_time": [
        changed(SECOND_ASSET, clearance_state="ouo", **given)
        for given in ({}, {"cleared_at": NOW}, {"cleared_by": "x"})
    ],
    "geospatial_assets_short_id_is_a_beginning": [changed(SECOND_ASSET, short_id="b" * 8)],
    "geospatial_assets_short_id_idx": [changed(rows.asset(SHORT_ID + "a" * 24), short_id=SHORT_ID)],
    "geospatial_assets_deleted_has_actor": [
        changed(SECOND_ASSET, deleted_at=NOW),
        changed(SECOND_ASSET, deleted_by="x"),
    ],
    "asset_versions_pkey": [changed(ONE_APPROVED, version_label="other")],
    "asset_versions_asset_id_fkey": [changed(THIRD, asset_id="b" * 32)],
    "asset_versions_current_job_id_fkey": [changed(THIRD, current_job_id="missing")],
    "asset_versions_ordinal_from_zero": [changed(THIRD, version_ordinal=-1)],
    "asset_versions_revision_from_one": [changed(THIRD, revision=0, approved_revision=0)],
    "asset_versions_approved_has_reviewer": [changed(THIRD, reviewer=None), changed(THIRD, reviewed_at=None)],
    "asset_versions_approved_has_revision": [changed(THIRD, approved_revision=None)],
    "asset_versions_approved_was_made": [changed(THIRD, approved_revision=2)],
    "asset_versions_seconded_by_another": [changed(THIRD, approved_by="ruth", seconded_by="ruth")],
    "asset_versions_endorsed_has_reviewer": [changed(THIRD, endorsed_revision=1), changed(THIRD, endorsed_by="ruth")],
    "asset_versions_revoked_is_rejected": [changed(THIRD, revoked_at=NOW)],
    "asset_versions_bbox_has_corners": [
        changed(THIRD, bbox=[1.0, 2.0, 3.0]),
        changed(THIRD, bbox=[0.0, 2.0, 0.0, 1.0]),
    ],
    "asset_versions_rejected_has_reason": [changed(THIRD, approval_state="rejected")],
    "asset_versions_failed_is_derived": [changed(THIRD, approval_state="failed")],
    "asset_versions_deleted_has_actor": [changed(THIRD, deleted_at=NOW), changed(THIRD, deleted_by="x")],
    "asset_versions_priority_range": [changed(THIRD, priority=11), changed(THIRD, priority=-1)],
    "asset_versions_one_unresolved": [
        rows.version(2),
        rows.version(2, approval_state="rejected", rejection_reason="bad"),
    ],
    "asset_versions_one_live_label": [changed(THIRD, version_label="label 0")],
    "asset_revisions_pkey": [REVISION],
    "asset_revisions_asset_id_version_ordinal_fkey": [changed(REVISION, version_ordinal=99)],
    "asset_revisions_failed_is_derived": [changed(REVISION, revision=2, approval_state="failed")],
    "platform_requests_pkey": [rows.request()],
    "platform_requests_failed_has_reason": [rows.request(OTHER_REQUEST, status="failed")],
    "platform_requests_platform_id_idempotency_key_idx": [rows.request(OTHER_REQUEST, idempotency_key="key")],
    "api_clients_pkey": [rows.client(key_hash="1" * 64)],
    "api_clients_key_hash_key": [rows.client("c2")],
    "api_clients_platform_id_fkey": [rows.client("c2", key_hash="1" * 64, platform_id="missing")],
    "api_clients_has_role": [rows.client("c2", key_hash="1" * 64, roles=[])],
    "api_clients_submitter_has_platform": [
        rows.client("c2", key_hash="1" * 64, roles=["submitter"]),
        rows.client("c2", key_hash="1" * 64, roles=["operator", "submitter"]),
    ],
    "layer_metadata_pkey": [METADATA],
    "layer_metadata_asset_id_version_ordinal_fkey": [changed(METADATA, version_ordinal=99)],
    "layer_metadata_temporal_order": [changed(METADATA, version_ordinal=1, temporal_start=LATER, temporal_end=NOW)],
    "layer_catalog_pkey": [CATALOG],
    "layer_catalog_asset_id_version_ordinal_fkey": [changed(CATALOG, version_ordinal=99)],
    "output_checks_pkey": [CHECKED],
    "output_checks_asset_id_version_ordinal_fkey": [changed(CHECKED, version_ordinal=99)],
    "output_checks_faults_are_a_list": [changed(CHECKED, audience="external", faults={})],
}
# Rows that look like forbidden ones and are allowed.
ALLOWED: list[Row] = [
    changed(LIVE, idempotency_key=None),
    rows.job("j2", status="failed", ended_at=NOW, error_message="e"),
    changed(TASK, status="dead", dead_reason="r", priority=10),
    changed(TASK, status="leased", leased_by="w", lease_expires_at=NOW),
    changed(THIRD, version_label="label 1"[:-1] + "9"),
    rows.version(2, deleted_at=NOW, deleted_by="x"),  # a deleted version is resolved
    changed(THIRD, version_label="label 0", deleted_at=NOW, deleted_by="x"),
    rows.request(OTHER_REQUEST, platform_id="arcgis", idempotency_key="key"),
    changed(PLATFORM, platform_id="q", source_containers=["bronze", "bronze/q/", "shared/a b/é.../%2e/"]),
    rows.request(OTHER_REQUEST, asset_id="c" * 32),  # a request outlives its asset
    rows.client("c2", key_hash="1" * 64, roles=["submitter"], platform_id="ddh"),
    changed(METADATA, version_ordinal=1, temporal_start=NOW, temporal_end=NOW),
    changed(NODE, children_total=3, children_started=2, children_done=1, children_failed=1),
]
NUMBERED = {"schema_deployments_pkey", "dag_task_results_pkey", "dag_job_events_pkey", "dag_callbacks_pkey"}


def _constraints() -> Iterator[str]:
    """Give the names of all that the models forbid."""
    for model in TABLES:
        name = model.table.name
        yield f"{name}_pkey"
        yield from (f"{name}_{'_'.join(columns)}_key" for columns in model.table.unique)
        yield from (f"{name}_{'_'.join(key.columns)}_fkey" for key in model.table.foreign_keys)
        yield from (f"{name}_{check.name}" for check in model.table.checks)
        yield from (index_name(name, index) for index in model.table.indexes if index.unique)
        yield from (f"{name}_{column.name}_range" for column in column_definitions(model, "dagapp") if column.checks)


def test_every_constraint_of_the_models_has_a_row_that_it_refuses() -> None:
    """Keys that the database numbers itself cannot be taken twice."""
    assert set(_constraints()) - NUMBERED == set(FORBIDDEN)


@pytest.fixture
async def with_sound_rows(shared_database: TestDatabase) -> AsyncIterator[AsyncConnection[Any]]:
    """Give a transaction of the administrator with one sound row of every table; it is rolled back."""
    async with (
        await AsyncConnection.connect(shared_database.url(), autocommit=True) as connection,
        connection.transaction(force_rollback=True),
    ):
        for row in SOUND:
            await _insert(connection, row)
        yield connection


async def _insert(connection: AsyncConnection[Any], row: Row) -> None:
    await connection.execute(statements.insert(type(row)), statements.parameters(row))


async def _refusal(connection: AsyncConnection[Any], row: Row) -> str | None:
    """Try to insert a row, and give the constraint that refused it."""
    try:
        async with connection.transaction(force_rollback=True):
            await _insert(connection, row)
    except psycopg.IntegrityError as error:
        return error.diag.constraint_name
    return None


async def test_each_constraint_refuses_its_rows_and_no_other_does(with_sound_rows: AsyncConnection[Any]) -> None:
    assert {type(row) for row in SOUND} == set(TABLES)
    outcomes = [(name, await _refusal(with_sound_rows, row), row) for name, each in FORBIDDEN.items() for row in each]
    assert [outcome for outcome in outcomes if outcome[0] != outcome[1]] == []


async def test_rows_that_are_sound_are_allowed(with_sound_rows: AsyncConnection[Any]) -> None:
    assert [(row, name) for row in ALLOWED if (name := await _refusal(with_sound_rows, row))] == []


async def test_a_text_longer_than_its_column_is_refused_not_cut(with_sound_rows: AsyncConnection[Any]) -> None:
    for row in (changed(LIVE, correlation_id="c" * 65), changed(CHECKPOINT, node_id="n2", artifacts=["a" * 1025])):
        with pytest.raises(psycopg.errors.StringDataRightTruncation):
            async with with_sound_rows.transaction():
                await _insert(with_sound_rows, row)


async def test_what_a_job_owns_goes_with_it_and_what_outlives_it_stays(with_sound_rows: AsyncConnection[Any]) -> None:
    await _insert(with_sound_rows, changed(THIRD, current_job_id="job"))
    await with_sound_rows.execute("DELETE FROM dagapp.dag_jobs WHERE job_id = 'job'")
    counts = await (
        await with_sound_rows.execute(
            "SELECT (SELECT count(*) FROM dagapp.dag_nodes), (SELECT count(*) FROM dagapp.dag_tasks),"
            " (SELECT count(*) FROM dagapp.dag_checkpoints), (SELECT count(*) FROM dagapp.dag_callbacks),"
            " (SELECT count(*) FROM dagapp.dag_job_events), (SELECT count(*) FROM dagapp.asset_versions),"
            " (SELECT count(current_job_id) FROM dagapp.asset_versions)"
        )
    ).fetchone()
    assert counts == (0, 0, 0, 0, 1, 3, 0)


@pytest.mark.parametrize("table", ["platforms", "geospatial_assets", "asset_versions", "dag_workflows"])
async def test_what_others_refer_to_cannot_be_deleted(with_sound_rows: AsyncConnection[Any], table: str) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        async with with_sound_rows.transaction():
            await with_sound_rows.execute(f"DELETE FROM dagapp.{table}".encode())
