"""What a GeoPackage has for tables and layers, read without GDAL and in a time that is bounded."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import quote

from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("geopackages.sql")
SECONDS: Final = 10
MOST_LAYERS: Final = 1000
MOST_OBJECTS: Final = 10_000
LONGEST_VALUE: Final = 1024 * 1024
STEPS: Final = 10_000  # of the database, between two looks at the clock
COMPUTED: Final = 2  # how a column that is worked out when it is read is told from others


class Geopackage:
    """A GeoPackage that is open for reading."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def kinds(self) -> dict[str, str]:
        """Tell of each object, by its name in small letters, whether it is a table, a view or something else."""
        listed = self._database.execute(QUERIES["list_objects"]).fetchmany(MOST_OBJECTS)
        return {str(name).casefold(): str(kind) for _, name, kind, *_ in listed}

    def layers(self) -> list[str]:
        """Give the names of its layers of features."""
        listed = self._database.execute(QUERIES["list_layers"])
        return [str(name) for (name,) in listed.fetchmany(MOST_LAYERS)]

    def has_computed_columns(self, table: str) -> bool:
        """Tell whether a column of a table is worked out when it is read."""
        columns = self._database.execute(QUERIES["list_columns"], {"table": table}).fetchall()
        return any(hidden == COMPUTED for (hidden,) in columns)


@contextmanager
def open_geopackage(file: str) -> Iterator[Geopackage]:
    """Open the database as it stands in its one file; what takes too long is an `sqlite3.Error`, too."""
    deadline = time.monotonic() + SECONDS
    with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro&immutable=1", uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        database.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        database.execute(QUERIES["distrust_schema"])
        yield Geopackage(database)
