"""How GDAL opens a file that someone else has made: few drivers, no other file, nothing written, bounded memory."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import rasterio
from rasterio._err import CPLE_BaseError
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader

from graticule.core.errors import NotFound, Unavailable
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.acceptance import accepted_kind
from graticule.handlers.raster.file_kinds import (
    ACCEPTED,
    CONTAINERS,
    GEOPACKAGE,
    GRIB,
    HEAD_BYTES,
    READ_DIRECTLY,
    TIFF,
    FileKind,
)
from graticule.handlers.raster.references import check_references
from graticule.handlers.raster.source_file import file_of, open_stream
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.logs import get_logger
from graticule.storage.paths import CURL

ALLOWED_DRIVERS: Final = tuple(dict.fromkeys(driver for kind in ACCEPTED for driver in kind.drivers))
# What comes out of rasterio when GDAL is unhappy with a file; some of GDAL's own errors come out as they are.
GDAL_ERRORS: Final = (RasterioError, CPLE_BaseError, ValueError, OverflowError)
_MEBIBYTE: Final = 1024 * 1024
# What is opened where nobody can look at the bytes first: formats that cannot lead to another file.
_SELF_CONTAINED: Final = FileKind("raster", tuple(driver for kind in READ_DIRECTLY for driver in kind.drivers))
_OPEN_OPTIONS: Final = {  # so that nothing beside a file is read, or written
    TIFF: {"GEOREF_SOURCES": "INTERNAL"},
    GRIB: {"USE_IDX": "NO"},
    GEOPACKAGE: {"IMMUTABLE": "YES"},
}
_GDAL_LOG: Final = logging.getLogger("rasterio._err")
_JPEG_DAMAGE: Final = "JPEGLib:"
_NETWORK_MARKS: Final = ("HTTP", "response_code", "CURL", "curl", "timed out", "Timeout")
# What GDAL says of a range that it asks for: the status, and what curl says when the answer broke off.
_RANGE: Final = re.compile(
    r"(?:Got|failed with|DownloadRegion\(.*\):|ReadMultiRange\(.*\),.*:)"
    r" response_code=(?P<status>\d+)(?P<broken>, msg=)?"
)
_ANSWERS: Final = frozenset({"200", "206", "416"})  # the last where the file has ended
_SIGNATURE: Final = re.compile(r"\?[^\s'\"]+")

_log = get_logger(__name__)


class _LostRanges(logging.Filter):
    """Hears that GDAL did not get a range: its decoders only see that bytes are missing, as of a damaged file."""

    any_lost = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Take note, and let through what is logged anyway."""
        found = _RANGE.search(record.getMessage())
        if found and (found["broken"] or found["status"] not in _ANSWERS):
            self.any_lost = True
        return _GDAL_LOG.parent is None or record.levelno >= _GDAL_LOG.parent.getEffectiveLevel()


_LOST: Final = _LostRanges()
_GDAL_LOG.setLevel(logging.DEBUG)  # all is to be heard
_GDAL_LOG.addFilter(_LOST)


def gdal_environment(cache_mb: int, threads: int = 1) -> rasterio.Env:
    """Give the settings under which GDAL reads what partners sent.

    A file stands for itself: what lies beside it (.ovr, .msk, .aux.xml, world files) is neither read nor written,
    for it is another blob, which nobody has named. What was lost on the network before is forgotten.
    """
    _LOST.any_lost = False
    return rasterio.Env(
        GDAL_CACHEMAX=cache_mb * _MEBIBYTE,  # an integer reaches GDAL as bytes, and takes effect at once
        GDAL_NUM_THREADS=str(threads),
        GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR",
        GDAL_PAM_ENABLED="NO",
        GDAL_ERROR_ON_LIBJPEG_WARNING="TRUE",  # else the missing end of a JPEG is filled with grey
        GDAL_INGESTED_BYTES_AT_OPEN="32768",  # one request for the whole header of most files
        GDAL_HTTP_CONNECTTIMEOUT="10",
        GDAL_HTTP_TIMEOUT="60",
        GDAL_HTTP_MAX_RETRY="3",
        GDAL_HTTP_RETRY_DELAY="0.5",
        GDAL_HTTP_MERGE_CONSECUTIVE_RANGES="YES",
        GDAL_HTTP_MULTIPLEX="YES",
        CPL_VSIL_CURL_CHUNK_SIZE="32768",
        CPL_VSIL_CURL_CACHE_SIZE=str(16 * _MEBIBYTE),
        CPL_VSIL_CURL_NON_CACHED="/vsicurl/:/vsiaz/",  # the next task of this process sees the file anew
        VSI_CACHE="FALSE",
        CPL_DEBUG="VSICURL,AZURE",  # see `_LostRanges`
        PROJ_NETWORK="OFF",
        OSR_WKT_FORMAT="WKT2_2019",  # in WKT 1 the names of some datums are lost, and with them the datum shift
    )


