"""A private PostgreSQL cluster in the data folder: made, started, watched and stopped by its program."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from graticule.core.errors import ConfigurationError, Unavailable
from graticule.embedded import server
from graticule.embedded.binaries import Binaries, find_binaries
from graticule.embedded.configuration import QUICK_COMPRESSION, write_configuration
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.initdb import create_cluster, remove_half_made
from graticule.embedded.leftovers import clear_leftovers, end_remains
from graticule.embedded.location import (
    Location,
    choose_location,
    existing_location,
    known_locations,
    prepare_home,
)
from graticule.embedded.lock import HomeLock
from graticule.embedded.pidfile import is_server_on, read_pid_file
from graticule.embedded.ports import choose_port, is_free
from graticule.embedded.postmaster import Postmaster, ServerEnded, last_lines
from graticule.embedded.server_user import ServerUser

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_RETRY_SECONDS = 10.0
_POLITE_SECONDS = 3.0
_STILL_IN_USE = ("pre-existing shared memory block", "is still in use", '"postmaster.pid" already exists')
_PORT_LOST = "could not create any TCP/IP sockets"


def _silent(_: str) -> None:
    pass


class Cluster:
    """One cluster and its server process.

    `announce` gets short sentences on what is being done. Start it from the main thread: the server ends
    when the thread that started it does.
    """

    def __init__(
        self,
        home: Path,
        binaries: Binaries,
        *,
        port: int | None = None,
        settings: Mapping[str, str] = _NO_SETTINGS,
        announce: Callable[[str], None] = _silent,
    ) -> None:
        self._home = home
        self._binaries = binaries
        self._fixed_port = port
        self._settings = dict(settings)
        self._announce = announce
        self._user = ServerUser.choose()
        self._lock: HomeLock | None = None
        self._location: Location | None = None
        self._credentials: Credentials | None = None
        self._port: int | None = None
        self._given_out = False
        self._postmaster: Postmaster | None = None

    @classmethod
    def of(
        cls,
        home: Path,
        *,
        preferred: Path | None = None,
        port: int | None = None,
        settings: Mapping[str, str] = _NO_SETTINGS,
        announce: Callable[[str], None] = _silent,
    ) -> Self:
        """The cluster of a data folder, with the programs of the version that made it."""
        existing = existing_location(home)
        binaries = (
            find_binaries(preferred, existing.version, cluster=existing.data) if existing else find_binaries(preferred)
        )
        return cls(home, binaries, port=port, settings=settings, announce=announce)

    async def start(self) -> None:
        """Make the cluster when there is none, start its server, and wait until it takes connections."""
        if self.running:
            return
        home = prepare_home(self._home, self._user)
        if self._lock is None:
            self._lock = HomeLock(home)
        self._lock.acquire()
        try:
            await self._open(home)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server and give the lock back; when nothing runs, do nothing."""
        if self._postmaster is not None:
            await self._postmaster.stop()
            self._postmaster = None
        if self._location is not None:
            self._location.tidy()
        if self._lock is not None:
            self._lock.release()

    async def wait(self) -> int:
        """Wait until the server process ends, for whatever reason: its exit code."""
        return await self._started().wait()

    async def ensure_database(self, name: str) -> None:
        """Create a database, owned by the cluster's administrator, when it is missing."""
        if await server.ensure_database(self.url(ADMIN, "postgres"), name):
            self._announce(f"Created the database {name}.")

    def url(self, role: str, database: str = "graticule") -> str:
        """The address of a database for a role, over the unix socket."""
        location, credentials, port = self._location, self._credentials, self._port
        if location is None or credentials is None or port is None:
            raise _not_started()
        return _url(role, credentials.password(role), database, location.sockets, port)

    @property
    def pid(self) -> int | None:
        """The number of the server process, when it runs."""
        return self._postmaster.pid if self._postmaster is not None and self._postmaster.running else None

    @property
    def port(self) -> int:
        """The TCP port of the running server on 127.0.0.1."""
        if self._port is None:
            raise _not_started()
        return self._port

    @property
    def running(self) -> bool:
        """Whether the server process is there."""
        return self.pid is not None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _started(self) -> Postmaster:
        if self._postmaster is None:
            raise _not_started()
        return self._postmaster

    async def _open(self, home: Path) -> None:
        location = choose_location(home, self._user, self._announce)
        location.prepare(self._user)
        self._location = location
        await self._ensure_cluster(location)
        await clear_leftovers(location, self._binaries, self._user, self._announce)
        await self._launch(location)

    async def _ensure_cluster(self, location: Location) -> None:
        if await asyncio.to_thread(remove_half_made, location):
            self._announce("Removed a half-made PostgreSQL cluster of an interrupted start.")
        if location.version is None:
            await self._create(location)
            return
        self._check_version(location)
        location.check(self._user)
        if not Credentials.path(location.home).exists():
            raise _passwords_lost(location)
        Credentials.load(location.home)  # refuses passwords that are not this cluster's
        self._credentials = Credentials.load_or_create(location.home)

    async def _create(self, location: Location) -> None:
        self._announce(f"Creating a PostgreSQL {self._binaries.version} cluster in {location.folder}.")
        self._credentials = Credentials.load_or_create(location.home)
        password = self._credentials.password(ADMIN)
        durable = self._settings.get("fsync", "on") == "on"
        await create_cluster(location, self._binaries, self._user, password, durable=durable)

    def _check_version(self, location: Location) -> None:
        if location.version != self._binaries.version:
            raise ConfigurationError(
                f"The cluster in {location.data} was made by PostgreSQL {location.version}, "
                f"and the programs in {self._binaries.bindir} are PostgreSQL {self._binaries.version}.",
                hint=f"Install PostgreSQL {location.version} and use it, or move the folder away.",
            )

    async def _launch(self, location: Location) -> None:
        """Start the server; again when remains of a crashed one, or a race for the port, were in the way."""
        begun = time.monotonic()
        while True:
            try:
                await self._attempt(location)
            except ServerEnded as ended:
                waited = time.monotonic() - begun
                if waited > _RETRY_SECONDS or not self._may_retry(ended.said):
                    raise _start_failed(location, ended.said) from ended
                if waited > _POLITE_SECONDS:
                    end_remains(location, self._user)
                await asyncio.sleep(0.2)
            else:
                return

    async def _attempt(self, location: Location) -> None:
        own = {
            **self._listening(location),
            "cluster_name": location.name,
            "unix_socket_directories": str(location.sockets),
        }
        possible = QUICK_COMPRESSION if self._binaries.has_lz4 else _NO_SETTINGS
        write_configuration(location.data, self._user, {**possible, **self._settings, **own})
        self._postmaster = await Postmaster.launch(self._binaries, self._user, location.data, location.log)
        await self._postmaster.until_ready(self.url(ADMIN, "postgres"))
        self._given_out = True

    def _listening(self, location: Location) -> dict[str, str]:
        """The port: chosen at the first start, and kept afterwards, for it is in the addresses that were given out."""
        if not self._given_out:
            self._port = choose_port(self._fixed_port, location.port_memory, self._announce)
        elif not is_free(self.port):
            self._announce(f"Port {self.port} was taken meanwhile; PostgreSQL is reached by its socket alone.")
            return {"port": str(self.port), "listen_addresses": ""}
        return {"port": str(self.port)}

    def _may_retry(self, said: str) -> bool:
        return (_PORT_LOST in said and self._fixed_port is None) or any(sign in said for sign in _STILL_IN_USE)


