"""One program at a time: a lock that the kernel frees when its holder ends, however it ends."""

import fcntl
import os
from pathlib import Path

from graticule.core.errors import ConfigurationError


class HomeLock:
    """The exclusive right to run the cluster of a data folder."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "postgres.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or refuse at once; to hold it already is fine."""
        if self._descriptor is not None:
            return
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise self._in_use(holder) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would race with the next holder."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"The lock file {self._path} cannot be opened: {error.strerror}.",
                hint="Run graticule as the user who made this folder, or choose another with GRATICULE_HOME.",
            ) from error

    def _in_use(self, holder: str) -> ConfigurationError:
        by = f" (pid {holder})" if holder else ""
        return ConfigurationError(
            f"The data folder {self._home} is in use by another graticule{by}.",
            hint="Stop that one first, or choose another folder with GRATICULE_HOME.",
        )
