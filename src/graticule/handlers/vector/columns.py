"""Names of columns: what a source calls its fields, made fit for a table."""

import re
import unicodedata
from collections.abc import Iterable
from itertools import count
from typing import Final

FEATURE_ID: Final = "fid"
GEOMETRY: Final = "geom"
LONGEST: Final = 63  # bytes of an identifier of PostgreSQL
SYSTEM_COLUMNS: Final = frozenset({"oid", "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"})  # of every table


def column_names(fields: Iterable[str]) -> dict[str, str]:
    """Give each field a column of its own: plain small letters, and no two alike."""
    taken = {FEATURE_ID, GEOMETRY, *SYSTEM_COLUMNS}
    names = {}
    for field in fields:
        names[field] = _unique(_plain(field), taken)
        taken.add(names[field])
    return names


def _plain(field: str) -> str:
    letters = unicodedata.normalize("NFKD", field.casefold()).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "_", letters).strip("_") or "field"
    return (name if name[0].isalpha() else f"f_{name}")[:LONGEST]


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    numbered = (f"{name[: LONGEST - len(suffix)]}{suffix}" for suffix in (f"_{number}" for number in count(2)))
    return next(candidate for candidate in numbered if candidate not in taken)