def running_cluster_url(home: Path, role: str, database: str = "graticule") -> str | None:
    """The address of a data folder's running cluster, for programs beside `graticule up`; else None."""
    for location in known_locations(home):
        if location.version is None:
            continue
        found = read_pid_file(location.data)
        if found and found.ready and found.port and found.sockets and is_server_on(found.pid, location.data):
            password = Credentials.load(location.home).password(role)
            return _url(role, password, database, found.sockets, found.port)
    return None


def _url(role: str, password: str, database: str, sockets: Path, port: int) -> str:
    login = f"{quote(role, safe='')}:{quote(password, safe='')}"
    # libpq keeps a plus sign as it is, so a space must not become one.
    where = urlencode({"host": str(sockets), "port": port}, quote_via=quote)
    return f"postgresql://{login}@/{quote(database, safe='')}?{where}"


def _not_started() -> Unavailable:
    return Unavailable("The embedded PostgreSQL is not running.", hint="Start it: `graticule up`.")


def _passwords_lost(location: Location) -> ConfigurationError:
    return ConfigurationError(
        f"The database passwords are missing: {Credentials.path(location.home)} is not there, "
        f"while the PostgreSQL cluster in {location.folder} is.",
        hint=f"Put the file back from a backup, or move {location.folder} away to begin with an empty database.",
    )


def _start_failed(location: Location, said: str) -> Unavailable:
    return Unavailable(
        f"PostgreSQL could not start on {location.data}.",
        hint=f"The end of its log {location.log}: {last_lines(said)}",
        detail=said,
    )
