"""What this machine has and lacks, for `graticule doctor`."""

import importlib.metadata
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from graticule.config import DatabaseUrl, Settings
from graticule.core.errors import ConfigurationError, GraticuleError
from graticule.embedded.binaries import EVERYWHERE, MINIMUM_VERSION, Binaries, Places, find_binaries
from graticule.embedded.location import existing_location
from graticule.embedded.packages import ANY_POSTGIS, contrib_package, postgis_package
from graticule.embedded.ports import is_free
from graticule.embedded.server import ServerFacts, facts
from graticule.embedded.server_user import ServerUser
from graticule.storage.disk_space import MIB, free_bytes, worker_disks

_NEEDED_PYTHON = (3, 11)
_NEEDED_PYPGSTAC = (0, 10)
_NEEDED_BYTES = 1024**3
_CONTRIB = ("btree_gist", "unaccent")
_EXTENSIONS = ("postgis", *_CONTRIB)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `mend` tells what to do when it is not `ok`."""

    name: str
    ok: bool
    detail: str
    mend: str | None = None
    packages: tuple[str, ...] = ()
    required: bool = True


def examine(settings: Settings, *, port: int = 8000, places: Places = EVERYWHERE) -> list[Finding]:
    """Look at everything that `graticule up` needs (and at the external database, when one is set)."""
    return [
        python_finding(sys.version_info[:3]),
        *_postgres_findings(settings, places),
        pypgstac_finding(_installed_version("pypgstac")),
        _user_finding(required=not _has_external_database(settings)),
        home_finding(settings.home),
        disk_finding(settings.home, free_bytes(settings.home)),
        *(
            room_finding(name, folder, free_bytes(folder), settings.min_free_mb)
            for name, folder in worker_disks(settings).items()
        ),
        *(
            port_finding(each, free=is_free(each)) for each in (port, port + 1, port + 2)
        ),  # gateway, orchestrator, worker
        *_database_findings(settings),
    ]


def missing_packages(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The packages that would mend the findings that are not ok, each once."""
    wanted = (name for finding in findings if not finding.ok for name in finding.packages)
    return tuple(dict.fromkeys(wanted))


def python_finding(version: tuple[int, ...]) -> Finding:
    """Whether Python is new enough."""
    shown = ".".join(map(str, version))
    needed = ".".join(map(str, _NEEDED_PYTHON))
    ok = version[:2] >= _NEEDED_PYTHON
    return Finding("Python", ok, shown, None if ok else f"Install Python {needed} or newer.")


def pypgstac_finding(version: str | None) -> Finding:
    """Whether the program that installs the STAC catalogue is there, in the version that we know."""
    needed = ".".join(map(str, _NEEDED_PYPGSTAC))
    mend = f"Install it beside graticule: `pip install 'pypgstac[psycopg]=={needed}.*'`."
    if version is None:
        return Finding("pypgstac", ok=False, detail="not installed", mend=mend)
    ok = version.split(".")[:2] == [str(part) for part in _NEEDED_PYPGSTAC]
    return Finding("pypgstac", ok, version if ok else f"{version}, and {needed} is needed", None if ok else mend)


def port_finding(port: int, *, free: bool) -> Finding:
    """Whether a port can be listened on; another one can always be chosen."""
    if free:
        return Finding(f"port {port}", ok=True, detail="free", required=False)
    mend = "If that is not a graticule of yours, choose another port: `graticule up --port 8100`."
    return Finding(f"port {port}", ok=False, detail="taken by a running program", mend=mend, required=False)


def disk_finding(home: Path, free: int) -> Finding:
    """Whether there is room for data."""
    ok = free >= _NEEDED_BYTES
    mend = None if ok else "Free at least 1 GiB, or choose a data folder on another disk with GRATICULE_HOME."
    return Finding("disk space", ok, f"{free / _NEEDED_BYTES:.1f} GiB free below {home}", mend)


def room_finding(name: str, folder: Path, free: int, min_free_mb: int) -> Finding:
    """Whether processes would find the room without which they are not ready."""
    ok = free >= min_free_mb * MIB
    mend = None if ok else f"Free at least {min_free_mb} MiB there, or lower GRATICULE_MIN_FREE_MB."
    return Finding(f"{name} space", ok, f"{free // MIB:,} MiB free below {folder}", mend)


