"""What a Shapefile leaves open: the encoding of its texts, and an index that is missing."""

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from graticule.handlers.answers import go_on
from graticule.handlers.blob_stream import blob_stream
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Finding
from graticule.handlers.vector.rejecting import Code, finding, rejected
from graticule.handlers.vector.sources.crs_texts import LONGEST_TEXT, check_crs_text, code_in_wkt, is_self_contained
from graticule.handlers.vector.sources.encodings import FALLBACK, UTF8, encoding_of, known_encoding
from graticule.handlers.vector.sources.source import SourceFile
from graticule.storage.blocking import BlockingStorage

_HEADER_BYTES: Final = 32  # of a .dbf file, and of each field in it
_BLOCK_BYTES: Final = 4 * 1024**2  # of records that are looked at together
_SHP_HEADER_BYTES: Final = 100
_DELETED: Final = ord("*")
# The languages of .dbf files that are in use: https://support.esri.com/en-us/knowledge-base/000013192
_LANGUAGES: Final = {
    0x01: "cp437",
    0x02: "cp850",
    0x03: "cp1252",
    0x08: "cp865",
    0x13: "cp932",
    0x4D: "cp936",
    0x4E: "cp949",
    0x4F: "cp950",
    0x50: "cp874",
    0x57: "cp1252",
    0x58: "cp1252",
    0x59: "cp1252",
    0x64: "cp852",
    0x65: "cp866",
    0x66: "cp865",
    0x67: "cp861",
    0x6A: "cp737",
    0x6B: "cp857",
    0x78: "cp950",
    0x79: "cp949",
    0x7A: "cp936",
    0x7B: "cp932",
    0x7C: "cp874",
    0x7D: "cp1255",
    0x7E: "cp1256",
    0xC8: "cp1250",
    0xC9: "cp1251",
    0xCA: "cp1254",
    0xCB: "cp1253",
    0xCC: "cp1257",
}


