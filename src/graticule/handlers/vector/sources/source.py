"""A partner's file of features, known by its name and its bytes before GDAL sees it.

GDAL would also open formats that lead to other files and hosts, follow a link in a GeoJSON file, and run what a
GeoPackage has for a layer. Nothing of that gets so far.
"""

import codecs
import contextlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from graticule.core.errors import NotFound
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources import mapinfo, topojson, xml_source
from graticule.handlers.vector.sources.json_crs import check_json, check_json_fg
from graticule.handlers.zip_archive import ARCHIVE_SUFFIXES
from graticule.storage.blocking import BlockingStorage
from graticule.storage.paths import check_partner_blob
from graticule.storage.protocol import BlobInfo

HEAD_BYTES: Final = 64 * 1024  # of a file, by which its format is known
LONGEST_LINE: Final = 32 * 1024 * 1024  # of which it is looked whether it is a feature by itself
# Names from which a reader of addresses makes others: it cuts or decodes them, or looks into archives.
_PARSED_NAME: Final = re.compile(rf"[!;%]|\.(?:{'|'.join(ARCHIVE_SUFFIXES)})(?:/|$)|/vsi[a-z0-9]*/", re.IGNORECASE)
JOURNALS: Final = ("-wal", "-journal")
ARCHIVE: Final = (b"PK\x03\x04", b"PK\x05\x06")  # the second has nothing in it
_RECORD: Final = b"\x1e"  # what begins a record of RFC 8142
MAIN_PART, OTHER_PARTS = ".shp", (".shx", ".dbf", ".prj", ".cpg")  # of a Shapefile
PARTS: Final = {  # of formats of several files, by the ending of the one that is opened
    MAIN_PART: OTHER_PARTS,
    mapinfo.TABLE: mapinfo.TABLE_PARTS,
    mapinfo.INTERCHANGE: mapinfo.INTERCHANGE_PARTS,
}
PACKED_GDB: Final = ".gdb-files"  # what we pack the tables of a File Geodatabase into
TABLE_ENDINGS: Final = (".csv", ".tsv", ".txt")
_UNPACKED: Final = re.compile(r"[0-9a-z]{8}/source/[a-z0-9_.-]+")  # see `archive`
_GEOJSON: Final = re.compile(rb"\{[ \t\r\n]*\"")
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
# What may be the first of many features, one to a line, and goes on after the head of the file.
_BEGUN_LINE: Final = re.compile(rb"\s*\{(?:(?!\"FeatureCollection\")[^\n])*\Z")
# JSON-FG says what it conforms to, or names a CRS.
_JSON_FG: Final = re.compile(rb"\"conformsTo\"\s*:\s*\[[^\]]{0,2000}json-fg-1|\"coordRefSys\"\s*:")
_TOPOJSON: Final = re.compile(rb"\{\s*\"(?:type\"\s*:\s*\"Topology\"|(?:arcs|objects|transform)\"\s*:)")
_GML: Final = b"opengis.net/gml"
# The root of XML, after declarations and comments. One with a DOCTYPE, and so with entities, is not taken.
_ROOT: Final = re.compile(rb"(?:(?:<\?[^>]*\?>|<!--(?:(?!-->).)*-->)\s*)*+<(?:[\w.-]+:)?([\w.-]+)[\s>]", re.DOTALL)


class Kind(StrEnum):
    """The formats that we take, by the names of GDAL's drivers."""

    GEOPACKAGE = "GPKG"
    FLATGEOBUF = "FlatGeobuf"
    GEOJSON = "GeoJSON"
    GEOJSON_LINES = "GeoJSONSeq"
    SHAPEFILE = "ESRI Shapefile"
    KML = "LIBKML"
    GPX = "GPX"
    GML = "GML"
    TOPOJSON = "TopoJSON"
    JSON_FG = "JSONFG"
    FILEGDB = "OpenFileGDB"
    MAPINFO = "MapInfo File"
    CSV = "CSV"
    GEOPARQUET = "Parquet"  # pyarrow's, for pyogrio has no driver


