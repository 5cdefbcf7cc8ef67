"""The servers: ours, plain TiTiler and plain TiPG, each a process of its own on the same data."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from benchmarks.installation import Place
from benchmarks.processes import Process, running, running_module
from benchmarks.raster.tools import ROOT
from benchmarks.serving.data import SCHEMA
from graticule.core.audience import Audience
from graticule.serve.tiles.gdal import GDAL_ENVIRONMENT, PROCESS_ENVIRONMENT

# As ours runs: this HTTP parser and this loop, and no line in a log for each request.
UVICORN = ("-m", "uvicorn", "--http", "h11", "--loop", "asyncio", "--log-level", "warning", "--no-access-log")
Running = AbstractAsyncContextManager[Process]


def ours(place: Place, storage: Path, name: str, settings: Mapping[str, str]) -> Running:
    """Run `graticule serve` for those of the house."""
    audience = Audience.INTERNAL
    environment = {
        "GRATICULE_HOME": str(place.home),
        "GRATICULE_STORAGE_ROOT": str(storage),
        "GRATICULE_DATABASE_URL": place.url(audience.role),
        "GRATICULE_LOG_LEVEL": "WARNING",
        **settings,
    }
    return running("serve", environment, _logs(place, name), ("--audience", audience))


def plain_titiler(place: Place) -> Running:
    """Run TiTiler's own factory with the settings of GDAL that ours has: they are no part of what is compared."""
    application = ("benchmarks.serving.plain_titiler:app", "--app-dir", str(ROOT))
    environment = {**PROCESS_ENVIRONMENT, **GDAL_ENVIRONMENT}
    logs = _logs(place, "titiler")
    return running_module("titiler", (*UVICORN, *application), environment, logs, ready="/openapi.json")


def plain_tipg(place: Place) -> Running:
    """Run TiPG's own application on the schema that has the table."""
    environment = {"DATABASE_URL": _for_tipg(place.url()), "TIPG_DB_SCHEMAS": f'["{SCHEMA}"]'}
    return running_module("tipg", (*UVICORN, "tipg.main:app"), environment, _logs(place, "tipg"), ready="/healthz")


def _for_tipg(url: str) -> str:
    """Write our address as TiPG takes it: the folder of the socket stands for the host."""
    parts = conninfo_to_dict(url)
    user, password, host = (quote(str(parts[name]), safe="") for name in ("user", "password", "host"))
    return f"postgresql://{user}:{password}@{host}:{parts['port']}/{parts['dbname']}"


def _logs(place: Place, name: str) -> Path:
    folder = place.home / "logs" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