@dataclass(frozen=True, slots=True)
class Attributes:
    """A .dbf file."""

    storage: BlockingStorage
    path: str
    language: int
    count: int
    header_bytes: int
    record_bytes: int
    texts: list[tuple[int, int]]  # where texts begin and end in a record

    @classmethod
    def at(cls, storage: BlockingStorage, path: str) -> "Attributes":
        """Read the header."""
        head = storage.read(path, 0, _HEADER_BYTES)
        if len(head) < _HEADER_BYTES:
            raise rejected(Code.CORRUPT, "The .dbf file has no header.")
        count, header_bytes, record_bytes = struct.unpack_from("<IHH", head, 4)
        fields = storage.read(path, _HEADER_BYTES, max(0, header_bytes - _HEADER_BYTES))
        texts, at = [], 1
        for begin in range(0, len(fields) - _HEADER_BYTES + 1, _HEADER_BYTES):
            kind, length = fields[begin + 11 : begin + 12], fields[begin + 16]
            if fields[begin] == 0x0D:  # the end of the fields
                break
            texts += [(at, at + length)] if kind == b"C" else []
            at += length
        return cls(storage, path, head[29], count, header_bytes, record_bytes, texts)

    def records(self) -> Iterator[np.ndarray]:
        """Give the records as rows of bytes, many at a time."""
        with closing(blob_stream(self.storage, self.path)) as stream:
            stream.seek(self.header_bytes)
            left = self.count if self.record_bytes else 0
            while left > 0:
                count = min(left, max(1, _BLOCK_BYTES // self.record_bytes))
                data = stream.read(self.record_bytes * count)
                rows = np.frombuffer(data[: len(data) // self.record_bytes * self.record_bytes], np.uint8)
                if not rows.size:
                    return
                yield rows.reshape(-1, self.record_bytes)
                left -= count


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen in the records."""

    is_utf8: bool
    is_ascii: bool


def text_encoding(file: SourceFile, wanted: str | None) -> tuple[str, list[Finding]]:
    """Tell the encoding of the texts, by what is asked for, declared or else seen in them."""
    if wanted is not None:
        return known_encoding(wanted), []
    attributes = Attributes.at(file.storage, sibling(file, ".dbf"))
    declared = _declared(file) or _LANGUAGES.get(attributes.language)
    seen = _survey(attributes)
    if seen.is_ascii or (declared is None and seen.is_utf8):
        return declared or UTF8, []
    if seen.is_utf8 and declared != UTF8 and not _is_declared(file):  # a language says little: it is never left out
        return UTF8, [
            finding(Code.OTHER_ENCODING, f"The .dbf file says that texts are in {declared}; they are in UTF-8.")
        ]
    if declared is None or (declared == UTF8 and not seen.is_utf8):
        what = f"The texts are not in UTF-8{' as the file says' if declared else ''}; they are read as {FALLBACK}."
        return FALLBACK, [finding(Code.OTHER_ENCODING, what)]
    return declared, []


def deleted_count(file: SourceFile) -> int:
    """Tell how many records are marked as deleted: they are no features."""
    records = Attributes.at(file.storage, sibling(file, ".dbf")).records()
    return sum(int(np.count_nonzero(rows[:, 0] == _DELETED)) for rows in records)


def check_parts(ctx: ProcessContext, file: SourceFile) -> None:
    """Reject a Shapefile without attributes, or whose CRS leads elsewhere; an index that is missing is made."""
    if not ctx.storage.exists(sibling(file, ".dbf")):
        raise rejected(Code.MISSING_PART, "The archive has no .dbf file of that name: the attributes are missing.")
    if ctx.storage.exists(sibling(file, ".prj")):
        _check_projection(ctx, sibling(file, ".prj"))
    if not ctx.storage.exists(sibling(file, ".shx")):
        with ctx.storage.writing(sibling(file, ".shx")) as target:
            target.write_bytes(_index(ctx, file))


def _check_projection(ctx: ProcessContext, path: str) -> None:
    """Replace a definition that leads to other files by that of its code, in what we unpacked."""
    from graticule.handlers.vector.sources.projections import wkt_of_code  # noqa: PLC0415 - imports PROJ

    text = ctx.storage.read(path, 0, LONGEST_TEXT + 1)
    wkt = None if is_self_contained(text) else wkt_of_code(code_in_wkt(text))
    if wkt is None:
        check_crs_text(text, ".prj file")
        return
    with ctx.storage.writing(path) as target:
        target.write_bytes(wkt.encode())


def sibling(file: SourceFile, ending: str) -> str:
    """Give the path of another part."""
    return f"{file.path.removesuffix('.shp')}{ending}"


def _is_declared(file: SourceFile) -> bool:
    return _declared(file) is not None


def _declared(file: SourceFile) -> str | None:
    """Give the encoding that the .cpg file names."""
    path = sibling(file, ".cpg")
    if not file.storage.exists(path):
        return None
    return encoding_of(file.storage.read(path, 0, 64).decode("ascii", "replace"))


def _survey(attributes: Attributes) -> Survey:
    is_utf8 = is_ascii = True
    for rows in attributes.records():
        for begin, end in attributes.texts:
            cells = rows[:, begin:end]
            wide = cells[(cells >= 0x80).any(axis=1)]
            is_ascii = is_ascii and not len(wide)
            is_utf8 = is_utf8 and all(_is_utf8(cell.tobytes()) for cell in wide)
    return Survey(is_utf8, is_ascii)


def _is_utf8(text: bytes) -> bool:
    """Tell whether a text is in UTF-8; its last character may have been cut where the field ends."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _index(ctx: ProcessContext, file: SourceFile) -> bytes:
    """Make the .shx file: where each record of the .shp file begins, and how long it is, counted in 16 bits."""
    size = file.state().size
    header = bytearray(file.storage.read(file.path, 0, _SHP_HEADER_BYTES))
    records, at = bytearray(), _SHP_HEADER_BYTES
    with closing(blob_stream(file.storage, file.path)) as stream:
        while at + 8 <= size:
            go_on(ctx)
            stream.seek(at)
            (length,) = struct.unpack(">i", stream.read(8)[4:])
            if length < 2 or at + 8 + 2 * length > size:  # each has a type, which is two
                break
            records += struct.pack(">ii", at // 2, length)
            at += 8 + 2 * length
    header[24:28] = struct.pack(">i", (_SHP_HEADER_BYTES + len(records)) // 2)
    return bytes(header + records)
