"""The table: what was measured, beside what is to be reached."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.workloads import Figure, Size, Workload


@dataclass(frozen=True)
class Target:
    """What a ratio has to be: at most so much, or at least."""

    bound: float
    aim: float | None = None
    at_most: bool = False

    def is_reached(self, ratio: float) -> bool:
        """Tell whether a ratio is good enough."""
        return ratio <= self.bound if self.at_most else ratio >= self.bound

    def __str__(self) -> str:
        aim = "" if self.aim is None else f" (aim: {self.aim:g} x)"
        return f"{'at most' if self.at_most else 'at least'} {self.bound:g} x raw{aim}"


TARGETS = {
    Workload.CHAIN: Target(2.0, aim=1.5, at_most=True),
    Workload.FAN_OUT: Target(0.25, aim=0.5),
    Workload.JOBS: Target(0.2),
}
FILLED_BOUND = 1.3
IDLE_CPU_PERCENT = 2.0
IDLE_QUERIES = 5.0
MEMORY_MB = 400.0
PAGE_WIDTH = 190


@dataclass(frozen=True)
class Line:
    """One line of the table, as text."""

    workload: str
    beside: str  # what ours is compared with
    ours: str
    ratio: str
    to_reach: str
    reached: bool


def beside_raw(size: Size, workload: Workload, raw_seconds: float, our_seconds: float) -> Line:
    """Compare ours with the raw limit; the ratio is of the figures, so for a rate more is better."""
    raw, ours, target = size.figure(workload, raw_seconds), size.figure(workload, our_seconds), TARGETS[workload]
    ratio = ours.value / raw.value
    return Line(size.title(workload), str(raw), str(ours), f"{ratio:.2f}", str(target), target.is_reached(ratio))


def in_use(size: Size, workload: Workload, empty_seconds: float, filled_seconds: float) -> Line:
    """Compare a database that is in use with the empty one."""
    empty, filled = size.figure(workload, empty_seconds), size.figure(workload, filled_seconds)
    slower = filled_seconds / empty_seconds
    return Line(
        f"  {workload} with {size.ended:,} ended and {size.idle:,} idle jobs in the database",
        f"{empty} (ours, empty)",
        str(filled),
        f"{slower:.2f} x the time",
        f"within {FILLED_BOUND:g} x of the empty database",
        slower <= FILLED_BOUND,
    )


def idle(size: Size, cpu_percent: Sequence[float], queries_per_second: float) -> Line:
    """Tell what idling costs: the CPU of each process, and what they ask of the database."""
    return Line(
        f"idle, {size.idle:,} active jobs waiting for workers",
        "",
        f"{' and '.join(f'{each:.2f}' for each in cpu_percent)} % of a core, {queries_per_second:.1f} queries/s",
        "",
        f"under {IDLE_CPU_PERCENT:g} % of a core per process, a few queries/s",
        max(cpu_percent) < IDLE_CPU_PERCENT and queries_per_second <= IDLE_QUERIES,
    )


def memory(size: Size, peak_mb: float) -> Line:
    """Tell the most memory that an orchestrator held."""
    return Line(
        f"memory of an orchestrator with one fan-out of {size.memory_fan_out:,}",
        "",
        str(Figure(peak_mb, "MB")),
        "",
        f"under {MEMORY_MB:g} MB",
        peak_mb < MEMORY_MB,
    )


def wide_console() -> Console:
    """Give the terminal, or, for a file or a pipe, a page that is wide enough for the tables."""
    console = Console()
    return console if console.is_terminal else Console(width=PAGE_WIDTH)


def table(lines: Sequence[Line], beside: str = "raw", title: str = "The engine against raw psycopg") -> Table:
    """Draw the table; `beside` is what ours is compared with."""
    drawn = Table("workload", beside, "ours", "ratio", "to reach", "reached?", title=title)
    for line in lines:
        reached = "[green]yes[/]" if line.reached else "[red]no[/]"
        drawn.add_row(line.workload, line.beside, line.ours, line.ratio, line.to_reach, reached)
    return drawn
