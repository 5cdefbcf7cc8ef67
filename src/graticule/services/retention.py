"""Retention: jobs that ended long ago leave the database and the storage, with all that belongs to them."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Final

from graticule.core.errors import GraticuleError
from graticule.core.fault_points import Commit
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.handlers.catalogue import DatabaseCatalogue
from graticule.handlers.outputs.settling import settle
from graticule.handlers.outputs.staging import remove_scratch
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.retention import EventPartitions, RetentionRepository, RowCounts
from graticule.repositories.vectors import AbandonedTables
from graticule.schema.ddl import TableDdl
from graticule.storage.options import OUTPUTS
from graticule.storage.paths import scratch_name
from graticule.storage.protocol import Storage

RESULTS_PER_PAGE: Final = 5000
FOLDER_NAME: Final = re.compile(r"[0-9A-Za-z_-]+")  # nothing that could lead out of the folder of outputs
HELD_SECONDS: Final = 20.0  # after which no further working folder is removed in the same transaction
STAY_SECONDS: Final = 15.0  # the server ends a transaction in which nothing is asked for a minute
UNFINISHED_AFTER: Final = timedelta(days=1)  # nobody writes for so long without a word

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a prune has removed, or would remove."""

    rows: RowCounts
    outputs: int = 0  # folders in the storage
    scratch: int = 0  # working folders of jobs
    unfinished: int = 0  # files whose writers ended before them
    tables: Sequence[str] = ()  # that jobs began to fill
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
    scratch: int


@dataclass(frozen=True, slots=True)
class _Scratch:
    """The working folders that one transaction removed, and those for which there was no time."""

    removed: int = 0
    left: frozenset[str] = frozenset()


Tell = Callable[[Removed], None]


