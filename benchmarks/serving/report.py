"""The lines of the table: ours beside the plain library, and what need not be made beside what is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from rich.table import Table

from benchmarks.processes import Process
from benchmarks.raster.report import QUIET
from benchmarks.report import Line
from benchmarks.serving.load import Outcome, Target
from benchmarks.workloads import Figure

PLAIN_BOUND = 0.95
LIGHT_BOUND = 5.0
TITLE = "The services against plain TiTiler and plain TiPG"


class Way(StrEnum):
    """How a request is answered."""

    PLAIN = "plain"
    OURS = "ours, made"
    CACHED = "ours, from the cache"
    KNOWN = "ours, 304"

    @property
    def is_light(self) -> bool:
        """Tell whether nothing has to be made."""
        return self in {Way.CACHED, Way.KNOWN}


@dataclass(frozen=True)
class Case:
    """One way to answer, and who is asked for it."""

    way: Way
    process: Process
    target: Target


@dataclass(frozen=True)
class Round:
    """What a round came to, and what it cost the server itself."""

    outcome: Outcome
    cpu_seconds: float  # for each request; of the server's process, not of the database

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return self.outcome.per_second

    @property
    def p99(self) -> float:
        """The time in milliseconds that one of a hundred requests exceeds."""
        return self.outcome.percentile(99)


@dataclass
class Measured:
    """All rounds of a workload."""

    title: str
    plain_name: str
    connections: int
    rounds: dict[Way, list[Round]] = field(default_factory=lambda: {way: [] for way in Way})
    others_share: float = 0.0  # of the cores, for other programs

    def rate_ratio(self, way: Way, beside: Way) -> float:
        """Give how many times as many requests per second: the median of all rounds."""
        pairs = zip(self.rounds[way], self.rounds[beside], strict=True)
        return median(one.per_second / other.per_second for one, other in pairs)

    def p99_ratio(self, way: Way, beside: Way) -> float:
        """Give how many times as quick, by the slowest of a hundred requests."""
        pairs = zip(self.rounds[way], self.rounds[beside], strict=True)
        return median(other.p99 / one.p99 for one, other in pairs)

    def rate(self, way: Way) -> Figure:
        """Give the median of the requests per second."""
        return Figure(median(each.per_second for each in self.rounds[way]), "/s")

    def percentile(self, way: Way, percent: int) -> Figure:
        """Give the median of a percentile."""
        return Figure(median(each.outcome.percentile(percent) for each in self.rounds[way]), "ms")

    def cpu(self, way: Way) -> Figure:
        """Give the median of what a request costs the server."""
        return Figure(1000 * median(each.cpu_seconds for each in self.rounds[way]), "ms")


def lines(found: Measured) -> list[Line]:
    """Compare ours with the plain library, then what need not be made with what is."""
    plain, others = found.plain_name, ""
    if found.others_share > QUIET:
        others = f"; other programs {found.others_share:.0%}: not a quiet machine"
    rate, p99 = found.rate_ratio(Way.OURS, Way.PLAIN), found.p99_ratio(Way.OURS, Way.PLAIN)
    return [
        Line(
            f"{found.title}, {found.connections} connections",
            f"{found.rate(Way.PLAIN)} ({plain})",
            f"{found.rate(Way.OURS)}{others}",
            f"{rate:.2f}",
            f"at least {PLAIN_BOUND:g} x {plain}",
            rate >= PLAIN_BOUND,
        ),
        Line(
            "  99 of 100 are answered within",
            f"{found.percentile(Way.PLAIN, 99)} ({plain})",
            f"{found.percentile(Way.OURS, 99)}",
            f"{p99:.2f}",
            f"at least {PLAIN_BOUND:g} x as quick",
            p99 >= PLAIN_BOUND,
        ),
        _light(found, Way.CACHED, "  from the cache"),
        _light(found, Way.KNOWN, "  304, for those who have them"),
    ]


def _light(found: Measured, way: Way, name: str) -> Line:
    ratio = found.rate_ratio(way, Way.OURS)
    beside, ours = f"{found.rate(Way.OURS)} (ours, made)", str(found.rate(way))
    return Line(name, beside, ours, f"{ratio:.1f}", f"at least {LIGHT_BOUND:g} x what is made", ratio >= LIGHT_BOUND)


def each_table(measured: Sequence[Measured]) -> Table:
    """Draw what each way to answer came to."""
    heads = ("what", "who", "requests", "half within", "99 of 100 within", "CPU of the server", "bytes of an answer")
    drawn = Table(*heads, title="Each by itself, the medians of all rounds")
    for found in measured:
        for way, rounds in found.rounds.items():
            outcome = rounds[0].outcome
            drawn.add_row(
                found.title,
                found.plain_name if way is Way.PLAIN else way,
                str(found.rate(way)),
                str(found.percentile(way, 50)),
                str(found.percentile(way, 99)),
                str(found.cpu(way)),
                f"{outcome.received / len(outcome.milliseconds):,.0f}",
            )
    return drawn
