"""What is measured, in which order: raw and ours in turn, ours empty and in use in turn, then idle, then memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from enum import StrEnum

import psycopg

from benchmarks import report
from benchmarks.fill import fill
from benchmarks.installation import Installation, Place, deploy, installation, private_cluster
from benchmarks.raw import Raw
from benchmarks.report import Line
from benchmarks.workloads import Size, Workload

TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
STATISTICS_DELAY_SECONDS = 11.0  # an idle session tells its counters within 10 s
Announce = Callable[[str], None]


class Part(StrEnum):
    """What can be chosen on the command line."""

    CHAIN = Workload.CHAIN.value
    FAN_OUT = Workload.FAN_OUT.value
    JOBS = Workload.JOBS.value
    IN_USE = "in-use"
    IDLE = "idle"
    MEMORY = "memory"


class Measurement:
    """One run of the benchmarks."""

    def __init__(self, size: Size, rounds: int, parts: Collection[Part], announce: Announce) -> None:
        self._size = size
        self._rounds = rounds
        self._parts = parts
        self._announce = announce

    async def lines(self) -> AsyncIterator[Line]:
        """Measure, and give each line as soon as it is known."""
        async with private_cluster() as place:
            await deploy(place)
            async with installation(place, self._size) as ours:
                async for line in self._beside_raw(place, ours):
                    yield line
                if {Part.IN_USE, Part.IDLE} & set(self._parts):
                    async for line in self._in_use(ours, await place.beside("in_use")):
                        yield line
            if Part.MEMORY in self._parts:
                yield await self._memory(await place.beside("memory"))

    async def _beside_raw(self, place: Place, ours: Installation) -> AsyncIterator[Line]:
        raw = await asyncio.to_thread(Raw, (await place.beside("raw")).url())

        async def run_raw(workload: Workload) -> float:
            return await asyncio.to_thread(raw.seconds, workload, self._size)

        for workload in Workload:
            if Part(workload.value) in self._parts:
                limit, taken = await self._best(workload, run_raw, self._runner(ours))
                yield report.beside_raw(self._size, workload, limit, taken)

    async def _in_use(self, empty: Installation, place: Place) -> AsyncIterator[Line]:
        """Run a second installation on a database that has been in use, in turn with the empty one."""
        await deploy(place)
        async with installation(place, self._size) as filled:
            self._announce(f"writing {self._size.ended:,} ended and {self._size.idle:,} idle jobs")
            await filled.seconds(Workload.CHAIN, self._size)
            await fill(place.url(), filled.owner_id, ended=self._size.ended, idle=self._size.idle)
            if Part.IN_USE in self._parts:
                for workload in Workload:
                    times = await self._best(workload, self._runner(empty), self._runner(filled))
                    yield report.in_use(self._size, workload, *times)
            if Part.IDLE in self._parts:
                yield await self._idle(place, filled)

    def _runner(self, ours: Installation) -> Callable[[Workload], Awaitable[float]]:
        async def run(workload: Workload) -> float:
            return await ours.seconds(workload, self._size)

        return run

    async def _best(self, workload: Workload, *runners: Callable[[Workload], Awaitable[float]]) -> list[float]:
        """Run each in turn, round after round, and give the best of each: the least disturbed."""
        taken: list[list[float]] = []
        for number in range(1, self._rounds + 1):
            self._announce(f"{self._size.title(workload)}: round {number} of {self._rounds}")
            taken.append([await run(workload) for run in runners])
        return [min(times) for times in zip(*taken, strict=True)]

    async def _idle(self, place: Place, ours: Installation) -> Line:
        """Look at the processes and the database's counters, do nothing for a while, and look again."""
        self._announce(f"idling for {self._size.idle_seconds} s")
        started = [ours.orchestrator, ours.worker]
        await asyncio.sleep(STATISTICS_DELAY_SECONDS)
        before, asked_before = [each.cpu_seconds() for each in started], await _transactions(place)
        await asyncio.sleep(self._size.idle_seconds)
        used = [each.cpu_seconds() - earlier for each, earlier in zip(started, before, strict=True)]
        asked = await _transactions(place) - asked_before
        seconds = self._size.idle_seconds
        return report.idle(self._size, [100 * each / seconds for each in used], asked / seconds)

    async def _memory(self, place: Place) -> Line:
        self._announce(f"fan-out of {self._size.memory_fan_out:,} in a database of its own")
        await deploy(place)
        async with installation(place, self._size) as ours:
            await ours.fan_out_seconds(self._size.memory_fan_out)
            return report.memory(self._size, ours.orchestrator.peak_memory_mb())


async def _transactions(place: Place) -> int:
    """Ask from another database, so that the question itself is not counted."""
    other = await place.beside("postgres")
    async with await psycopg.AsyncConnection.connect(other.url(), autocommit=True) as connection:
        row = await (await connection.execute(TRANSACTIONS, [place.name])).fetchone()
        return int(row[0]) if row else 0
