"""What is looked at in files of XML before GDAL reads them."""

from collections.abc import Iterable
from typing import Final
from xml.parsers import expat

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import is_name

_CRS_ATTRIBUTE: Final = "srsName"
MAX_DEPTH: Final = 200  # levels of elements; GDAL has a stack for each


def check_well_formed(pieces: Iterable[bytes]) -> None:
    """Reject what is not XML, or has a document type and so entities."""
    _Check().read(pieces)


def check_crs_names(pieces: Iterable[bytes]) -> None:
    """Reject a GML file whose CRSs are more than names: GDAL takes any text that PROJ understands."""
    _Check(has_crs=True).read(pieces)


class _Check:
    def __init__(self, *, has_crs: bool = False) -> None:
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._on_crs_element if has_crs else self._on_element
        self._parser.EndElementHandler = self._on_end

    def read(self, pieces: Iterable[bytes]) -> None:
        try:
            for piece in pieces:
                self._parser.Parse(piece, False)
            self._parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            line = self._parser.ErrorLineNumber or self._parser.CurrentLineNumber
            raise rejected(Code.CORRUPT, "The file is not well-formed XML.", f"line {line}") from error

    def _on_doctype(self, *_: object) -> None:
        raise rejected(Code.NOT_A_VECTOR, "The file has a document type definition (DOCTYPE), which is not read.")

    def _on_element(self, _: str, __: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._unreadable(f"Elements are nested more than {MAX_DEPTH} levels deep.")

    def _on_crs_element(self, name: str, attributes: dict[str, str]) -> None:
        self._on_element(name, attributes)
        for key, value in attributes.items():
            if key.rpartition(":")[2] == _CRS_ATTRIBUTE and not is_name(value.replace(",", "")):
                what = f"The srsName {value[:100]!r} is not the name of a CRS."
                raise rejected(Code.UNKNOWN_SOURCE_CRS, what, f"line {self._parser.CurrentLineNumber}")

    def _on_end(self, _: str) -> None:
        self._depth -= 1

    def _unreadable(self, what: str) -> Rejected:
        return rejected(Code.CORRUPT, what, f"line {self._parser.CurrentLineNumber}")
