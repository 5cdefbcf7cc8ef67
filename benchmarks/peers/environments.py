"""The peers, and an environment of its own for each: a virtual environment with the pinned versions."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Peer:
    """A system that does the same work."""

    name: str
    title: str
    requirements: tuple[str, ...]
    environment: str = ""  # of another peer, when both are the same packages
    needs_redis: bool = False

    @property
    def module(self) -> str:
        """The script that runs the workloads on it."""
        return f"benchmarks.peers.with_{self.name}"


DBOS = ("dbos==3.3.0",)
PEERS = (
    Peer("dbos", "DBOS 3.3.0, tasks on a worker", DBOS),
    Peer("dbos_steps", "DBOS 3.3.0, steps in one process", DBOS, environment="dbos"),
    Peer("pgqueuer", "pgqueuer 1.6.0", ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0")),
    Peer("procrastinate", "procrastinate 3.10.0", ("procrastinate==3.10.0", "psycopg[binary]==3.3.8")),
    Peer("celery", "Celery 5.7.0 with Redis", ("celery[redis]==5.7.0", "redis==8.1.0"), needs_redis=True),
)


class InstallationFailed(Exception):
    """Something that is needed cannot be had; the message says what to do."""


def python_of(peer: Peer, folder: Path, announce: Announce) -> Path:
    """Give the interpreter of a peer's environment, which is made when it is not there as it should be."""
    home = folder.absolute() / (peer.environment or peer.name)
    stamp, python = home / "installed.txt", home / "bin" / "python"
    wanted = "\n".join(peer.requirements)
    if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted):
        announce(f"installing {peer.title} into {home}")
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " / ".join(done.stderr.strip().splitlines()[-5:])
        raise InstallationFailed(f"`{' '.join(command)}` failed: {said}")
