"""Run the benchmarks on a private, durable cluster and print the table: `make bench`."""

import argparse
import asyncio

from rich.console import Console

from benchmarks import repositories
from benchmarks.measure import Measurement, Part
from benchmarks.report import table, wide_console
from benchmarks.workloads import FULL, QUICK
from graticule.config import LogFormat, RunMode
from graticule.logs import configure_logging

REPOSITORIES = "repositories"
CHOICES = [*Part, REPOSITORIES]


def main() -> None:
    """Measure what was asked for and print it; what is not reached is said in the table."""
    options = _options()
    configure_logging("WARNING", LogFormat.CONSOLE, RunMode.ORCHESTRATOR)
    if parts := [part for part in Part if part in options.only]:
        asyncio.run(_engine(parts, options.rounds or (2 if options.quick else 5), quick=options.quick))
    if REPOSITORIES in options.only:
        asyncio.run(repositories.run(wide_console()))


async def _engine(parts: list[Part], rounds: int, *, quick: bool) -> None:
    progress = Console(stderr=True)
    with progress.status("starting") as status:
        measurement = Measurement(QUICK if quick else FULL, rounds, parts, status.update)
        lines = []
        async for line in measurement.lines():
            lines.append(line)
            progress.print(f"{line.workload.strip()}: {line.ours}", highlight=False)
    wide_console().print(table(lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, help="how often raw and ours are run in turn; the best of each counts")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs, not to measure")
    parser.add_argument(
        "--only",
        type=_chosen,
        default=[*Part],
        metavar="PART,…",
        help=f"some of {', '.join(CHOICES)}; by default all but the last",
    )
    return parser.parse_args()


def _chosen(given: str) -> list[str]:
    names = [name.strip() for name in given.split(",")]
    if unknown := [name for name in names if name not in CHOICES]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(CHOICES)}")
    return names


if __name__ == "__main__":
    main()
