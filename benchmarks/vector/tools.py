"""The tools beside which ours is measured: each in processes of its own, on the same cluster."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from benchmarks.installation import Place
from benchmarks.machine import make_ready
from benchmarks.measure import Announce
from benchmarks.peers.environments import Peer, python_of
from benchmarks.raster.tools import ROOT, ToolFailed
from benchmarks.vector.size import LAYER, TARGET
from graticule.embedded.credentials import ADMIN

OGR2OGR, OGR2OGR_PLAIN = "ogr2ogr", "ogr2ogr, not reprojected"
GEOPANDAS, GEOPANDAS_BY_ARROW = "geopandas.to_postgis", "geopandas.to_postgis, by Arrow"
GEOPANDAS_PEER = Peer(
    "geopandas",
    "geopandas 1.2.0",
    (
        "geopandas==1.2.0",
        "pyogrio==0.13.0",
        "pyarrow==26.0.1",
        "sqlalchemy==2.1.8",
        "geoalchemy2==0.20.0",
        "psycopg[binary]==3.3.8",
    ),
)
SCRIPT = ROOT / "benchmarks" / "vector" / "with_geopandas.py"
OGR2OGR_COMMAND: tuple[str, ...] = (
    *("ogr2ogr", "-q", "-f", "PostgreSQL", "--config", "PG_USE_COPY", "YES"),
    *("-lco", "SPATIAL_INDEX=NONE", "-lco", "GEOMETRY_NAME=geom", "-nlt", "PROMOTE_TO_MULTI"),
)
REPROJECTED = ("-t_srs", TARGET)
INDEX: LiteralString = "CREATE INDEX ON {table} USING gist (geom)"
ANALYZE: LiteralString = "ANALYZE {table}"
DROP: LiteralString = "DROP TABLE IF EXISTS {table}"


@dataclass(frozen=True)
class ToolRun:
    """What a tool took, its index and statistics included."""

    tool: str
    seconds: float
    peak_mb: float


def has_ogr2ogr() -> bool:
    """Tell whether GDAL's programs are installed."""
    return shutil.which("ogr2ogr") is not None


def run_ogr2ogr(source: Path, place: Place, table: str, *, reprojected: bool = True) -> ToolRun:
    """Load with ogr2ogr by COPY, and make the same index and statistics."""
    given = conninfo_to_dict(place.url(ADMIN))
    words = {name: given[name] for name in ("host", "port", "user", "dbname")}
    target = "PG:" + " ".join(f"{name}={value}" for name, value in words.items())
    command = (*OGR2OGR_COMMAND, *(REPROJECTED if reprojected else ()), target, str(source), LAYER, "-nln", table)
    with psycopg.connect(place.url(ADMIN), autocommit=True) as connection:
        _run(connection, DROP, table)
        make_ready(source)
        began = time.perf_counter()
        peak = _program(command, {"PGPASSWORD": str(given["password"])})
        _run(connection, INDEX, table)
        _run(connection, ANALYZE, table)
        return ToolRun(OGR2OGR if reprojected else OGR2OGR_PLAIN, time.perf_counter() - began, peak)


def run_geopandas(
    source: Path, place: Place, table: str, folder: Path, announce: Announce, *, by_arrow: bool
) -> ToolRun:
    """Load with geopandas in an environment of its own."""
    python = python_of(GEOPANDAS_PEER, folder, announce)
    name = GEOPANDAS_BY_ARROW if by_arrow else GEOPANDAS
    announce(name)
    url = place.url(ADMIN).replace("postgresql://", "postgresql+psycopg://", 1)
    with psycopg.connect(place.url(ADMIN), autocommit=True) as connection:
        _run(connection, DROP, table)
    make_ready(source)
    began = time.perf_counter()
    options = ("arrow",) if by_arrow else ()
    peak = _program((str(python), str(SCRIPT), str(source), url, table, TARGET, *options), {})
    return ToolRun(name, time.perf_counter() - began, peak)


def _run(connection: "psycopg.Connection[object]", statement: LiteralString, table: str) -> None:
    connection.execute(sql.SQL(statement).format(table=sql.Identifier(table)))


def _program(command: tuple[str, ...], environment: Mapping[str, str]) -> float:
    """Run a program to its end, and give the most memory that it held."""
    process = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ToolFailed(f"{command[0]} ended with {process.returncode}: {said[-1000:].decode(errors='replace')}")
    return usage.ru_maxrss / 1024
