"""pyogrio's GDAL with nothing but the drivers that we take, and no way to a network.

Imports GDAL: only for the process in which a handler runs. rasterio has a GDAL of its own, which nothing here changes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyogrio.core
import pyogrio.raw
from pyogrio.util import vsi_path

from graticule.core.errors import ConfigurationError
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.source import Kind

BATCH_BYTES: Final = 32 * 1024 * 1024  # of features at a time; none may be larger
NOWHERE: Final = "127.0.0.1:9"  # nothing listens there
SETTINGS: Final = {
    "GDAL_HTTP_PROXY": NOWHERE,
    "GDAL_HTTPS_PROXY": NOWHERE,
    "GDAL_HTTP_TIMEOUT": "1",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "CPL_CURL_ENABLE_VSIMEM": "NO",
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "PROJ_NETWORK": "OFF",
    # What the drivers do by themselves passes this limit, or ends at it without a word.
    "OGR_ARROW_MEM_LIMIT": str(BATCH_BYTES),
    "OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES",
    "OGR_GPKG_STREAM_BASE_IMPL": "YES",
}
OPTIONS: Final = {Kind.GEOPACKAGE: {"IMMUTABLE": "YES"}}  # it looks for no journal, and makes none


def _restrict() -> None:
    """Leave only the drivers that we take. GDAL drops the others whenever it registers all."""
    others = pyogrio.list_drivers().keys() - set(Kind)
    pyogrio.set_gdal_config_options({**SETTINGS, "OGR_SKIP": ",".join(sorted(others))})
    pyogrio.core._register_drivers()  # noqa: SLF001 - there is no other way to this
    if left := pyogrio.list_drivers().keys() - set(Kind):
        raise ConfigurationError(f"GDAL's drivers cannot be restricted: {', '.join(sorted(left))} are left.")


_restrict()


@contextmanager
def closed_network() -> Iterator[None]:
    """Keep GDAL from all hosts, also from those that the machine reaches without a proxy."""
    kept = {name: os.environ.pop(name) for name in ("no_proxy", "NO_PROXY") if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def check_opened_as_it_is(file: str) -> None:
    """Reject a file of whose name pyogrio would make another."""
    if vsi_path(file) != file:
        raise rejected(Code.UNUSABLE_NAME, "The name of the file cannot be opened as it is.", "name")
