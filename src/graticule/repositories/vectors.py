"""Tables of features: filled aside, and put in the place of the live one when they are whole."""

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from psycopg import sql
from pydantic import JsonValue

from graticule.core.ids import JobId
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries, load_queries

SCHEMA: Final = "geo"


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """A table of features: its columns with their types of PostgreSQL, and which of them are ours."""

    columns: Mapping[str, str]
    feature_id: str = "fid"
    geometry: str = "geom"


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a table holds: how many rows, and where on earth they are."""

    row_count: int
    bbox: list[JsonValue] | None  # west, south, east, north; None when no row has a geometry


class VectorRepository:
    """Makes tables of features on a connection whose transaction belongs to the caller."""

    queries: ClassVar[Queries] = load_queries("vectors.sql")

    def __init__(self, connection: Connection, job_id: JobId) -> None:
        self._connection = connection
        self._staging = f"staging_{job_id}"
        self._staging_comment = f"Staging of job {job_id}."  # as `find_abandoned` reads it
        self._comment = f"Made by job {job_id}."

    async def create_staging(self, table: FeatureTable) -> None:
        """Make this job's staging table, in place of what an earlier attempt has left."""
        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in table.columns.items()]
        await self._run("drop_table", table=_identifier(self._staging))
        await self._run(
            "create_staging",
            table=_identifier(self._staging),
            feature_id=sql.Identifier(table.feature_id),
            columns=sql.SQL(", ").join(columns),
        )
        await self._run("comment", table=_identifier(self._staging), comment=sql.Literal(self._staging_comment))

    async def fill(self, columns: Sequence[str], text: AsyncIterable[bytes]) -> int:
        """Write rows of these columns, as COPY reads them, into the staging table, and tell how many they were."""
        statement = self._composed(
            "copy_rows",
            table=_identifier(self._staging),
            columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        )
        with domain_errors("load the features"):
            async with self._connection.cursor() as cursor:
                async with cursor.copy(statement) as copy:
                    async for piece in text:
                        await copy.write(piece)
                return cursor.rowcount

    async def drop_abandoned(self) -> list[str]:
        """Drop the staging tables of jobs that are gone or ended days ago, and name them."""
        with domain_errors("find abandoned tables"):
            cursor = await self._connection.execute(self.queries["find_abandoned"])
            names = [row["name"] for row in await cursor.fetchall()]
        for name in names:
            await self._run("drop_table", table=_identifier(name))
        return names

    async def publish(self, name: str, table: FeatureTable) -> bool:
        """Index the staging table and put it in the place of the live one; True also when that was done before."""
        state = await self._run("find_tables", staging=_quoted(self._staging), live=_quoted(name))
        if not state["is_staged"]:
            return bool(state["live_comment"] == self._comment)
        staging = _identifier(self._staging)
        await self._run("add_primary_key", table=staging, feature_id=sql.Identifier(table.feature_id))
        await self._run("index_geometry", table=staging, geometry=sql.Identifier(table.geometry))
        await self._run("analyze", table=staging)
        await self._run("comment", table=staging, comment=sql.Literal(self._comment))
        await self._run("drop_table", table=_identifier(name))  # from here on, readers wait
        await self._run("rename", table=staging, name=sql.Identifier(name))
        return True

    async def summary(self, name: str, table: FeatureTable) -> TableSummary:
        """Tell what a table holds."""
        row = await self._run("summary", table=_identifier(name), geometry=sql.Identifier(table.geometry))
        box = [row[side] for side in ("west", "south", "east", "north")]
        return TableSummary(row["row_count"], None if None in box else box)

    async def _run(self, query: str, **parts: Any) -> dict[str, Any]:
        """Run a statement, and give its first row when it has one."""
        names = {name: part for name, part in parts.items() if isinstance(part, sql.Composable)}
        values = {name: part for name, part in parts.items() if name not in names}
        with domain_errors(query.replace("_", " ")):
            cursor = await self._connection.execute(self._composed(query, **names), values or None)
            return (await cursor.fetchone() or {}) if cursor.description else {}

    def _composed(self, query: str, **names: sql.Composable) -> sql.Composed:
        return sql.SQL(self.queries[query]).format(**names)


def _identifier(table: str) -> sql.Identifier:
    return sql.Identifier(SCHEMA, table)


def _quoted(table: str) -> str:
    """Write a table's name as the functions of the catalogue read it."""
    return _identifier(table).as_string()
