"""Jobs: submit, cancel, resume."""

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from graticule.config import DEFAULT_PARTNER_MAX_PRIORITY
from graticule.core.compatibility import translate_inputs, translate_job
from graticule.core.errors import Conflict, Refused
from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId, JobId
from graticule.core.models import Job, Workflow
from graticule.core.models.fields import Priority, Short, Url
from graticule.core.refusals import Refusal
from graticule.core.states import JobStatus
from graticule.dag.graph import Graph
from graticule.dag.inputs import deterministic_job_id, validate_inputs
from graticule.dag.state import Decision, JobState, NodeState, Resumed, StartedOver, Submitted
from graticule.repositories.assets import AssetRepository
from graticule.repositories.database import Connection, Database, after_commit
from graticule.repositories.jobs import JobRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.steps import AssetWork, JobRow, JobSnapshot, StepRepository, document
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.callback_targets import check_callback_url
from graticule.services.decided_jobs import DecidedJob
from graticule.services.direct_outputs import check_direct_outputs
from graticule.services.gathering import Gathering
from graticule.services.step_reading import Wake
from graticule.services.step_traces import begun_step, end_steps, trace_of_new_job
from graticule.services.step_writing import write_decisions
from graticule.services.steps import StepService
from graticule.services.unserved_queues import queues_of
from graticule.services.workflows import Workflows

MOST_AT_ONCE: Final = 100  # submissions in one transaction
Text = Annotated[Short, Field(min_length=1)]


class Submission(BaseModel):
    """A job that someone asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workflow_id: Text = Field(examples=["hello_world"])
    input_params: dict[str, JsonValue] = Field(default_factory=dict, examples=[{"name": "World"}])
    correlation_id: Text | None = None
    submitted_by: Text | None = None
    callback_url: Url | None = None
    idempotency_key: Text | None = None
    priority: Priority = 0
    submitted_at: datetime | None = None
    message_id: Text | None = None
    traceparent: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, data: Any) -> Any:
        return translate_job(data)


class JobReceipt(Job):
    """The job of a submission, and what may keep it from going on."""

    warnings: list[str] = Field(
        default_factory=list, description="One sentence for each queue of the workflow that no live worker serves now."
    )


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """The job of a submission; `created` is False when an earlier one had made it."""

    job: Job
    created: bool
    queues: frozenset[str] = frozenset()  # that the job sends tasks to
    warnings: tuple[str, ...] = ()  # about them, from the server that accepted the submission


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A submission that was found valid."""

    submission: Submission
    job_id: JobId
    graph: Graph
    inputs: dict[str, JsonValue]
    work: AssetWork | None = None
    traceparent: str | None = None  # of the trace that all of the job belongs to
    actor: str | None = None  # who submits, if not the one that the submission names
    share: str = ""


class _NotResumable(Conflict):
    """The job has not failed, at least not any more: `job` is its present state."""

    def __init__(self, job: Job) -> None:
        hints = {
            JobStatus.COMPLETED: "Submit the workflow again, with another input if the same inputs are the same job.",
            JobStatus.CANCELLED: "Submit the workflow again; with resubmit, the same inputs or key let this job go on.",
        }
        super().__init__(
            f"Job {job.job_id} is {job.status}; only a failed job can be retried.",
            hint=hints.get(job.status, "Cancel it, or wait until it ends."),
        )
        self.job = job


