"""What has ended long ago: jobs with their rows, results, workflows, and the months of the event table."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from psycopg import sql
from psycopg.errors import CheckViolation, LockNotAvailable

from graticule.core.errors import Unavailable
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries, load_queries

QUERIES: Final = load_queries("retention.sql")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows of each kind are removed, or would be."""

    jobs: int = 0
    nodes: int = 0
    tasks: int = 0
    results: int = 0
    events: int = 0
    checkpoints: int = 0
    callbacks: int = 0


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of the walk through the results: where it ended, and whether there is nothing old after it."""

    last: int | None
    through: bool
    results: int


class RetentionRepository:
    """Removes on a connection whose transaction belongs to the caller."""

    queries: ClassVar[Queries] = QUERIES

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def hold_jobs(self, before: datetime, limit: int) -> list[JobId]:
        """Give jobs that ended before this time, and hold them to the end of the transaction."""
        rows = await self._rows("hold_removable_jobs", {"before": before, "limit": limit})
        return [JobId(row["job_id"]) for row in rows]

    async def stay(self) -> None:
        """Ask for nothing: the server ends a transaction in which nothing is asked for long."""
        await self._rows("stay", {})

    async def remove_jobs(self, job_ids: Sequence[JobId]) -> RowCounts:
        """Remove jobs that are held, with all that belongs to them but their results."""
        (row,) = await self._rows("remove_jobs", {"job_ids": list(job_ids)})
        return RowCounts(**row)

    async def hold_scratch_jobs(self, before: datetime, names: Iterable[str]) -> list[JobId]:
        """Give the jobs of these working folders that ended before this time, and hold them."""
        rows = await self._rows("hold_scratch_jobs", {"before": before, "names": list(names)})
        return [JobId(row["job_id"]) for row in rows]

    async def shared_scratch(self, names: Iterable[str], job_ids: Sequence[JobId]) -> set[str]:
        """Give those of the working folders that other jobs than these have too."""
        rows = await self._rows("shared_scratch", {"names": list(names), "job_ids": list(job_ids)})
        return {str(row["name"]) for row in rows}

    async def remove_results(self, before: datetime, after: int, limit: int) -> ResultPage:
        """Look at the results that follow `after`, and remove the old ones whose job is gone."""
        (row,) = await self._rows("remove_results", {"before": before, "after": after, "limit": limit})
        return ResultPage(**row)

    async def remove_workflows(self, before: datetime) -> int:
        """Remove contents of workflows that no job has any more; the newest of each stays, and what is current.

        That a definition was superseded is remembered: it must not come back as a new one.
        """
        definitions = await self._removed("empty_definitions", before)
        return definitions + await self._removed("remove_workflows", before)

    async def remove_messages(self, before: datetime) -> int:
        """Remove job messages that were dealt with; dead letters stay."""
        return await self._removed("remove_messages", before)

    async def remove_processes(self, before: datetime) -> int:
        """Remove the rows of workers and orchestrators that stopped before this time."""
        return await self._removed("remove_workers", before) + await self._removed("remove_orchestrators", before)

    async def _removed(self, query: str, before: datetime) -> int:
        with domain_errors(query.replace("_", " ")):
            return (await self._connection.execute(self.queries[query], {"before": before})).rowcount

    async def count(self, before: datetime) -> RowCounts:
        """Count what would be removed."""
        (row,) = await self._rows("count_removable", {"before": before})
        return RowCounts(**row)

    async def _rows(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(self.queries[query], parameters)).fetchall()


class EventPartitions:
    """The months of the event table, on a connection that acts as the schema's owner."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def past(self, before: datetime) -> list[str]:
        """Name the months that were over at this time, empty or not."""
        with domain_errors("list the partitions of the events"):
            rows = await (await self._connection.execute(QUERIES["past_partitions"], {"before": before})).fetchall()
        return [str(row["name"]) for row in rows]

    async def is_empty(self, name: str) -> bool:
        """Tell whether a month has no event."""
        query = sql.SQL("SELECT NOT EXISTS (SELECT FROM {}) AS empty").format(_partition(name))
        with domain_errors("look into a partition of the events"):
            row = await (await self._connection.execute(query)).fetchone()
        return bool(row and row["empty"])

    async def drop_if_empty(self, name: str, before: datetime) -> bool:
        """Drop a past month without events; False when it has some, or someone works with the table right now."""
        try:
            with domain_errors("drop a partition of the events"):
                async with self._alone():
                    return await self._drop_if_empty(name, before)
        except Unavailable as error:
            if isinstance(error.__cause__, LockNotAvailable):
                return False
            raise

    async def _drop_if_empty(self, name: str, before: datetime) -> bool:
        """Hold the whole table first, as writers do: in the other order the two would wait for each other."""
        events = sql.Identifier(Event.table.schema, Event.table.name)
        await self._connection.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE").format(events))
        if name not in await self.past(before) or not await self.is_empty(name):
            return False
        await self._connection.execute(sql.SQL("DROP TABLE {}").format(_partition(name)))
        return True

    async def make_if_missing(self, name: str, statement: str) -> bool:
        """Make a month by its statement; False when it is there, or when the table does not allow it now."""
        try:
            async with self._alone():
                query = QUERIES["partition_exists"]
                row = await (await self._connection.execute(query, {"name": name})).fetchone()
                if row and row["found"]:
                    return False
                await self._connection.execute(statement.encode())
                return True
        except (CheckViolation, LockNotAvailable):  # its rows are in the default partition, and are well there
            return False

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Begin a transaction beside which no other one makes or drops partitions."""
        async with self._connection.transaction():
            await self._connection.execute(QUERIES["lock_schema"])
            await self._connection.execute(QUERIES["wait_briefly_for_locks"])
            yield


def _partition(name: str) -> sql.Identifier:
    return sql.Identifier(Event.table.schema, name)
