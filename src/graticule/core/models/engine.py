"""The engine's tables: workflows, jobs, nodes, tasks, results, events, and the processes."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from graticule.core.ids import OwnerId
from graticule.core.models.fields import (
    APPEND,
    CHANGE,
    FULL,
    READ,
    AssetKey,
    BigInt,
    CreatedAt,
    ErrorText,
    Identity,
    JobKey,
    JsonObject,
    Label,
    Name,
    NodeKey,
    Path,
    Priority,
    Sha256,
    Short,
    TaskKey,
    Timestamp,
    Url,
    WorkerKey,
    WorkflowHashKey,
    WorkflowKey,
    granted,
)
from graticule.core.states import JobStatus, MessageStatus, NodeStatus, ResultStatus
from graticule.core.table import Check, ForeignKey, Index, MonthlyPartitions, Row, Table

OwnerKey = Annotated[OwnerId, Field(max_length=128)]


LEASE_IS_WHOLE = Check(
    "lease_is_whole",
    "CASE status WHEN 'leased' THEN leased_by IS NOT NULL AND lease_expires_at IS NOT NULL"
    " ELSE leased_by IS NULL AND lease_expires_at IS NULL END",
)


class NodeType(StrEnum):
    """What kind of step a node is."""

    START = "start"
    END = "end"
    TASK = "task"
    CONDITIONAL = "conditional"
    FAN_OUT = "fan_out"
    FAN_IN = "fan_in"


class JobPurpose(StrEnum):
    """What a job does for the asset version that it belongs to."""

    PROCESS = "process"
    EXPORT = "export"
    REVERSAL = "reversal"
    UNPUBLISH = "unpublish"


class EventType(StrEnum):
    """What an event tells of."""

    JOB_CREATED = "job_created"  # the job was submitted
    JOB_STARTED = "job_started"  # the first task was dispatched, or the job completed or failed without any
    JOB_COMPLETED = "job_completed"  # every node has ended and none failed
    JOB_FAILED = "job_failed"  # a node failed for good, or the engine could not go on
    JOB_CANCELLED = "job_cancelled"  # someone asked for it
    JOB_RESUMED = "job_resumed"  # a failed or cancelled job goes on, or starts over with another definition
    JOB_RECLAIMED = "job_reclaimed"  # another orchestrator took the job over
    NODE_READY = "node_ready"  # a task or fan-out may run
    NODE_DISPATCHED = "node_dispatched"  # its task is in the queue
    NODE_RUNNING = "node_running"  # it has run for a second; a fan-out: its children were made
    NODE_PROGRESS = "node_progress"  # the handler told how far it is
    NODE_COMPLETED = "node_completed"  # it completed
    NODE_FAILED = "node_failed"  # an attempt, or the node, failed
    NODE_RETRY = "node_retry"  # it is tried again after a while
    NODE_SKIPPED = "node_skipped"  # none of its edges is live
    NODE_WAITING_FOR_WORKER = "node_waiting_for_worker"  # its task waits in a queue that no live worker serves
    CHECKPOINT_SAVED = "checkpoint_saved"  # the handler saved a phase
    RESULT_IGNORED = "result_ignored"  # a result came for an attempt that is over
    CALLBACK_SENT = "callback_sent"  # a partner's server took it
    CALLBACK_FAILED = "callback_failed"  # a try did not reach a partner's server, or was not taken
    COMMAND_EXECUTED = "command_executed"  # someone gave a direct command, or changed a partner or a client
    ASSET_CREATED = "asset_created"  # a partner sent something of which there was nothing before
    ASSET_VERSION_ADDED = "asset_version_added"  # a partner sent a new version
    ASSET_VERSION_OVERWRITTEN = "asset_version_overwritten"  # a partner sent a version anew
    ASSET_VERSION_REPROCESSED = "asset_version_reprocessed"  # someone had the same source processed again
    ASSET_VERSION_DELETED = "asset_version_deleted"  # someone deleted a version; its rows stay
    ASSET_PROCESSING_STARTED = "asset_processing_started"  # the workflow of a version is under way
    ASSET_PROCESSING_COMPLETED = "asset_processing_completed"  # a version waits for its review
    ASSET_PROCESSING_FAILED = "asset_processing_failed"  # the workflow of a version failed
    ASSET_APPROVED = "asset_approved"  # a reviewer put a version into service
    ASSET_REJECTED = "asset_rejected"  # a reviewer sent a version back
    ASSET_ENDORSED = "asset_endorsed"  # one of two reviewers approved a version for the public
    ASSET_REVOKED = "asset_revoked"  # a reviewer took a version out of service
    ASSET_CLEARANCE_CHANGED = "asset_clearance_changed"  # someone said who may see the asset
    ASSET_UNPUBLISHED = "asset_unpublished"  # someone removed the asset from all services
    ASSET_REVIVED = "asset_revived"  # a partner sent data for an asset that was unpublished
    ASSET_VERSION_RETRIED = "asset_version_retried"  # someone had a version that failed processed again
    ASSET_URL_MODE_CHANGED = "asset_url_mode_changed"  # someone said which versions the addresses reach
    ASSET_METADATA_CHANGED = "asset_metadata_changed"  # someone described a version
    ASSET_EXPORT_COMPLETED = "asset_export_completed"  # the public copy of a version is there
    ASSET_EXPORT_FAILED = "asset_export_failed"  # the public copy of a version could not be made
    ASSET_REVERSAL_COMPLETED = "asset_reversal_completed"  # the public copy of a version is gone
    ASSET_REVERSAL_FAILED = "asset_reversal_failed"  # the public copy of a version could not be removed
    ASSET_UNPUBLISH_COMPLETED = "asset_unpublish_completed"  # all copies of an asset are gone
    ASSET_UNPUBLISH_FAILED = "asset_unpublish_failed"  # copies of an asset could not be removed


class Workflow(Row):
    """A compiled workflow, kept by content hash: a job runs and shows the graph that it started with."""

    table: ClassVar = Table(
        name="dag_workflows",
        primary_key=("workflow_hash",),
        indexes=(Index(("workflow_id", "created_at DESC")),),
        grants=granted(orchestrator=APPEND | {"DELETE"}),
    )

    workflow_hash: WorkflowHashKey
    workflow_id: WorkflowKey
    version: Short
    name: Label
    definition: JsonObject
    created_at: CreatedAt


class DefinitionSource(StrEnum):
    """Where an orchestrator found the file of a workflow."""

    SHIPPED = "shipped"  # part of Graticule
    PACKAGE = "package"  # of an installed package
    FOLDER = "folder"  # of a folder of GRATICULE_WORKFLOWS


class WorkflowDefinition(Row):
    """A workflow as an orchestrator announced it to the others; the current one of each id is what new jobs run."""

    table: ClassVar = Table(
        name="dag_definitions",
        primary_key=("workflow_id", "workflow_hash"),
        indexes=(Index(("workflow_id",), unique=True, where="superseded_at IS NULL", name="dag_definitions_current"),),
        grants=granted(orchestrator=FULL),
    )

    workflow_id: WorkflowKey
    workflow_hash: WorkflowHashKey
    definition: JsonObject = Field(description="The compiled graph, without the values that are the default.")
    source: DefinitionSource
    file: Path | None = Field(None, description="On the machine of the orchestrator that announced it.")
    program_version: Name = Field(description="The release of the orchestrator that announced it.")
    announced_by: OwnerKey
    reloaded_by: Name | None = Field(None, description="Who asked for the reload that announced it, if it was one.")
    announced_at: CreatedAt
    superseded_at: Timestamp | None = Field(None, description="When another became current; null for the current one.")


class Job(Row):
    """One run of a workflow."""

    table: ClassVar = Table(
        name="dag_jobs",
        primary_key=("job_id",),
        foreign_keys=(
            ForeignKey(("workflow_hash",), "dag_workflows", ("workflow_hash",)),
            ForeignKey(("asset_id", "version_ordinal"), "asset_versions", ("asset_id", "version_ordinal")),
        ),
        checks=(
            Check("ended_has_time", "(status IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)"),
            Check("failed_has_reason", "status <> 'failed' OR error_message IS NOT NULL"),
            Check("version_needs_asset", "(asset_id IS NULL) = (version_ordinal IS NULL)"),
            Check("purpose_needs_asset", "(asset_id IS NULL) = (purpose IS NULL)"),
        ),
        indexes=(
            Index(("idempotency_key",), unique=True, where="idempotency_key IS NOT NULL"),
            Index(
                ("owner_id",),
                where="status IN ('pending', 'running')",
                comment="An orchestrator reads only its own active jobs.",
            ),
            Index(
                ("owner_id",),
                where="cancel_requested_at IS NOT NULL AND status IN ('pending', 'running')",
                name="dag_jobs_to_cancel",
            ),
            Index(
                ("job_id text_pattern_ops",),
                name="dag_jobs_beginning",
                comment="Jobs by the beginning of their ids, whatever the collation of the database.",
            ),
            Index(("status", "created_at DESC", "job_id DESC"), comment="Lists by status, keyset paged."),
            Index(("workflow_id", "created_at DESC", "job_id DESC")),
            Index(("submitted_by", "created_at DESC", "job_id DESC"), where="submitted_by IS NOT NULL"),
            Index(("created_at DESC", "job_id DESC")),
            Index(("asset_id", "version_ordinal"), where="asset_id IS NOT NULL"),
            Index(
                ("correlation_id", "created_at DESC", "job_id DESC"),
                where="correlation_id IS NOT NULL",
                name="dag_jobs_correlation_id_idx",  # by the same name, a migration makes it anew
            ),
            Index(("ended_at",), where="ended_at IS NOT NULL", comment="What retention may remove."),
        ),
        grants=granted(orchestrator=FULL, worker=READ),  # a worker tells a job's owner of its results
    )

    job_id: JobKey
    workflow_id: WorkflowKey
    workflow_version: Short
    workflow_hash: WorkflowHashKey
    status: JobStatus = JobStatus.PENDING
    priority: Priority = 0
    input_params: JsonObject = Field(default_factory=dict)
    result: JsonValue = None
    result_ref: Path | None = Field(None, description="Where a result too large for the row is stored.")
    error_message: str | None = None
    correlation_id: Short | None = None
    submitted_by: Short | None = None
    callback_url: Url | None = None
    idempotency_key: Short | None = None
    traceparent: Short | None = None
    asset_id: AssetKey | None = None
    version_ordinal: int | None = None
    purpose: JobPurpose | None = Field(None, description="What it does for its asset version.")
    share: Short = Field(
        "", description="The partner whose turns its tasks take; empty when priority alone orders them."
    )
    owner_id: OwnerKey | None = Field(None, description="The orchestrator that decides for this job.")
    owner_epoch: BigInt = Field(
        0, description="Raised by every change of owner; a write that carries an older one is void."
    )
    cancel_requested_at: Timestamp | None = None
    cancel_requested_by: Name | None = None
    created_at: CreatedAt
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    updated_at: CreatedAt


class Node(Row):
    """A step of a job: one of the YAML's, or a child that a fan-out made."""

    table: ClassVar = Table(
        name="dag_nodes",
        primary_key=("job_id", "node_id"),
        foreign_keys=(ForeignKey(("job_id",), "dag_jobs", ("job_id",), on_delete="CASCADE"),),
        checks=(
            Check("ended_has_time", "(status IN ('completed', 'failed', 'skipped')) = (ended_at IS NOT NULL)"),
            Check("failed_has_reason", "status <> 'failed' OR error_message IS NOT NULL"),
            Check("child_has_index", "(parent_node_id IS NULL) = (fan_out_index IS NULL)"),
            Check("deadline_while_under_way", "deadline_at IS NULL OR status IN ('dispatched', 'running')"),
            Check(
                "counters_agree",
                "children_done >= 0 AND children_failed >= 0 AND children_done + children_failed <= children_started"
                " AND children_started <= children_total",
            ),
        ),
        indexes=(
            Index(
                ("deadline_at",),
                where="status IN ('dispatched', 'running') AND deadline_at IS NOT NULL",
                comment="Only what has expired is read.",
            ),
            Index(
                ("job_id",),
                where="parent_node_id IS NULL",
                name="dag_nodes_static",
                comment="The nodes of the workflow itself, beside any number of children.",
            ),
            Index(("ready_at",), where="status = 'ready'", comment="Retries whose backoff is over."),
            Index(
                ("job_id", "parent_node_id", "fan_out_index"),
                unique=True,
                where="parent_node_id IS NOT NULL",
                comment="The children of a fan-out in index order.",
            ),
        ),
        grants=granted(orchestrator=FULL),
    )

    job_id: JobKey
    node_id: NodeKey
    node_type: NodeType
    status: NodeStatus = NodeStatus.PENDING
    handler: Name | None = None
    queue: Short | None = None
    parent_node_id: NodeKey | None = None
    fan_out_index: int | None = None
    fan_out_key: Label | None = None
    input_params: JsonObject | None = None
    output: JsonValue = None
    output_ref: Path | None = Field(None, description="Where an output too large for the row is stored.")
    error_message: str | None = None
    retry_count: int = 0
    retry_base: int = Field(0, description="The count at which the present retry budget began.")
    task_id: TaskKey | None = Field(None, description="The attempt under way; a result of another one is ignored.")
    worker_id: WorkerKey | None = None
    progress: JsonObject | None = None
    children_total: int = 0
    children_started: int = Field(0, description="Released to a queue: always the first so many, by index.")
    children_done: int = 0
    children_failed: int = 0
    ready_at: Timestamp | None = None
    dispatched_at: Timestamp | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    deadline_at: Timestamp | None = None