class JobService:
    """Makes jobs and acts on them, as the owner that takes their steps."""

    def __init__(
        self,
        database: Database,
        steps: StepService,
        workflows: Workflows,
        *,
        callback_allow: str = "",
        default_container: str | None = None,
        partner_max_priority: int = DEFAULT_PARTNER_MAX_PRIORITY,
    ) -> None:
        """Make a service; `callback_allow` names what callbacks may reach although it is private.

        Jobs that are submitted without a `container_name` read from the default one, if there is one.
        """
        self.partner_max_priority = partner_max_priority
        self._callback_allow = callback_allow
        self._default_container = default_container
        self._database = database
        self._steps = steps
        self._workflows = workflows
        self._gathering = Gathering(self._submit, MOST_AT_ONCE)

    async def submit(self, submission: Submission, *, resubmit: bool = False, actor: str | None = None) -> SubmittedJob:
        """Make a job, or find the one that the same key or the same inputs made before.

        With `resubmit`, a job that is found and failed, or was cancelled, goes on. If it was found by its inputs and
        its workflow has another definition by now, it starts over with that.
        """
        await self.learn_workflows([submission.workflow_id])
        prepared = self.prepare(submission, actor=actor)
        found = await self._gathering.add(prepared)
        queues = queues_of(prepared.graph)
        if resubmit and not found.created and _may_go_on(found.job):
            return SubmittedJob(await self._run_again(found.job, prepared), created=False, queues=queues)
        return replace(found, queues=queues)

    async def _run_again(self, job: Job, prepared: PreparedJob) -> Job:
        """Run an ended job again; one that another submission has started again meanwhile is returned as it is."""
        is_same = job.job_id == prepared.job_id and job.asset_id is None
        try:
            if is_same and job.workflow_hash != prepared.graph.content_hash:
                return await self._start_over(prepared)
            return await self.resume(JobId(job.job_id), actor=prepared.actor, or_cancelled=True)
        except _NotResumable as error:
            if _may_go_on(error.job):
                raise
            return error.job

    async def _start_over(self, prepared: PreparedJob) -> Job:
        """Run an ended job from its start, as its workflow is defined now. Late results are those of other attempts."""
        job_id, graph = prepared.job_id, prepared.graph
        async with self._database.transaction(Commit.RESUME) as connection:
            now = self._database.now()
            await self._keep_graphs(connection, [graph], now)
            ownership = OwnershipRepository(connection)
            definition = (graph.content_hash, graph.version)
            if not await ownership.take_ended(
                job_id, self._steps.owner_id, now, or_cancelled=True, definition=definition
            ):
                raise _NotResumable(await JobRepository(connection).get(job_id=job_id))
            count = await ownership.remove_nodes(job_id) + 1
            job = await JobRepository(connection).get(job_id=job_id)
            nodes = {
                node_id: NodeState(node_id, node.type, retry_count=count, retry_base=count)
                for node_id, node in graph.nodes.items()
            }
            state = JobState(job_id, job.status, job.input_params, job.priority, job.traceparent, nodes)
            step = begun_step(job_id, job.traceparent)
            decision = await self._steps.evaluate(graph, state, [StartedOver(prepared.actor)], now)
            row = JobRow(
                *(job_id, job.owner_epoch, job.updated_at, graph.content_hash, job.status),
                has_callback=job.callback_url is not None,
                created_at=job.created_at,
                share=job.share,
            )
            decided = DecidedJob(JobSnapshot(row, {}), graph, state, _as_new_rows(decision, nodes), step=step)
            await self._write(connection, [decided], now)
            return await JobRepository(connection).get(job_id=job_id)

    async def submit_many(self, submissions: Sequence[Submission], *, actor: str | None = None) -> list[SubmittedJob]:
        """Make many jobs in one transaction; one that is not valid refuses them all."""
        await self.learn_workflows([submission.workflow_id for submission in submissions])
        return await self._submit([self.prepare(submission, actor=actor) for submission in submissions])

    async def learn_workflows(self, ids: Collection[str]) -> None:
        """Look in the database for workflows that this instance does not know: another may have announced them."""
        if any(name not in self._workflows.library.graphs for name in ids):
            async with self._database.connection() as connection:
                await self._workflows.learn(connection, ids)

    def workflow_ids(self) -> list[str]:
        """Return the workflows that jobs can be made of."""
        return list(self._workflows.library.graphs)

    async def _submit(self, prepared: Sequence[PreparedJob]) -> list[SubmittedJob]:
        async with self._database.transaction(Commit.SUBMIT) as connection:
            created = await self.add_within(connection, prepared)
            return await self._found(connection, prepared, created)

    def prepare(
        self,
        submission: Submission,
        work: AssetWork | None = None,
        *,
        actor: str | None = None,
        platform_id: str | None = None,
    ) -> PreparedJob:
        """Find the workflow and check the inputs, or raise why the job cannot be made.

        The tasks of a job for a partner's asset take turns with those of other partners.
        """
        graph = self._workflows.library.get(submission.workflow_id)
        if submission.callback_url is not None:
            check_callback_url(submission.callback_url, self._callback_allow)
        default_container = self._default_container if work is None else None
        given = translate_inputs(graph.inputs, submission.input_params, default_container)
        inputs = validate_inputs(graph, given)
        document(inputs)  # refuses what no row can hold
        if work is None:
            check_direct_outputs(graph, inputs)
        # A job of an asset version is always one of its own: it may have the inputs of an earlier one.
        is_one = graph.job_id == "params" and work is None
        job_id = JobId(deterministic_job_id(graph, inputs) if is_one else _new_job_id())
        traceparent = trace_of_new_job(submission.traceparent, graph.workflow_id, job_id)
        share = self._share(platform_id, submission.priority)
        return PreparedJob(submission, job_id, graph, inputs, work, traceparent, actor, share)

    def _share(self, platform_id: str | None, priority: int) -> str:
        """Name whose turns a job's tasks take.

        What a partner may ask for must not put it before others, only before the rest of its own: each of its
        priorities takes turns of its own. A higher priority comes from an operator, and goes before all turns.
        """
        if platform_id is None or priority > self.partner_max_priority:
            return ""
        return f"{platform_id}/{priority}" if priority else platform_id

    async def add_within(self, connection: Connection, prepared: Sequence[PreparedJob]) -> set[JobId]:
        """Make the jobs inside the caller's transaction, with their first step taken, and name the new ones."""
        now = self._database.now()
        graphs = {each.graph.content_hash: each.graph for each in prepared}
        await self._keep_graphs(connection, graphs.values(), now)
        steps = StepRepository(connection, self._steps.owner_id)
        # In one order, and each once: two batches with the same keys must not wait for each other.
        rows = {each.job_id: _job_row(each) for each in sorted(prepared, key=_key)}
        created = await steps.add_jobs([*rows.values()], now)
        new = {each.job_id: each for each in reversed(prepared) if each.job_id in created}
        decided = [await self._first_step(each, now) for each in new.values()]
        await self._write(connection, decided, now)
        return created

    async def _keep_graphs(self, connection: Connection, graphs: Iterable[Graph], now: datetime) -> None:
        workflows = WorkflowRepository(connection)
        for graph in graphs:
            if not await workflows.has(graph.content_hash):  # the whole of it is sent once, and not with every job
                await workflows.keep(_workflow_row(graph, now))
            self._steps.remember(graph.content_hash, graph)

    async def _write(self, connection: Connection, decided: Sequence[DecidedJob], now: datetime) -> None:
        await write_decisions(StepRepository(connection, self._steps.owner_id), self._steps.outputs, decided, now)
        after_commit(connection, partial(self._steps.metrics.decided, decided, now))
        after_commit(connection, partial(end_steps, decided))

    async def _first_step(self, prepared: PreparedJob, now: datetime) -> DecidedJob:
        nodes = {node_id: NodeState(node_id, node.type) for node_id, node in prepared.graph.nodes.items()}
        asked = prepared.submission
        state = JobState(
            *(prepared.job_id, JobStatus.PENDING, prepared.inputs, asked.priority, prepared.traceparent, nodes)
        )
        step = begun_step(prepared.job_id, prepared.traceparent)
        submitted = Submitted(prepared.actor or asked.submitted_by)
        decision = await self._steps.evaluate(prepared.graph, state, [submitted], now)
        job = JobRow(
            *(prepared.job_id, 1, now, prepared.graph.content_hash, JobStatus.PENDING),
            work=prepared.work,
            has_callback=asked.callback_url is not None,
            created_at=now,
            share=prepared.share,
        )
        return DecidedJob(JobSnapshot(job, {}), prepared.graph, state, _as_new_rows(decision, nodes), step=step)

    async def _found(
        self, connection: Connection, prepared: Sequence[PreparedJob], created: set[JobId]
    ) -> list[SubmittedJob]:
        jobs = JobRepository(connection)
        by_id = {job.job_id: job for job in await jobs.by_ids([each.job_id for each in prepared])}
        found: list[SubmittedJob] = []
        for each in prepared:
            job = by_id.get(each.job_id)
            if job is None and each.submission.idempotency_key:
                job = await jobs.find_by_idempotency_key(each.submission.idempotency_key)
            if job is None:
                raise Conflict(f"The job {each.job_id} was removed while it was submitted.", hint="Submit it again.")
            found.append(SubmittedJob(job, job.job_id in created))
            created = created - {job.job_id}  # the next of the same key finds it
        return found

    async def cancel(self, job_id: JobId, actor: str | None = None) -> Job:
        """Ask the owner of a job to end it; one that has ended already stays as it is."""
        async with self._database.transaction(Commit.CANCEL) as connection:
            job = await JobRepository(connection).get(job_id=job_id)
            ownership = OwnershipRepository(connection)
            if not await ownership.request_cancel(job_id, actor, self._database.now()):
                return job
            if job.owner_id == self._steps.owner_id:
                await self._steps.advance_within(connection, {job_id: Wake()})
            return await JobRepository(connection).get(job_id=job_id)

    async def resume(
        self, job_id: JobId, node_id: str | None = None, actor: str | None = None, *, or_cancelled: bool = False
    ) -> Job:
        """Let a failed job go on from its failed nodes, or from one node and all that is downstream of it."""
        async with self._database.transaction(Commit.RESUME) as connection:
            jobs = JobRepository(connection)
            job = await jobs.get(job_id=job_id)
            if job.asset_id is not None:
                await _require_current(connection, AssetId(job.asset_id), job_id)
            ownership = OwnershipRepository(connection)
            now = self._database.now()
            if not await ownership.take_ended(job_id, self._steps.owner_id, now, or_cancelled=or_cancelled):
                raise _NotResumable(await jobs.get(job_id=job_id))  # as whoever was faster has left it
            await self._steps.advance_within(connection, {job_id: Wake(resumed=Resumed(node_id, actor))})
            return await jobs.get(job_id=job_id)


