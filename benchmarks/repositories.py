"""What the repositories add to raw psycopg: each pair does the same durable work."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from psycopg.types.json import Jsonb
from rich.console import Console
from rich.table import Table

from benchmarks.installation import deploy, private_cluster
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository

Work = Callable[[Connection, int], Awaitable[None]]
NOW = datetime.now(UTC)
INSERT = "INSERT INTO dagapp.dag_job_events (event_type, job_id, data, created_at) VALUES (%s, %s, %s, %s)"
COPY = "COPY dagapp.dag_job_events (event_type, job_id, data, created_at) FROM STDIN"
SELECT = "SELECT * FROM dagapp.dag_job_events WHERE job_id = %s AND event_id > 0 ORDER BY event_id LIMIT %s"
ROUNDS = 5
READ_JOB = "a job with many events"
_serial = count()


@dataclass(frozen=True)
class Comparison:
    """One piece of work, done by hand and by the repository."""

    name: str
    rows: int
    raw: Work
    ours: Work

    async def prepare(self, connection: Connection) -> None:
        """Start from an empty table with rows to read."""
        await connection.execute("DELETE FROM dagapp.dag_job_events")
        await EventRepository(connection).insert_many([_event(READ_JOB) for _ in range(self.rows)])

    async def time(self, connection: Connection, work: Work) -> float:
        """Measure the work in one transaction."""
        began = time.perf_counter()
        async with connection.transaction():
            await work(connection, self.rows)
        return time.perf_counter() - began


def _event(job_id: str | None = None) -> Event:
    name = job_id or f"job-{next(_serial)}"
    return Event(event_type=EventType.NODE_COMPLETED, job_id=JobId(name), data={"n": 1}, created_at=NOW)


async def _raw_insert(connection: Connection, rows: int) -> None:
    for _ in range(rows):
        await connection.execute(INSERT, ("node_completed", f"job-{next(_serial)}", Jsonb({"n": 1}), NOW))


async def _our_insert(connection: Connection, rows: int) -> None:
    events = EventRepository(connection)
    for _ in range(rows):
        await events.insert(_event())


async def _raw_copy(connection: Connection, rows: int) -> None:
    async with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for _ in range(rows):
            await copy.write_row(("node_completed", f"job-{next(_serial)}", Jsonb({"n": 1}), NOW))


async def _our_copy(connection: Connection, rows: int) -> None:
    await EventRepository(connection).insert_many([_event() for _ in range(rows)])


async def _raw_read(connection: Connection, rows: int) -> None:
    await (await connection.execute(SELECT, (READ_JOB, rows))).fetchall()


async def _our_read(connection: Connection, rows: int) -> None:
    await EventRepository(connection).of_job(JobId(READ_JOB), limit=rows)


COMPARISONS = (
    Comparison("insert one by one", 1_000, _raw_insert, _our_insert),
    Comparison("insert many (COPY)", 20_000, _raw_copy, _our_copy),
    Comparison("read as models", 20_000, _raw_read, _our_read),
)


async def run(console: Console) -> None:
    """Measure each pair in turn, several times, and show the best of each: the least disturbed."""
    table = Table("what", "rows", "raw", "ours", "ours / raw", title="Repositories against raw psycopg")
    async with private_cluster() as place:
        await deploy(place)
        async with Database(place.url(), DatabaseRole.ORCHESTRATOR, pool_size=2) as database:
            for comparison in COMPARISONS:
                raw, ours = await _measured(comparison, database)
                times = f"{raw * 1000:.0f} ms", f"{ours * 1000:.0f} ms", f"{ours / raw:.2f}"
                table.add_row(comparison.name, str(comparison.rows), *times)
    console.print(table)


async def _measured(comparison: Comparison, database: Database) -> tuple[float, float]:
    async with database.connection() as connection:
        await comparison.prepare(connection)
        raw, ours = [], []
        for _ in range(ROUNDS):
            raw.append(await comparison.time(connection, comparison.raw))
            ours.append(await comparison.time(connection, comparison.ours))
    return min(raw), min(ours)