class Task(Row):
    """One attempt of one node: the queue of the PostgreSQL transport and the outbox of the others."""

    table: ClassVar = Table(
        name="dag_tasks",
        primary_key=("task_id",),
        foreign_keys=(ForeignKey(("job_id",), "dag_jobs", ("job_id",), on_delete="CASCADE"),),
        checks=(
            LEASE_IS_WHOLE,
            Check("dead_has_reason", "status <> 'dead' OR dead_reason IS NOT NULL"),
        ),
        indexes=(
            Index(
                ("queue", "priority DESC", "turn", "available_at", "task_id"),
                where="status = 'queued'",
                comment="What a worker claims next.",
            ),
            Index(
                ("queue", "priority", "share", "turn"),
                where="status = 'queued'",
                include=("available_at",),  # whoever counts what waits may read this index alone
                comment="The last turn of a share, behind which its next tasks line up.",
            ),
            Index(("lease_expires_at",), where="status = 'leased'", comment="Leases that ran out."),
            Index(
                ("created_at",),
                where="status = 'queued' AND sent_at IS NULL",
                comment="What an outbox sends next.",
            ),
            Index(("queue", "created_at DESC"), where="status = 'dead'", comment="The dead letters."),
            Index(("job_id", "node_id")),
        ),
        grants=granted(orchestrator=FULL, worker=frozenset({"SELECT", "UPDATE"})),
    )

    task_id: TaskKey
    job_id: JobKey
    node_id: NodeKey
    queue: Short
    handler: Name
    params: JsonObject = Field(default_factory=dict)
    status: MessageStatus = MessageStatus.QUEUED
    priority: Priority = 0
    share: Short = Field("", description="As its job's; of one priority, shares take turns.")
    turn: BigInt = Field(0, description="Its place among the tasks of its queue and priority.")
    retry_count: int = 0
    timeout_seconds: int = 3600
    max_deliveries: int = 10
    delivery_count: int = 0
    available_at: CreatedAt
    sent_at: Timestamp | None = Field(None, description="When the broker of another transport took it.")
    leased_by: WorkerKey | None = None
    lease_expires_at: Timestamp | None = None
    dead_reason: str | None = None
    traceparent: Short | None = None
    report_hash: Sha256 | None = Field(None, description="Of the report by HTTP that counted: another one is refused.")
    created_at: CreatedAt


