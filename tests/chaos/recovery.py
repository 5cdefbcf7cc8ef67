"""The recovery report: how long it takes from a kill until the jobs that it concerns go on."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Final, LiteralString

import psycopg
from tests.chaos.client import Client
from tests.chaos.history import Run, grouped
from tests.chaos.installation import Crew, Place, Post, Server, ask, crew_at_work
from tests.chaos.ledger import monotonic_now
from tests.chaos.member import Member
from tests.chaos.workflows import many_workflow

from graticule.orchestrator.loop import REAP_EVERY_SECONDS

PATIENCE_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.02
LAST_WORDS_SECONDS: Final = 0.05  # what a killed process had begun to write is there by then
JOBS_AT_ONCE: Final = 6
LONG_JOB: Final = {"tasks": 60, "seconds": 0.4}
# A reclaim alone is no progress: what counts is the next thing that happens in the job.
LAST_EVENTS: LiteralString = """
SELECT job.job_id, coalesce(max(event.event_id), 0), job.ended_at IS NOT NULL
FROM dagapp.dag_jobs AS job
LEFT JOIN dagapp.dag_job_events AS event ON event.job_id = job.job_id AND event.event_type <> 'job_reclaimed'
WHERE job.job_id = ANY (%s)
GROUP BY job.job_id
"""
ACTIVE: LiteralString = "SELECT job_id FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')"
OWNED: LiteralString = """
SELECT job.job_id FROM dagapp.dag_jobs AS job JOIN dagapp.dag_orchestrators AS owner USING (owner_id)
WHERE owner.process_id = %s AND job.status IN ('pending', 'running')
"""


@dataclass(frozen=True)
class Times:
    """The settings that decide how long a recovery takes; what is not said is as the product has it."""

    lease_seconds: float = 2.0  # of workers that are killed
    threshold_seconds: float = 6.0  # of orchestrators that are paused
    scan_seconds: float = 5.0


DEFAULTS: Final = Times()


@dataclass(frozen=True)
class Measured:
    """How long the recoveries of one kind took, each until the last of its jobs went on."""

    kind: str
    settings: str
    target: str
    seconds: list[float] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, float]:
        """Give p50, p99 and the maximum."""
        many = self.seconds if len(self.seconds) > 1 else self.seconds * 2
        p99 = quantiles(many, n=100, method="inclusive")[98]
        return {"p50": median(many), "p99": p99, "max": max(many)}


@dataclass(frozen=True)
class Stage:
    """Where a kind is measured: on a database of its own, in a folder of its own."""

    server: Server
    folder: Path
    kills: int
    times: Times

    @classmethod
    async def of(cls, server: Server, folder: Path, name: str, kills: int, times: Times = DEFAULTS) -> "Stage":
        """Make a database and a folder of this name."""
        (folder / name).mkdir()
        return cls(await server.clone(name), folder / name, kills, times)


def table(measured: Sequence[Measured]) -> str:
    """Show the report to people."""
    rows = [["killed", "times", "p50", "p99", "max", "to reach", "with"]]
    for each in measured:
        figures = [f"{seconds:.2f} s" for seconds in each.summary.values()]
        rows.append([each.kind, str(len(each.seconds)), *figures, each.target, each.settings])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(map(str.rstrip, lines))


def write_json(measured: Sequence[Measured], path: Path) -> None:
    """Write the report for programs."""
    path.write_text(json.dumps([{**asdict(each), **each.summary} for each in measured], indent=2) + "\n")


# The kinds


async def killed_workers(stage: Stage) -> Measured:
    """From the kill of a worker until each task that it ran has begun again, by the ledger."""
    lease = stage.times.lease_seconds
    timings = {"GRATICULE_WORKER_LEASE_SECONDS": f"{lease:g}", "GRATICULE_WORKER_RENEW_SECONDS": f"{lease / 3:g}"}
    seconds: list[float] = []
    rng = Random(0)
    async with _at_work(stage, timings, orchestrators=1, workers=4) as (crew, client), _load(crew, client):
        while len(seconds) < stage.kills:
            busy = [post for post in crew.workers if post.member is not None and _lost_by(crew, post.member.pid)]
            if busy and (took := await _kill_worker(crew, busy[len(seconds) % len(busy)].fill())):
                seconds.append(took)
            await asyncio.sleep(rng.uniform(0, REAP_EVERY_SECONDS))  # at any time between two looks for lost tasks
    return Measured("worker", f"lease {lease:g} s", f"{lease + 5:g} s", seconds)


async def _kill_worker(crew: Crew, victim: Member) -> float:
    """Kill a worker and wait for its tasks, so that none is lost a second time; 0 when they had just ended."""
    at = monotonic_now()
    victim.send(signal.SIGKILL)
    await asyncio.sleep(LAST_WORDS_SECONDS)
    lost = _lost_by(crew, victim.pid)

    def begun_again() -> list[float]:
        later = [run for run in _runs(crew) if run.began > at]
        return [min((run.began for run in later if run.entry.task_id == task_id), default=inf) for task_id in lost]

    await _until(lambda: inf not in begun_again(), "all its tasks to begin again")
    return max(begun_again(), default=at) - at


def _runs(crew: Crew) -> list[Run]:
    entries = crew.ledger.read()
    return [Run(each) for each in grouped(entries, [entry.run for entry in entries]).values()]


def _lost_by(crew: Crew, pid: int) -> set[str]:
    """Give the tasks that a process has begun and not ended."""
    runs = [run for run in _runs(crew) if run.entry.process_id == pid and run.moments == ["began"]]
    return {run.entry.task_id for run in runs}


async def killed_orchestrators(stage: Stage) -> Measured:
    """From the kill of an orchestrator until each of its jobs has its next event."""
    scan = stage.times.scan_seconds
    timings = {"GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": f"{scan:g}"}

    async def kill(post: Post) -> None:
        post.is_kept = False
        post.fill().send(signal.SIGKILL)
        await asyncio.sleep(LAST_WORDS_SECONDS)

    async def fill(post: Post) -> None:
        post.is_kept = True

    seconds = await _rounds(stage, timings, stage.kills, kill, fill)
    return Measured("orchestrator", f"scan {scan:g} s", "10 s", seconds)


async def paused_orchestrators(stage: Stage) -> Measured:
    """The same for one that keeps its session, so that only its heartbeat tells."""
    threshold, scan = stage.times.threshold_seconds, stage.times.scan_seconds
    timings = {
        "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": f"{threshold / 3:g}",
        "GRATICULE_ORPHAN_THRESHOLD_SECONDS": f"{threshold:g}",
        "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": f"{scan:g}",
    }

    async def pause(post: Post) -> None:
        post.fill().send(signal.SIGSTOP)

    async def go_on(post: Post) -> None:
        post.fill().send(signal.SIGCONT)

    seconds = await _rounds(stage, timings, max(1, stage.kills // 10), pause, go_on)
    told = f"threshold {threshold:g} s, scan {scan:g} s"
    return Measured("orchestrator, paused", told, f"{threshold + scan:g} s", seconds)


async def _rounds(
    stage: Stage,
    timings: Mapping[str, str],
    rounds: int,
    harm: Callable[[Post], Awaitable[None]],
    mend: Callable[[Post], Awaitable[None]],
) -> list[float]:
    """Give jobs to an orchestrator, harm it, and see how long they stand still; one after the other."""
    seconds: list[float] = []
    server, rng = stage.server, Random(0)
    async with _at_work(stage, timings, orchestrators=3, workers=2) as (crew, client):
        while len(seconds) < rounds:
            victim = crew.orchestrators[len(seconds) % len(crew.orchestrators)]
            given = [await client.submit(many_workflow(), LONG_JOB, victim.port) for _ in range(3)]
            await _progress(server, await _last_events(server, given))
            await asyncio.sleep(rng.uniform(0, stage.times.scan_seconds))  # at any time between two looks of the others
            owned = [str(job_id) for (job_id,) in await ask(server.url(), OWNED, victim.fill().pid)]
            began = time.monotonic()
            await harm(victim)
            await _progress(server, await _last_events(server, owned))
            seconds.append(time.monotonic() - began)
            await mend(victim)
    return seconds


async def killed_servers(stage: Stage) -> Measured:
    """From the return of a killed server until each active job has its next event."""
    seconds: list[float] = []
    server, rng = stage.server, Random(0)
    async with _at_work(stage, {}, orchestrators=3, workers=2) as (crew, client), _load(crew, client):
        while len(seconds) < stage.kills:
            await asyncio.sleep(rng.uniform(0.5, 1.5))
            active = [str(job_id) for (job_id,) in await ask(server.url(), ACTIVE)]
            await server.end(signal.SIGKILL if len(seconds) % 2 else signal.SIGQUIT)
            returning = asyncio.create_task(_returned(server))
            await server.cluster.start()
            returned = await returning
            await _progress(server, await _last_events(server, active))
            seconds.append(time.monotonic() - returned)
    return Measured("PostgreSQL", "as delivered", "5 s", seconds)


KINDS: Final = (killed_workers, killed_orchestrators, paused_orchestrators, killed_servers)


# What they share


@asynccontextmanager
async def _at_work(
    stage: Stage, timings: Mapping[str, str], *, orchestrators: int, workers: int
) -> AsyncIterator[tuple[Crew, Client]]:
    crew = Crew(stage.folder, stage.server, timings)
    crew.write([many_workflow()])
    client = Client(crew, [many_workflow()], Random(0))
    async with crew_at_work(crew), client.open():
        crew.hire(orchestrators, workers)
        yield crew, client


@asynccontextmanager
async def _load(crew: Crew, client: Client) -> AsyncIterator[None]:
    """Keep some jobs under way."""

    async def submit() -> None:
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                missing = JOBS_AT_ONCE - len(await ask(crew.place.url(), ACTIVE))
                for _ in range(missing):
                    await client.submit(many_workflow(), LONG_JOB)
            await asyncio.sleep(0.3)

    submitting = asyncio.create_task(submit())
    try:
        await _until(lambda: len(client.submitted) >= JOBS_AT_ONCE, "the first jobs")
        await _progress(crew.place, await _last_events(crew.place, [str(job.job_id) for job in client.submitted]))
        yield
    finally:
        submitting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await submitting


async def _last_events(place: Place, job_ids: Iterable[str]) -> dict[str, int]:
    """Give the last event of each job that has not ended."""
    rows = await ask(place.url(), LAST_EVENTS, [*job_ids])
    return {str(job_id): int(str(event_id)) for job_id, event_id, has_ended in rows if not has_ended}


async def _progress(place: Place, before: Mapping[str, int]) -> None:
    """Wait until each of these jobs has another event."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    async with await psycopg.AsyncConnection.connect(place.url(), autocommit=True) as connection:
        while True:
            rows = await (await connection.execute(LAST_EVENTS, [[*before]])).fetchall()
            standing = [job_id for job_id, event_id, _ in rows if event_id <= before[job_id]]
            if not standing:
                return
            assert time.monotonic() < deadline, f"no progress within {PATIENCE_SECONDS:g} s: {standing}"
            await asyncio.sleep(POLL_SECONDS)


async def _returned(server: Server) -> float:
    """Wait until the server takes connections, and tell when that was."""
    while True:
        with contextlib.suppress(psycopg.OperationalError):
            async with await psycopg.AsyncConnection.connect(server.url()):
                return time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


async def _until(question: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not question():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        await asyncio.sleep(0.1)
