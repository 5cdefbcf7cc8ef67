"""A partner's file of features, known by its name and its bytes before GDAL sees it.

GDAL would also open formats that lead to other files and hosts, follow a link in a GeoJSON file, and run what a
GeoPackage has for a layer. Nothing of that gets so far.
"""

import codecs
import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from graticule.core.errors import NotFound
from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import is_name
from graticule.handlers.vector.sources.json_escapes import EscapeCheck
from graticule.storage.blocking import BlockingStorage
from graticule.storage.paths import check_partner_blob
from graticule.storage.protocol import BlobInfo

HEAD_BYTES: Final = 64 * 1024  # of a file, by which its format is known
LONGEST_LINE: Final = 32 * 1024 * 1024  # of which it is looked whether it is a feature by itself
LONGEST_CRS: Final = 16 * 1024  # bytes of a `crs` in a GeoJSON file
_ARCHIVES: Final = "zip|gz|tgz|tar|bz2|xz|zst|7z|rar|kmz|sozip"
ARCHIVE_ENDINGS: Final = tuple(f".{ending}" for ending in _ARCHIVES.split("|"))
# Names from which a reader of addresses makes others: it cuts or decodes them, or looks into archives.
_PARSED_NAME: Final = re.compile(rf"[!;%]|\.(?:{_ARCHIVES})(?:/|$)|/vsi[a-z0-9]*/", re.IGNORECASE)
JOURNALS: Final = ("-wal", "-journal")
ARCHIVE: Final = (b"PK\x03\x04", b"PK\x05\x06")  # the second has nothing in it
_RECORD: Final = b"\x1e"  # what begins a record of RFC 8142
MAIN_PART, OTHER_PARTS = ".shp", (".shx", ".dbf", ".prj", ".cpg")  # of a Shapefile
TABLE_ENDINGS: Final = (".csv", ".tsv", ".txt")
_UNPACKED: Final = re.compile(r"[0-9a-z]{8}/source/[a-z0-9_.-]+")  # see `archive`
_GEOJSON: Final = re.compile(rb"\{[ \t\r\n]*\"")
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
# What may be the first of many features, one to a line, and goes on after the head of the file.
_BEGUN_LINE: Final = re.compile(rb"\s*\{(?:(?!\"FeatureCollection\")[^\n])*\Z")
# A root of KML, after declarations and comments. One with a DOCTYPE, and so with entities, is not taken.
_KML: Final = re.compile(rb"(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:[A-Za-z0-9_]+:)?kml[\s>]", re.DOTALL)
# A `crs` as GDAL knows it: in letters of either case, escaped or not, and in quotation marks of either kind.
_CRS_KEY: Final = rb"(?i)[\"'](?:c|\\u00[46]3)(?:r|\\u00[57]2)(?:s|\\u00[57]3)[\"']\s*"
_CRS: Final = re.compile(_CRS_KEY + rb"(?::\s*)?([{/])")  # with an object, or a comment, which GDAL passes over
_BEGUN_CRS: Final = re.compile(_CRS_KEY + rb"(?::\s*)?\Z")
_LONGEST_KEY: Final = 20  # bytes of a key that may not be whole yet


class Kind(StrEnum):
    """The formats that we take, by the names of GDAL's drivers."""

    GEOPACKAGE = "GPKG"
    FLATGEOBUF = "FlatGeobuf"
    GEOJSON = "GeoJSON"
    GEOJSON_LINES = "GeoJSONSeq"
    SHAPEFILE = "ESRI Shapefile"
    KML = "LIBKML"
    CSV = "CSV"
    GEOPARQUET = "Parquet"  # pyarrow's, for pyogrio has no driver


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
        if self.path.endswith(MAIN_PART):
            for ending in OTHER_PARTS:
                with contextlib.suppress(NotFound):
                    self.storage.local(f"{self.path.removesuffix(MAIN_PART)}{ending}")
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
        head = self._head(HEAD_BYTES)
        if _BEGUN_LINE.match(head):
            head = self._head(LONGEST_LINE)
        found = kind_of(head, self.path)
        if found in {Kind.GEOJSON, Kind.GEOJSON_LINES}:
            with contextlib.closing(self.storage.stream(self.path)) as pieces:
                check_json(pieces)
        if found is Kind.GEOPACKAGE:
            self._check_journals()
        if found is Kind.SHAPEFILE and not self.is_unpacked:
            raise rejected(Code.MISSING_PART, "A Shapefile is several files: send them in one archive.")
        return found

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
    raise rejected(Code.NOT_A_VECTOR, "The file is in none of the formats that are taken.")


def _by_mark(head: bytes) -> Kind | None:
    if head.startswith(_SQLITE):
        return Kind.GEOPACKAGE if head[68:70] == b"GP" else None
    return next((kind for mark, kind in _MARKS.items() if head.startswith(mark)), None)


def _by_text(text: bytes) -> Kind | None:
    if text.startswith(_RECORD + b"{") or _is_line(text):
        return Kind.GEOJSON_LINES
    if _GEOJSON.match(text):
        return Kind.GEOJSON
    return Kind.KML if _KML.match(text) else None


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


def check_json(pieces: Iterable[bytes]) -> None:
    """Reject a GeoJSON file that has its CRS elsewhere, where GDAL would go, or has what GDAL would misread."""
    held, escapes = b"", EscapeCheck()
    for piece in pieces:
        escapes.look(piece)
        held = _looked_through(held + piece, LONGEST_CRS)
    _looked_through(held, 0)


def _looked_through(text: bytes, following: int) -> bytes:
    """Check each `crs` that so many bytes follow, and give what has to wait for more."""
    for found in _CRS.finditer(text):
        begin = found.start(1)
        if begin + following > len(text):
            return text[found.start() :]
        _check_crs(text[begin : begin + LONGEST_CRS])
    begun = _BEGUN_CRS.search(text)
    held = text[begun.start() :] if begun else text[-_LONGEST_KEY:]
    if len(held) > LONGEST_CRS:
        raise _unreadable_crs()
    return held


def _check_crs(text: bytes) -> None:
    try:
        crs, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise _unreadable_crs() from None
    types = [str(value).casefold() for value in _members(crs, "type")]
    if any(kind.startswith(("link", "url")) for kind in types):
        raise rejected(Code.LINKED_CRS, "The crs of the file is a link.", "crs")
    names = [name for properties in _members(crs, "properties") for name in _members(properties, "name")]
    if any(kind.startswith("name") for kind in types) and not all(is_name(str(name)) for name in names):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, "The crs of the file is not the name of one.", "crs")


def _members(of: object, name: str) -> list[object]:
    """Give what an object has by a name; GDAL looks for it in letters of either case."""
    return [value for key, value in of.items() if key.casefold() == name] if isinstance(of, dict) else []


def _unreadable_crs() -> Rejected:
    return rejected(Code.CORRUPT, "The crs of the file cannot be read.", "crs")
