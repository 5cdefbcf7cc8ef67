"""Where two sessions meet: the rows that they begin with, their connections, and what they leave."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows
from tests.integration.repositories.rivals import CHILD_TASK, JOB, ME, MESSAGE, OVERDUE, OWNER, TASK, Move, Session
from tests.integration.repositories.rows import NOW

from graticule.core.errors import StaleVersion
from graticule.core.models import Checkpoint, Orchestrator, Worker
from graticule.core.models.engine import NodeType
from graticule.core.table import DatabaseRole
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection
from graticule.repositories.jobs import JobRepository
from graticule.repositories.messages import MessageRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.processes import OrchestratorRepository, WorkerRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import TaskRepository
from graticule.repositories.workflows import WorkflowRepository

PROCESS: dict[str, Any] = {"hostname": "h", "process_id": 1, "program_version": "1", "started_at": NOW}
Rows = tuple[str, ...]

# What they begin with


async def _job(connection: Connection, **changes: Any) -> None:
    """Put a running job there, in the first term of an open instance, whose node waits for a task."""
    await WorkflowRepository(connection).insert(rows.workflow())
    await _instance(connection)
    await JobRepository(connection).insert(
        rows.job(**{"status": "running", "owner_id": OWNER, **changes}, owner_epoch=1)
    )
    await NodeRepository(connection).insert(rows.node(status="dispatched", task_id=TASK))


async def _instance(connection: Connection, **changes: Any) -> None:
    row = Orchestrator(owner_id=OWNER, lock_key=1, heartbeat_at=NOW, **PROCESS, **changes)
    await OrchestratorRepository(connection).insert(row)


async def _task(connection: Connection, **changes: Any) -> None:
    await _job(connection)
    await TaskRepository(connection).insert(rows.task(TASK, **changes))


async def _held_task(connection: Connection, **changes: Any) -> None:
    await _task(connection, **OVERDUE, leased_by=ME, **changes)


async def _saved_task(connection: Connection) -> None:
    await _held_task(connection)
    saved = {"job_id": JOB, "node_id": "node", "task_id": TASK, "phase": "before", "saved_at": NOW}
    await CheckpointRepository(connection).insert(Checkpoint(**saved))


async def _fan_out(connection: Connection) -> None:
    """Put a fan-out there with a child whose result has come."""
    await _job(connection)
    counts: dict[str, Any] = {"children_total": 1, "children_started": 1}
    await NodeRepository(connection).insert(rows.node("split", node_type=NodeType.FAN_OUT, status="running", **counts))
    child = {"parent_node_id": "split", "fan_out_index": 0, "status": "dispatched", "task_id": CHILD_TASK}
    await NodeRepository(connection).insert(rows.node("split__0", **child))
    await ResultRepository(connection).insert(rows.result(task_id=CHILD_TASK, node_id="split__0"))


async def _failed_job(connection: Connection) -> None:
    """Put a failed job of a closed instance there, for which a result came late."""
    await _job(connection, status="failed", ended_at=NOW, error_message="why")
    await OrchestratorRepository(connection).stop(OWNER, NOW)
    await ResultRepository(connection).insert(rows.result())


async def _message(connection: Connection, **changes: Any) -> None:
    await MessageRepository(connection).insert(rows.message(MESSAGE, **changes))


async def _unknown_workflow(connection: Connection) -> None:
    """Put a message there that was set aside lately because nobody knew its workflow."""
    reason = "There is no workflow 'flow'."
    await _message(
        connection,
        body={"workflow_id": "flow"},
        status="dead",
        dead_reason=reason,
        delivery_count=1,
        created_at=datetime.now(UTC),
    )


async def _workflow(connection: Connection) -> None:
    await WorkflowRepository(connection).insert(rows.workflow())
    await _instance(connection)


async def _worker_row(connection: Connection) -> None:
    row = Worker(worker_id=ME, queues=["q"], concurrency=1, heartbeat_at=NOW, **PROCESS)
    await WorkerRepository(connection).insert(row)


async def _nothing(_: Connection) -> None:
    """Leave the database empty."""


def _with(start: Callable[..., Awaitable[None]], **changes: Any) -> Callable[[Connection], Awaitable[None]]:
    return lambda connection: start(connection, **changes)


STARTS: Final[dict[str, Callable[[Connection], Awaitable[None]]]] = {
    "queued task": _task,
    "unsent task": _task,
    "task of a broker": _with(_task, sent_at=NOW),
    "held task": _held_task,
    "task in its last delivery": _with(_held_task, max_deliveries=1),
    "task with a checkpoint": _saved_task,
    "dead letter": _with(_task, status="dead", dead_reason="why", delivery_count=1),
    "fan-out": _fan_out,
    "job": _job,
    "failed job": _failed_job,
    "no job": _workflow,
    "no message": _nothing,
    "queued message": _message,
    "held message": _with(_message, leased_by=OWNER, **OVERDUE),
    "message in its last delivery": _with(_message, leased_by=OWNER, max_deliveries=1, **OVERDUE),
    "dead message": _with(_message, status="dead", dead_reason="why", delivery_count=1),
    "message of an unknown workflow": _unknown_workflow,
    "worker": _worker_row,
}

# What they leave

LEASE: LiteralString = """
    CASE WHEN lease_expires_at < now() THEN 'overdue' ELSE status::text END || coalesce(' by ' || leased_by, '')
    || ' #' || delivery_count
