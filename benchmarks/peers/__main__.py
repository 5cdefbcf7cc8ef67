"""Run the three workloads on each peer and on ours, on clusters of the same kind, and print one table.

Each peer is installed into a virtual environment of its own below --folder. Celery needs Redis: when there is no
redis-server, it is installed with apt-get (as root, or with sudo); where that cannot be, this says so and stops.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.installation import Place, deploy, installation, private_cluster
from benchmarks.peers import protocol
from benchmarks.peers.environments import PEERS, Announce, InstallationFailed, Peer, python_of
from benchmarks.peers.redis_server import find_redis, running_redis
from benchmarks.report import wide_console
from benchmarks.workloads import FULL, QUICK, Size, Workload
from graticule.config import RunMode
from graticule.core.log_format import LogFormat
from graticule.logs import configure_logging

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST_WORKLOAD_SECONDS = 900.0
Times = dict[Workload, float]


def main() -> int:
    """Install, measure, print."""
    options = _options()
    configure_logging("WARNING", LogFormat.CONSOLE, RunMode.ORCHESTRATOR)
    progress = Console(stderr=True)
    try:
        with progress.status("starting") as status:
            comparison = Comparison(QUICK if options.quick else FULL, options.rounds, options.folder, status.update)
            measured = asyncio.run(comparison.run(options.only))
    except InstallationFailed as error:
        progress.print(f"[red]error[/] {error}", highlight=False)
        return 1
    wide_console().print(_table(comparison.size, measured))
    return 0


class Comparison:
    """One run on ours and on some peers."""

    def __init__(self, size: Size, rounds: int, folder: Path, announce: Announce) -> None:
        self.size = size
        self._rounds = rounds
        self._folder = folder
        self._announce = announce

    async def run(self, peers: Sequence[Peer]) -> dict[str, Times]:
        """Give the best times of ours and of each peer; each has a new cluster."""
        pythons = {peer.name: python_of(peer, self._folder, self._announce) for peer in peers}
        redis = find_redis(self._announce) if any(peer.needs_redis for peer in peers) else ""
        measured = {"ours": await self._ours()}
        for peer in peers:
            async with private_cluster() as place:
                measured[peer.title] = await self._peer(peer, pythons[peer.name], place, redis)
        return measured

    async def _ours(self) -> Times:
        async with private_cluster() as place:
            await deploy(place)
            async with installation(place, self.size) as ours:
                times = {}
                for workload in Workload:
                    self._announce(f"ours: {self.size.title(workload)}")
                    times[workload] = min([await ours.seconds(workload, self.size) for _ in range(self._rounds + 1)])
                return times

    async def _peer(self, peer: Peer, python: Path, place: Place, redis: str) -> Times:
        times = {}
        with ExitStack() as stack:
            broker = stack.enter_context(running_redis(redis, place.home / "redis")) if peer.needs_redis else None
            for workload in Workload:
                self._announce(f"{peer.title}: {self.size.title(workload)}")
                url = broker or (await place.beside(f"peer_{workload.name.lower()}")).url()
                told = await self._script(peer, python, workload, url, place.home / "logs")
                if told:
                    times[workload] = min(told)
        return times

    async def _script(self, peer: Peer, python: Path, workload: Workload, url: str, logs: Path) -> list[float]:
        """Run a peer's script; when it fails, what it said is shown and there is no figure."""
        log = logs / f"{peer.name}.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(str(python), "-m", peer.module, workload.value),
                env={**os.environ, **protocol.environment(url, self.size, self._rounds)},
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        told = b""
        try:
            told, _ = await asyncio.wait_for(process.communicate(), LONGEST_WORKLOAD_SECONDS)
        except TimeoutError:
            self._announce(f"{peer.title}: {workload} did not end within {LONGEST_WORKLOAD_SECONDS:.0f} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the script, and the worker that it started
            await process.wait()
        if process.returncode:
            end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            print(f"{peer.title}, {workload}: the script ended with {process.returncode}.\n{end}", file=sys.stderr)
        return [float(json.loads(line)["seconds"]) for line in told.splitlines()]


def _table(size: Size, measured: dict[str, Times]) -> Table:
    table = Table(
        "system", *(size.title(workload) for workload in Workload), title="The same workloads, on the same machine"
    )
    for name, times in measured.items():
        figures = [str(size.figure(workload, times[workload])) if workload in times else "-" for workload in Workload]
        table.add_row(name, *figures)
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("build/peers"), help="where the environments are kept")
    parser.add_argument("--rounds", type=int, default=2, help="how often each workload is run; the best counts")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs, not to measure")
    names = ", ".join(peer.name for peer in PEERS)
    parser.add_argument("--only", type=_peers, default=PEERS, metavar="PEER,…", help=f"some of {names}")
    return parser.parse_args()


def _peers(given: str) -> list[Peer]:
    known = {peer.name: peer for peer in PEERS}
    try:
        return [known[name.strip()] for name in given.split(",")]
    except KeyError as missing:
        raise argparse.ArgumentTypeError(f"{missing}: choose from {', '.join(known)}") from None


if __name__ == "__main__":
    sys.exit(main())
