"""The statements of a step: read what is needed of some jobs, write what was decided; see `steps.sql`.

They work on many jobs at once: one statement carries the rows of a whole batch, as one JSON document.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import orjson
from psycopg import AsyncRawCursor
from psycopg.rows import tuple_row

from graticule.core.errors import InvalidInput, OwnershipLost
from graticule.core.ids import JobId, OwnerId
from graticule.core.models.engine import NodeType, ResultStatus
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.state import NOT_LOADED, NodeState, Reported
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("steps.sql")
CHUNK: Final = 5000  # rows of one part in one statement
NUL: Final = "\\u0000"
NUL_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # not a backslash that is itself escaped


Nodes = dict[str, NodeState]
Row = Mapping[str, Any]


class Part(StrEnum):
    """The parts of a step's writes: each is a list of rows, and moves as many."""

    NODES = "nodes"
    COMPLETED_CHILDREN = "completed_children"
    NEW_NODES = "new_nodes"
    NEW_TASKS = "new_tasks"
    EVENTS = "events"
    PROCESSED_RESULTS = "processed_results"
    JOBS = "jobs"
    NOTIFICATIONS = "notifications"


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job whose row is locked for this step."""

    job_id: JobId
    workflow_hash: str
    status: JobStatus
    priority: int
    input_params: dict[str, Any]
    traceparent: str | None
    owner_epoch: int
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output as its row has it: in place, or a reference to the storage."""

    output: Any
    output_ref: str | None


@dataclass(frozen=True, slots=True)
class ChildRow:
    """How a child stands, with its output."""

    index: int
    node_id: str
    status: NodeStatus
    task_id: str | None
    output: StoredOutput
    error_message: str | None
    key: str | None


class StepRepository:
    """Runs the statements of steps for one owner, on a connection whose transaction belongs to the caller."""

    queries = QUERIES

    def __init__(self, connection: Connection, owner_id: OwnerId) -> None:
        self._connection = connection
        self._owner_id = owner_id

    # Reading

    async def hold(self, job_ids: Sequence[JobId]) -> list[HeldJob]:
        """Lock those of the jobs that are the owner's."""
        rows = await self._all("hold_jobs", {"job_ids": list(job_ids), "owner_id": self._owner_id})
        return [_held(*row) for row in rows]

    async def read(self, held: Sequence[HeldJob], limit: int) -> dict[JobId, tuple[Nodes, list[Reported]]]:
        """Read the static nodes of jobs, and up to `limit` new results of each."""
        given = {"job_ids": [job.job_id for job in held], "limit": limit}
        rows = await self._all("read_jobs", given)
        return {JobId(job_id): (_nodes(nodes), _results(results)) for job_id, nodes, results in rows}

    async def children(self, wanted: Mapping[JobId, Iterable[str]]) -> dict[JobId, Nodes]:
        """Read the named children of jobs."""
        named = [{"job_id": job_id, "node_id": node_id} for job_id, node_ids in wanted.items() for node_id in node_ids]
        rows = await self._all("read_children", {"rows": document(named)}) if named else []
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

    async def child_rows(self, job_id: JobId, parent_node_id: str) -> list[ChildRow]:
        """Read how all children of a fan-out stand, in index order."""
        rows = await self._all("outcomes_of_children", {"job_id": job_id, "parent_node_id": parent_node_id})
        return [
            ChildRow(index, node_id, NodeStatus(status), task_id, StoredOutput(_value(output), ref), error, key)
            for index, node_id, status, task_id, output, ref, error, key in rows
        ]

    async def result_outputs(self, result_ids: Iterable[int]) -> dict[int, StoredOutput]:
        """Read the outputs that results carry."""
        rows = await self._all("outputs_of_results", {"result_ids": list(result_ids)})
        return {result_id: StoredOutput(_value(output), ref) for result_id, output, ref in rows}

    # Writing

    async def add_jobs(self, rows: Sequence[Mapping[str, Any]], now: datetime) -> set[JobId]:
        """Add jobs that belong to the owner in term 1, and give those whose key was free."""
        found = await self._all("add_jobs", {"rows": document(rows), "owner_id": self._owner_id, "now": now})
        return {JobId(job_id) for (job_id,) in found}

    async def remove_children(self, rows: Sequence[Row]) -> None:
        """Remove the children of fan-outs that begin anew."""
        await self._moved("remove_children", {"rows": document(rows), "owner_id": self._owner_id})

    async def forget_checkpoints(self, rows: Sequence[Row]) -> None:
        """Remove what nodes that start over, and their children, had saved."""
        await self._moved("forget_checkpoints", {"rows": document(rows), "owner_id": self._owner_id})

    async def write(self, held: Sequence[Row], parts: Mapping[Part, Sequence[Row]], now: datetime) -> None:
        """Write all parts of a step; `OwnershipLost` when a row was changed by someone else meanwhile."""
        for start in range(0, max(1, *map(len, parts.values())), CHUNK):
            portion = {part: parts.get(part, ())[start : start + CHUNK] for part in Part}
            documents = {part.value: document(rows) for part, rows in portion.items()}
            given = {**documents, "held": document(held), "owner_id": self._owner_id, "now": now}
            ((*moved,),) = await self._all("write_step", given)
            for (part, rows), count in zip(portion.items(), moved, strict=True):
                if count != len(rows):
                    raise OwnershipLost(f"Only {count} of {len(rows)} {part} could be written: the job was changed.")

    async def abandon_children(self, rows: Sequence[Row], now: datetime) -> None:
        """Fail the children under way of fan-outs that were given up."""
        await self._moved("abandon_children", {"rows": document(rows), "owner_id": self._owner_id, "now": now})

    async def withdraw_tasks(self, rows: Sequence[Row]) -> None:
        """Take tasks back: the one that a row names, or all of its job."""
        await self._moved("withdraw_tasks", {"rows": document(rows), "owner_id": self._owner_id})

    async def _all(self, query: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        numbered = QUERIES.numbered(query)
        with domain_errors(query.replace("_", " ")):
            cursor = AsyncRawCursor(self._connection, row_factory=tuple_row)
            await cursor.execute(numbered.text, [given[name] for name in numbered.names])
            return await cursor.fetchall()

    async def _moved(self, query: str, given: Mapping[str, Any]) -> int:
        with domain_errors(query.replace("_", " ")):
            return (await self._connection.execute(QUERIES[query], given)).rowcount


def document(value: Any) -> str:
    """Write a value as JSON text for a statement; what PostgreSQL cannot hold is refused here."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"A value cannot be written as JSON: {error}.") from error
    if NUL in text and NUL_ESCAPE.search(text):
        raise InvalidInput("A text contains the character NUL, which PostgreSQL cannot store.")
    return text


def _value(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _held(job_id: str, graph: str, status: str, priority: int, input_params: str, *rest: Any) -> HeldJob:
    return HeldJob(JobId(job_id), graph, JobStatus(status), priority, orjson.loads(input_params), *rest)


def _nodes(text: str | None) -> Nodes:
    return {row[0]: _node(*row) for row in _value(text) or ()}


def _node(node_id: str, node_type: str, status: str, *rest: Any) -> NodeState:
    retry_count, retry_base, task_id, worker_id, *others = rest
    state = NodeStatus(status)
    output = NOT_LOADED if state is NodeStatus.COMPLETED else None
    times = [None if text is None else datetime.fromisoformat(text) for text in others[-5:]]
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
