"""The pid file of a PostgreSQL server, and who is behind the pid in it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_PROCESSES = Path("/proc")
_PS = Path("/bin/ps")  # asked where there is no /proc, as on macOS


@dataclass(frozen=True)
class PidFile:
    """What `postmaster.pid` tells; `pid` is 0 when it tells nothing."""

    pid: int
    port: int | None = None
    sockets: Path | None = None
    ready: bool = False


def pid_file_path(data: Path) -> Path:
    """The pid file of a cluster."""
    return data / "postmaster.pid"


def read_pid_file(data: Path) -> PidFile | None:
    """Read a cluster's pid file, or None when there is none: nothing runs, and all was shut down in order."""
    try:
        lines = pid_file_path(data).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    # By line: pid (negative: a single-user server), folder, start, port, socket folder, address, key, state.
    fields = [line.strip() for line in lines] + [""] * 8
    return PidFile(
        pid=abs(_number(fields[0]) or 0),
        port=_number(fields[3]),
        sockets=Path(fields[4]) if fields[4] else None,
        ready=fields[7] == "ready",
    )


def is_server_on(pid: int, data: Path) -> bool:
    """Whether this pid is a PostgreSQL server on this folder, and not a program that got the number later."""
    command = _command_of(pid)
    if not command or Path(command[0]).name not in {"postgres", "postmaster"}:
        return False
    folders = [Path(after) for option, after in pairwise(command) if option == "-D"]
    # Without a full path it cannot be told apart, and then a living server is the safer assumption.
    return not folders or not folders[0].is_absolute() or folders[0].resolve() == data.resolve()


def is_alive(pid: int) -> bool:
    """Whether a process of this number exists."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def processes_of(cluster_name: str, uid: int) -> list[int]:
    """The server processes (not the postmaster) that carry a cluster's name; only Linux tells."""
    start = f"postgres: {cluster_name}: ".encode()
    return [pid for pid in _pids_of(uid) if _raw_command_of(pid).startswith(start)]


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _pids_of(uid: int) -> Iterator[int]:
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            if folder.stat().st_uid == uid:
                yield int(folder.name)
        except OSError:  # it ended meanwhile
            continue


def _raw_command_of(pid: int) -> bytes:
    try:
        return (_PROCESSES / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _command_of(pid: int) -> list[str]:
    """The command line of a process; nothing for one that has ended, also when nobody has collected it."""
    if pid <= 0:
        return []
    if (_PROCESSES / "self").exists():
        return [os.fsdecode(part) for part in _raw_command_of(pid).rstrip(b"\0").split(b"\0") if part]
    return _command_told_by_ps(pid)


def _command_told_by_ps(pid: int) -> list[str]:
    """What `ps` prints is not split at spaces, since paths may hold them: program, and folder when told."""
    command = [str(_PS), "-ww", "-p", str(pid), "-o", "command="]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    program, folder = shown.partition(" -")[0], shown.partition(" -D ")[2].partition(" -")[0]
    return [program, "-D", folder] if folder else [program]
