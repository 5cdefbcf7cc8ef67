"""The lines of the table: ours beside the tools, and what is to be reached."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.report import Line
from benchmarks.vector.tools import GEOPANDAS, GEOPANDAS_BY_ARROW, OGR2OGR, OGR2OGR_PLAIN
from benchmarks.workloads import Figure

if TYPE_CHECKING:
    from benchmarks.vector.measure import Loaded, Measured

TITLE = "Vectors against ogr2ogr and geopandas"
# How many times as quick ours is to be; the others are told.
BOUNDS = {OGR2OGR: 1.3, GEOPANDAS: 5.0}
TOLD = (OGR2OGR_PLAIN, GEOPANDAS_BY_ARROW)
PEAK_MB = 500.0
SCALE_BOUND = 0.2
QUIET = 0.05  # of the cores, for others


def compared(measured: "Measured") -> Iterator[Line]:
    """Compare the load with each tool; the ratio tells how many times as quick ours is."""
    ours = _ours(measured)
    for name in (*BOUNDS, *TOLD):
        if tool := measured.tools.get(name):
            ratio, bound = tool.seconds / ours.load_seconds, BOUNDS.get(name)
            yield Line(
                f"{measured.size.name}: read, reproject, check, COPY, index, analyze",
                f"{Figure(tool.seconds, 's')} ({name}, {tool.peak_mb:,.0f} MB)",
                str(Figure(ours.load_seconds, "s")),
                f"{ratio:.2f} x as quick",
                "told" if bound is None else f"at least {bound:g} x",
                bound is None or ratio >= bound,
            )
    yield _whole(ours)
    yield _memory(ours)


def scaled(measured: "Measured") -> Line:
    """Compare a larger source with the first one."""
    first, larger = _ours(measured), measured.larger
    if larger is None:
        raise ValueError("nothing larger was measured")
    ratio = larger.load_seconds / first.load_seconds / measured.size.times
    peak = max(larger.job.worker_peaks_mb)
    return Line(
        f"{measured.size.times} x as many polygons",
        f"{Figure(first.load_seconds, 's')} (ours, {measured.size.features:,})",
        f"{Figure(larger.load_seconds, 's')}, a worker {Figure(peak, 'MB')}",
        f"{ratio:.2f} of {measured.size.times} x the time",
        f"within {SCALE_BOUND:.0%}, a worker under {PEAK_MB:g} MB",
        abs(ratio - 1) <= SCALE_BOUND and peak < PEAK_MB,
    )


def _whole(ours: "Loaded") -> Line:
    others = ours.job.others_share
    noise = f"; other programs {others:.0%}: not a quiet machine" if others > QUIET else ""
    return Line(
        "  the whole job, from submit to STAC, with hash and validation",
        "",
        f"{Figure(ours.job.seconds, 's')}, {Figure(ours.job.cpu_seconds, 's')} of CPU{noise}",
        "",
        "told",
        True,
    )


def _memory(ours: "Loaded") -> Line:
    peak = max(ours.job.worker_peaks_mb)
    return Line(
        "  peak memory of a worker, with its child process",
        "",
        str(Figure(peak, "MB")),
        "",
        f"under {PEAK_MB:g} MB",
        peak < PEAK_MB,
    )


def _ours(measured: "Measured") -> "Loaded":
    if measured.ours is None:
        raise ValueError("ours was not measured")
    return measured.ours
