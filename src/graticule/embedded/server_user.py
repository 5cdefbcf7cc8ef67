"""The user that the server's programs run as: PostgreSQL refuses to run as root."""

import asyncio
import os
import pwd
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from graticule.core.errors import ConfigurationError

_CANDIDATES = ("postgres", "nobody")
# Nothing else is handed on: our settings hold secrets, and PG* or PROJ_* would change how the server behaves.
_KEPT_VARIABLES = ("PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True)
class ServerUser:
    """An unprivileged user; `switched` tells whether it is another one than we are."""

    name: str
    uid: int
    gid: int
    home: Path
    switched: bool

    @classmethod
    def choose(cls) -> Self:
        """This process's own user, or when that is root, `postgres` or else `nobody`."""
        if os.geteuid() != 0:
            return cls._myself()
        for name in _CANDIDATES:
            if (found := _account(name)) is not None:
                return cls(name, found.pw_uid, found.pw_gid, Path(found.pw_dir), switched=True)
        raise ConfigurationError(
            f"PostgreSQL does not run as root, and this machine has no user {' or '.join(_CANDIDATES)}.",
            hint="Run graticule as an ordinary user, or add a user: `useradd --system postgres`.",
        )

    @classmethod
    def _myself(cls) -> Self:
        uid = os.geteuid()
        try:
            name, home = pwd.getpwuid(uid).pw_name, pwd.getpwuid(uid).pw_dir
        except KeyError:  # containers run as numbers that no passwd file knows
            name, home = str(uid), "/"
        return cls(name, uid, os.getegid(), Path(home), switched=False)

    def process_options(self) -> dict[str, Any]:
        """The arguments with which `subprocess` runs a program as this user."""
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        home = str(self.home) if self.home.is_dir() else "/"
        environment = kept | {"HOME": home, "USER": self.name, "LOGNAME": self.name, "LC_ALL": "C"}
        options: dict[str, Any] = {"cwd": "/", "env": environment}
        if self.switched:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def can_enter(self, folder: Path) -> bool:
        """Whether this user gets into a folder: really tried, since modes do not tell the whole story."""
        attempt = ["/bin/sh", "-c", 'test -d "$1" && test -x "$1"', "sh", str(folder)]
        try:
            tried = subprocess.run(attempt, check=False, **self.process_options())  # noqa: S603  fixed command
        except (OSError, subprocess.SubprocessError) as error:
            raise self._cannot_become(error) from error
        return tried.returncode == 0

    def own(self, path: Path) -> None:
        """Give a file or folder to this user."""
        if not self.switched:
            return
        try:
            os.chown(path, self.uid, self.gid)
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be given to the user {self.name}: {error.strerror}.",
                hint="Use a data folder on a local file system (GRATICULE_HOME), or run as an ordinary user.",
            ) from error

    async def spawn(
        self, *command: str | Path, output: int, before: Callable[[], None] | None = None
    ) -> asyncio.subprocess.Process:
        """Start a program as this user, in a session of its own, with its output in one stream."""
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before,
                **self.process_options(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise self._cannot_become(error) from error

    async def run(self, *command: str | Path, before: Callable[[], None] | None = None) -> tuple[int, str]:
        """Run a program as this user to its end: its exit code and what it printed."""
        process = await self.spawn(*command, output=subprocess.PIPE, before=before)
        try:
            printed, _ = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        return process.returncode or 0, printed.decode(errors="replace")

    def _cannot_become(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"A PostgreSQL program cannot be run as the user {self.name}: {error}.",
            hint="Run graticule as an ordinary user instead of root.",
        )


def _account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
