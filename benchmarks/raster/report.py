"""The lines of the table: ours beside the best of the tools, and what is to be reached."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.jobs import JobRun
from benchmarks.raster.overhead import Overhead
from benchmarks.raster.size import RasterSize, megabytes
from benchmarks.raster.tools import ToolRun
from benchmarks.report import Line
from benchmarks.workloads import Figure

ONE_COG_BOUND = 1.0
TILED_BOUND = 0.85
BUSY_BOUND = 0.9
OVERHEAD_BOUND = 0.01
PEAK_MB = 1536.0
QUIET = 0.05  # of the cores, for others
VALIDATE_SECONDS = 2.0
VALIDATE_BYTES = 20e6
TITLE = "Rasters against the best single GDAL command"


@dataclass(frozen=True)
class Validated:
    """What `raster.validate` took, in a new process and in one that has GDAL loaded."""

    file_bytes: int
    first_seconds: float
    again_seconds: float
    read_bytes: int


@dataclass
class Measured:
    """All that was measured."""

    size: RasterSize
    cores: int
    gdal: str  # ours
    tools: list[ToolRun] = field(default_factory=list)
    jobs: dict[str, JobRun] = field(default_factory=dict)
    output_bytes: dict[str, int] = field(default_factory=dict)
    overhead: Overhead | None = None
    validated: Validated | None = None

    @property
    def best_tool(self) -> ToolRun:
        """The fastest of the tools."""
        return min(self.tools, key=lambda run: run.seconds)

    def add_tool(self, run: ToolRun) -> None:
        """Take a run of a tool, if none of it was better."""
        others = [each for each in self.tools if each.tool != run.tool]
        same = [each for each in self.tools if each.tool == run.tool]
        self.tools = [*others, min([*same, run], key=lambda each: each.seconds)]

    def add_job(self, name: str, run: JobRun, output_bytes: int) -> None:
        """Take a run of a job, if none of it was better."""
        if name not in self.jobs or run.seconds < self.jobs[name].seconds:
            self.jobs[name], self.output_bytes[name] = run, output_bytes

    def write(self, path: Path, lines: Sequence[Line]) -> None:
        """Write it as JSON, with the lines of the table."""
        document: dict[str, Any] = {**asdict(self), "lines": [asdict(line) for line in lines]}
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def one_cog(measured: Measured, run: JobRun) -> Line:
    """Compare the whole job that makes one COG with the best tool."""
    name = f"{measured.size.name} to one COG in EPSG:4326, from submit to STAC"
    return _beside_best(measured, name, run, ONE_COG_BOUND)


def tiled(measured: Measured, run: JobRun) -> Line:
    """Compare the whole job that makes tiles with the best tool."""
    return _beside_best(measured, f"the same in tiles, {len(run.worker_peaks_mb)} workers", run, TILED_BOUND)


def _beside_best(measured: Measured, name: str, run: JobRun, bound: float) -> Line:
    best = measured.best_tool
    ratio = run.seconds / best.seconds
    return Line(
        name,
        f"{Figure(best.seconds, 's')} ({best.tool}, {best.version})",
        str(Figure(run.seconds, "s")),
        f"{ratio:.2f}",
        f"at most {bound:g} x the best tool",
        ratio <= bound,
    )


def busy(run: JobRun, cores: int) -> Line:
    """Tell how busy the cores were while tiles were made."""
    others = f"; other programs {run.others_share:.0%}: not a quiet machine" if run.others_share > QUIET else ""
    return Line(
        "  cores busy with it meanwhile",
        "",
        f"{run.busy_share:.1%} of {cores}{others}",
        "",
        f"at least {BUSY_BOUND:.0%} of both",
        run.busy_share >= BUSY_BOUND,
    )


def memory(run: JobRun, tile: int) -> Line:
    """Tell the most memory that a worker held, its child processes included."""
    peak = max(run.worker_peaks_mb)
    return Line(
        f"  peak memory of a worker, tiles of {tile}",
        "",
        str(Figure(peak, "MB")),
        "",
        f"under {PEAK_MB:,.0f} MB at 8192",
        peak < PEAK_MB,
    )


def overhead(found: Overhead, tile: int) -> Line:
    """Tell what the orchestration of many tiles costs."""
    parts = f"{found.milliseconds_per_tile:.1f} ms per tile, {found.besides:.2f} s besides"
    return Line(
        f"overhead of a job of {found.tiles} tiles of {tile}, {found.workers} workers, {Figure(found.seconds, 's')}",
        "",
        f"{found.share:.2%} of its time ({parts})",
        "",
        f"under {OVERHEAD_BOUND:.0%}",
        found.share < OVERHEAD_BOUND,
    )


def validation(found: Validated) -> Line:
    """Tell what looking at a large file costs."""
    return Line(
        f"raster.validate of {megabytes(found.file_bytes)} by range reads",
        "",
        f"{Figure(found.first_seconds, 's')} ({Figure(found.again_seconds, 's')} with GDAL loaded), "
        f"{found.read_bytes / 1e6:.1f} MB read",
        "",
        f"under {VALIDATE_SECONDS:g} s and {megabytes(VALIDATE_BYTES)}",
        found.first_seconds < VALIDATE_SECONDS and found.read_bytes < VALIDATE_BYTES,
    )


def tools_table(measured: Measured) -> Table:
    """Draw what each tool, and each job of ours, took for the same output."""
    drawn = Table("who", "version", "wall", "CPU", "peak memory", "output", title="Each by itself")
    for tool in sorted(measured.tools, key=lambda run: run.seconds):
        figures = (Figure(tool.seconds, "s"), Figure(tool.cpu_seconds, "s"), Figure(tool.peak_mb, "MB"))
        drawn.add_row(tool.tool, tool.version, *map(str, figures), megabytes(tool.size_bytes))
    for name, job in measured.jobs.items():
        figures = (Figure(job.seconds, "s"), Figure(job.cpu_seconds, "s"), Figure(max(job.worker_peaks_mb), "MB"))
        drawn.add_row(f"ours, {name}", measured.gdal, *map(str, figures), megabytes(measured.output_bytes[name]))
    return drawn
