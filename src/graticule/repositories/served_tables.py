"""Tables of features as they are served: what they are made of, their rows by page, and tiles of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from psycopg import sql

from graticule.repositories.overviews import overview_name
from graticule.repositories.queries import Queries, load_queries
from graticule.repositories.tile_shapes import LAYER, TILE_RESOLUTION

if TYPE_CHECKING:
    import asyncpg  # only the services have it

TILE_GEOMETRY: Final = "geom"  # the column of a tile's rows that holds the shape
BYTES: Final = "served_bytes"  # the column of a page's rows that tells their size, with that of all before
MAX_COUNT_SECONDS: Final = 3.0  # that a tile waits to say how many features there are
PACKED: Final = frozenset({"text", "bytea", "json", "jsonb"})  # types of which a row may hold a packed value

Extent = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ServedColumn:
    """A column of a table; those of geometries tell their kind."""

    name: str
    type: str
    is_key: bool = False
    geometry_type: str | None = None
    srid: int | None = None
    comment: str | None = None  # the name of the field in the source

    @property
    def title(self) -> str:
        """Its name for people: the one that it has in the source, if that is known."""
        return self.comment or self.name

    @property
    def quoted(self) -> str:
        """Its name as SQL reads it."""
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a table: conditions, columns and order in SQL, and the values of the conditions' numbered parameters.

    `read` are the columns of the table that are read whole, which may take long when they are large.
    """

    schema: str
    table: str
    columns: Sequence[str]
    read: Sequence[ServedColumn]
    order: Sequence[str]
    conditions: Sequence[str] = ()
    values: Sequence[Any] = field(default_factory=tuple)
    counted: str = "true"  # a condition on the rows that are counted


@dataclass(frozen=True, slots=True)
class Bound:
    """Where an answer ends: after so many rows, or bytes that the table keeps of them, or bytes that are written."""

    rows: int
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class ServedTile:
    """A vector tile: how many features it shows themselves, how many it shows merged, and how many there are."""

    content: bytes
    shown: int
    merged: int
    total: int | None  # None: more than are shown, too many to be counted


