"""Making a cluster: in a folder beside its place, so that a half-made one is never taken for a whole one."""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from graticule.core.errors import ConfigurationError
from graticule.embedded.binaries import Binaries
from graticule.embedded.credentials import ADMIN
from graticule.embedded.files import sync_folder
from graticule.embedded.location import Location
from graticule.embedded.parent_death import end_with_parent
from graticule.embedded.server_user import ServerUser

_HALF_MADE = "data.new-"
_PASSWORD_FILE = ".password-"  # noqa: S105  a file name
_LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"


def remove_half_made(location: Location) -> bool:
    """Remove what a killed start left behind; tells whether there was something."""
    for file in location.folder.glob(f"{_PASSWORD_FILE}*"):
        file.unlink(missing_ok=True)
    folders = list(location.folder.glob(f"{_HALF_MADE}*"))
    for folder in folders:
        # An initdb that is just dying may still write; what it leaves is removed at the next start.
        shutil.rmtree(folder, ignore_errors=True)
    return bool(folders)


async def create_cluster(
    location: Location, binaries: Binaries, user: ServerUser, password: str, *, durable: bool
) -> None:
    """Make the cluster of a location; it appears there complete or not at all."""
    _check_empty(location)
    new = Path(tempfile.mkdtemp(dir=location.folder, prefix=_HALF_MADE))
    password_file = _password_file(location.folder, user, password)
    try:
        user.own(new)
        await _initdb(new, binaries, user, password_file, durable=durable)
        _move_into_place(new, location)
    finally:
        password_file.unlink(missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)


def _move_into_place(new: Path, location: Location) -> None:
    new.replace(location.data)
    sync_folder(location.folder)


async def _initdb(new: Path, binaries: Binaries, user: ServerUser, password_file: Path, *, durable: bool) -> None:
    options = [
        f"--pgdata={new}",
        f"--username={ADMIN}",
        f"--pwfile={password_file}",
        "--auth-local=scram-sha-256",
        "--auth-host=scram-sha-256",
        "--data-checksums",
        "--encoding=UTF8",
        f"--locale={_LOCALE}",
        *([] if durable else ["--no-sync"]),
    ]
    code, printed = await user.run(binaries.program("initdb"), *options, before=end_with_parent(signal.SIGKILL))
    if code != 0:
        raise _failed(binaries, new, printed)


def _password_file(folder: Path, user: ServerUser, password: str) -> Path:
    """A file that only the server's user can read: an argument would be seen by everyone."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=_PASSWORD_FILE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{password}\n")
    user.own(Path(name))
    return Path(name)


def _check_empty(location: Location) -> None:
    if location.data.exists() and any(location.data.iterdir()):
        raise ConfigurationError(
            f"{location.data} holds files, and is not a PostgreSQL cluster (there is no PG_VERSION).",
            hint="Move that folder away, or choose another data folder with GRATICULE_HOME.",
        )


def _failed(binaries: Binaries, new: Path, printed: str) -> ConfigurationError:
    last = " / ".join(printed.strip().splitlines()[-5:])
    return ConfigurationError(
        f"{binaries.program('initdb')} could not make a PostgreSQL cluster in {new.parent}.",
        hint=f"Its last words: {last or 'none'}",
        detail=printed,
    )
