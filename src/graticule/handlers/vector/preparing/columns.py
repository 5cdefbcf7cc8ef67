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
# Words that PostgreSQL takes as a name only in quotes. Ours are quoted; those of who writes SQL by hand are not.
_RESERVED_WORDS: Final = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
    returning right select session_user similar some symmetric system_user table tablesample then to trailing true
    union unique user using variadic verbose when where window with
"""
RESERVED_WORDS: Final = frozenset(_RESERVED_WORDS.split())
_OURS: Final = frozenset({FEATURE_ID, GEOMETRY, *SYSTEM_COLUMNS})
_GOOD: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}")


def column_names(fields: Iterable[str]) -> list[str]:
    """Give each field, by its place, a column of its own: plain small letters, and no two alike.

    A name that is good already stays, whatever the other fields are called.
    """
    named = list(fields)
    kept = {field: place for place, field in reversed(list(enumerate(named))) if _is_good(field)}
    taken = {*_OURS, *kept}
    names = []
    for place, field in enumerate(named):
        name = field if kept.get(field) == place else _unique(_plain(field), taken)
        taken.add(name)
        names.append(name)
    return names


def _is_good(field: str) -> bool:
    return _GOOD.fullmatch(field) is not None and field not in _OURS and field not in RESERVED_WORDS


def _plain(field: str) -> str:
    letters = unicodedata.normalize("NFKD", field.casefold()).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", letters).strip("_") or "field"
    if name in RESERVED_WORDS:
        return f"{name}_"
    return (name if name[0].isalpha() else f"f_{name}")[:LONGEST]


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    numbered = (f"{name[: LONGEST - len(suffix)]}{suffix}" for suffix in (f"_{number}" for number in count(2)))
    return next(candidate for candidate in numbered if candidate not in taken)