class TaskResult(Row):
    """What a worker reported of a task; processed in the transaction that acts on it."""

    table: ClassVar = Table(
        name="dag_task_results",
        primary_key=("result_id",),
        indexes=(
            Index(
                ("job_id", "result_id"),
                where="processed_at IS NULL",
                comment="What the owner has yet to act on.",
            ),
            Index(("processed_at",), method="brin", comment="What retention may remove."),
        ),
        grants=granted(orchestrator=FULL, worker=APPEND),
    )

    result_id: Identity = None
    task_id: TaskKey
    job_id: JobKey
    node_id: NodeKey
    status: ResultStatus
    output: JsonValue = None
    output_ref: Path | None = None
    error_message: str | None = None
    retryable: bool = True
    progress: JsonObject | None = None
    checkpoint: Name | None = Field(None, description="The phase that the task saved; a running report.")
    metrics: JsonObject | None = None
    worker_id: WorkerKey | None = None
    reported_at: CreatedAt
    processed_at: Timestamp | None = None


class Event(Row):
    """The audit trail: every transition of a job, node or asset, in the transaction that made it."""

    table: ClassVar = Table(
        name="dag_job_events",
        primary_key=("event_id", "created_at"),
        partitions=MonthlyPartitions("created_at"),
        indexes=(
            Index(("job_id", "event_id"), where="job_id IS NOT NULL"),
            Index(("asset_id", "event_id"), where="asset_id IS NOT NULL"),
            Index(
                ("created_at DESC", "asset_id DESC", "version_ordinal DESC"),
                where="event_type IN ('asset_export_failed', 'asset_reversal_failed', 'asset_unpublish_failed')",
                name="dag_job_events_failed_publications",
                comment="Copies that could not be made or removed, newest first.",
            ),
            Index(("created_at",), method="brin"),
        ),
        grants=granted(orchestrator=APPEND | {"DELETE"}),
    )

    event_id: Identity = None
    event_type: EventType
    job_id: JobKey | None = None
    node_id: NodeKey | None = None
    task_id: TaskKey | None = None
    asset_id: AssetKey | None = None
    version_ordinal: int | None = None
    actor: Name | None = Field(None, description="Who did it: a person, a client, or a process.")
    owner_epoch: BigInt | None = Field(None, description="The term of the job's owner in which it was written.")
    data: JsonObject = Field(default_factory=dict)
    created_at: CreatedAt