async def _require_current(connection: Connection, asset_id: AssetId, job_id: JobId) -> None:
    """Refuse to let a job go on whose asset was decided upon otherwise since; nobody decides meanwhile."""
    assets = AssetRepository(connection)
    await assets.lock(asset_id)
    if reason := await assets.superseded_because(job_id):
        raise Refused(
            Refusal.JOB_SUPERSEDED,
            f"Job {job_id} cannot go on: {reason}.",
            hint="Ask for what is wanted now: retry or reprocess the version, or change its clearance.",
        )


def _may_go_on(job: Job) -> bool:
    """Whether a job can be made to go on by submitting it again; the end of an asset's job is an outcome there."""
    return job.status is JobStatus.FAILED or (job.status is JobStatus.CANCELLED and job.asset_id is None)


def _key(prepared: PreparedJob) -> tuple[str, str]:
    return prepared.submission.idempotency_key or "", prepared.job_id


def _new_job_id() -> str:
    """Give a new id; ids grow with time, so that new rows stand together in the indexes."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def _workflow_row(graph: Graph, now: datetime) -> Workflow:
    return Workflow.model_validate(
        {
            "workflow_hash": graph.content_hash,
            "workflow_id": graph.workflow_id,
            "version": graph.version,
            "name": graph.name,
            "definition": graph.model_dump(mode="json"),
            "created_at": now,
        }
    )


def _job_row(prepared: PreparedJob) -> dict[str, Any]:
    copied = ("priority", "correlation_id", "submitted_by", "callback_url", "idempotency_key")
    return {
        "job_id": prepared.job_id,
        "workflow_id": prepared.graph.workflow_id,
        "workflow_version": prepared.graph.version,
        "workflow_hash": prepared.graph.content_hash,
        "input_params": prepared.inputs,
        "traceparent": prepared.traceparent,
        "share": prepared.share,
        **(asdict(prepared.work) if prepared.work else {}),
        **{name: getattr(prepared.submission, name) for name in copied},
    }


def _as_new_rows(decision: Decision, nodes: Mapping[str, NodeState]) -> Decision:
    """Turn the first step's changes into rows that are added: the static nodes are not in the database yet."""
    changed = {change.node.node_id: change.node for change in decision.changes}
    decision.created = [*(changed.get(node_id, node) for node_id, node in nodes.items()), *decision.created]
    decision.changes = []
    return decision
