"""What a GeoPackage has for tables and layers, read without GDAL and in a time that is bounded."""

import sqlite3
import string
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, NamedTuple
from urllib.parse import quote

from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("geopackages.sql")
SECONDS: Final = 10
MOST_LAYERS: Final = 1000
MOST_OBJECTS: Final = 10_000
LONGEST_VALUE: Final = 1024 * 1024
STEPS: Final = 10_000  # of the database, between two looks at the clock
SMALLEST: Final = -(2**63)
SMALL_LETTERS: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
CRS_TABLE: Final = "gpkg_spatial_ref_sys"
COMPUTED: Final = 2  # how a column that is worked out when it is read is told from others


class CrsDefinition(NamedTuple):
    """A text of a CRS: the number of its row, the code that the row has for it, and the column of the text."""

    srs_id: int
    code: str
    column: str
    text: bytes


class Geopackage:
    """A GeoPackage that is open for reading."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def kinds(self) -> dict[str, str]:
        """Tell of each object, by its name as `folded` has it, whether it is a table, a view or something else."""
        listed = self._database.execute(QUERIES["list_objects"]).fetchmany(MOST_OBJECTS + 1)
        kinds = {folded(str(name)): str(kind) for _, name, kind, *_ in listed}
        if len(listed) > MOST_OBJECTS or len(kinds) < len(listed):
            raise sqlite3.DatabaseError("There are too many objects, or some of one name.")
        return kinds

    def layers(self) -> list[str]:
        """Give the names of its layers of features."""
        listed = self._database.execute(QUERIES["list_layers"])
        return [str(name) for (name,) in listed.fetchmany(MOST_LAYERS)]

    def other_contents(self) -> list[tuple[str, str]]:
        """Return what it lists besides vector layers: the name of each table, and what it holds."""
        listed = self._database.execute(QUERIES["list_others"])
        return [(str(name), str(kind)) for name, kind in listed.fetchmany(MOST_LAYERS)]

    def has_rows(self, table: str) -> bool:
        """Whether there is anything in a table."""
        query = QUERIES["has_rows"].format(table=quoted(table))
        return bool(self._database.execute(query).fetchone()[0])

    def crs_definitions(self) -> Iterator[CrsDefinition]:
        """Return the texts of all CRSs that it has."""
        columns = [name for name, *_ in self._columns(CRS_TABLE) if folded(name).startswith("definition")]
        for column in columns:
            for srs_id, *authority, text in self._database.execute(
                QUERIES["list_crs_texts"].format(column=quoted(column))
            ):
                yield CrsDefinition(srs_id, ":".join(map(str, authority)), column, text)

    def has_computed_columns(self, table: str) -> bool:
        """Tell whether a column of a table is worked out when it is read."""
        return any(hidden == COMPUTED for _, hidden in self._columns(table))

    def integer_key(self, table: str) -> str | None:
        """Give the column that numbers the rows of a table, if it has one."""
        columns = self._database.execute(QUERIES["list_keys"], {"table": table}).fetchall()
        is_plain = len(columns) == 1 and str(columns[0][1]).upper() == "INTEGER"
        return str(columns[0][0]) if is_plain else None

    def ranges(self, table: str, key: str, rows: int) -> Iterator[tuple[int, int, int]]:
        """Divide the rows of a table, in the order of their key, into parts: begin, end and count of each."""
        names = {"table": quoted(table), "key": quoted(key)}
        find, count = QUERIES["find_key"].format(**names), QUERIES["count_rest"].format(**names)
        begin = self._number(find, begin=SMALLEST, rows=0)
        while begin is not None:
            end = self._number(find, begin=begin, rows=rows)
            if end is None:
                rest, last = self._database.execute(count, {"begin": begin}).fetchone()
                yield begin, last + 1, rest
            else:
                yield begin, end, rows
            begin = end

    def zoned(self, table: str, column: str) -> set[bool]:
        """Tell whether there are date-times with a zone, and whether there are some without."""
        query = QUERIES["find_zones"].format(table=quoted(table), column=quoted(column))
        has_zones, has_others = self._database.execute(query).fetchone()
        return {is_zoned for is_zoned, has in ((True, has_zones), (False, has_others)) if has}

    def _columns(self, table: str) -> list[tuple[str, int]]:
        return self._database.execute(QUERIES["list_columns"], {"table": table}).fetchall()

    def _number(self, query: str, **values: int) -> int | None:
        found = self._database.execute(query, values).fetchone()
        return None if found is None else int(found[0])


def replace_definitions(texts: list[tuple[CrsDefinition, str]]) -> str:
    """Return statements that replace definitions of CRSs for one connection; the file is not changed."""
    changes = [
        QUERIES["replace_crs_text"].format(column=quoted(each.column), text=_literal(text), srs_id=int(each.srs_id))
        for each, text in texts
    ]
    return ";\n".join([QUERIES["shadow_crs_table"], *changes])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def folded(name: str) -> str:
    """Write a name so that those are alike that are so to SQLite: only the letters of ASCII have two cases."""
    return name.translate(SMALL_LETTERS)


def quoted(name: str) -> str:
    """Write a name of SQLite's so that it is nothing else."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_geopackage(file: str, seconds: float = SECONDS) -> Iterator[Geopackage]:
    """Open the database as it stands in its one file; what takes too long is an `sqlite3.Error`, too."""
    deadline = time.monotonic() + seconds
    with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro&immutable=1", uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        database.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        database.execute(QUERIES["distrust_schema"])
        yield Geopackage(database)