class Checkpoint(Row):
    """The last phase that a node's handler saved; the next attempt resumes after it."""

    table: ClassVar = Table(
        name="dag_checkpoints",
        primary_key=("job_id", "node_id"),
        foreign_keys=(ForeignKey(("job_id",), "dag_jobs", ("job_id",), on_delete="CASCADE"),),
        grants=granted(orchestrator=FULL, worker=CHANGE),
    )

    job_id: JobKey
    node_id: NodeKey
    task_id: TaskKey
    phase: Name
    data: JsonObject = Field(default_factory=dict)
    artifacts: list[Path] = Field(default_factory=list)
    saved_at: CreatedAt


class HeldPrefix(Row):
    """A prefix of the storage that a task holds by way of an orchestrator, while it puts its outputs there."""

    table: ClassVar = Table(
        name="dag_held_prefixes",
        primary_key=("prefix",),
        foreign_keys=(ForeignKey(("task_id",), "dag_tasks", ("task_id",), on_delete="CASCADE"),),
        indexes=(Index(("task_id",)),),
        grants=granted(orchestrator=FULL, worker=READ),  # a worker with a database waits until it is free
    )

    prefix: Path
    hold_id: Short = Field(description="Chosen by whoever asked: of two holds of one task, one is over.")
    task_id: TaskKey
    worker_id: WorkerKey
    delivery_count: int
    expires_at: Timestamp


