"""CRSs that files of JSON name, looked at before GDAL sees them."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import is_name
from graticule.handlers.vector.sources.json_escapes import EscapeCheck

MAX_CRS_BYTES: Final = 16 * 1024
# A `crs` as GDAL knows it: in letters of either case, escaped or not, and in quotation marks of either kind.
_CRS: Final = rb"(?i)[\"'](?:c|\\u00[46]3)(?:r|\\u00[57]2)(?:s|\\u00[57]3)[\"']\s*"
_LETTERS: Final = b"".join(b"(?:%c|\\\\u(?i:00%02x))" % (letter, letter) for letter in b"coordRefSys")
_COORD_REF_SYS: Final = b"[\"']" + _LETTERS + rb"[\"']\s*"
_CRS_URI: Final = re.compile(r"\[\w+:\w+\]|https?://www\.opengis\.net/def/crs/[\w./-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of JSON objects that is looked for in the bytes of a file: where its value begins, and its check."""

    value: re.Pattern[bytes]
    begun: re.Pattern[bytes]  # at the end of what was read so far
    longest_key: int  # in bytes, when all its letters are escaped
    check: Callable[[object], None]

    def scan(self, pieces: Iterable[bytes]) -> None:
        """Check every value, and reject escapes that GDAL would misread."""
        held, escapes = b"", EscapeCheck()
        for piece in pieces:
            escapes.look(piece)
            held = self._scanned(held + piece, MAX_CRS_BYTES)
        self._scanned(held, 0)

    def _scanned(self, text: bytes, following: int) -> bytes:
        """Check each value that so many bytes follow, and return what has to wait for more."""
        for found in self.value.finditer(text):
            begin = found.start(1)
            if begin + following > len(text):
                return text[found.start() :]
            self.check(_parsed(text[begin : begin + MAX_CRS_BYTES]))
        begun = self.begun.search(text)
        held = text[begun.start() :] if begun else text[-self.longest_key :]
        if len(held) > MAX_CRS_BYTES:
            raise _unreadable_crs()
        return held


def _parsed(text: bytes) -> object:
    try:
        value, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise _unreadable_crs() from None
    return value


def _check_crs(crs: object) -> None:
    types = [str(value).casefold() for value in _members(crs, "type")]
    if any(kind.startswith(("link", "url")) for kind in types):
        raise rejected(Code.LINKED_CRS, "The crs of the file is a link.", "crs")
    names = [name for properties in _members(crs, "properties") for name in _members(properties, "name")]
    if any(kind.startswith("name") for kind in types) and not all(is_name(str(name)) for name in names):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, "The crs of the file is not the name of one.", "crs")


def _check_reference(crs: object) -> None:
    """Reject a `coordRefSys` that is not a name: GDAL would take the coordinates for degrees, or open files."""
    if isinstance(crs, list):
        for each in crs:
            _check_reference(each)
        return
    name = crs.get("href") if isinstance(crs, dict) and crs.get("type") == "Reference" else crs
    if not isinstance(name, str) or not _CRS_URI.fullmatch(name):
        what = "The coordRefSys is not an identifier such as http://www.opengis.net/def/crs/EPSG/0/25832."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, "coordRefSys")


def _members(of: object, name: str) -> list[object]:
    """Give what an object has by a name; GDAL looks for it in letters of either case."""
    return [value for key, value in of.items() if key.casefold() == name] if isinstance(of, dict) else []


def _unreadable_crs() -> Rejected:
    return rejected(Code.CORRUPT, "The crs of the file cannot be read.", "crs")


_GEOJSON: Final = _Member(  # the value is an object, or a comment, which GDAL passes over
    re.compile(_CRS + rb"(?::\s*)?([{/])"), re.compile(_CRS + rb"(?::\s*)?\Z"), 20, _check_crs
)
_JSON_FG: Final = _Member(
    re.compile(_COORD_REF_SYS + rb"(?::\s*)?([\[\"'{/])"),
    re.compile(_COORD_REF_SYS + rb"(?::\s*)?\Z"),
    68,
    _check_reference,
)


def check_json(pieces: Iterable[bytes]) -> None:
    """Reject a GeoJSON file that has its CRS elsewhere, where GDAL would go, or has what GDAL would misread."""
    _GEOJSON.scan(pieces)


def check_json_fg(pieces: Iterable[bytes]) -> None:
    """Reject a JSON-FG file whose CRS is not a plain identifier, or that has what GDAL would misread."""
    _JSON_FG.scan(pieces)