_ANY_FLATGEOBUF: Final = re.compile(rb"fgb(.)fgb", re.DOTALL)  # of any major version
MULTI_LAYER: Final = frozenset(  # formats of which a file can have several layers
    {Kind.GEOPACKAGE, Kind.KML, Kind.GPX, Kind.GML, Kind.TOPOJSON, Kind.JSON_FG, Kind.FILEGDB}
)
MAX_BYTES: Final = {  # GDAL holds all of it in memory: 20 MB of KML took 260 MB for points and 200 MB for polygons
    Kind.KML: 20 * 1024**2,
    Kind.TOPOJSON: 20 * 1024**2,
}
_CHECKS: Final = {
    Kind.GEOJSON: check_json,
    Kind.GEOJSON_LINES: check_json,
    Kind.JSON_FG: check_json_fg,
    Kind.TOPOJSON: topojson.check_size,
    Kind.GML: xml_source.check_gml,
    Kind.KML: xml_source.check_kml,
    Kind.GPX: xml_source.check_well_formed,
}
_SQLITE: Final = b"SQLite format 3\x00"
_MARKS: Final = {
    b"fgb\x03": Kind.FLATGEOBUF,
    b"PAR1": Kind.GEOPARQUET,
    b"\x00\x00\x27\x0a": Kind.SHAPEFILE,
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Where a partner's file of features is."""

    storage: BlockingStorage
    path: str  # container/blob/path

    @classmethod
    def at(cls, storage: BlockingStorage, container_name: str, blob_name: str) -> Self:
        """Find a file; one of ours is refused."""
        check_partner_blob(container_name, blob_name, storage.options)
        return cls(storage, f"{container_name}/{blob_name}")

    @classmethod
    def of(cls, storage: BlockingStorage, path: str) -> Self:
        """Find a file that was opened before: a partner's, or what was unpacked of one."""
        container, _, name = path.partition("/")
        file = cls(storage, path)
        return file if file.is_unpacked else cls.at(storage, container, name)

    @property
    def opened(self) -> str:
        """Its name for GDAL, which reaches no network here: where blobs are no files, it is copied to this machine."""
        stem, dot, ending = self.path.rpartition(".")
        for part in PARTS.get(f"{dot}{ending}", ()):
            with contextlib.suppress(NotFound):
                self.storage.local(f"{stem}{part}")
        try:
            return str(self.storage.local(self.path))
        except NotFound:
            raise rejected(Code.NOT_FOUND, f"There is no file {self.path}.") from None

    @property
    def is_unpacked(self) -> bool:
        """Whether it is what we made of an archive."""
        container, _, name = self.path.partition("/")
        return container == self.storage.silver and _UNPACKED.fullmatch(name) is not None

    @property
    def stem(self) -> str:
        """Its name without folders and ending: that of its layer, where the format has no names of layers."""
        return self.path.rpartition("/")[2].partition(".")[0]

    def state(self) -> BlobInfo:
        """Tell the size and the mark of its content."""
        try:
            return self.storage.stat(self.path)
        except NotFound:
            raise rejected(Code.NOT_FOUND, f"There is no file {self.path}.") from None

    def check_unchanged(self, etag: str) -> None:
        """Reject a file that is not what it was."""
        try:
            is_same = self.storage.stat(self.path).etag == etag
        except NotFound:
            is_same = False
        if not is_same:
            raise rejected(Code.SOURCE_CHANGED, "The file was changed or removed while it was processed.")

    def is_archive(self) -> bool:
        """Tell whether it is one that has other files in it."""
        return self._head(4).startswith(ARCHIVE)

    def kind(self) -> Kind:
        """Tell the format; a file that is in none that we take, or leads to other places, is rejected."""
        check_name(self.path)
        if self.is_unpacked and self.path.endswith(PACKED_GDB):
            return Kind.FILEGDB
        head = self._head(HEAD_BYTES)
        if _BEGUN_LINE.match(head):
            head = self._head(LONGEST_LINE)
        found = kind_of(head, self.path)
        if found in {Kind.SHAPEFILE, Kind.MAPINFO} and not self.is_unpacked:
            what = f"A dataset of the format {found.value} is several files: send them in one archive."
            raise rejected(Code.MISSING_PART, what)
        self._check_content(found, head)
        return found

    def _check_content(self, kind: Kind, head: bytes) -> None:
        """Reject a file that leads elsewhere, or that takes more memory than it should."""
        if kind is Kind.GEOPACKAGE:
            self._check_journals()
        elif kind is Kind.MAPINFO:
            mapinfo.check_header(head, is_whole=len(head) < HEAD_BYTES)
        elif kind in _CHECKS:
            limit = MAX_BYTES.get(kind)
            if limit is not None and self.state().size > limit:
                what = f"The file has more than {limit // 1024**2} MiB, the limit for this format."
                raise rejected(Code.TOO_LARGE_FILE, what)
            with contextlib.closing(self.storage.stream(self.path)) as pieces:
                _CHECKS[kind](pieces)

    def _head(self, length: int) -> bytes:
        try:
            return self.storage.read(self.path, 0, length)
        except NotFound:
            raise rejected(Code.NOT_FOUND, f"There is no file {self.path}.") from None

    def _check_journals(self) -> None:
        """Reject a database that was copied while it was open: GDAL would write what is in its journal into it."""
        for ending in JOURNALS:
            if self.storage.exists(f"{self.path}{ending}"):
                raise rejected(Code.UNFINISHED, f"Changes to the file are left in {self.path}{ending}.")


def check_name(path: str) -> None:
    """Reject a name that stands for another file, or for one in an archive, to who opens it."""
    if _PARSED_NAME.search(path):
        raise rejected(Code.UNUSABLE_NAME, f"The name {path[:200]} cannot be opened as it is.", "name")


def kind_of(head: bytes, name: str) -> Kind:
    """Tell the format by the first bytes, and reject all that we do not take."""
    if not head:
        raise rejected(Code.EMPTY_FILE, "The file is empty.")
    found = _by_mark(head) or _by_text(head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n"))
    if found is not None:
        return found
    if name.casefold().endswith(TABLE_ENDINGS) and _is_text(head):  # a table has no mark
        return Kind.CSV
    if other := _ANY_FLATGEOBUF.match(head):
        what = f"The file is FlatGeobuf version {other[1][0]}; version 3 is supported."
        raise rejected(Code.UNSUPPORTED_VERSION, what)
    raise rejected(Code.NOT_A_VECTOR, "The file is not in a supported vector format.")


def _by_mark(head: bytes) -> Kind | None:
    if head.startswith(_SQLITE):
        return Kind.GEOPACKAGE if head[68:70] == b"GP" else None
    return next((kind for mark, kind in _MARKS.items() if head.startswith(mark)), None)


def _by_text(text: bytes) -> Kind | None:
    if text.startswith(_RECORD + b"{") or _is_line(text):
        return Kind.GEOJSON_LINES
    if _TOPOJSON.match(text):
        return Kind.TOPOJSON
    if _GEOJSON.match(text):
        return Kind.JSON_FG if _JSON_FG.search(text, 0, HEAD_BYTES) else Kind.GEOJSON
    if mapinfo.is_mapinfo(text):
        return Kind.MAPINFO
    return _by_root(text)


def _by_root(text: bytes) -> Kind | None:
    root = _ROOT.match(text)
    if root is None:
        return None
    known = {b"kml": Kind.KML, b"gpx": Kind.GPX}
    return known.get(root[1]) or (Kind.GML if _GML in text else None)


def _is_text(head: bytes) -> bool:
    """Tell whether these can be characters of a text, in whichever encoding."""
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return is_wide or not _NO_TEXT.search(head)


def _is_line(text: bytes) -> bool:
    """Tell whether the first line is a feature by itself, and more follow."""
    line, newline, more = text.partition(b"\n")
    if not newline or not more.strip() or not _GEOJSON.match(line):
        return False
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("type") == "Feature"
