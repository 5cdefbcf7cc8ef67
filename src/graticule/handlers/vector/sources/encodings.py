"""In which encoding the texts of a source are."""

import codecs
import re
from collections.abc import Iterable
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected

UTF8: Final = "utf-8"
FALLBACK: Final = "cp1252"  # what Windows writes in the west, and what has no byte without a character of its own
_TO_GDAL: Final = {"mac-roman": "MACINTOSH"}  # names that Python and iconv do not share
# How Esri and others write them in a .cpg file: "ANSI 1252", "ISO 88591".
_PREFIX: Final = re.compile(r"(?:ansi|oem)\s*", re.IGNORECASE)
_LATIN: Final = re.compile(r"^(?:iso[\s_-]*)?8859[\s_-]*([0-9]{1,2})$", re.IGNORECASE)
# Those in which texts of people are. Python has others, with which a small text takes hours or gigabytes.
_TEXTS: Final = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[bl]e)?|utf-32(-[bl]e)?|iso8859-\d+|cp(4|7|8|9|12)\d+|mac-\w+|koi8-[rtu]|hp-roman8"
    r"|gbk|gb2312|gb18030|big5|big5hkscs|shift_jis(_2004|x0213)?|euc_(jp|jis_2004|jisx0213|kr)|johab|tis-620"
    r"|kz1048|ptcp154"
)


def known_encoding(name: str) -> str:
    """Give an encoding as Python calls it; reject one that there is not, or that is none of texts."""
    found = encoding_of(name)
    if found is None:
        raise rejected(Code.UNKNOWN_ENCODING, f"There is no encoding {name[:40]!r}.", "encoding")
    return found


def encoding_of(name: str) -> str | None:
    """Give an encoding as Python calls it, or None when there is none of that name."""
    plain = _PREFIX.sub("", name.strip(), count=1)
    for written in (_LATIN.sub(r"iso8859-\1", plain), plain, f"cp{plain}"):
        try:
            found = codecs.lookup(written)
        except (LookupError, ValueError):
            continue
        if _TEXTS.fullmatch(found.name):
            return found.name
    return None


def is_encoded(pieces: Iterable[bytes], encoding: str) -> bool:
    """Tell whether all of a text is in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for piece in pieces:
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def mark_of(head: bytes) -> str | None:
    """Give the encoding that the mark at the beginning of a text stands for."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def gdal_encoding(name: str) -> str:
    """Give an encoding as GDAL calls it."""
    return _TO_GDAL.get(name, name.replace("_", "-").upper())
