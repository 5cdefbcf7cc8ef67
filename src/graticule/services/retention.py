"""Retention: jobs that ended long ago leave the database and the storage, with all that belongs to them."""

import asyncio
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from graticule.core.fault_points import Commit
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.repositories.database import Database
from graticule.repositories.retention import EventPartitions, RetentionRepository, RowCounts
from graticule.schema.ddl import TableDdl

RESULTS_PER_PAGE: Final = 5000
FOLDER_NAME: Final = re.compile(r"[0-9A-Za-z_-]+")  # nothing that could lead out of the folder of outputs


@dataclass(frozen=True, slots=True)
class Removed:
    """What a prune has removed, or would remove."""

    rows: RowCounts
    outputs: int = 0  # folders in the storage
    workflows: int = 0
    messages: int = 0
    processes: int = 0
    partitions: Sequence[str] = ()
    partitions_made: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Batch:
    """The jobs that one transaction removed, with the rows that belonged to them."""

    job_ids: Sequence[JobId]
    rows: RowCounts


Tell = Callable[[Removed], None]


class RetentionService:
    """Removes what ended before a time: in the database as the orchestrator, partitions as the schema's owner."""

    def __init__(self, database: Database, owner: Database, storage_root: Path) -> None:
        self._database = database
        self._owner = owner
        self._outputs = storage_root / "outputs"

    async def count(self, before: datetime) -> Removed:
        """Tell what a prune would remove, and change nothing."""
        async with self._database.connection() as connection:
            rows = await RetentionRepository(connection).count(before)
        return Removed(rows=rows)

    async def prune(self, before: datetime, *, batch: int, tell: Tell) -> Removed:
        """Remove in batches, each a transaction of its own; `tell` hears the sum after each of them."""
        rows, outputs = RowCounts(), 0
        while removed := await self._remove_jobs(before, batch):
            outputs += await asyncio.to_thread(self._remove_outputs, removed.job_ids)
            rows = _sum(rows, removed.rows)
            tell(Removed(rows, outputs))
        rows = _sum(rows, RowCounts(results=await self._remove_results(before)))
        tell(Removed(rows, outputs))
        async with self._database.committing(Commit.PRUNE) as connection:
            repository = RetentionRepository(connection)
            return Removed(
                rows,
                outputs,
                workflows=await repository.remove_workflows(before),
                messages=await repository.remove_messages(before),
                processes=await repository.remove_processes(before),
                partitions=await self._drop_partitions(before),
                partitions_made=await self._make_partitions(),
            )

    async def _remove_jobs(self, before: datetime, batch: int) -> _Batch | None:
        """Remove the next jobs; None when none is left."""
        async with self._database.transaction(Commit.PRUNE) as connection:
            repository = RetentionRepository(connection)
            job_ids = await repository.hold_jobs(before, batch)
            return _Batch(job_ids, await repository.remove_jobs(job_ids)) if job_ids else None

    async def _remove_results(self, before: datetime) -> int:
        removed, after, through = 0, 0, False
        while not through:
            async with self._database.transaction(Commit.PRUNE) as connection:
                page = await RetentionRepository(connection).remove_results(before, after, RESULTS_PER_PAGE)
            removed += page.results
            after = page.last or after
            through = page.through
        return removed

    def _remove_outputs(self, job_ids: Sequence[JobId]) -> int:
        """Remove the jobs' folders in the storage, after the rows that refer to them."""
        folders = [self._outputs / job_id for job_id in job_ids if FOLDER_NAME.fullmatch(job_id)]
        present = [folder for folder in folders if folder.is_dir()]
        for folder in present:
            shutil.rmtree(folder, ignore_errors=True)
        return len(present)

    async def _drop_partitions(self, before: datetime) -> list[str]:
        async with self._owner.connection() as connection:
            partitions = EventPartitions(connection)
            past = [name for name in await partitions.past(before) if await partitions.is_empty(name)]
            return [name for name in past if await partitions.drop_if_empty(name, before)]

    async def _make_partitions(self) -> list[str]:
        today = datetime.now(UTC).date()
        wanted = TableDdl(Event, Event.table.schema).create_partitions(today)
        async with self._owner.connection() as connection:
            partitions = EventPartitions(connection)
            return [each.key.name for each in wanted if await partitions.make_if_missing(each.key.name, each.create)]


def _sum(one: RowCounts, other: RowCounts) -> RowCounts:
    return RowCounts(*(getattr(one, each.name) + getattr(other, each.name) for each in fields(RowCounts)))