class JobMessage(Row):
    """A job that was asked for by message and that no orchestrator has taken yet."""

    table: ClassVar = Table(
        name="dag_job_messages",
        primary_key=("message_id",),
        checks=(
            LEASE_IS_WHOLE,
            Check("dead_has_reason", "status <> 'dead' OR dead_reason IS NOT NULL"),
        ),
        indexes=(
            Index(("queue", "priority DESC", "available_at", "message_id"), where="status = 'queued'"),
            Index(("lease_expires_at",), where="status = 'leased'"),
            Index(("queue", "created_at DESC"), where="status = 'dead'"),
            Index(
                ("(body ->> 'workflow_id')",),
                where="status = 'dead' AND starts_with(dead_reason, 'There is no workflow ')",
                name="dag_job_messages_unknown_workflow",
                comment="Taken up again once the workflow is known.",
            ),
        ),
        grants=granted(orchestrator=FULL),
    )

    message_id: Short
    queue: Short
    body: JsonObject
    status: MessageStatus = MessageStatus.QUEUED
    priority: Priority = 0
    max_deliveries: int = 10
    delivery_count: int = 0
    available_at: CreatedAt
    leased_by: OwnerKey | None = None
    lease_expires_at: Timestamp | None = None
    dead_reason: str | None = None
    unknown_since: Timestamp | None = Field(
        None, description="When an orchestrator first found that it does not know the workflow."
    )
    created_at: CreatedAt


