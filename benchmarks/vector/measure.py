"""What is measured, in which order: the tools and ours in turn, then ours on a source that is many times larger."""

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg

from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.jobs import JobInstallation, JobRun, job_installation
from benchmarks.machine import make_ready, use_cores
from benchmarks.measure import Announce
from benchmarks.report import Line
from benchmarks.vector import report
from benchmarks.vector.checks import check_alike
from benchmarks.vector.size import CORES, SCHEMA, WORKERS, VectorPart, VectorSize
from benchmarks.vector.sources import make_source
from benchmarks.vector.tools import OGR2OGR, ToolRun, has_ogr2ogr, run_geopandas, run_ogr2ogr

ONE_PROCESS = ("--concurrency", "1")  # each worker loads one chunk at a time
WARM_FEATURES = 20_000
LOAD_SPAN: LiteralString = """
    SELECT extract(epoch FROM max(ended_at) FILTER (WHERE node_id = 'finalize')
                              - min(dispatched_at) FILTER (WHERE node_id = 'stage'))::float8
    FROM dagapp.dag_nodes WHERE job_id = %s
"""


@dataclass(frozen=True)
class Loaded:
    """What a job of ours took: all of it, and the load alone, from the first step that writes to the live table."""

    job: JobRun
    load_seconds: float


@dataclass
class Measured:
    """The best runs of everyone."""

    size: VectorSize
    tools: dict[str, ToolRun] = field(default_factory=dict)
    ours: Loaded | None = None
    larger: Loaded | None = None

    def add_tool(self, run: ToolRun) -> None:
        """Take a run of a tool, if none of it was better."""
        self.tools[run.tool] = min([*filter(None, [self.tools.get(run.tool)]), run], key=lambda each: each.seconds)

    def add_ours(self, run: Loaded) -> None:
        """Take a run of ours, if none was better."""
        if self.ours is None or run.load_seconds < self.ours.load_seconds:
            self.ours = run


class VectorMeasurement:
    """One run of the benchmarks of vectors."""

    def __init__(
        self, size: VectorSize, rounds: int, parts: Collection[VectorPart], folder: Path | None, announce: Announce
    ) -> None:
        use_cores(CORES)
        self.measured = Measured(size)
        self._size = size
        self._rounds = rounds
        self._parts = parts
        self._folder = folder
        self._announce = announce

    async def lines(self) -> AsyncIterator[Line]:
        """Measure, and give each line as soon as it is known."""
        async with private_cluster() as place:
            await deploy(place)
            folder = (self._folder or place.home / "vectors").absolute()
            source = await self._source(folder, self._size.features)
            for number in range(1, self._rounds + 1):
                self._announce(f"round {number} of {self._rounds}")
                await self._round(place, folder, source)
            for line in report.compared(self.measured) if VectorPart.LOAD in self._parts else ():
                yield line
            if VectorPart.SCALE in self._parts:
                larger = await self._source(folder, self._size.features * self._size.times)
                self.measured.larger = await self._ours(place, folder, larger, "direct_bench_larger")
                yield report.scaled(self.measured)

    async def _round(self, place: Place, folder: Path, source: Path) -> None:
        if VectorPart.LOAD in self._parts:
            await self._tools(place, folder, source)
        run = await self._ours(place, folder, source, "direct_bench")
        self.measured.add_ours(run)
        if OGR2OGR in self.measured.tools:
            await asyncio.to_thread(check_alike, place.url(), (SCHEMA, "direct_bench"), ("public", "bench_ogr2ogr"))

    async def _tools(self, place: Place, folder: Path, source: Path) -> None:
        if has_ogr2ogr():
            for is_reprojected, table in ((True, "bench_ogr2ogr"), (False, "bench_plain")):
                self._announce(f"ogr2ogr, {table}")
                self.measured.add_tool(
                    await asyncio.to_thread(run_ogr2ogr, source, place, table, reprojected=is_reprojected)
                )
        peers = folder / "peers"
        for by_arrow in (False, True):
            self.measured.add_tool(
                await asyncio.to_thread(
                    run_geopandas, source, place, "bench_geopandas", peers, self._announce, by_arrow=by_arrow
                )
            )

    async def _ours(self, place: Place, folder: Path, source: Path, table: str) -> Loaded:
        self._announce(f"ours, {source.name}")
        async with job_installation(place, folder / "storage", workers=WORKERS, options=ONE_PROCESS) as ours:
            warm = await self._source(folder, WARM_FEATURES)
            for _ in range(WORKERS):  # those of an installation that runs have long loaded their libraries
                await self._job(ours, warm, "direct_bench_warm")
            await asyncio.to_thread(make_ready, source)
            run = await self._job(ours, source, table)
        return Loaded(run, await asyncio.to_thread(_load_seconds, place.url(), run.job_id))

    async def _job(self, ours: JobInstallation, source: Path, table: str) -> JobRun:
        return await ours.run(
            "vector_ingest", container_name=source.parent.name, blob_name=source.name, table_name=table
        )

    async def _source(self, folder: Path, features: int) -> Path:
        self._announce(f"making {features:,} polygons")
        source = folder / "storage" / "bronze" / f"polygons-{features}.gpkg"
        await asyncio.to_thread(make_source, source, features)
        return source


def _load_seconds(url: str, job_id: str) -> float:
    with psycopg.connect(url) as connection:
        found = connection.execute(LOAD_SPAN, (job_id,)).fetchone()
    return float(found[0]) if found else 0.0
