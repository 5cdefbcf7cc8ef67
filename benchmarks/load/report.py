"""What was seen under load, and whether it is sound."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, Final

from rich.table import Table

from benchmarks.load.client import Kind

FLAT: Final = 1.05  # the last third of the time holds at most so much more than the second
HELD: Final = 0.99  # of the rate that was asked for


@dataclass(frozen=True)
class Used:
    """What one process took: CPU time, and its memory once a second."""

    process: str
    cpu_seconds: float
    megabytes: Sequence[float]

    @property
    def thirds(self) -> tuple[float, float, float]:
        """Give the memory in each third of the time."""
        size = max(len(self.megabytes) // 3, 1)
        parts = (self.megabytes[:size], self.megabytes[size : 2 * size], self.megabytes[2 * size :])
        first, second, third = (median(part or self.megabytes) for part in parts)
        return first, second, third

    @property
    def is_flat(self) -> bool:
        """Tell whether it has stopped growing; the first third fills caches and pools."""
        _, second, third = self.thirds
        return third <= second * FLAT


@dataclass(frozen=True)
class Measured:
    """One load: what the partners saw, what became of their requests, and what it took."""

    kind: Kind
    rate: float
    seen: Mapping[str, Any]
    completed: Set[str]
    seconds_to_the_last_job: float
    cores_busy: float
    used: Sequence[Used]

    @property
    def lost(self) -> int:
        """Count the receipts of what did not complete."""
        return len(set(self.seen["receipts"]) - self.completed)

    @property
    def refused(self) -> int:
        """Count the submissions without a receipt."""
        return int(self.seen["sent"]) - len(self.seen["receipts"])

    @property
    def achieved(self) -> float:
        """Give the submissions a second that were answered."""
        return len(self.seen["milliseconds"]) / float(self.seen["seconds"])

    @property
    def checks(self) -> Iterator[tuple[str, str, str, bool]]:
        """Give what has to hold: what, how it was, how it has to be, and whether it is."""
        yield "submissions without a receipt", str(self.refused), "0", self.refused == 0
        twice = len(self.seen["receipts"]) - len(set(self.seen["receipts"]))
        yield "receipts that were given twice", str(twice), "0", twice == 0
        yield "receipts whose job did not complete", str(self.lost), "0", self.lost == 0
        rate = f"at least {HELD * self.rate:g} /s"
        yield "submissions answered", f"{self.achieved:.1f} /s", rate, self.achieved >= HELD * self.rate
        for each in self.used:
            shown = " → ".join(f"{part:.0f}" for part in each.thirds)
            yield f"memory of the {each.process}, by thirds", f"{shown} MB", f"last ≤ {FLAT:g} x second", each.is_flat

    @property
    def is_sound(self) -> bool:
        """Tell whether all of it holds."""
        return all(reached for *_, reached in self.checks)


def tables(measured: Measured) -> list[Table]:
    """Draw what was seen, what it took, and what has to hold."""
    seen, cuts = measured.seen, quantiles(measured.seen["milliseconds"], n=1000, method="inclusive")
    latency = Table(
        "latency of a submission",
        "",
        title=f"{seen['sent']:,} submissions of {measured.kind}, {measured.rate:g} a second",
    )
    for name, value in {"p50": cuts[499], "p95": cuts[949], "p99": cuts[989], "p99.9": cuts[998]}.items():
        latency.add_row(name, f"{value:.1f} ms")
    latency.add_row("slowest", f"{max(seen['milliseconds']):.1f} ms")
    latency.add_row("from the last receipt to the end of the last job", f"{measured.seconds_to_the_last_job:.1f} s")
    taken = Table("process", "CPU for a submission", title=f"{measured.cores_busy:.0%} of all cores were busy")
    for each in measured.used:
        taken.add_row(each.process, f"{each.cpu_seconds / seen['sent'] * 1000:.2f} ms")
    checks = Table("what", "seen", "to reach", "reached?")
    for what, was, bound, reached in measured.checks:
        checks.add_row(what, was, bound, "[green]yes[/]" if reached else "[red]no[/]")
    for why, count in seen["refused"].items():
        checks.add_row(f"refused: {why}", str(count), "", "")
    return [latency, taken, checks]
