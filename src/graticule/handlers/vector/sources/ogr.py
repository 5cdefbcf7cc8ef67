"""pyogrio's GDAL with nothing but the drivers that we take, and no way to a network.

Imports GDAL: only for the process in which a handler runs. rasterio has a GDAL of its own, which nothing here changes.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyogrio.core
import pyogrio.raw
from pyogrio.util import vsi_path

from graticule.core.errors import ConfigurationError
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.encodings import UTF8, gdal_encoding
from graticule.handlers.vector.sources.filegdb import FOLDER
from graticule.handlers.vector.sources.source import Kind

BATCH_BYTES: Final = 32 * 1024 * 1024  # of features at a time; none may be larger
BATCH_ROWS: Final = 10_000
NOWHERE: Final = "127.0.0.1:9"  # nothing listens there
DRIVERS: Final = frozenset(map(str, set(Kind) - {Kind.CSV, Kind.GEOPARQUET}))  # these two are read by Arrow
NO_FILE: Final = "/dev/null/none"  # a name that no file can have
_PREFIXED: Final = {Kind.GEOJSON_LINES, Kind.TOPOJSON, Kind.JSON_FG}  # other drivers would take them for their own
SETTINGS: Final = {
    "GDAL_HTTP_PROXY": NOWHERE,
    "GDAL_HTTPS_PROXY": NOWHERE,
    "GDAL_HTTP_TIMEOUT": "1",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "CPL_CURL_ENABLE_VSIMEM": "NO",
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "PROJ_NETWORK": "OFF",
    "OSR_WKT_FORMAT": "WKT2_2019",  # WKT 1 loses methods and datums of some CRSs
    "GML_PARSER": "EXPAT",  # the other one reads external entities
    "GML_SKIP_RESOLVE_ELEMS": "ALL",
    "GML_DOWNLOAD_SCHEMA": "NO",
    "GML_REGISTRY": NO_FILE,
    "GML_SAVE_RESOLVED_TO": f"{NO_FILE}.gml",  # a .resolved.gml file beside the source would be read in its place
    # What the drivers do by themselves passes this limit, or ends at it without a word.
    "OGR_ARROW_MEM_LIMIT": str(BATCH_BYTES),
    "OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES",
    "OGR_GPKG_STREAM_BASE_IMPL": "YES",
}


_ALL_DRIVERS: Final = frozenset(pyogrio.list_drivers())


def _restrict(drivers: frozenset[str]) -> None:
    """Leave only some drivers. GDAL drops the others whenever it registers all."""
    pyogrio.set_gdal_config_options({"OGR_SKIP": ",".join(sorted(_ALL_DRIVERS - drivers))})
    pyogrio.core._register_drivers()  # noqa: SLF001 - there is no other way to this
    if left := pyogrio.list_drivers().keys() - drivers:
        raise ConfigurationError(f"GDAL's drivers cannot be restricted: {', '.join(sorted(left))} are left.")


pyogrio.set_gdal_config_options(SETTINGS)
_restrict(DRIVERS)


@contextmanager
def only_driver(kind: Kind) -> Iterator[None]:
    """Open files with the driver of one format: another could take the file for its own, and skip our checks.

    It takes 3 ms. Nothing of another format may be open meanwhile.
    """
    _restrict(frozenset({kind.value}))
    try:
        yield
    finally:
        _restrict(DRIVERS)


@contextmanager
def closed_network() -> Iterator[None]:
    """Keep GDAL from all hosts, also from those that the machine reaches without a proxy.

    What it warns of is of no use: all that matters is looked at, and a partner could fill logs with it.
    """
    kept = {name: os.environ.pop(name) for name in ("no_proxy", "NO_PROXY") if name in os.environ}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        os.environ.update(kept)


def dataset_name(file: str, kind: Kind) -> str:
    """Give the name under which GDAL opens a file; one of which it or pyogrio would make another is rejected."""
    is_decoded = kind is Kind.GEOPACKAGE and "%" in file  # GDAL makes an address of it, and leaves `%2e` as it is
    if is_decoded or vsi_path(file) != file:
        raise rejected(Code.UNUSABLE_NAME, "The name of the file cannot be opened as it is.", "name")
    if kind in _PREFIXED:
        return f"{kind.value}:{file}"
    return f"/vsizip/{{{file}}}/{FOLDER}" if kind is Kind.FILEGDB else file


def open_options(kind: Kind, encoding: str | None = None) -> dict[str, str]:
    """Give what a driver is told when it opens a file."""
    if kind is Kind.GEOPACKAGE:
        return {"IMMUTABLE": "YES"}  # it looks for no journal, and makes none
    if kind is Kind.GML:
        return {"XSD": NO_FILE, "WRITE_GFS": "NO"}  # no schema is read or written beside the file
    if kind is Kind.GEOJSON:
        return {"ARRAY_AS_STRING": "YES"}  # as JSON, for its own lists lose digits of whole numbers
    if kind is Kind.SHAPEFILE:
        return {"ENCODING": gdal_encoding(encoding or UTF8)}
    return {}
