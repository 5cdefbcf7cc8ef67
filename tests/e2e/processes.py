"""What the kernel tells of processes: who runs, what they listen on, and what others can read of them."""

import contextlib
import ipaddress
import os
import re
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import randrange

import pytest
from tests.e2e.eventually import eventually

from graticule.embedded.location import Location
from graticule.embedded.ports import is_free

PROC = Path("/proc")
LISTENING = "0A"
SEES_WORKERS = os.geteuid() == 0  # their environment and their files, which they show to nobody but root
sees_workers = pytest.mark.skipif(not SEES_WORKERS, reason="an ordinary user cannot look into a worker")


@dataclass(frozen=True)
class RunningProcess:
    """A process, told from a later one of the same number by the time at which it was started."""

    pid: int
    started: str

    @property
    def running(self) -> bool:
        return find_process(self.pid) == self

    @property
    def command(self) -> list[str]:
        return [os.fsdecode(part) for part in _read(self.pid, "cmdline").split(b"\0") if part]

    @property
    def environment(self) -> str:
        return os.fsdecode(_read(self.pid, "environ"))

    @property
    def parent(self) -> int:
        """The number of the process that started it; 0, which is nobody's, when it has ended meanwhile."""
        fields = _statistics(self.pid)
        return int(fields[1]) if fields else 0

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def find_process(pid: int) -> RunningProcess | None:
    """Give a process that runs; one that has ended and waits to be collected does not."""
    fields = _statistics(pid)
    return None if not fields or fields[0] in {"Z", "X"} else RunningProcess(pid, fields[19])


def all_processes() -> Iterator[RunningProcess]:
    for folder in PROC.glob("[0-9]*"):
        if found := find_process(int(folder.name)):
            yield found


def processes_of(home: Path) -> list[RunningProcess]:
    """Give every process of a data folder, told by its arguments, its title or its environment."""
    title = Location(home, home).name
    variable = f"GRATICULE_HOME={home}\0"
    return [
        process
        for process in all_processes()
        if any(str(home) in part or title in part for part in process.command) or variable in process.environment
    ]


def end_all(home: Path) -> None:
    """End what a failed test has left of a data folder."""
    for process in processes_of(home):
        process.kill()
    eventually(lambda: not processes_of(home), f"the end of everything in {home}")


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """Give the addresses and ports of TCP on which a process listens."""
    sockets = set()
    for descriptor in (PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(str(descriptor.readlink()))
    rows = [line.split() for table in ("tcp", "tcp6") for line in (PROC / "net" / table).read_text().splitlines()[1:]]
    return {_address(row[1]) for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in sockets}


def free_ports() -> int:
    """Give a port that is free, and so are the next three; below those that the kernel hands out by itself."""
    return eventually(
        lambda: next(
            (
                port
                for port in (randrange(12000, 32000, 4) for _ in range(50))
                if all(is_free(port + ahead) for ahead in range(4))
            ),
            None,
        ),
        "free ports in a row",
    )


def graticule_command() -> str:
    """Give the command of the environment that runs the tests."""
    return str(Path(sys.executable).with_name("graticule"))


def clean_environment(**variables: str) -> dict[str, str]:
    """Give the environment without settings of ours, and with these."""
    ours = re.compile(r"GRATICULE_|POSTGRES_|PG|RUN_MODE$|LOG_|SERVICE_BUS_|USE_MANAGED_|COLUMNS$")
    return {name: value for name, value in os.environ.items() if not ours.match(name)} | variables


def _address(entry: str) -> tuple[str, int]:
    """Read an address as the kernel prints it: words of 32 bits in the machine's own order."""
    host, _, port = entry.partition(":")
    packed = b"".join(struct.pack("=I", int(host[at : at + 8], 16)) for at in range(0, len(host), 8))
    return str(ipaddress.ip_address(packed)), int(port, 16)


def _statistics(pid: int) -> list[str]:
    """Give the fields of `stat` that follow the name: state, parent, …"""
    return os.fsdecode(_read(pid, "stat")).rpartition(")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