class ServedTableRepository:
    """Reads tables on a connection that may do nothing else. All values go to the database apart from the SQL."""

    queries: ClassVar[Queries] = load_queries("served_tables.sql")

    def __init__(self, connection: "asyncpg.Connection") -> None:
        self._connection = connection

    async def describe(self, schema: str, table: str) -> list[ServedColumn]:
        """Tell the columns of a table; none when there is no such table."""
        query = self.queries.numbered("describe")
        named = {"schema": schema, "table": table}
        rows = await self._connection.fetch(query.text, *(named[name] for name in query.names))
        return [_column(row) for row in rows]

    async def extent(self, schema: str, table: str, geometry: ServedColumn) -> Extent | None:
        """Tell where the shapes of a table are, in its own projection; it reads them all."""
        statement = self.queries["extent"].format(table=quoted(schema, table), geometry=geometry.quoted)
        found = await self._connection.fetchrow(statement)
        return None if None in found.values() else (found["west"], found["south"], found["east"], found["north"])

    async def known_srids(self) -> frozenset[int]:
        """Return the EPSG codes of the coordinate reference systems that the database knows."""
        rows = await self._connection.fetch(self.queries["known_srids"])
        return frozenset(row["srid"] for row in rows)

    async def count(self, selection: Selection) -> int:
        """Count the rows of a selection, without regard to pages."""
        statement = self.queries["count"].format(**_rows_of(selection))
        return int(await self._connection.fetchval(statement, *selection.values))

    async def page(self, selection: Selection, bound: Bound, *, offset: int = 0) -> list[Any]:
        """Give rows of a selection in its order: one at least if there is one, and no more than the bound allows."""
        statement = self.queries["page"].format(written=self._written(selection, bound, offset))
        rows: list[Any] = await self._connection.fetch(statement, *selection.values)
        return rows

    async def overview_zoom(self, schema: str, table: str) -> int | None:
        """Return the highest zoom of which a table has prepared tiles, or None."""
        overview = quoted(schema, overview_name(table))
        query = self.queries.numbered("find_overview")
        named = {"overview": overview, "table": quoted(schema, table)}
        if not await self._connection.fetchval(query.text, *(named[name] for name in query.names)):
            return None
        zoom: int | None = await self._connection.fetchval(self.queries["overview_zoom"].format(overview=overview))
        return zoom

    async def prepared_tile(self, schema: str, table: str, zoom: int, x: int, y: int) -> ServedTile | None:
        """Return a tile that was prepared; None when it is to be made live."""
        statement = self.queries["prepared_tile"].format(overview=quoted(schema, overview_name(table)))
        row = await self._connection.fetchrow(statement, zoom, x, y)
        return row and ServedTile(row["mvt"], row["shown"], row["merged"], row["shown"] + row["merged"])

    async def tile(self, selection: Selection, bound: Bound, max_bytes: int) -> ServedTile:
        """Make a vector tile of a selection, one of whose columns is the shape as a tile has it.

        One that would be too large has as many features as fit.
        """
        made = await self._live_tile(selection, bound)
        while len(made["content"]) > max_bytes and made["rows"] > 1:
            rows = int(0.9 * made["rows"] * max_bytes / len(made["content"])) or 1
            made = await self._live_tile(selection, replace(bound, rows=rows))
        statement = self.queries["count_some"].format(**_rows_of(selection), limit=made["rows"] + 1)
        is_whole = await self._connection.fetchval(statement, *selection.values) <= made["rows"]
        total = made["shown"] if is_whole else await self._total(selection)
        return ServedTile(made["content"], made["shown"], 0, total)

    async def _total(self, selection: Selection) -> int | None:
        conditions = [*selection.conditions, selection.counted]
        statement = self.queries["count"].format(**_rows_of(replace(selection, conditions=conditions)))
        try:
            return int(await self._connection.fetchval(statement, *selection.values, timeout=MAX_COUNT_SECONDS))
        except TimeoutError:
            return None

    async def _live_tile(self, selection: Selection, bound: Bound) -> Any:
        statement = self.queries["tile"].format(
            written=self._written(selection, bound),
            layer=_literal(LAYER),
            resolution=TILE_RESOLUTION,
            geometry=_literal(TILE_GEOMETRY),
            shape=quoted(TILE_GEOMETRY),
        )
        return await self._connection.fetchrow(statement, *selection.values)

    def _written(self, selection: Selection, bound: Bound, offset: int = 0) -> str:
        return self.queries["written"].format(
            **_rows_of(selection),
            columns=", ".join(selection.columns),
            order=", ".join(selection.order),
            stored_bytes=_sum(f"pg_column_size({column.quoted})" for column in selection.read),
            unpacked_bytes=_sum(
                f"octet_length(CAST({column.quoted} AS text))" for column in selection.read if column.type in PACKED
            ),
            limit=int(bound.rows),
            offset=int(offset),
            most_read=int(bound.read),
            most_written=int(bound.written),
        )


def _rows_of(selection: Selection) -> dict[str, str]:
    table = quoted(selection.schema, selection.table)
    return {"table": table, "condition": " AND ".join(selection.conditions) or "true"}


def _sum(sizes: Iterable[str]) -> str:
    return " + ".join(("CAST(0 AS bigint)", *(f"coalesce({size}, 0)" for size in sizes)))


def quoted(*names: str) -> str:
    """Write a name as SQL reads it."""
    return sql.Identifier(*names).as_string()


def _literal(value: str) -> str:
    return sql.Literal(value).as_string()


def _column(row: Any) -> ServedColumn:
    return ServedColumn(
        row["name"], row["type"], row["is_key"], row["geometry_type"], row["srid"], comment=row["comment"]
    )
