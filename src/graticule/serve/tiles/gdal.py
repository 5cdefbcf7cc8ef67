"""How GDAL reads what is served: many small reads, one driver, and no file that was not named here."""

import logging
import os
import re
from collections.abc import Mapping
from typing import Final

from rasterio.io import DatasetReader

from graticule.core.errors import OutputUnreadable

# Given to every read. There is no CPL_VSIL_CURL_ALLOWED_EXTENSIONS: an address with a signature ends otherwise, and
# the one driver that opens files opens nothing beside them. Nor VSI_CACHE: it copies what local files hold, which costs
# 5 % of a tile, and what comes over the network is kept by the cache of the network's own.
GDAL_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",  # a file stands for itself: no .ovr, .msk or .aux.xml beside it
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_INGESTED_BYTES_AT_OPEN": "32768",  # one request for the header of most COGs
    "GDAL_NUM_THREADS": "1",  # requests run beside each other already
    "GTIFF_IMPLICIT_JPEG_OVR": "NO",  # overviews are there; those that JPEG implies cannot be read by directory
    "GDAL_HTTP_CONNECTTIMEOUT": "3",
    "GDAL_HTTP_TIMEOUT": "10",
    "GDAL_HTTP_MAX_RETRY": "2",
    "GDAL_HTTP_RETRY_DELAY": "0.2",
    "GDAL_HTTP_MERGE_CONSECUTIVE_RANGES": "YES",
    "GDAL_HTTP_MULTIPLEX": "YES",
}
# What GDAL reads once in a process, from its environment.
PROCESS_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GDAL_CACHEMAX": "256",  # MiB of decoded blocks
    "GDAL_MAX_DATASET_POOL_SIZE": "450",  # files of mosaics that are open: enough for one request over many
    "CPL_VSIL_CURL_CHUNK_SIZE": "32768",
    "CPL_VSIL_CURL_CACHE_SIZE": str(64 * 1024 * 1024),
    "PROJ_NETWORK": "OFF",
}

_NAMES: Final = re.compile(
    r"(?:GTIFF_DIR:|[A-Za-z]+://|[/<])[^'\"]*|[^\s'\"]+\.(?:tiff?|json)\b[^\s'\"]*", re.IGNORECASE
)
_LOGGERS: Final = ("rasterio", "rasterio._env", "rasterio._err", "rasterio._io", "rasterio._base", "rasterio.session")


def set_up_process() -> None:
    """Set what holds for the whole process, unless an operator has; called before GDAL does anything."""
    for name, value in PROCESS_ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def open_geotiff(name: str) -> DatasetReader:
    """Open a GeoTIFF; what is anything else, or leads to another file, is refused."""
    dataset = DatasetReader(name, driver=["GTiff"], GEOREF_SOURCES="INTERNAL")
    if "OVERVIEW_FILE" in dataset.tags(ns="OVERVIEWS"):
        dataset.close()
        raise OutputUnreadable("The data of this asset cannot be read now.", detail="overviews in another file")
    return dataset


def open_virtual(document: str) -> DatasetReader:
    """Open a virtual raster that was written here."""
    return DatasetReader(document, driver=["VRT"])


def without_names(text: str) -> str:
    """Take names of files and addresses out of what GDAL says; they may hold a signature."""
    return _NAMES.sub("…", text)


class _WithoutNames(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_names(record.getMessage()), ()
        return True


_WITHOUT_NAMES: Final = _WithoutNames()


def keep_names_out_of_logs() -> None:
    """Let what rasterio logs of GDAL's messages name no file."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_WITHOUT_NAMES)
