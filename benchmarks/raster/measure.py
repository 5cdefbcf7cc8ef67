"""What is measured, in which order: the tools and ours in turn, then many tiles, then a look at a large file."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import rasterio
from pydantic import JsonValue

from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.jobs import JobInstallation, JobRun, job_installation
from benchmarks.machine import make_ready, use_cores
from benchmarks.measure import Announce
from benchmarks.raster import report
from benchmarks.raster.checks import WrongOutput, check_cogs
from benchmarks.raster.overhead import TILES, overhead_of, overlap_of, source_shape
from benchmarks.raster.range_server import served
from benchmarks.raster.report import Measured, Validated
from benchmarks.raster.size import BANDS, CORES, Folder, RasterPart, RasterSize
from benchmarks.raster.sources import make_hollow, make_picture
from benchmarks.raster.tools import known_tools, run_tool
from benchmarks.report import Line
from graticule.handlers.raster.tiling import tile_size_for

WORKERS = 2
ONE_PROCESS = ("--concurrency", "1")  # each worker makes one tile at a time
WARM_SIDE = 3000  # pixels: as many tiles as every worker gets some of
NEVER_LARGE_MB = 1e9  # so that the source is never cut into tiles
VALIDATION = """
workflow_id: bench_validate
name: Validation alone
version: 1
inputs:
  address: {type: string, required: true}
nodes:
  start: {type: start, next: validate}
  validate: {handler: raster.validate, params: {blob_name: "{{ inputs.address }}"}, next: end}
  end: {type: end}
