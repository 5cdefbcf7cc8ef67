"""The statements of a step: read what is needed of some jobs, write what was decided; see `steps.sql`.

They work on many jobs at once: one statement carries the rows of a whole batch, as one JSON document.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncRawCursor
from psycopg.errors import DivisionByZero, UniqueViolation
from psycopg.rows import tuple_row

from graticule.core import json_codec
from graticule.core.errors import InvalidInput, StaleVersion
from graticule.core.ids import AssetId, JobId, OwnerId
from graticule.core.models.engine import JobPurpose, NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag.state import NOT_LOADED, NodeState, Reported
from graticule.repositories.assets import NOTE_EXPORT
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import NumberedQuery, load_queries
from graticule.repositories.step_parts import UNCOUNTED, Part, Row, portions, write_statement

QUERIES: Final = load_queries("steps.sql")
NUL: Final = "\\u0000"
NUL_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # not a backslash that is itself escaped


Nodes = dict[str, NodeState]
OutputSources = Sequence[tuple[str, int | None]]  # children, each with the result that still holds its output


@dataclass(frozen=True, slots=True)
class AssetWork:
    """The asset version that a job works on, and what for."""

    asset_id: AssetId
    version_ordinal: int
    purpose: JobPurpose


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as its row says. Whatever changes the row changes the epoch or `updated_at`, its version."""

    job_id: JobId
    owner_epoch: int
    updated_at: datetime
    workflow_hash: str
    status: JobStatus
    priority: int = 0
    input_params: dict[str, Any] = field(default_factory=dict)
    traceparent: str | None = None
    cancel_requested_at: datetime | None = None
    cancel_requested_by: str | None = None
    work: AssetWork | None = None
    has_callback: bool = False
    created_at: datetime | None = None
    share: str = ""


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job with its static nodes, as their rows say."""

    job: JobRow
    nodes: Nodes
    size: int = 0  # about, as JSON text


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output as its row has it: in place, or a reference to the storage."""

    output: Any
    output_ref: str | None


@dataclass(frozen=True, slots=True)
class ChildRow:
    """How a child stands."""

    index: int
    node_id: str
    status: NodeStatus
    task_id: str | None
    error_message: str | None
    key: str | None


