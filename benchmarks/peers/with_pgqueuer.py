# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator"
"""pgqueuer: a bare queue in PostgreSQL; what decides and what keeps outputs is written around it.

One worker process (`PgQueuer.run`, in the batches of the raw limit) and one coordinating process, which enqueues
in bulk, learns by pgqueuer's own `CompletionWatcher` which jobs are done, and enqueues what follows. A fan-in and
a next step need the outputs, and pgqueuer keeps none, so the handler writes its output into a table. asyncpg pools
and uvloop, as its documentation advises; the watcher's debounce is cut from 50 ms to 1 ms. What the coordinator
knows is in its memory only: had it died, nobody would go on.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.core.completion import CompletionWatcher
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.peers import protocol
from benchmarks.workloads import Size, Workload

DEBOUNCE = timedelta(milliseconds=1)
TABLE = "CREATE TABLE IF NOT EXISTS outputs (job_id BIGINT PRIMARY KEY, output JSONB NOT NULL)"
KEEP = "INSERT INTO outputs (job_id, output) VALUES ($1, $2)"
READ = "SELECT output FROM outputs WHERE job_id = ANY ($1)"


@asynccontextmanager
async def connected() -> AsyncIterator[asyncpg.Pool]:
    """Give a pool; it is ended by force, for pgqueuer's listener keeps a connection of it."""
    pool = await asyncpg.create_pool(protocol.url(), min_size=4, max_size=10)
    try:
        yield pool
    finally:
        pool.terminate()


async def work(batch: int) -> None:
    """Run the worker until it is killed."""
    async with connected() as pool:
        queuer = PgQueuer(AsyncpgPoolDriver(pool))

        @queuer.entrypoint("echo")
        async def echo(job: Job) -> None:
            output = {"echoed_params": json.loads(job.payload or b"{}")}
            await pool.execute(KEEP, job.id, json.dumps(output))

        await queuer.run(batch_size=batch)


class Coordinator:
    """Enqueues, waits, and enqueues what follows."""

    def __init__(self, pool: asyncpg.Pool, queries: Queries, watcher: CompletionWatcher) -> None:
        self._pool = pool
        self._queries = queries
        self._watcher = watcher

    async def seconds(self, workload: Workload, size: Size) -> float:
        """Run a workload once."""
        began = time.perf_counter()
        if workload is Workload.FAN_OUT:
            await self._fan_out(size.fan_out)
        elif workload is Workload.CHAIN:
            await self._chains(1, size.chain)
        else:
            await self._chains(size.jobs, size.tasks_per_job)
        return time.perf_counter() - began

    async def _fan_out(self, width: int) -> None:
        ids = await self._send(width)
        await asyncio.gather(*(self._watcher.wait_for(job_id) for job_id in ids))
        results = await self._pool.fetch(READ, ids)
        if len(results) != width:
            raise RuntimeError(f"Of {width} outputs, {len(results)} are there.")

    async def _chains(self, chains: int, length: int) -> None:
        await asyncio.gather(*(self._go_on(job_id, length) for job_id in await self._send(chains)))

    async def _go_on(self, job_id: int, length: int) -> None:
        for step in range(1, length + 1):
            await self._watcher.wait_for(job_id)
            await self._pool.fetch(READ, [job_id])
            if step < length:
                (job_id,) = await self._queries.enqueue("echo", json.dumps({"index": step}).encode())

    async def _send(self, count: int) -> list[int]:
        payloads = [json.dumps({"index": index}).encode() for index in range(count)]
        return list(await self._queries.enqueue(["echo"] * count, payloads, [0] * count))


async def coordinate() -> None:
    """Be the coordinating process."""
    async with connected() as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await pool.execute(TABLE)
        if not await queries.has_table("pgqueuer"):
            await queries.install()
        with protocol.worker_process(__spec__.name):
            async with CompletionWatcher(driver, queries=queries, debounce=DEBOUNCE) as watcher:
                coordinator = Coordinator(pool, queries, watcher)
                for number, size in enumerate(protocol.sizes()):
                    seconds = await coordinator.seconds(protocol.workload(), size)
                    if number:
                        protocol.tell(seconds)


if __name__ == "__main__":
    uvloop.run(work(Size().batch(Workload(sys.argv[2]))) if protocol.is_worker() else coordinate())
