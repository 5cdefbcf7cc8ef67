"""The TCP port of the private cluster: the same at every start, another one when it is taken."""

import itertools
import socket
from collections.abc import Callable
from pathlib import Path

from graticule.core.errors import ConfigurationError
from graticule.embedded.files import write_atomically

DEFAULT_PORT = 54329
_LOCALHOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of this machine."""
    # On macOS a specific address can be bound beside a server on all addresses, so binding is not enough.
    return _can_bind(port) and not _is_answered(port)


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            probe.bind((_LOCALHOST, port))
        except OSError:
            return False
    return True


def _is_answered(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex((_LOCALHOST, port)) == 0


def free_port(after: int) -> int:
    """A free port, one of the next ones when possible, so that it is easily recognized."""
    for port in range(after + 1, min(after + 200, 65536)):
        if is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((_LOCALHOST, 0))
        return int(probe.getsockname()[1])


def free_pair(start: int) -> int:
    """The first of two neighbouring ports that are both free, at or after `start` when possible."""
    pairs = itertools.chain(range(start, 65535, 2), range(1024, start, 2))
    found = next((port for port in pairs if is_free(port) and is_free(port + 1)), None)
    if found is None:
        raise ConfigurationError("There are no two free ports on this machine.", hint="End some programs.")
    return found


def choose_port(fixed: int | None, memory: Path, announce: Callable[[str], None]) -> int:
    """The fixed port when given, else the one used before, else the default one, or one that is free."""
    wanted = fixed or remembered_port(memory) or DEFAULT_PORT
    if is_free(wanted):
        chosen = wanted
    elif fixed:
        raise _taken(fixed)
    else:
        chosen = free_port(wanted)
        announce(f"Port {wanted} is taken by another program; PostgreSQL uses {chosen} instead.")
    if chosen != remembered_port(memory):
        write_atomically(memory, f"{chosen}\n", mode=0o600)
    return chosen


def remembered_port(memory: Path) -> int | None:
    """The port of the last start, when there was one."""
    try:
        port = int(memory.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return port if 0 < port < 65536 else None


def _taken(port: int) -> ConfigurationError:
    return ConfigurationError(
        f"Port {port}, which PostgreSQL was told to use, is taken by another program.",
        hint="End that program, or choose another port, or none: then a free one is found.",
    )