"""
TASK_ROW: LiteralString = f"""
    SELECT concat_ws(' + ', {LEASE}, CASE WHEN sent_at IS NOT NULL THEN 'sent' END,
        (SELECT string_agg(
             status || CASE status WHEN 'running' THEN '' ELSE ' by ' || coalesce(worker_id, 'nobody') END, ' + '
             ORDER BY result_id
         )
         FROM dagapp.dag_task_results),
        (SELECT 'saved ' || phase FROM dagapp.dag_checkpoints))
    FROM dagapp.dag_tasks
"""
JOB_ROW: LiteralString = """
    SELECT concat_ws(' + ', status || ' of ' || coalesce(owner_id, 'nobody') || ' #' || owner_epoch,
        'cancel by ' || cancel_requested_by,
        (SELECT string_agg(event_type::text, ' + ' ORDER BY event_id) FROM dagapp.dag_job_events),
        (SELECT 'noted' FROM dagapp.dag_task_results WHERE processed_at IS NOT NULL))
    FROM dagapp.dag_jobs
"""
MESSAGE_ROW: LiteralString = f"SELECT {LEASE} FROM dagapp.dag_job_messages"
CHILD_ROW: LiteralString = "SELECT status::text FROM dagapp.dag_nodes WHERE parent_node_id IS NOT NULL"
INSTANCE_ROW: LiteralString = """
    SELECT concat_ws(' + ', CASE WHEN stopped_at IS NULL THEN 'open' ELSE 'closed' END,
        CASE WHEN heartbeat_at > started_at THEN 'beaten' END, (SELECT job_id FROM dagapp.dag_jobs))
    FROM dagapp.dag_orchestrators
"""
WORKER_ROW: LiteralString = INSTANCE_ROW.replace("dag_orchestrators", "dag_workers")
EMPTIED: LiteralString = "; ".join(
    f"DELETE FROM dagapp.{table}"
    for table in (
        *("dag_jobs", "dag_task_results", "dag_job_events", "dag_job_messages", "dag_orchestrators", "dag_workers"),
        "dag_workflows",
    )
)


async def row_of(connection: Connection, query: LiteralString) -> str:
    """Describe the row in dispute; `none` when there is none."""
    row = await (await connection.execute(query)).fetchone()
    return "none" if row is None else str(next(iter(row.values())))


class Arena:
    """Two sessions of each role, and one that looks on."""

    def __init__(self, connections: Mapping[tuple[str, DatabaseRole], Connection], looking_on: Connection) -> None:
        self._connections = connections
        self.looking_on = looking_on
        self._result_id: int | None = None

    async def begin(self, start: str) -> None:
        """Put there what the sessions begin with, and nothing else."""
        await self.looking_on.execute(EMPTIED)
        await STARTS[start](self.looking_on)
        results = await ResultRepository(self.looking_on).unprocessed(JOB)
        self._result_id = results[0].result_id if results else None

    def session(self, name: str, move: Move) -> Session:
        return Session(name, self._connections[name, move.role], self._result_id)

    async def blocked(self, running: asyncio.Task[str]) -> bool:
        """Wait until a move has ended or waits for a lock, and tell which."""
        waiting = asyncio.create_task(waiting_for_a_lock(self.looking_on))
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return not running.done()

    async def left_by(self, start: str, *moves: tuple[str, Move]) -> Rows:
        """Give what moves leave that come one after the other."""
        await self.begin(start)
        for name, move in moves:
            await move.run(self.session(name, move))
        return await self._rows()

    async def left_by_interleaved(self, start: str, first: Move, second: Move, gap: int) -> Rows:
        """Give what two moves leave, the second of which begins after so many statements of the first."""
        await self.begin(start)
        session = self.session("first", first)
        with suppress(StaleVersion):
            async with session.connection.transaction():
                for statement in first.statements[:gap]:
                    await statement.run(session)
                running = asyncio.create_task(second.run(self.session("second", second)))
                await self.blocked(running)
                for statement in first.statements[gap:]:
                    await statement.run(session)
        await running
        return await self._rows()

    async def _rows(self) -> Rows:
        queries = (TASK_ROW, JOB_ROW, INSTANCE_ROW)
        return tuple([await row_of(self.looking_on, query) for query in queries])