@contextmanager
def open_raster(name: str, kind: FileKind | None = None) -> Iterator[DatasetReader]:
    """Open a raster for reading, inside `gdal_environment`, with the drivers of its kind alone.

    Only who has looked at the file gives its kind; otherwise that is done here. What cannot be opened, or leads to
    another file, is `Rejected`; a server that does not answer is `Unavailable`.
    """
    with _opened(name, kind or _kind_at(name)) as dataset:
        yield dataset


def _kind_at(name: str) -> FileKind:
    """Tell what a file is by its first bytes; one that leads to others is rejected unopened."""
    if name.startswith("/vsi") and not name.startswith(CURL):
        return _SELF_CONTAINED
    try:
        with open_stream(file_of(name)) as stream:
            kind = accepted_kind(stream.read(HEAD_BYTES))
            if kind not in {*READ_DIRECTLY, *CONTAINERS}:
                what = f"It is {kind.name}, which `raster.validate` converts first."
                raise Rejected([finding(Code.NOT_A_RASTER, what)])
            check_references(stream, kind)
    except NotFound:
        raise Rejected([finding(Code.NOT_FOUND, "The file is not there.")]) from None
    return kind


def _opened(name: str, kind: FileKind) -> DatasetReader:
    if not kind.drivers:  # with none, GDAL would try all
        raise Rejected([finding(Code.NOT_A_RASTER, f"It is {kind.name}.", "first bytes")])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)  # it is a finding of its own
            dataset = DatasetReader(name, driver=list(kind.drivers), **_OPEN_OPTIONS.get(kind, {}))
        leads_out = any(key.upper() == "OVERVIEW_FILE" for key in dataset.tags(ns="OVERVIEWS"))  # as GDAL compares
    except GDAL_ERRORS as error:
        raise unreadable(name, error, Code.CORRUPT) from None
    if leads_out:
        dataset.close()
        what = "Its overviews are said to lie in another file."
        raise Rejected([finding(Code.REFERS_TO_OTHER_FILES, what, "metadata")])
    return dataset


@contextmanager
def undamaged(name: str, where: str = "pixels") -> Iterator[None]:
    """Reject a raster of whose JPEG blocks something is missing: GDAL fills it with grey, and says so in its log only.

    What any thread reads meanwhile counts.
    """
    said = _Said()
    _GDAL_LOG.addHandler(said)
    try:
        yield
    finally:
        _GDAL_LOG.removeHandler(said)
    if said.damage is not None:
        raise unreadable(name, ValueError(said.damage), Code.CORRUPT, where)


class _Said(logging.Handler):
    """Listens to what GDAL says of JPEG blocks in a TIFF, which it takes as a warning whatever its settings."""

    damage: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if _JPEG_DAMAGE in said:
            self.damage = said


def unreadable(name: str, error: Exception, code: Code, where: str = "file") -> Rejected | Unavailable:
    """Tell that GDAL could not read; its own words go to the log, without the name, which may hold a signature."""
    said = " / ".join(_chain(error))
    _log.info("GDAL could not read", code=code.value, where=where, detail=_SIGNATURE.sub("?…", said.replace(name, "")))
    if name.startswith("/vsi") and (_LOST.any_lost or any(mark in said for mark in _NETWORK_MARKS)):
        return Unavailable("The source could not be read over the network.")
    return Rejected([finding(code, "Its content cannot be decoded.", where)])


def _chain(error: BaseException | None) -> list[str]:
    return [] if error is None else [str(error), *_chain(error.__cause__ or error.__context__)]
