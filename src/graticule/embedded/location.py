"""Where the private cluster and its files are, for a given data folder."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graticule.core.errors import ConfigurationError
from graticule.embedded.server_user import ServerUser

# For root only: the data folder may lie below a folder such as /root that the server's user cannot enter.
OPEN_PLACE = Path("/var/lib/graticule")
_LONGEST_SOCKET_PATH = 100  # the systems' limits are 104 and 108 bytes
_LIST_CHARACTERS = set(',"')  # the server and its clients would take such a path for several


@dataclass(frozen=True)
class Location:
    """The paths of one cluster: `home` is the data folder, `root` the folder that holds `postgres`."""

    home: Path
    root: Path

    @property
    def folder(self) -> Path:
        """The server's own folder, closed to everyone else."""
        return self.root / "postgres"

    @property
    def data(self) -> Path:
        """PGDATA."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.home / "logs" / "postgres.log"

    @property
    def port_memory(self) -> Path:
        """The file that remembers the port."""
        return self.home / "postgres.port"

    @property
    def name(self) -> str:
        """The cluster's name, which its processes carry in their titles."""
        return f"graticule-{_digest(self.home)}"

    @property
    def sockets(self) -> Path:
        """The folder of the unix socket: one in /tmp when the cluster's own path does not do."""
        longest = os.fsencode(self.folder / ".s.PGSQL.65535")
        if len(longest) <= _LONGEST_SOCKET_PATH and not set(str(self.folder)) & _LIST_CHARACTERS:
            return self.folder
        return Path("/tmp") / self.name  # noqa: S108  made private, and refused when it is not ours

    @property
    def version(self) -> int | None:
        """The major version that made the cluster, or None when there is no cluster yet."""
        return _version_in(self.root)

    def prepare(self, user: ServerUser) -> None:
        """Make the folders, each open to those who need it only."""
        _make(self.folder, 0o700)
        user.own(self.folder)
        _make(self.log.parent, 0o700)
        if self.sockets != self.folder:
            _make_private(self.sockets, user)

    def tidy(self) -> None:
        """Remove the folder in /tmp that only the socket needed."""
        if self.sockets != self.folder:
            with contextlib.suppress(OSError):
                self.sockets.rmdir()

    def check(self, user: ServerUser) -> None:
        """Refuse a cluster that the server's user could not open."""
        owner = self.data.stat().st_uid
        if owner != user.uid:
            raise ConfigurationError(
                f"The cluster in {self.data} belongs to user id {owner}, and PostgreSQL runs as {user.name}.",
                hint=f"Run graticule as its owner, or give it away: `chown -R {user.name} {self.folder}`.",
            )


def prepare_home(home: Path, user: ServerUser) -> Path:
    """Make the data folder when missing (as root: with a way through for the server's user)."""
    try:
        resolved = home.expanduser().resolve()
        _make(resolved, 0o711 if user.switched else 0o700)
        _close_to_others(resolved, user)
    except OSError as error:
        raise ConfigurationError(
            f"The data folder {home} cannot be made: {error.strerror}.",
            hint="Choose another folder with GRATICULE_HOME, or mend its permissions.",
        ) from error
    return resolved


def _close_to_others(home: Path, user: ServerUser) -> None:
    """Let only its owner into the data folder, and as root the server's user through it; also into an older one."""
    found = home.stat()
    if found.st_uid != os.geteuid():
        return
    if user.switched:
        with contextlib.suppress(OSError):  # a file system without owners
            os.chown(home, -1, user.gid)
            home.chmod(0o710)
    elif found.st_mode & 0o077:
        home.chmod(stat.S_IMODE(found.st_mode) & ~0o077)


def choose_location(home: Path, user: ServerUser, announce: Callable[[str], None]) -> Location:
    """Where the cluster is, or where it will be made; `home` is resolved and exists."""
    inside, aside = Location(home, home), Location(home, _aside(home))
    if not user.switched:
        return inside
    if inside.version is not None:
        return _reachable(inside, aside, user)
    if aside.version is None and user.can_enter(home):
        return inside
    _prepare_open_place(aside.root, user)
    announce(f"The PostgreSQL cluster of {home} is kept in {aside.root}, which the user {user.name} can enter.")
    return aside


def known_locations(home: Path) -> list[Location]:
    """The places where this data folder's cluster may be, for programs that only look."""
    resolved = home.expanduser().resolve()
    roots = [resolved, _aside(resolved)] if os.geteuid() == 0 else [resolved]
    return [Location(resolved, root) for root in roots]


def existing_location(home: Path) -> Location | None:
    """The location of the cluster that is there already, if any."""
    return next((each for each in known_locations(home) if each.version is not None), None)


def _reachable(inside: Location, aside: Location, user: ServerUser) -> Location:
    if user.can_enter(inside.folder):
        return inside
    if aside.version is not None:
        return aside
    raise ConfigurationError(  # an empty cluster somewhere else would look like lost data
        f"The cluster in {inside.data} cannot be reached by the user {user.name} any more.",
        hint=f"Open the folders above it (`chmod o+x`), and give it to that user: "
        f"`chown -R {user.name} {inside.folder}`.",
    )


def _aside(home: Path) -> Path:
    return OPEN_PLACE / f"{home.name}-{_digest(home)}"


def _digest(home: Path) -> str:
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:8]


def _version_in(root: Path) -> int | None:
    path = root / "postgres" / "data" / "PG_VERSION"
    try:
        return int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it holds no version'}.",
            hint="Run graticule as the user who made this data folder.",
        ) from error


def _prepare_open_place(root: Path, user: ServerUser) -> None:
    try:
        _make(OPEN_PLACE, 0o711)
        _make(root, 0o711)
    except OSError as error:
        raise ConfigurationError(
            f"The folder {root} for the PostgreSQL cluster cannot be made: {error.strerror}.",
            hint="Choose a data folder (GRATICULE_HOME) that every user can enter.",
        ) from error
    if not user.can_enter(root):
        raise ConfigurationError(
            f"The user {user.name}, who runs PostgreSQL, can enter neither the data folder nor {root}.",
            hint="Choose a data folder (GRATICULE_HOME) that every user can enter.",
        )


def _make(folder: Path, mode: int) -> None:
    """Make a folder with exactly this mode, whatever the umask; one that exists keeps its mode."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(mode)


def _make_private(folder: Path, user: ServerUser) -> None:
    """Make a folder in /tmp, where anyone may have put something of that name before us."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), user.uid} or found.st_mode & 0o077:
        raise ConfigurationError(
            f"{folder}, which is needed for PostgreSQL's socket, is someone else's or open to others.",
            hint="Remove it, or choose a data folder (GRATICULE_HOME) with a shorter path.",
        )
    user.own(folder)
