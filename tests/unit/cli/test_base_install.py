"""The base install, and the processes that run on it, carry nothing that needs GDAL, or that nobody asked for."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAVY_MODULES = {
    *("rasterio", "osgeo", "fiona", "pyogrio", "rio_cogeo", "rio_stac", "rio_tiler", "titiler", "numpy", "pyarrow"),
    *("shapely", "cogeo_mosaic", "morecantile", "pyproj", "tipg", "stac_fastapi", "azure"),
    *("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf"),  # FastAPI imports their names, and no more
}
HEAVY_PACKAGES = {
    *("rasterio", "gdal", "fiona", "pyogrio", "rio-cogeo", "rio-stac", "rio-tiler", "titiler-core", "numpy", "pyarrow"),
    *("shapely", "cogeo-mosaic", "morecantile", "pyproj", "tipg", "titiler-mosaic", "stac-fastapi-pgstac"),
}
APPLICATIONS = """
import sys
from graticule.config import Settings
import graticule.api.app, graticule.cli.main, graticule.gateway.app
from graticule.cli import connection, doctor, installation, local_database, supervisor
from graticule.embedded import machine
from graticule.http import server
url = "postgresql://nobody@127.0.0.1:1/nowhere"
graticule.api.app.create_api(Settings(), url).openapi()
graticule.gateway.app.create_gateway(Settings(), url).openapi()
from graticule.telemetry import begin_tracing, span
begin_tracing("gateway")
with span("gdal.open", path="silver/a.tif"):
    print(*sorted(name.partition(".")[0] for name in sys.modules))
    print(*(name for name in sys.modules if name.count(".") == 1))
"""


def test_the_processes_of_the_api_import_no_gdal_and_nothing_that_traces() -> None:
    found = subprocess.run([sys.executable, "-c", APPLICATIONS], capture_output=True, text=True, check=True)
    imported = set(found.stdout.split())
    assert {"graticule", "fastapi", "psycopg"} <= imported
    assert imported & HEAVY_MODULES == set()


def needed_by(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """Give what a package needs on this machine, with these extras of it."""
    try:
        written = requires(name) or []
    except PackageNotFoundError:  # not installed here, and so what it needs is not known
        return
    for line in written:
        requirement = Requirement(line)
        environments = [{"extra": extra} for extra in extras or {""}]
        if requirement.marker is None or any(requirement.marker.evaluate(each) for each in environments):
            yield requirement


def closure(name: str, *extras: str) -> set[str]:
    """Give the packages that an install of this one brings along."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(canonicalize_name(name), frozenset(extras))]
    while todo:
        package = todo.pop()
        if package not in seen:
            seen.add(package)
            todo += [(canonicalize_name(each.name), frozenset(each.extras)) for each in needed_by(*package)]
    return {package for package, _ in seen}


def test_the_base_install_brings_nothing_that_needs_gdal() -> None:
    brought = closure("graticule")
    assert {"fastapi", "psycopg", "psycopg-pool", "pypgstac", "starlette"} <= brought
    assert brought & HEAVY_PACKAGES == set()


def test_the_extras_bring_what_the_base_install_leaves_out() -> None:
    """And so the rule above would find it."""
    assert {"rasterio", "numpy", "pyogrio", "titiler-core"} <= closure("graticule", "worker", "serve")
