"""What a killed program may leave of its server, and how that is cleared before the next start.

Everything here runs while the lock on the data folder is held: no other graticule is using the cluster.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from graticule.core.errors import Unavailable
from graticule.embedded.binaries import Binaries
from graticule.embedded.location import Location
from graticule.embedded.pidfile import is_alive, is_server_on, pid_file_path, processes_of, read_pid_file
from graticule.embedded.server_user import ServerUser

_REMAINS_ROUNDS = 50
_REMAINS_PAUSE = 0.1


async def clear_leftovers(
    location: Location, binaries: Binaries, user: ServerUser, announce: Callable[[str], None]
) -> None:
    """Stop an orphaned server, and remove the files that would keep a new one from starting."""
    found = read_pid_file(location.data)
    if found is None:
        return
    if is_server_on(found.pid, location.data):
        announce(f"Stopping a PostgreSQL server (pid {found.pid}) that a killed program left behind.")
        await _stop_orphan(found.pid, location, binaries, user)
    elif is_alive(found.pid) or found.pid == 0:
        announce("Removing a PostgreSQL pid file whose number belongs to another program by now.")
        await _until_no_remains(location, user)
        pid_file_path(location.data).unlink(missing_ok=True)
    else:  # PostgreSQL itself handles the file of a dead server, and looks for its remains by it
        announce("PostgreSQL was not shut down in order; it recovers from its journal.")
    _remove_sockets(location)


def end_remains(location: Location, user: ServerUser) -> None:
    """End the processes that outlived their killed postmaster; they still hold its memory."""
    for pid in processes_of(location.name, user.uid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGQUIT)


async def _until_no_remains(location: Location, user: ServerUser) -> None:
    """See that nothing of the old server lives: without its pid file, a new one could not know."""
    for _ in range(_REMAINS_ROUNDS):
        if not processes_of(location.name, user.uid):
            return
        end_remains(location, user)
        await asyncio.sleep(_REMAINS_PAUSE)
    raise Unavailable(
        f"Processes of an earlier PostgreSQL server on {location.data} do not end.",
        hint=f"End them by hand: `kill -QUIT {' '.join(map(str, processes_of(location.name, user.uid)))}`.",
    )


async def _stop_orphan(pid: int, location: Location, binaries: Binaries, user: ServerUser) -> None:
    printed = ""
    for mode in ("fast", "immediate"):
        _, printed = await user.run(
            binaries.program("pg_ctl"), "stop", "-D", location.data, "-m", mode, "-w", "-t", "60"
        )
        if not is_server_on(pid, location.data):  # it may also have ended by itself before pg_ctl came
            return
    raise Unavailable(
        f"A PostgreSQL server (pid {pid}) that a killed program left behind does not stop.",
        hint=f"End it by hand: `kill -QUIT {pid}`.",
        detail=printed,
    )


def _remove_sockets(location: Location) -> None:
    """Remove stale sockets: their lock files name a pid, too, that may be another program's by now."""
    for file in location.sockets.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)
