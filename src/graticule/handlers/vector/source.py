"""A partner's file of features, known by its name and its bytes before GDAL sees it.

GDAL would also open formats that lead to other files and hosts, follow a link in a GeoJSON file, and run what a
GeoPackage has for a layer. Nothing of that gets so far.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from graticule.core.errors import NotFound
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.storage.blocking import BlockingStorage
from graticule.storage.paths import resolve_source
from graticule.storage.protocol import BlobInfo

HEAD_BYTES: Final = 512  # of a file, by which its format is known
LONGEST_CRS: Final = 16 * 1024  # bytes of a `crs` in a GeoJSON file
_ARCHIVES: Final = "zip|gz|tgz|tar|bz2|xz|zst|7z|rar|kmz|sozip"
# Names from which a reader of addresses makes others: it cuts them, or looks into archives.
_PARSED_NAME: Final = re.compile(rf"[!;]|\.(?:{_ARCHIVES})(?:/|$)|/vsi[a-z0-9]*/", re.IGNORECASE)
_JOURNALS: Final = ("-wal", "-journal")
_GEOJSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*\"")
_CRS: Final = re.compile(rb"\"(?:c|\\u0063)(?:r|\\u0072)(?:s|\\u0073)\"\s{0,64}:\s{0,64}\{")
_LONGEST_KEY: Final = 160  # characters of what `_CRS` finds


class Kind(StrEnum):
    """The formats that we take, by the names of GDAL's drivers."""

    GEOPACKAGE = "GPKG"
    FLATGEOBUF = "FlatGeobuf"
    GEOJSON = "GeoJSON"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Where a partner's file of features is."""

    storage: BlockingStorage
    path: str  # container/blob/path
    opened: str  # for GDAL

    @classmethod
    def at(cls, storage: BlockingStorage, container_name: str, blob_name: str) -> Self:
        """Find a file; one of ours is refused, and one that GDAL would not find by its name rejected."""
        found = resolve_source(storage, container_name, blob_name)
        path = f"{container_name}/{blob_name}"
        check_name(path)
        return cls(storage, path, found.opened)

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

    def kind(self) -> Kind:
        """Tell the format; a file that is in none that we take, or leads to other places, is rejected."""
        found = kind_of(self.storage.read(self.path, 0, HEAD_BYTES))
        if found is Kind.GEOJSON:
            check_links(self.storage.stream(self.path))
        if found is Kind.GEOPACKAGE:
            self._check_journals()
        return found

    def _check_journals(self) -> None:
        """Reject a database that was copied while it was open: GDAL would write what is in its journal into it."""
        for ending in _JOURNALS:
            if self.storage.exists(f"{self.path}{ending}"):
                raise rejected(Code.UNFINISHED, f"Changes to the file are left in {self.path}{ending}.")


def check_name(path: str) -> None:
    """Reject a name that stands for another file, or for one in an archive, to who opens it."""
    if _PARSED_NAME.search(path):
        raise rejected(Code.UNUSABLE_NAME, f"The name {path[:200]} cannot be opened as it is.", "name")


def kind_of(head: bytes) -> Kind:
    """Tell the format by the first bytes, and reject all that we do not take."""
    if not head:
        raise rejected(Code.EMPTY_FILE, "The file is empty.")
    if head.startswith(b"SQLite format 3\x00") and head[68:70] == b"GP":
        return Kind.GEOPACKAGE
    if head.startswith(b"fgb\x03"):
        return Kind.FLATGEOBUF
    if _GEOJSON.match(head):
        return Kind.GEOJSON
    raise rejected(Code.NOT_A_VECTOR, "The file is no GeoPackage, FlatGeobuf or GeoJSON.")


def check_links(pieces: Iterable[bytes]) -> None:
    """Reject a GeoJSON file that has its CRS elsewhere: GDAL would go there."""
    held = b""
    for piece in pieces:
        held = _looked_through(held + piece, LONGEST_CRS)
    _looked_through(held, 0)


def _looked_through(text: bytes, following: int) -> bytes:
    """Check each `crs` that so many bytes follow, and give what has to wait for more."""
    for found in _CRS.finditer(text):
        begin = found.end() - 1
        if begin + following > len(text):
            return text[found.start() :]
        _check_crs(text[begin : begin + LONGEST_CRS])
    return text[-_LONGEST_KEY:]


def _check_crs(text: bytes) -> None:
    try:
        crs, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise rejected(Code.CORRUPT, "The crs of the file cannot be read.", "crs") from None
    if str(crs.get("type")).casefold().startswith(("link", "url")):
        raise rejected(Code.LINKED_CRS, "The crs of the file is a link.", "crs")