"""


class RasterMeasurement:
    """One run of the benchmarks of rasters."""

    def __init__(
        self, size: RasterSize, rounds: int, parts: Collection[RasterPart], folder: Path | None, announce: Announce
    ) -> None:
        use_cores(CORES)
        self.measured = Measured(size, CORES, f"GDAL {rasterio.__gdal_version__}")
        self._size = size
        self._rounds = rounds
        self._parts = parts
        self._folder = folder
        self._announce = announce

    async def lines(self) -> AsyncIterator[Line]:
        """Measure, and give each line as soon as it is known."""
        async with private_cluster() as place:
            await deploy(place)
            folder = Folder((self._folder or place.home / "rasters").absolute())
            async for line in self._beside_tools(place, folder):
                yield line
            if RasterPart.OVERHEAD in self._parts:
                yield await self._overhead(place, folder)
            if RasterPart.VALIDATE in self._parts:
                yield await self._validation(place, folder)

    # Beside the tools

    async def _beside_tools(self, place: Place, folder: Folder) -> AsyncIterator[Line]:
        chosen = [part for part in (RasterPart.COG, RasterPart.TILED) if part in self._parts]
        if not chosen:
            return
        source = await self._picture(folder, self._size.side, self._size.side)
        for number in range(1, self._rounds + 1):
            for tool in known_tools():
                self._announce(f"round {number} of {self._rounds}: {tool.name}")
                self.measured.add_tool(await asyncio.to_thread(run_tool, tool, source, folder.by_tools))
            for part in chosen:
                self._announce(f"round {number} of {self._rounds}: ours, {part}")
                await self._run_ours(place, folder, source, part)
        for part in chosen:
            for line in self._compared(part):
                yield line

    async def _run_ours(self, place: Place, folder: Folder, source: Path, part: RasterPart) -> None:
        """Run the job of a part in a new installation, and check what it has made."""
        if part is RasterPart.COG:
            async with job_installation(place, folder.storage, workers=1) as ours:
                await self._warm_up(ours, folder)
                run = await self._job(ours, folder, source, part, large_mb=NEVER_LARGE_MB)
        else:
            async with job_installation(place, folder.storage, workers=WORKERS, options=ONE_PROCESS) as ours:
                await self._warm_up(ours, folder)
                run = await self._job(ours, folder, source, part, tile_size=self._size.tile)
        made = folder.made(part)
        await asyncio.to_thread(check_cogs, source, made)
        self.measured.add_job(part, run, sum(each.stat().st_size for each in made))

    def _compared(self, part: RasterPart) -> list[Line]:
        run = self.measured.jobs[part]
        if part is RasterPart.COG:
            return [report.one_cog(self.measured, run)]
        tile = self._size.tile or tile_size_for(BANDS, 1)
        return [report.tiled(self.measured, run), report.busy(run, CORES), report.memory(run, tile)]

    # Many tiles

    async def _overhead(self, place: Place, folder: Folder) -> Line:
        tile = self._size.many_tiles
        source = await self._picture(folder, *source_shape(tile))
        part = RasterPart.OVERHEAD
        self._announce(f"{TILES} tiles of {tile}")
        async with job_installation(place, folder.storage, workers=WORKERS, options=ONE_PROCESS) as ours:
            await self._warm_up(ours, folder)
            run = await self._job(ours, folder, source, part, tile_size=tile, overlap=overlap_of(tile))
        made = folder.made(part)
        if len(made) != TILES:
            raise WrongOutput(f"There are {len(made)} tiles, and {TILES} were wanted.")
        await asyncio.to_thread(check_cogs, source, made)
        self.measured.overhead = await overhead_of(place.url(), run)
        return report.overhead(self.measured.overhead, tile)

    # A look at a large file

    async def _validation(self, place: Place, folder: Folder) -> Line:
        self._announce("raster.validate of a large file")
        workflows = place.home / "workflows"
        workflows.mkdir(exist_ok=True)
        (workflows / "validation.yaml").write_text(VALIDATION, encoding="utf-8")
        file = folder.path / "hollow.tif"
        await asyncio.to_thread(make_hollow, file, self._size.validated_side)
        with served(file, place.home) as server:
            settings = {
                **server.trusted,
                "GRATICULE_STORAGE_ALLOW_HOSTS": server.place,
                "GRATICULE_WORKFLOWS": str(workflows),
            }
            async with job_installation(
                place, folder.storage, workers=1, options=ONE_PROCESS, settings=settings
            ) as ours:
                first = await ours.run("bench_validate", address=server.address)
                read = server.sent_bytes
                again = await ours.run("bench_validate", address=server.address)
        self.measured.validated = Validated(
            file_bytes=file.stat().st_size,
            first_seconds=sum(first.handler_seconds.values()),
            again_seconds=sum(again.handler_seconds.values()),
            read_bytes=read,
        )
        return report.validation(self.measured.validated)

    # What all of them need

    async def _picture(self, folder: Folder, width: int, height: int) -> Path:
        self._announce(f"making a picture of {width} x {height} pixels")
        source = folder.source(f"picture-{width}x{height}.tif")
        await asyncio.to_thread(make_picture, source, width, height)
        return source

    async def _warm_up(self, ours: JobInstallation, folder: Folder) -> None:
        """Have every worker do something small: those of an installation that runs have long loaded their libraries."""
        source = await self._picture(folder, WARM_SIDE, WARM_SIDE)
        names = {"container_name": source.parent.name, "blob_name": source.name, "blob_prefix": "direct/warm"}
        await ours.run("process_large_raster", **names, tile_size=512, overlap=0)

    async def _job(
        self, ours: JobInstallation, folder: Folder, source: Path, part: RasterPart, **inputs: JsonValue
    ) -> JobRun:
        """Run the workflow of a part on a source; what it makes goes below the part's name."""
        shutil.rmtree(folder.silver / "direct" / part, ignore_errors=True)
        await asyncio.to_thread(make_ready, source)
        workflow = "raster_ingest" if part is RasterPart.COG else "process_large_raster"
        given = {
            "container_name": source.parent.name,
            "blob_name": source.name,
            "blob_prefix": f"direct/{part}",
            **inputs,
        }
        return await ours.run(workflow, **{name: value for name, value in given.items() if value is not None})