def home_finding(home: Path) -> Finding:
    """Whether the data folder is there, or can be made."""
    nearest = _nearest_existing(home)
    ok = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    mend = None if ok else f"Mend the permissions of {nearest}, or choose another folder with GRATICULE_HOME."
    what = "can be written" if ok else "cannot be written"
    return Finding("data folder", ok, f"{home.absolute()} {what}", mend)


def binaries_findings(binaries: Binaries, *, required: bool) -> list[Finding]:
    """What an installation of PostgreSQL has and lacks."""
    server = Finding(
        "PostgreSQL", ok=True, detail=f"PostgreSQL {binaries.version} in {binaries.bindir}", required=required
    )
    postgis = _extension_finding(binaries, "postgis", postgis_package(binaries.version), required)
    contrib = [_extension_finding(binaries, name, contrib_package(binaries.version), required) for name in _CONTRIB]
    return [server, postgis, *contrib]


def server_findings(address: str, found: ServerFacts) -> list[Finding]:
    """What an external database server has and lacks."""
    new = found.version >= MINIMUM_VERSION
    missing = [name for name in _EXTENSIONS if name not in found.extensions]
    version_mend = None if new else f"Use a server of PostgreSQL {MINIMUM_VERSION} or newer."
    mend = f"Install {', '.join(missing)} on the database server." if missing else None
    detail = f"not available: {', '.join(missing)}" if missing else f"{', '.join(_EXTENSIONS)} are available"
    return [
        Finding("database", ok=True, detail=f"{address} answers"),
        Finding("database version", new, f"PostgreSQL {found.version}", version_mend),
        Finding("database extensions", not missing, detail, mend),
    ]


def _extension_finding(binaries: Binaries, name: str, package: str, required: bool) -> Finding:
    if name in binaries.extensions:
        return Finding(name, ok=True, detail=f"available to PostgreSQL {binaries.version}", required=required)
    return Finding(
        name,
        ok=False,
        detail=f"not installed for the PostgreSQL {binaries.version} in {binaries.bindir}",
        mend=f"Run `graticule doctor --fix`, or install the package {package}.",
        packages=(package,),
        required=required,
    )


def _postgres_findings(settings: Settings, places: Places) -> list[Finding]:
    required = not _has_external_database(settings)
    made_by: int | None = None
    try:
        existing = existing_location(settings.home)
        made_by = existing.version if existing else None
        binaries = find_binaries(settings.pg_bin, made_by, cluster=existing.data if existing else None, places=places)
    except ConfigurationError as error:
        # A folder that was named wrongly is not mended by a package.
        package = postgis_package(made_by) if made_by else ANY_POSTGIS
        packages = () if settings.pg_bin else (package,)
        return [Finding("PostgreSQL", False, error.message, error.hint, packages, required)]
    return binaries_findings(binaries, required=required)


def _has_external_database(settings: Settings) -> bool:
    return settings.database_url is not None or settings.postgres_host is not None


def _user_finding(*, required: bool) -> Finding:
    try:
        user = ServerUser.choose()
    except ConfigurationError as error:
        return Finding("server user", False, error.message, error.hint, required=required)
    return Finding("server user", ok=True, detail=f"PostgreSQL runs as {user.name}", required=required)


def _database_findings(settings: Settings) -> Iterator[Finding]:
    try:
        address = settings.external_database
    except ConfigurationError as error:
        yield Finding("database", ok=False, detail=error.message, mend=error.hint)
        return
    if address is not None:
        yield from _asked(address, settings.database_timeout_seconds)


def _asked(address: DatabaseUrl, timeout: float) -> list[Finding]:
    url = address.get_secret_value()
    try:
        return server_findings(str(address), facts(url, _EXTENSIONS, timeout=timeout))
    except psycopg.Error as error:
        return [_no_database(_without_password(f"{address} does not answer: {error}", url))]
    except GraticuleError as error:  # no token was to be had for the login
        return [Finding("database", ok=False, detail=error.message, mend=error.hint)]


def _without_password(text: str, url: str) -> str:
    password = conninfo_to_dict(url).get("password")
    shown = " ".join(text.split())
    return shown.replace(str(password), "***") if password else shown


def _no_database(detail: str) -> Finding:
    mend = "Check GRATICULE_DATABASE_URL (or POSTGRES_HOST and its companions), and that the server runs."
    return Finding("database", ok=False, detail=detail, mend=mend)


def _nearest_existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there and can be seen."""
    absolute = path.expanduser().absolute()
    return next(each for each in (absolute, *absolute.parents) if os.access(each, os.F_OK))


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