class StepRepository:
    """Runs the statements of steps for one owner, on a connection whose transaction belongs to the caller."""

    queries = QUERIES

    def __init__(self, connection: Connection, owner_id: OwnerId) -> None:
        self._connection = connection
        self.owner_id = owner_id

    # Reading

    async def read(
        self, job_ids: Iterable[JobId], known: Mapping[JobId, JobSnapshot], limit: int
    ) -> dict[JobId, tuple[JobSnapshot, list[Reported]]]:
        """Read those of the jobs that are the owner's, with up to `limit` new results of each.

        What is known of a job is not read but given back, where it still holds.
        """
        given = {**self._versions(each.job for each in known.values()), "job_ids": [*job_ids], "limit": limit}
        rows = await self._all("read_jobs", given)
        return {
            job_id: (_snapshot(snapshot) if snapshot else known[job_id], _results(results))
            for job_id, results, snapshot in rows
        }

    async def children(self, wanted: Mapping[JobId, Iterable[str]]) -> dict[JobId, Nodes]:
        """Read the named children of jobs."""
        named = [{"job_id": job_id, "node_id": node_id} for job_id, node_ids in wanted.items() for node_id in node_ids]
        given = {"rows": document(named), "job_ids": [*wanted]}
        rows = await self._all("read_children", given) if named else []
        return {JobId(job_id): _nodes(nodes) for job_id, nodes in rows}

    async def failed_children(self, job_id: JobId) -> Nodes:
        """Read the children of a job that failed."""
        ((nodes,),) = await self._all("read_failed_children", {"job_id": job_id})
        return _nodes(nodes)

    async def last_retry_counts(self, job_id: JobId) -> dict[str, int]:
        """Give the highest retry count among the children of each fan-out."""
        return dict(await self._all("last_retry_counts", {"job_id": job_id}))

    async def outputs(self, job_id: JobId, node_ids: Iterable[str]) -> dict[str, StoredOutput]:
        """Read the outputs of nodes."""
        rows = await self._all("outputs_of_nodes", {"job_id": job_id, "node_ids": list(node_ids)})
        return {node_id: StoredOutput(_value(output), ref) for node_id, output, ref in rows}

    async def child_rows(self, job_id: JobId, parent_node_id: str, indexes: range, error_length: int) -> list[ChildRow]:
        """Read how children of a fan-out stand, in index order, with so many characters of why they failed."""
        given = {"job_id": job_id, "parent_node_id": parent_node_id, "first": indexes[0], "last": indexes[-1]}
        rows = await self._all("outcomes_of_children", {**given, "error_length": error_length})
        return [ChildRow(index, node_id, NodeStatus(status), *rest) for index, node_id, status, *rest in rows]

    async def child_output_sizes(self, job_id: JobId, sources: OutputSources) -> list[tuple[str, int, str | None]]:
        """Tell how many bytes of JSON the outputs of children have, or where those are stored that no row holds."""
        return await self._of_sources("sizes_of_child_outputs", job_id, sources)

    async def child_outputs(self, job_id: JobId, sources: OutputSources) -> list[tuple[str, str | None, str | None]]:
        """Read the outputs of children as JSON text, or where they are stored."""
        return await self._of_sources("child_outputs", job_id, sources)

    async def _of_sources(self, query: str, job_id: JobId, sources: OutputSources) -> list[Any]:
        in_rows = [node_id for node_id, result_id in sources if result_id is None]
        in_results = [result_id for _, result_id in sources if result_id is not None]
        return await self._all(query, {"job_id": job_id, "node_ids": in_rows, "result_ids": in_results})

    # Writing

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """Let several statements commit together."""
        return self._connection.transaction()

    async def hold(self, jobs: Sequence[JobRow]) -> None:
        """Lock jobs as they were read, until the caller's transaction ends; `StaleVersion` when one was changed."""
        await self._write(jobs, {})

    async def add_jobs(self, rows: Sequence[Mapping[str, Any]], now: datetime) -> set[JobId]:
        """Add jobs that belong to the owner in term 1, and give those whose key was free."""
        found = await self._all("add_jobs", {"rows": document(rows), "owner_id": self.owner_id, "now": now})
        return {JobId(job_id) for (job_id,) in found}

    async def remove_children(self, rows: Sequence[Row]) -> None:
        """Remove the children of fan-outs that begin anew."""
        await self._change("remove_children", rows)

    async def forget_checkpoints(self, rows: Sequence[Row]) -> None:
        """Remove what nodes that start over, and their children, had saved."""
        await self._change("forget_checkpoints", rows)

    async def write(self, jobs: Sequence[JobRow], parts: Mapping[Part, Sequence[Row]], now: datetime) -> None:
        """Write all parts of a step, or none: `StaleVersion` when a row was changed by someone else meanwhile.

        More rows than one statement carries (see `portions`) need a transaction around them, in which jobs are held.
        """
        for portion in portions(parts):
            await self._write(jobs, portion, now=now)

    async def _write(self, jobs: Sequence[JobRow], portion: Mapping[Part, Sequence[Row]], **given: Any) -> None:
        """Write in one statement, which writes all or fails."""
        present = tuple(part for part, rows in portion.items() if rows)
        given |= self._versions(jobs)
        given |= {part.value: document(portion[part]) for part in present}
        given["expected"] = [len(jobs), *(len(portion[part]) for part in present if part not in UNCOUNTED)]
        with domain_errors("write step"):
            try:
                await self._run(write_statement(present), given)
            except DivisionByZero as error:
                raise StaleVersion("The step could not be written: a row is not as it was read.") from error
            except UniqueViolation as error:
                name = error.diag.constraint_name
                raise StaleVersion(f"The step could not be written: a row is there already ({name}).") from error

    def _versions(self, jobs: Iterable[JobRow]) -> dict[str, Any]:
        """Name jobs as they were read."""
        versions = {job.job_id: {"owner_epoch": job.owner_epoch, "updated_at": job.updated_at} for job in jobs}
        return {"job_ids": [*versions], "versions": document(versions), "owner_id": self.owner_id}

    async def abandon_children(self, rows: Sequence[Row], now: datetime) -> None:
        """Fail the children under way of fan-outs that were given up."""
        await self._change("abandon_children", rows, now=now)

    async def note_exports(self, rows: Sequence[Row], now: datetime) -> None:
        """Note what jobs made, or removed, for the public: one after the other, the oldest job first."""
        for row in sorted(rows, key=lambda row: str(row["job_id"])):
            given = {"rows": document([row]), "job_ids": [row["job_id"]], "owner_id": self.owner_id, "now": now}
            with domain_errors("note an export"):
                await self._connection.execute(NOTE_EXPORT, given)

    async def withdraw_tasks(self, rows: Sequence[Row]) -> None:
        """Take tasks back: the one that a row names, or all of its job."""
        await self._change("withdraw_tasks", rows)

    async def _all(self, query: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with domain_errors(query.replace("_", " ")):
            return await self._run(QUERIES.numbered(query), given)

    async def _run(self, query: NumberedQuery, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        cursor = AsyncRawCursor(self._connection, row_factory=tuple_row)
        await cursor.execute(query.text, [given[name] for name in query.names])
        return await cursor.fetchall()

    async def _change(self, query: str, rows: Sequence[Row], **given: Any) -> None:
        if rows:
            given |= {"rows": document(rows), "job_ids": [*{row["job_id"] for row in rows}], "owner_id": self.owner_id}
            with domain_errors(query.replace("_", " ")):
                await self._connection.execute(QUERIES[query], given)


def document(value: Any) -> str:
    """Write a value as JSON text for a statement; what PostgreSQL cannot hold is refused here."""
    try:
        text = json_codec.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"A value cannot be written as JSON: {error}.") from error
    if NUL in text and NUL_ESCAPE.search(text):
        raise InvalidInput("A text contains the character NUL, which PostgreSQL cannot store.")
    return text


def _value(text: str | None) -> Any:
    return None if text is None else json_codec.decode(text)


def _snapshot(text: str) -> JobSnapshot:
    job_id, owner_epoch, updated_at, workflow_hash, status, *rest, nodes = json_codec.decode(text)
    *rest, created_at, share = rest
    *rest, cancel_requested_at, cancel_requested_by, asset_id, version_ordinal, purpose, has_callback = rest
    work = AssetWork(AssetId(asset_id), version_ordinal, JobPurpose(purpose)) if asset_id else None
    job = JobRow(
        *(JobId(job_id), owner_epoch, datetime.fromisoformat(updated_at), workflow_hash, JobStatus(status)),
        *(*rest, _time(cancel_requested_at), cancel_requested_by, work, has_callback, _time(created_at), share),
    )
    return JobSnapshot(job, {row[0]: _node(*row) for row in nodes or ()}, len(text))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _nodes(text: str | None) -> Nodes:
    return {row[0]: _node(*row) for row in _value(text) or ()}


def _node(node_id: str, node_type: str, status: str, *rest: Any) -> NodeState:
    retry_count, retry_base, task_id, worker_id, *others = rest
    state = NodeStatus(status)
    output = NOT_LOADED if state is NodeStatus.COMPLETED else None
    times = map(_time, others[-5:])
    return NodeState(
        *(node_id, NodeType(node_type), state, retry_count, retry_base, task_id, worker_id, output),
        *others[:-5],
        *times,
    )


def _results(text: str | None) -> list[Reported]:
    return [_result(*row) for row in _value(text) or ()]


def _result(task_id: str, node_id: str, status: str, output: Any, *rest: Any) -> Reported:
    is_childs = "__" in node_id and status == "completed"
    return Reported(task_id, node_id, ResultStatus(status), NOT_LOADED if is_childs else output, *rest)
