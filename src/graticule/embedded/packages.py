"""Installing what is missing, through the machine's own package manager.

Packages are named as Debian names them; `postgresql-postgis` stands for "a server with PostGIS, the newest
that can be had".
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graticule.core.errors import ConfigurationError
from graticule.embedded.binaries import MINIMUM_VERSION

ANY_POSTGIS = "postgresql-postgis"
_HOMEBREW_VERSION = 17
_APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=120")
_DEBIAN_SETTINGS = Path("/etc/postgresql-common")


def postgis_package(version: int) -> str:
    """The package of PostGIS for a server; it brings the server along."""
    return f"postgresql-{version}-postgis-3"


def contrib_package(version: int) -> str:
    """The package that holds the extensions of PostgreSQL itself: Debian ships them with the server."""
    return f"postgresql-{version}"


@dataclass(frozen=True)
class Tools:
    """What can be installed with."""

    apt: bool
    brew: bool
    sudo: bool
    root: bool

    @classmethod
    def of_this_machine(cls) -> "Tools":
        """Look on the PATH."""
        apt, brew, sudo = (shutil.which(name) is not None for name in ("apt-get", "brew", "sudo"))
        return cls(apt, brew, sudo, os.geteuid() == 0)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What makes a command run with root's rights."""
        return () if self.root else ("sudo",)


def choose_installer(tools: Tools, names: Sequence[str]) -> Literal["apt", "brew"]:
    """The package manager to use; refuses, and says what to install by hand, when there is none."""
    if tools.apt and (tools.root or tools.sudo):
        return "apt"
    if tools.brew:
        return "brew"
    if tools.apt:
        raise ConfigurationError(
            "Packages can only be installed by root, and there is no sudo.",
            hint=f"Run as root: `apt-get install {' '.join(names)}`.",
        )
    raise ConfigurationError(
        "Neither apt-get nor brew is on this machine, so nothing can be installed from here.",
        hint=f"Install by hand: PostgreSQL {MINIMUM_VERSION} or newer, its contrib extensions, PostGIS 3 "
        f"(Debian's names: {', '.join(names)}).",
    )


def apt_names(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """The packages to ask apt for, given the names in its lists."""
    lists = set(known)
    resolved = tuple(dict.fromkeys(_newest(lists) if name == ANY_POSTGIS else name for name in names))
    if unknown := [name for name in resolved if name not in lists]:
        raise _not_in_lists(", ".join(unknown))
    return resolved


def brew_names(names: Iterable[str]) -> tuple[str, ...]:
    """The packages to ask Homebrew for."""
    wanted: list[str] = []
    for name in names:
        numbered = re.fullmatch(r"postgresql-(\d+)(-postgis-3)?", name)
        wanted.append(f"postgresql@{numbered[1] if numbered else _HOMEBREW_VERSION}")
        if name.endswith(("-postgis", "-postgis-3")):
            wanted.append("postgis")
    return tuple(dict.fromkeys(wanted))


def install_packages(
    names: Sequence[str],
    announce: Callable[[str], None],
    *,
    log: Path | None = None,
    tools: Tools | None = None,
    settings_folder: Path = _DEBIAN_SETTINGS,
) -> None:
    """Install packages; each command is announced before it is run, and what it prints goes to the log."""
    if not names:
        return
    tools = tools or Tools.of_this_machine()
    installer = choose_installer(tools, names)
    shell = _Shell(announce, log or _new_log())
    if installer == "brew":
        shell.run("brew", "install", *brew_names(names))
    else:
        _install_with_apt(names, shell, tools.prefix, settings_folder)


def _install_with_apt(names: Sequence[str], shell: "_Shell", prefix: tuple[str, ...], settings: Path) -> None:
    if not shell.tried(*prefix, *_APT, "update"):
        shell.announce("The package lists could not all be updated; going on with what is there.")
    resolved = apt_names(names, shell.output("apt-cache", "pkgnames", "postgresql-").split())
    with _no_system_cluster(shell, prefix, settings):
        shell.run(*prefix, *_APT, "install", "-y", "--no-install-recommends", *resolved)


@contextmanager
def _no_system_cluster(shell: "_Shell", prefix: tuple[str, ...], settings: Path) -> Iterator[None]:
    """Keep Debian from making and starting a server of its own on port 5432, which nobody asked for."""
    folder = settings / "createcluster.d"
    made = [each for each in (folder, settings) if not each.exists()]
    target = str(folder / "graticule.conf")
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as wish:
        wish.write("create_main_cluster = false\n")
        wish.flush()
        shell.run(*prefix, "install", "-D", "-m", "644", wish.name, target)
    try:
        yield
    finally:
        shell.tried(*prefix, "rm", "-f", target)
        if made:
            shell.tried(*prefix, "rmdir", "--ignore-fail-on-non-empty", *map(str, made))


class _Shell:
    """Runs commands: announced, logged, and with the end of the log in the error when one fails."""

    def __init__(self, announce: Callable[[str], None], log: Path) -> None:
        self.announce = announce
        self._log = log

    def run(self, *command: str) -> None:
        if not self.tried(*command):
            raise ConfigurationError(
                f"`{shlex.join(command)}` failed.",
                hint=f"What it printed is in {self._log}; the end: {self._tail()}",
            )

    def tried(self, *command: str) -> bool:
        """Run a command; tells whether it succeeded."""
        self.announce(shlex.join(command))
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(command)}\n")
            log.flush()
            try:
                # The input stays the terminal: sudo may ask for a password.
                return subprocess.run(command, stdout=log, stderr=log, check=False).returncode == 0  # noqa: S603
            except OSError as error:
                log.write(f"{error}\n")
                return False

    def output(self, *command: str) -> str:
        """What a command prints."""
        self.announce(shlex.join(command))
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
        except OSError:
            return ""

    def _tail(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-8:])


def _newest(known: Iterable[str]) -> str:
    matches = (re.fullmatch(r"postgresql-(\d+)-postgis-3", name) for name in known)
    versions = [int(match[1]) for match in matches if match]
    if not versions or max(versions) < MINIMUM_VERSION:
        raise _not_in_lists(f"PostgreSQL {MINIMUM_VERSION} or newer with PostGIS")
    return postgis_package(max(versions))


def _not_in_lists(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"The package lists of this machine do not have {what}.",
        hint="Add PostgreSQL's own package repository (https://wiki.postgresql.org/wiki/Apt) and try again.",
    )


def _new_log() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="graticule-install-", suffix=".log")
    os.close(descriptor)
    return Path(name)
