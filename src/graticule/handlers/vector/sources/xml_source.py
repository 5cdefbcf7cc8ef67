"""What is looked at in files of XML before GDAL reads them."""

import math
from collections.abc import Iterable
from typing import Final
from xml.parsers import expat

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import is_name

MAX_DEPTH: Final = 200  # levels of elements; GDAL has a stack for each
MAX_TOKEN_BYTES: Final = 8 * 1024**2  # of a tag or comment, which is read again from its beginning for each piece
MAX_ATTRIBUTES: Final = 1_000  # of an element
MAX_FIELDS: Final = 5_000  # of a kind of features: GDAL's time grows with the square of their number
MAX_PATHS: Final = 20_000  # of all kinds together
MAX_LAYERS: Final = 5_000
MAX_ANGLE: Final = 720  # degrees of an arc, of which GDAL makes a point every four
# In small letters, as GDAL does not tell large ones from them.
_CRS_ATTRIBUTE: Final = "srsname"
_ANGLES: Final = {"startangle", "endangle"}
_FEATURE_DEPTH: Final = 3  # below a collection and its members
_COLLECTIONS: Final = ("member", "members", "featurecollection")  # how the names end of what has features in it
_CONTAINERS: Final = {"folder", "document"}  # of KML: each is a layer
_FIELDS: Final = {"data", "simpledata", "simplefield"}  # of KML: their names are those of fields


def check_well_formed(pieces: Iterable[bytes]) -> None:
    """Reject what is not XML, or has a document type and so entities."""
    _Check().read(pieces)


def check_kml(pieces: Iterable[bytes]) -> None:
    """Reject a KML file with very many layers or fields."""
    _KmlCheck().read(pieces)


def check_gml(pieces: Iterable[bytes]) -> None:
    """Reject a GML file with arcs of many turns, or with CRSs that are not names: GDAL takes any text of PROJ's.

    One with very many layers or fields is rejected, too.
    """
    _GmlCheck().read(pieces)


class _Check:
    def __init__(self) -> None:
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._on_element
        self._parser.EndElementHandler = self._on_end

    def read(self, pieces: Iterable[bytes]) -> None:
        read = 0
        try:
            for piece in pieces:
                self._parser.Parse(piece, False)
                read += len(piece)
                if read - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES:
                    raise self._unreadable(f"A tag or comment has more than {MAX_TOKEN_BYTES // 1024**2} MiB.")
            self._parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            line = self._parser.ErrorLineNumber or self._parser.CurrentLineNumber
            raise rejected(Code.CORRUPT, "The file is not well-formed XML.", f"line {line}") from error

    def _on_doctype(self, *_: object) -> None:
        raise rejected(Code.NOT_A_VECTOR, "The file has a document type definition (DOCTYPE), which is not read.")

    def _on_element(self, _: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._unreadable(f"Elements are nested more than {MAX_DEPTH} levels deep.")
        if len(attributes) > MAX_ATTRIBUTES:
            raise self._unreadable(f"An element has more than {MAX_ATTRIBUTES:,} attributes.")

    def _on_end(self, _: str) -> None:
        self._depth -= 1

    def _unreadable(self, what: str) -> Rejected:
        return rejected(Code.CORRUPT, what, self._place())

    def _too_many_layers(self) -> Rejected:
        return rejected(Code.TOO_MANY_LAYERS, f"The file has more than {MAX_LAYERS:,} layers.", self._place())

    def _too_many_fields(self, limit: int) -> Rejected:
        return rejected(Code.TOO_MANY_FIELDS, f"The file has more than {limit:,} fields.", self._place())

    def _place(self) -> str:
        return f"line {self._parser.CurrentLineNumber}"


class _KmlCheck(_Check):
    def __init__(self) -> None:
        super().__init__()
        self._layers = 0
        self._fields: set[str] = set()

    def _on_element(self, name: str, attributes: dict[str, str]) -> None:
        super()._on_element(name, attributes)
        plain = _plain_name(name)
        if plain in _CONTAINERS:
            self._layers += 1
        elif plain in _FIELDS:
            self._fields.add(attributes.get("name", ""))
        if self._layers > MAX_LAYERS:
            raise self._too_many_layers()
        if len(self._fields) > MAX_FIELDS:
            raise self._too_many_fields(MAX_FIELDS)


class _Paths:
    """The elements and attributes of one kind of features, by their paths: each may be a field."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], int] = {}
        self._open: list[int] = [0]

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, name: str, attributes: Iterable[str]) -> None:
        """Enter an element."""
        here = self._known.setdefault((self._open[-1], name), len(self._known) + 1)
        self._open.append(here)
        for each in attributes:
            self._known.setdefault((here, f"@{each}"), len(self._known) + 1)

    def end(self) -> None:
        """Leave an element."""
        self._open.pop()


class _GmlCheck(_Check):
    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, _Paths] = {}  # of features, by the names of their elements
        self._path_count = 0
        self._feature: tuple[_Paths, int] | None = None  # what is being read, and how deep it is
        self._angle: list[str] | None = None  # the text so far of the angle that is being read

    def _on_element(self, name: str, attributes: dict[str, str]) -> None:
        super()._on_element(name, attributes)
        self._count_fields(name, attributes)
        for key, value in attributes.items():
            if _plain_name(key) == _CRS_ATTRIBUTE and not is_name(value.replace(",", "")):
                what = f"The srsName {value[:100]!r} is not the name of a CRS."
                raise rejected(Code.UNKNOWN_SOURCE_CRS, what, self._place())
        if self._angle is not None:
            raise self._unreadable("The angle of an arc has other elements in it.")
        if _plain_name(name) in _ANGLES:
            self._angle = []
            self._parser.CharacterDataHandler = self._angle.append

    def _count_fields(self, name: str, attributes: dict[str, str]) -> None:
        if self._feature is None:
            plain = _plain_name(name)
            if self._depth < _FEATURE_DEPTH or plain.endswith(_COLLECTIONS):
                return
            self._feature = self._kinds.setdefault(plain, _Paths()), self._depth
            if len(self._kinds) > MAX_LAYERS:
                raise self._too_many_layers()
        paths = self._feature[0]
        before = len(paths)
        paths.begin(name, attributes)
        self._path_count += len(paths) - before
        if len(paths) > MAX_FIELDS:
            raise self._too_many_fields(MAX_FIELDS)
        if self._path_count > MAX_PATHS:
            raise self._too_many_fields(MAX_PATHS)

    def _on_end(self, name: str) -> None:
        if self._feature is not None:
            paths, depth = self._feature
            paths.end()
            self._feature = None if self._depth == depth else self._feature
        super()._on_end(name)
        if self._angle is not None:
            self._parser.CharacterDataHandler = None
            self._check_angle("".join(self._angle))
            self._angle = None

    def _check_angle(self, text: str) -> None:
        try:
            angle = float(text)
        except ValueError:
            angle = math.nan
        if not abs(angle) <= MAX_ANGLE:
            raise self._unreadable(f"The angle of an arc is not a number between -{MAX_ANGLE} and {MAX_ANGLE} degrees.")


def _plain_name(name: str) -> str:
    return name.rpartition(":")[2].casefold()
