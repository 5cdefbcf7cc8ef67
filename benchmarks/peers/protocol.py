"""How a peer's script is run: by the peer's own Python, so with nothing but the standard library.

`python -m benchmarks.peers.with_NAME WORKLOAD` makes its tables, starts its worker (the same module, told
`worker`), runs the workload once small to warm up and then ROUNDS times, and prints the seconds of each round.
The address of the server, the size and the rounds come by environment variables.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace

from benchmarks.workloads import Size, Workload

URL, SIZE, ROUNDS = "PEER_URL", "PEER_SIZE", "PEER_ROUNDS"
WORKER = "worker"


def environment(url: str, size: Size, rounds: int) -> dict[str, str]:
    """Give the variables that tell a script what to do."""
    return {URL: url, SIZE: json.dumps(asdict(size)), ROUNDS: str(rounds)}


def url() -> str:
    """Give the address of the database or broker."""
    return os.environ[URL]


def sizes() -> list[Size]:
    """Give the sizes to run, one after the other: the first is for warming up and is not told."""
    full = Size(**json.loads(os.environ[SIZE]))
    small = replace(full, chain=3, fan_out=min(200, full.fan_out), jobs=min(10, full.jobs))
    return [small, *[full] * int(os.environ[ROUNDS])]


def workload() -> Workload:
    """Give the workload that was asked for on the command line."""
    return Workload(sys.argv[1])


def is_worker() -> bool:
    """Tell whether this process is the worker."""
    return sys.argv[1] == WORKER


def tell(seconds: float) -> None:
    """Hand the time of one round to whoever started this script."""
    print(json.dumps({"seconds": seconds}), flush=True)


@contextmanager
def worker_process(module: str, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run the same module as a worker beside this process; its output goes to this process's errors."""
    command = (sys.executable, "-m", module, WORKER, sys.argv[1])
    process = subprocess.Popen(command, env={**os.environ, **(variables or {})}, stdout=sys.stderr)
    try:
        yield
    finally:
        process.kill()
        process.wait()