class RetentionService:
    """Removes what ended before a time: in the database as the orchestrator, partitions as the schema's owner."""

    def __init__(self, database: Database, owner: Database, storage: Storage) -> None:
        self._database = database
        self._owner = owner
        self._storage = storage

    async def count(self, before: datetime) -> Removed:
        """Tell what a prune would remove, and change nothing."""
        async with self._database.connection() as connection:
            rows = await RetentionRepository(connection).count(before)
        return Removed(rows=rows)

    async def prune(self, before: datetime, *, batch: int, tell: Tell) -> Removed:
        """Remove in batches, each a transaction of its own; `tell` hears the sum after each of them."""
        rows, outputs, scratch = RowCounts(), 0, 0
        folders = {name async for name in self._storage.folders(self._storage.silver)}
        while removed := await self._remove_jobs(before, batch, folders):
            outputs += await self._remove_outputs(removed.job_ids)
            scratch += removed.scratch
            rows = _sum(rows, removed.rows)
            tell(Removed(rows, outputs, scratch))
        scratch += await self._remove_scratch_of_kept_jobs(before, folders)
        rows = _sum(rows, RowCounts(results=await self._remove_results(before)))
        tell(Removed(rows, outputs, scratch))
        async with self._database.committing(Commit.PRUNE) as connection:
            repository = RetentionRepository(connection)
            return Removed(
                rows,
                outputs,
                scratch,
                unfinished=await self._storage.delete_unfinished(datetime.now(UTC) - UNFINISHED_AFTER),
                tables=await self._drop_tables(),
                workflows=await repository.remove_workflows(before),
                messages=await repository.remove_messages(before),
                processes=await repository.remove_processes(before),
                partitions=await self._drop_partitions(before),
                partitions_made=await self._make_partitions(),
            )

    async def _remove_jobs(self, before: datetime, batch: int, folders: set[str]) -> _Batch | None:
        """Remove the next jobs; None when none is left."""
        async with self._database.transaction(Commit.PRUNE) as connection:
            repository = RetentionRepository(connection)
            job_ids = await repository.hold_jobs(before, batch)
            if not job_ids:
                return None
            scratch = await self._remove_scratch(repository, job_ids, folders)
            gone = [job_id for job_id in job_ids if scratch_name(job_id) not in scratch.left]
            return _Batch(gone, await repository.remove_jobs(gone), scratch.removed)

    async def _remove_scratch_of_kept_jobs(self, before: datetime, folders: set[str]) -> int:
        """Remove the working folders of jobs that ended, and whose rows stay because a version names them."""
        removed, left = 0, folders
        while left:
            async with self._database.transaction(Commit.PRUNE) as connection:
                repository = RetentionRepository(connection)
                job_ids = await repository.hold_scratch_jobs(before, left)
                scratch = await self._remove_scratch(repository, job_ids, left)
            removed, left = removed + scratch.removed, set(scratch.left)
        return removed

    async def _remove_scratch(
        self, repository: RetentionRepository, job_ids: Sequence[JobId], folders: set[str]
    ) -> _Scratch:
        """Remove the working folders of jobs that are held: none of them can begin to work again meanwhile.

        They are not held for long: at least one folder is removed, and others while there is time.
        """
        names = folders & set(map(scratch_name, job_ids))
        if not names:
            return _Scratch()
        free = sorted(names - await repository.shared_scratch(names, job_ids))
        removed, until = 0, time.monotonic() + HELD_SECONDS
        async with _staying(repository):
            for place, name in enumerate(free):
                if place and time.monotonic() > until:
                    return _Scratch(removed, frozenset(free[place:]))
                removed += await self._is_scratch_removed(JobId(name))
        return _Scratch(removed)

    async def _is_scratch_removed(self, name: JobId) -> bool:
        """Remove a working folder; what its job has put elsewhere and nobody has catalogued goes with it."""
        try:
            is_settled = await settle(self._storage, DatabaseCatalogue(self._owner, name), name)
            return await remove_scratch(self._storage, name) > 0 or is_settled
        except GraticuleError as error:
            _log.warning("a working folder could not be removed", folder=name, error=str(error))
            return False

    async def _remove_results(self, before: datetime) -> int:
        removed, after, through = 0, 0, False
        while not through:
            async with self._database.transaction(Commit.PRUNE) as connection:
                page = await RetentionRepository(connection).remove_results(before, after, RESULTS_PER_PAGE)
            removed += page.results
            after = page.last or after
            through = page.through
        return removed

    async def _remove_outputs(self, job_ids: Sequence[JobId]) -> int:
        """Remove the jobs' folders in the storage, after the rows that refer to them."""
        folders = [f"{OUTPUTS}/{job_id}" for job_id in job_ids if FOLDER_NAME.fullmatch(job_id)]
        return sum([await self._is_removed(folder) for folder in folders])

    async def _is_removed(self, folder: str) -> bool:
        """Remove a folder of the storage; one that cannot be removed now must not keep the others."""
        try:
            return await self._storage.delete_below(folder) > 0
        except GraticuleError as error:
            _log.warning("a folder of the storage could not be removed", folder=folder, error=str(error))
            return False

    async def _drop_tables(self) -> list[str]:
        """Drop what jobs that ended have loaded and not published; the owner of its schema may drop any table."""
        async with self._owner.connection() as connection:
            return await AbandonedTables(connection).drop()

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


@asynccontextmanager
async def _staying(repository: RetentionRepository) -> AsyncIterator[None]:
    """Let the server see that this process lives, while it works elsewhere with a transaction open."""
    ended = asyncio.Event()

    async def stay() -> None:
        while not ended.is_set():
            try:
                async with asyncio.timeout(STAY_SECONDS):
                    await ended.wait()
            except TimeoutError:
                await repository.stay()

    staying = asyncio.create_task(stay())
    try:
        yield
    finally:
        ended.set()  # what is asked in that moment is not broken off: that would end the transaction
        await staying


def _sum(one: RowCounts, other: RowCounts) -> RowCounts:
    return RowCounts(*(getattr(one, each.name) + getattr(other, each.name) for each in fields(RowCounts)))
