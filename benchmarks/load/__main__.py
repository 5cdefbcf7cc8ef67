"""Send submissions to a gateway at a fixed rate, as users' programs do, and tell what they saw: `make load`."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from rich.console import Console

from benchmarks.load.client import Kind
from benchmarks.load.platform import Platform, platform
from benchmarks.load.report import Measured, Used, tables
from benchmarks.machine import CoreTimes
from benchmarks.processes import Process
from benchmarks.report import wide_console
from graticule.config import RunMode
from graticule.core.log_format import LogFormat
from graticule.logs import configure_logging

RATE: Final = 200.0
SECONDS: Final = 60.0
MOST_RATE: Final = 1_000.0
MOST_SECONDS: Final = 600.0
WARM_UP_SECONDS: Final = 5.0
LOOK_EVERY_SECONDS: Final = 1.0
Announce = Callable[[str], None]
Looks = dict[str, list[float]]


def main() -> None:
    """Run the load, print what was seen, and fail when something of it is not sound."""
    options = _options()
    configure_logging("WARNING", LogFormat.CONSOLE, RunMode.ORCHESTRATOR)
    with Console(stderr=True).status("starting a database, an orchestrator, a gateway and a worker") as status:
        measured = asyncio.run(_measured(options.kind, options.rate, options.seconds, status.update))
    for table in tables(measured):
        wide_console().print(table)
    sys.exit(0 if measured.is_sound else 1)


async def _measured(kind: Kind, rate: float, seconds: float, announce: Announce) -> Measured:
    async with platform() as running:
        announce(f"{WARM_UP_SECONDS:g} s to warm up")
        await _sent(running, kind, "warm-up", rate, WARM_UP_SECONDS)
        announce(f"{rate:g} submissions a second for {seconds:g} s")
        cores, before = CoreTimes.now(), _cpu_seconds(running)
        async with _watched(running.processes) as looks:
            seen = await _sent(running, kind, "load", rate, seconds)
        busy, used = CoreTimes.now().since(cores), _cpu_seconds(running)
        announce("waiting for the last jobs")
        began = time.monotonic()
        completed = await running.completed()
        return Measured(
            kind=kind,
            rate=rate,
            seen=seen,
            completed=completed,
            seconds_to_the_last_job=time.monotonic() - began,
            cores_busy=busy.busy / busy.total,
            used=[Used(name, used[name] - before[name], looks[name]) for name in used],
        )


async def _sent(running: Platform, kind: Kind, name: str, rate: float, seconds: float) -> dict[str, Any]:
    """Let the client, a process of its own, send."""
    load = {
        "kind": kind,
        "port": urlsplit(running.gateway.url).port,
        "name": name,
        "rate": rate,
        "seconds": seconds,
        "keys": running.keys[kind],
    }
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.load.client"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await client.communicate(json.dumps(load).encode())
    if client.returncode:
        raise RuntimeError("The client ended with an error.")
    seen: dict[str, Any] = json.loads(told)
    return seen


def _cpu_seconds(running: Platform) -> dict[str, float]:
    return {process.name: process.cpu_seconds() for process in running.processes}


@asynccontextmanager
async def _watched(processes: tuple[Process, ...]) -> AsyncIterator[Looks]:
    """Look at the memory of processes again and again while the block runs."""
    looks: Looks = {process.name: [] for process in processes}

    async def look() -> None:
        while True:
            for process in processes:
                looks[process.name].append(process.memory_mb())
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    watch = asyncio.create_task(look())
    try:
        yield looks
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--kind", type=Kind, choices=Kind, default=Kind.JOBS, help="what is submitted; default: jobs")
    parser.add_argument("--rate", type=_up_to(MOST_RATE), default=RATE, help="submissions a second; default: 200")
    parser.add_argument("--seconds", type=_up_to(MOST_SECONDS), default=SECONDS, help="how long; default: 60")
    return parser.parse_args()


def _up_to(most: float) -> Callable[[str], float]:
    def number(given: str) -> float:
        value = float(given)
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"{given}: more than 0, and at most {most:g}")
        return value

    return number


if __name__ == "__main__":
    main()
