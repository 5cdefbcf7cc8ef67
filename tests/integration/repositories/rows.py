"""Rows for the tests: plain ones to build on, and a rich one of every model."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg

from graticule.core.audience import Audience
from graticule.core.ids import AssetId, ClientId, JobId, NodeId, OwnerId, TaskId, WorkerId, WorkflowHash, WorkflowId
from graticule.core.models import (
    ApiClient,
    AssetRevision,
    AssetVersion,
    Callback,
    Checkpoint,
    Event,
    GeospatialAsset,
    HeldPrefix,
    Job,
    JobMessage,
    LayerCatalog,
    LayerMetadata,
    Node,
    Orchestrator,
    OutputCheck,
    Platform,
    PlatformRequest,
    SchemaDeployment,
    Task,
    TaskResult,
    Worker,
    Workflow,
    WorkflowDefinition,
)
from graticule.core.models.engine import DefinitionSource, EventType, JobPurpose, NodeType
from graticule.core.models.platform import ClientRole, DataType, UrlMode
from graticule.core.states import (
    ApprovalState,
    ClearanceState,
    JobStatus,
    MessageStatus,
    NodeStatus,
    ProcessingState,
    RequestStatus,
    ResultStatus,
)
from graticule.core.table import Row
from graticule.repositories import statements

NOW = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)
LATER = NOW + timedelta(minutes=7)
ELSEWHERE = datetime(2026, 3, 14, 20, 54, 26, 535897, tzinfo=timezone(timedelta(hours=5, minutes=45)))  # the same time
HASH = WorkflowHash("ab" * 32)
ASSET = AssetId("0123456789abcdef0123456789abcdef")
OWNER = OwnerId("orchestrator-1")
REQUEST = UUID("6f1f6b0e-5d5b-4d5c-9f66-0b8f0f5f2a11")
NASTY = "Zürich 地図 🗺 'quoted' \"double\" back\\slash {brace},comma\ttab\nline; DROP TABLE x; -- %s %(a)s NULL"
NESTED: dict[str, Any] = {
    NASTY: [1, 2.5, True, None, {"deep": [[], {}, ""]}],
    "empty": {},
    "null": None,
    "false": False,
    "zero": 0,
    "large": 2**62,
}


def workflow(**changes: Any) -> Workflow:
    values = {"workflow_hash": HASH, "workflow_id": "flow", "version": "1", "name": "Flow", "definition": {}}
    return Workflow(**{**values, "created_at": NOW, **changes})


def workflow_definition(**changes: Any) -> WorkflowDefinition:
    values = {"workflow_id": "flow", "workflow_hash": HASH, "definition": {}, "source": DefinitionSource.FOLDER}
    return WorkflowDefinition(
        **{**values, "program_version": "1", "announced_by": OWNER, "announced_at": NOW, **changes}
    )


def job(job_id: str = "job", **changes: Any) -> Job:
    values = {"workflow_id": "flow", "workflow_version": "1", "workflow_hash": HASH, "created_at": NOW}
    return Job(**{**values, "job_id": job_id, "updated_at": NOW, **changes})


def add_job(connection: psycopg.Connection[Any], job_id: str) -> None:
    """Insert a hand-made job with its workflow, unless they are there."""
    for row in (workflow(), job(job_id)):
        key = {name: getattr(row, name) for name in row.table.primary_key}
        if connection.execute(statements.select_by_key(type(row)), key).fetchone() is None:
            connection.execute(statements.insert(type(row)), statements.parameters(row))


def node(node_id: str = "node", **changes: Any) -> Node:
    return Node(**{"job_id": "job", "node_id": node_id, "node_type": NodeType.TASK, **changes})


def task(task_id: str = "job_node_0", **changes: Any) -> Task:
    values = {"job_id": "job", "node_id": "node", "queue": "q", "handler": "echo", "available_at": NOW}
    return Task(**{**values, "task_id": task_id, "created_at": NOW, **changes})


def result(**changes: Any) -> TaskResult:
    values = {"task_id": "job_node_0", "job_id": "job", "node_id": "node", "status": ResultStatus.COMPLETED}
    return TaskResult(**{**values, "reported_at": NOW, **changes})


def event(**changes: Any) -> Event:
    return Event(**{"event_type": EventType.JOB_CREATED, "job_id": "job", "created_at": NOW, **changes})


def message(message_id: str = "message", **changes: Any) -> JobMessage:
    values = {"queue": "orchestrator-jobs", "body": {}, "available_at": NOW, "created_at": NOW}
    return JobMessage(**{**values, "message_id": message_id, **changes})


def callback(**changes: Any) -> Callback:
    values = {"job_id": "job", "url": "https://example.org", "payload": {}, "next_attempt_at": NOW}
    return Callback(**{**values, "created_at": NOW, **changes})


def asset(asset_id: str = ASSET, **changes: Any) -> GeospatialAsset:
    values = {"platform_id": "ddh", "platform_refs": {"dataset_id": "d"}, "data_type": DataType.RASTER}
    return GeospatialAsset(**{**values, "asset_id": asset_id, "created_at": NOW, "updated_at": NOW, **changes})


def version(version_ordinal: int = 0, **changes: Any) -> AssetVersion:
    values = {"asset_id": ASSET, "version_label": f"label {version_ordinal}", "created_at": NOW, "updated_at": NOW}
    return AssetVersion(**{**values, "version_ordinal": version_ordinal, **changes})


def request(request_id: UUID = REQUEST, **changes: Any) -> PlatformRequest:
    values = {"platform_id": "ddh", "asset_id": ASSET, "version_ordinal": 0, "request_body": {}, "created_at": NOW}
    return PlatformRequest(**{**values, "request_id": request_id, "updated_at": NOW, **changes})


def client(client_id: str = "client", **changes: Any) -> ApiClient:
    values = {"display_name": "C", "key_hash": "0" * 64, "roles": [ClientRole.OPERATOR], "created_at": NOW}
    return ApiClient(**{**values, "client_id": client_id, "updated_at": NOW, **changes})


APPROVED: dict[str, Any] = {
    "approval_state": ApprovalState.APPROVED,
    "reviewer": "r",
    "reviewed_at": NOW,
    "approved_revision": 1,
}


def rich_rows() -> list[Row]:
    """Give one row of every model with every field set, in an order in which they can be inserted."""
    return [*_rich_engine(), *_rich_queue(), *_rich_platform()]


def parents() -> list[Row]:
    """Give the rows that the rich ones refer to."""
    return [workflow(workflow_hash=WorkflowHash("cd" * 32)), asset("f" * 32), version(asset_id="f" * 32, **APPROVED)]


def _rich_engine() -> list[Row]:
    return [
        SchemaDeployment(
            fingerprint="12" * 32, program_version="1.2.3+ü", deployed_by=NASTY[:128], deployed_at=ELSEWHERE
        ),
        workflow(
            workflow_hash=HASH,
            workflow_id=WorkflowId("w" * 64),
            version="1.0-ß",
            name=NASTY,
            definition=NESTED,
            created_at=ELSEWHERE,
        ),
        workflow_definition(
            workflow_id=WorkflowId("w" * 64),
            definition=NESTED,
            source=DefinitionSource.PACKAGE,
            file="/srv/ü.yaml",
            program_version="1.2.3+ü",
            reloaded_by=NASTY[:128],
            announced_at=ELSEWHERE,
            superseded_at=LATER,
        ),
        Job(
            job_id=JobId("jöb '1'"),
            workflow_id=WorkflowId("flow_1"),
            workflow_version="2",
            workflow_hash=WorkflowHash("cd" * 32),
            status=JobStatus.FAILED,
            priority=10,
            input_params=NESTED,
            result=["a", None, {"b": NASTY}],
            result_ref="outputs/ü",
            error_message=NASTY * 50,
            correlation_id="c" * 64,
            submitted_by="Zoë",
            callback_url="https://example.org/?a=%20",
            idempotency_key="key",
            traceparent="00-" + "a" * 32,
            asset_id=AssetId("f" * 32),
            version_ordinal=0,
            purpose=JobPurpose.PROCESS,
            owner_id=OWNER,
            owner_epoch=2**62,
            cancel_requested_at=ELSEWHERE,
            cancel_requested_by="Zoë",
            created_at=ELSEWHERE,
            started_at=NOW,
            ended_at=LATER,
            updated_at=LATER,
        ),
        Node(
            job_id=JobId("jöb '1'"),
            node_id=NodeId("split__0"),
            node_type=NodeType.FAN_OUT,
            status=NodeStatus.FAILED,
            handler="raster.validate",
            queue="container-tasks",
            parent_node_id=NodeId("split"),
            fan_out_index=0,
            fan_out_key=NASTY[:255],
            input_params=NESTED,
            output=0,
            output_ref="a/b/ç",
            error_message="",
            retry_count=3,
            retry_base=2,
            task_id=TaskId("t"),
            worker_id=WorkerId("w"),
            progress={"done": 1},
            children_total=4,
            children_started=3,
            children_done=1,
            children_failed=2,
            ready_at=ELSEWHERE,
            dispatched_at=NOW,
            started_at=NOW,
            ended_at=LATER,
        ),
        node(job_id="jöb '1'", node_id="under_way", status=NodeStatus.RUNNING, deadline_at=LATER),
        event(
            job_id="jöb '1'",
            event_type=EventType.ASSET_REVIVED,
            node_id="n",
            task_id="t",
            asset_id=ASSET,
            version_ordinal=2,
            owner_epoch=2**40,
            actor=NASTY[:128],
            data=NESTED,
            created_at=ELSEWHERE,
        ),
        Checkpoint(
            job_id=JobId("jöb '1'"),
            node_id=NodeId("n"),
            task_id=TaskId("t"),
            phase="фаза",
            data=NESTED,
            artifacts=[NASTY, "", "NULL", "{}", "a,b"],
            saved_at=ELSEWHERE,
        ),
    ]


def _rich_queue() -> list[Row]:
    lease: dict[str, Any] = {"status": MessageStatus.LEASED, "leased_by": "w", "lease_expires_at": ELSEWHERE}
    process: dict[str, Any] = {"hostname": "hôst", "process_id": 4194304, "program_version": "1", "started_at": NOW}
    return [
        Task(
            task_id=TaskId("t" * 224),
            job_id=JobId("jöb '1'"),
            node_id=NodeId("n" * 128),
            queue="q",
            handler="h",
            params=NESTED,
            priority=10,
            retry_count=1,
            timeout_seconds=1,
            max_deliveries=2,
            delivery_count=3,
            available_at=ELSEWHERE,
            sent_at=NOW,
            dead_reason=NASTY,
            traceparent="00",
            report_hash="0" * 64,
            created_at=NOW,
            **lease,
        ),
        HeldPrefix(
            prefix="p" * 1024,
            hold_id="h" * 64,
            task_id=TaskId("t" * 224),
            worker_id=WorkerId("w"),
            delivery_count=2**31 - 1,
            expires_at=ELSEWHERE,
        ),
        result(
            job_id="jöb '1'",
            status=ResultStatus.CANCELLED,
            output=False,
            output_ref="r",
            error_message=NASTY,
            retryable=False,
            progress={"done": 1},
            checkpoint="phase",
            metrics=NESTED,
            worker_id="w",
            reported_at=ELSEWHERE,
            processed_at=LATER,
        ),
        message(
            body=NESTED,
            priority=9,
            max_deliveries=1,
            delivery_count=1,
            dead_reason=NASTY,
            unknown_since=LATER,
            **lease,
        ),
        callback(
            job_id="jöb '1'",
            payload=NESTED,
            attempt_count=7,
            last_error=NASTY,
            delivered_at=ELSEWHERE,
            given_up_at=LATER,
        ),
        Orchestrator(owner_id=OWNER, lock_key=-(2**62), heartbeat_at=ELSEWHERE, stopped_at=LATER, **process),
        Worker(
            worker_id=WorkerId("w"),
            queues=["a", "b c", 'd"e'],
            handlers=["echo", "räster"],
            concurrency=8,
            heartbeat_at=ELSEWHERE,
            stopped_at=LATER,
            **process,
        ),
    ]


def _rich_platform() -> list[Row]:
    times: dict[str, Any] = {"created_at": ELSEWHERE, "updated_at": LATER}
    key: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 7}
    return [
        Platform(
            platform_id="partner_9",
            display_name=NASTY,
            description=NASTY,
            required_refs=["Ж", "b,c", 'd"e', "f\\g"],
            optional_refs=["NULL"],
            version_ref="v",
            is_active=False,
            **times,
        ),
        asset(
            short_id=ASSET[:8],
            platform_id="partner_9",
            platform_refs=NESTED,
            data_type=DataType.VECTOR,
            clearance_state=ClearanceState.PUBLIC,
            cleared_at=ELSEWHERE,
            cleared_by="Zoë",
            made_public_at=LATER,
            made_public_by="Ö",
            clearance_changed_at=LATER,
            clearance_changed_by="Ö",
            url_mode=UrlMode.ALL_VERSIONS,
            latest_approved_version_ordinal=7,
            deleted_at=LATER,
            deleted_by="x",
            version=41,
            **times,
        ),
        _rich_version(key, times),
        AssetRevision(
            revision=2,
            job_id=JobId("gone"),
            content_hash="34" * 32,
            output_hash="56" * 32,
            outputs=NESTED,
            approval_state=ApprovalState.REJECTED,
            clearance_state=ClearanceState.OUO,
            reviewer="Zoë",
            reviewed_at=LATER,
            rejection_reason=NASTY,
            revoked_at=LATER,
            processing_state=ProcessingState.COMPLETED,
            processing_started_at=ELSEWHERE,
            processing_completed_at=LATER,
            last_error=NASTY,
            told_error=NASTY,
            validation=NESTED,
            created_at=ELSEWHERE,
            superseded_at=LATER,
            **key,
        ),
        request(
            version_ordinal=7,
            request_body=NESTED,
            status=RequestStatus.FAILED,
            job_id="jöb '1'",
            retry_count=2,
            last_error=NASTY,
            submitted_by="Zoë",
            idempotency_key="key",
            **times,
        ),
        ApiClient(
            client_id=ClientId("client"),
            display_name=NASTY,
            key_hash="78" * 32,
            platform_id="partner_9",
            roles=list(ClientRole),
            is_active=False,
            last_used_at=ELSEWHERE,
            **times,
        ),
        LayerMetadata(
            title=NASTY,
            description=NASTY,
            keywords=["Ж", "b,c"],
            attribution="©",
            licence="CC-BY",
            temporal_start=NOW,
            temporal_end=LATER,
            bands=[NESTED, {}],
            style=NESTED,
            version=3,
            updated_by="Zoë",
            **key,
            **times,
        ),
        LayerCatalog(entry=NESTED, is_external=True, published_at=ELSEWHERE, published_by="Zoë", **key),
        OutputCheck(
            audience=Audience.EXTERNAL,
            revision=2,
            checked_at=NOW,
            hashed_at=ELSEWHERE,
            files_mark="a" * 64,
            faults=[NESTED, {}],
            **key,
        ),
    ]


def _rich_version(key: dict[str, Any], times: dict[str, Any]) -> AssetVersion:
    return AssetVersion(
        version_label=NASTY,
        approval_state=ApprovalState.REJECTED,
        reviewer="Zoë",
        reviewed_at=ELSEWHERE,
        rejection_reason=NASTY,
        revoked_at=LATER,
        approved_revision=1,
        approved_by="Ölga",
        seconded_by="Zoë",
        endorsed_revision=2,
        endorsed_by="Zoë",
        endorsed_at=NOW,
        bbox=[5.9559, 45.818, 10.4921, 47.8084],
        processing_state=ProcessingState.FAILED,
        processing_started_at=NOW,
        processing_completed_at=LATER,
        estimated_completion_at=LATER,
        last_error=NASTY,
        told_error=NASTY,
        validation=NESTED,
        node_summary=NESTED,
        current_job_id=JobId("jöb '1'"),
        job_count=4,
        workflow_id=WorkflowId("flow_1"),
        workflow_version="2",
        last_request_id=REQUEST,
        priority=5,
        content_hash="9a" * 32,
        output_hash="bc" * 32,
        revision=3,
        blob_path="a/b",
        table_name="geo_t",
        stac_item_id="i",
        stac_collection_id="c",
        item_hash="de" * 32,
        external_blob_path="x",
        external_item_hash="f0" * 32,
        export_run_id="run",
        exported_revision=1,
        first_approved_at=NOW,
        first_exported_at=LATER,
        deleted_at=LATER,
        deleted_by="Zoë",
        **key,
        **times,
    )