class Callback(Row):
    """The outbox of callbacks to those who asked for a job."""

    table: ClassVar = Table(
        name="dag_callbacks",
        primary_key=("callback_id",),
        foreign_keys=(ForeignKey(("job_id",), "dag_jobs", ("job_id",), on_delete="CASCADE"),),
        indexes=(
            Index(("job_id",)),
            Index(
                ("next_attempt_at",),
                where="delivered_at IS NULL AND given_up_at IS NULL",
                comment="What is to be sent next.",
            ),
        ),
        grants=granted(orchestrator=FULL),
    )

    callback_id: Identity = None
    job_id: JobKey
    url: Url
    payload: JsonObject
    attempt_count: int = 0
    next_attempt_at: CreatedAt
    last_error: str | None = None
    delivered_at: Timestamp | None = None
    given_up_at: Timestamp | None = None
    created_at: CreatedAt


class Orchestrator(Row):
    """One row per orchestrator process, with its heartbeat."""

    table: ClassVar = Table(
        name="dag_orchestrators",
        primary_key=("owner_id",),
        indexes=(Index(("heartbeat_at",), where="stopped_at IS NULL"),),
        grants=granted(orchestrator=FULL),
    )

    owner_id: OwnerKey
    hostname: Label
    process_id: int
    program_version: Name
    lock_key: BigInt = Field(description="The advisory lock that its session holds; free as soon as the session ends.")
    workflows: JsonObject = Field(
        default_factory=dict, description="The workflows of its own files, by id, with the hash of each."
    )
    workflow_problems: list[ErrorText] = Field(
        default_factory=list, description="What keeps files of workflows from being used there; the first of them."
    )
    started_at: CreatedAt
    heartbeat_at: CreatedAt
    stopped_at: Timestamp | None = None


class Worker(Row):
    """One row per worker process, with its heartbeat."""

    table: ClassVar = Table(
        name="dag_workers",
        primary_key=("worker_id",),
        indexes=(Index(("heartbeat_at",), where="stopped_at IS NULL"),),
        grants=granted(orchestrator=FULL, worker=CHANGE),
    )

    worker_id: WorkerKey
    hostname: Label
    process_id: int
    program_version: Name
    queues: list[Short]
    handlers: list[Name] = Field(default_factory=list)
    concurrency: int
    started_at: CreatedAt
    heartbeat_at: CreatedAt
    stopped_at: Timestamp | None = None
