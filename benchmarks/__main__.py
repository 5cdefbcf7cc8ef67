"""Run the benchmarks on a private, durable cluster and print the table: `make bench`."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import job_list, repositories
from benchmarks.measure import Measurement, Part
from benchmarks.raster.size import RasterPart, RasterSize
from benchmarks.report import table, wide_console
from benchmarks.serving.size import ServingPart, ServingSize
from benchmarks.vector.size import VectorPart, VectorSize
from benchmarks.workloads import FULL, QUICK
from graticule.config import RunMode
from graticule.core.log_format import LogFormat
from graticule.logs import configure_logging

JOB_LIST = "job-list"
REPOSITORIES = "repositories"
CONSOLE = "console"
SERVICE_BUS = "service-bus"
RASTER = "raster"  # all of its parts
SERVING = "serving"
VECTOR = "vector"
CHOICES = [
    *(*Part, JOB_LIST, REPOSITORIES, CONSOLE, SERVICE_BUS),
    *(RASTER, *RasterPart, SERVING, *ServingPart, VECTOR, *VectorPart),
]
QUICK_RASTER = RasterSize(side=4_000, many_tiles=512)
QUICK_SERVING = ServingSize(side=2_048, features=10_000, addresses=50, requests=200, light_requests=500)
QUICK_VECTOR = VectorSize(features=20_000, times=3)


def main() -> None:
    """Measure what was asked for and print it; what is not reached is said in the table."""
    options = _options()
    configure_logging("WARNING", LogFormat.CONSOLE, RunMode.ORCHESTRATOR)
    if parts := [part for part in Part if part in options.only]:
        asyncio.run(_engine(parts, options.rounds or (2 if options.quick else 5), quick=options.quick))
    if JOB_LIST in options.only:
        asyncio.run(job_list.run(wide_console(), quick=options.quick))
    if REPOSITORIES in options.only:
        asyncio.run(repositories.run(wide_console()))
    if CONSOLE in options.only:
        asyncio.run(_console(quick=options.quick))
    if SERVICE_BUS in options.only:
        asyncio.run(_service_bus(options.rounds or (2 if options.quick else 5)))
    if rasters := [part for part in RasterPart if part in options.only or RASTER in options.only]:
        asyncio.run(_raster(rasters, options))
    if services := [part for part in ServingPart if part in options.only or SERVING in options.only]:
        asyncio.run(_serving(services, options.rounds or (2 if options.quick else 5), quick=options.quick))
    if vectors := [part for part in VectorPart if part in options.only or VECTOR in options.only]:
        asyncio.run(_vector(vectors, options))


async def _engine(parts: list[Part], rounds: int, *, quick: bool) -> None:
    progress = Console(stderr=True)
    with progress.status("starting") as status:
        measurement = Measurement(QUICK if quick else FULL, rounds, parts, status.update)
        lines = []
        async for line in measurement.lines():
            lines.append(line)
            progress.print(f"{line.workload.strip()}: {line.ours}", highlight=False)
    wide_console().print(table(lines))


async def _console(*, quick: bool) -> None:
    from benchmarks import console  # noqa: PLC0415 - it needs a browser

    await console.run(wide_console(), quick=quick)


async def _service_bus(rounds: int) -> None:
    from benchmarks import service_bus  # noqa: PLC0415 - the extra is not always installed

    progress = Console(stderr=True)
    with progress.status("starting") as status:
        lines = await service_bus.lines(rounds, status.update)
    wide_console().print(table(lines, beside="bare client", title="The engine over Service Bus"))


async def _raster(parts: list[RasterPart], options: argparse.Namespace) -> None:
    # Heavy imports, and packages that the engine alone can do without.
    from benchmarks.raster import report  # noqa: PLC0415
    from benchmarks.raster.measure import RasterMeasurement  # noqa: PLC0415
    from benchmarks.raster.tools import missing_programs  # noqa: PLC0415

    progress = Console(stderr=True)
    if missing := missing_programs():
        progress.print(f"[yellow]not installed[/]: {', '.join(missing)} (gdal-bin); rasterio's GDAL stands for them")
    with progress.status("starting") as status:
        measurement = RasterMeasurement(
            _raster_size(options), options.rounds or 1, parts, options.raster_folder, status.update
        )
        lines = []
        async for line in measurement.lines():
            lines.append(line)
            progress.print(f"{line.workload.strip()}: {line.ours}", highlight=False)
    console = wide_console()
    console.print(table(lines, beside="best tool", title=report.TITLE))
    if measurement.measured.jobs:
        console.print(report.tools_table(measurement.measured))
    if options.json:
        measurement.measured.write(options.json, lines)


async def _serving(parts: list[ServingPart], rounds: int, *, quick: bool) -> None:
    # Heavy imports, and packages that the engine alone can do without.
    from benchmarks.serving import report  # noqa: PLC0415
    from benchmarks.serving.measure import ServingMeasurement  # noqa: PLC0415

    progress = Console(stderr=True)
    with progress.status("starting") as status:
        size = QUICK_SERVING if quick else ServingSize()
        measurement = ServingMeasurement(size, rounds, parts, status.update)
        lines = []
        async for line in measurement.lines():
            lines.append(line)
            progress.print(f"{line.workload.strip()}: {line.ours}", highlight=False)
    console = wide_console()
    console.print(table(lines, beside="plain", title=report.TITLE))
    console.print(report.each_table(measurement.measured))


async def _vector(parts: list[VectorPart], options: argparse.Namespace) -> None:
    # Heavy imports, and packages that the engine alone can do without.
    from benchmarks.vector import report  # noqa: PLC0415
    from benchmarks.vector.measure import VectorMeasurement  # noqa: PLC0415
    from benchmarks.vector.tools import has_ogr2ogr  # noqa: PLC0415

    progress = Console(stderr=True)
    if not has_ogr2ogr():
        progress.print("[yellow]not installed[/]: ogr2ogr (gdal-bin); geopandas stands alone")
    with progress.status("starting") as status:
        size = QUICK_VECTOR if options.quick else VectorSize()
        measurement = VectorMeasurement(size, options.rounds or 1, parts, options.vector_folder, status.update)
        lines = []
        async for line in measurement.lines():
            lines.append(line)
            progress.print(f"{line.workload.strip()}: {line.ours}", highlight=False)
    wide_console().print(table(lines, beside="tool", title=report.TITLE))


def _raster_size(options: argparse.Namespace) -> RasterSize:
    size = QUICK_RASTER if options.quick else RasterSize()
    return replace(size, side=options.raster_size or size.side, tile=options.raster_tile)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, help="how often raw and ours are run in turn; the best of each counts")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs, not to measure")
    parser.add_argument(
        "--only",
        type=_chosen,
        default=[*Part],
        metavar="PART,…",
        help=f"some of {', '.join(CHOICES)}; by default those of the engine: {', '.join(Part)}",
    )
    raster = parser.add_argument_group("rasters")
    raster.add_argument("--raster-size", type=int, metavar="PIXELS", help="the side of the source; default: 13000")
    raster.add_argument("--raster-tile", type=int, metavar="PIXELS", help="the side of tiles; default: as chosen")
    raster.add_argument(
        "--raster-folder",
        type=Path,
        metavar="FOLDER",
        help="where sources and outputs are, and stay; default: a temporary folder",
    )
    raster.add_argument("--json", type=Path, metavar="FILE", help="where all figures of rasters are written")
    parser.add_argument_group("vectors").add_argument(
        "--vector-folder",
        type=Path,
        metavar="FOLDER",
        help="where sources and environments are, and stay; default: a temporary folder",
    )
    return parser.parse_args()


def _chosen(given: str) -> list[str]:
    names = [name.strip() for name in given.split(",")]
    if unknown := [name for name in names if name not in CHOICES]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(CHOICES)}")
    return names


if __name__ == "__main__":
    main()
