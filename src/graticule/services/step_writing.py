"""What was decided becomes rows: the changes of many jobs in a handful of statements."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from graticule.core.channels import ASSETS, CALLBACKS, CANCELLED, EVENTS, OUTBOX, queue_channel
from graticule.core.fault_points import Commit, Moment, committing, reach
from graticule.core.ids import OwnerId
from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus, ResultStatus
from graticule.dag.deciding.step import UNDER_WAY
from graticule.dag.state import NodeChange, NodeState, NotLoaded
from graticule.repositories.step_parts import Part, portions
from graticule.repositories.steps import StepRepository
from graticule.services.asset_outcomes import export_events, exports, processed_versions
from graticule.services.decided_jobs import DecidedJob
from graticule.services.outputs import OutputStore

Row = dict[str, Any]
SHARED = (
    *("node_id", "status", "retry_count", "retry_base", "task_id", "error_message", "input_params"),
    *("children_total", "children_started", "ready_at", "dispatched_at", "started_at", "ended_at", "deadline_at"),
)
WRITTEN = (*SHARED, "worker_id", "progress", "children_done", "children_failed")
ADDED = (*SHARED, "node_type", "parent_node_id", "fan_out_index", "fan_out_key", "output")


async def write_decisions(
    steps: StepRepository, outputs: OutputStore, decided: Sequence[DecidedJob], now: datetime
) -> None:
    """Write all changes, tasks and events, and notify those who wait for them."""
    decided = [job for job in decided if job.writes]
    if not decided:
        return
    parts: dict[Part, list[Row]] = {
        Part.NODES: [row for job in decided async for row in _nodes(outputs, job)],
        Part.COMPLETED_CHILDREN: _completed_children(decided),
        Part.NEW_NODES: [row for job in decided for row in _added(job)],
        Part.NEW_TASKS: [row for job in decided for row in _tasks(job)],
        Part.EVENTS: [row for job in decided for row in (*_events(job), *export_events(job))],
        Part.PROCESSED_RESULTS: [job.row(result_id=each.result_id) for job in decided for each in job.results],
        Part.JOBS: [row for job in decided async for row in _job(outputs, job)],
        Part.OTHER_JOBS: [job.row() for job in decided if not job.moves_job],
        Part.PROCESSED_VERSIONS: [row for job in decided for row in processed_versions(job)],
        Part.CALLBACKS: [row for job in decided for row in _callbacks(job)],
        Part.NOTIFICATIONS: _notifications(decided, steps.owner_id),
    }
    jobs = [job.snapshot.job for job in decided]
    removed, started_over = _removed(decided), _started_over(decided)
    abandoned, withdrawn = _abandoned(decided), _withdrawn(decided)
    exported = [row for job in decided for row in exports(job)]
    if not (removed or started_over or abandoned or withdrawn or exported or len(portions(parts)) > 1):
        with committing(Commit.STEP):
            await steps.write(jobs, parts, now)
        return
    async with steps.transaction():
        await steps.hold(jobs)
        await steps.remove_children(removed)
        await steps.forget_checkpoints(started_over)
        await steps.note_exports(exported, now)
        await steps.write(jobs, parts, now)
        await steps.abandon_children(abandoned, now)
        await steps.withdraw_tasks(withdrawn)
        reach(Commit.LARGE_STEP, Moment.BEFORE)
    reach(Commit.LARGE_STEP, Moment.AFTER)


async def _job(outputs: OutputStore, job: DecidedJob) -> AsyncIterator[Row]:
    decision = job.decision
    if job.moves_job:
        result, result_ref = await outputs.keep(decision.result, f"outputs/{job.job_id}/result.json")
        yield job.row(
            before=decision.job_before,
            status=decision.job_status,
            result=result,
            result_ref=result_ref,
            error_message=decision.error_message,
        )


async def _nodes(outputs: OutputStore, job: DecidedJob) -> AsyncIterator[Row]:
    results = _completing(job)
    for change in job.decision.changes:
        result_id = _result_of(change, results)
        if result_id is None or not _only_completed(change, job.state.nodes):
            yield {
                **job.row(before=change.before, result_id=result_id),
                **{name: getattr(change.node, name) for name in WRITTEN},
                **await _output(outputs, job, change.node, result_id),
            }


async def _output(outputs: OutputStore, job: DecidedJob, node: NodeState, result_id: int | None) -> Row:
    """Tell where the output comes from: the result's row, the node's own, or the decision."""
    if result_id is not None:
        return {"output_from": "result", "output_ref": node.output_ref}
    if isinstance(node.output, NotLoaded):
        return {"output_from": "kept", "output_ref": node.output_ref}
    path = f"outputs/{job.job_id}/{node.node_id}_{node.retry_count}.json"
    output, node.output_ref = await outputs.keep(node.output, path)
    return {"output_from": "given", "output": output, "output_ref": node.output_ref}


def _completed_children(decided: Sequence[DecidedJob]) -> list[Row]:
    """Give the children of which nothing but their completion is new: they need no more than that."""
    rows = []
    for job in decided:
        results = _completing(job)
        for change in job.decision.changes:
            result_id = _result_of(change, results)
            if result_id is not None and _only_completed(change, job.state.nodes):
                rows.append(job.row(node_id=change.node.node_id, before=change.before, result_id=result_id))
    return rows


def _completing(job: DecidedJob) -> dict[str, int | None]:
    """Give the result that completed each task: of two, the first."""
    completed = (each for each in reversed(job.results) if each.status is ResultStatus.COMPLETED)
    return {each.task_id: each.result_id for each in completed}


def _result_of(change: NodeChange, results: Mapping[str, int | None]) -> int | None:
    completed = change.node.status is NodeStatus.COMPLETED and change.before in UNDER_WAY
    return results.get(change.node.task_id or "") if completed else None


def _only_completed(change: NodeChange, loaded: Mapping[str, NodeState]) -> bool:
    node, before = change.node, loaded[change.node.node_id]
    return node.parent_node_id is not None and (node.started_at, node.progress) == (before.started_at, before.progress)


def _added(job: DecidedJob) -> Iterator[Row]:
    for node in job.decision.created:
        task = job.graph.nodes[node.parent_node_id or node.node_id].task if node.node_type is NodeType.TASK else None
        yield {
            **job.row(handler=task.handler if task else None, queue=task.queue if task else None),
            **{name: getattr(node, name) for name in ADDED},
        }


def _tasks(job: DecidedJob) -> Iterator[Row]:
    share = job.snapshot.job.share
    for task in job.decision.tasks:
        yield job.row(
            task_id=task.task_id,
            node_id=task.node_id,
            queue=task.queue,
            handler=task.handler,
            params=task.params,
            retry_count=task.retry_count,
            timeout_seconds=task.timeout_seconds,
            priority=0 if share else job.state.priority,  # among partners, turns decide
            share=share,
            traceparent=job.traceparent,
        )


def _events(job: DecidedJob) -> Iterator[Row]:
    for event in job.decision.events:
        yield job.fenced(
            event_type=event.event_type,
            node_id=event.node_id,
            task_id=event.task_id,
            actor=event.actor,
            data=event.data,
        )


def _callbacks(job: DecidedJob) -> Iterator[Row]:
    """Tell of the end of a job; of one that works on an asset version, its partner is told in other words."""
    if _calls_back(job) and job.work is None:
        yield job.row(status=job.decision.job_status)


def _calls_back(job: DecidedJob) -> bool:
    return job.snapshot.job.has_callback and job.ends


def _removed(decided: Sequence[DecidedJob]) -> list[Row]:
    return [job.fenced(parent_node_id=fan_out) for job in decided for fan_out in job.decision.removed_children_of]


def _started_over(decided: Sequence[DecidedJob]) -> list[Row]:
    return [job.fenced(node_id=node_id) for job in decided for node_id in job.decision.started_over]


def _abandoned(decided: Sequence[DecidedJob]) -> list[Row]:
    return [
        job.fenced(parent_node_id=fan_out, error_message=job.decision.abandoned_because)
        for job in decided
        for fan_out in job.decision.abandoned_children_of
    ]


def _withdrawn(decided: Sequence[DecidedJob]) -> list[Row]:
    return [
        job.fenced(task_id=task_id)
        for job in decided
        for task_id in ([None] if job.decision.withdraw_all else job.decision.withdraw)
    ]


def _notifications(decided: Sequence[DecidedJob], owner_id: OwnerId) -> list[Row]:
    told = {(queue_channel(queue), "") for job in decided for queue in {task.queue for task in job.decision.tasks}}
    if told:
        told.add((OUTBOX, owner_id))
    told |= {(CANCELLED, job.job_id) for job in decided if job.decision.withdraw_all or job.decision.withdraw}
    told |= {(ASSETS, job.work.asset_id) for job in decided if job.work is not None and job.moves_job}
    if any(map(_calls_back, decided)):
        told.add((CALLBACKS, ""))
    if any(job.decision.events for job in decided):
        told.add((EVENTS, ""))
    return [{"channel": channel, "payload": payload} for channel, payload in sorted(told)]
