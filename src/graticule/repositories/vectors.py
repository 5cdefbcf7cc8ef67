"""Tables of features: filled aside, chunk by chunk, and put in the place of the live one when they are whole."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from psycopg import AsyncCopy, sql
from psycopg.errors import DependentObjectsStillExist, LockNotAvailable, ProgramLimitExceeded
from psycopg.types.json import Jsonb
from pydantic import JsonValue

from graticule.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from graticule.core.ids import JobId
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.overviews import OVERVIEW_COMMENT, OverviewBuilder, OverviewSource, staging_name
from graticule.repositories.queries import Queries, load_queries
from graticule.repositories.tasks import Delivery

SCHEMA: Final = "geo"
LOCK_TIMEOUT: Final = "2s"  # for which readers of a table wait behind one who wants to replace it
CHUNK_TIMEOUT: Final = "30min"  # for which a chunk may be silent
QUERIES: Final = load_queries("vectors.sql")


class LeaseLost(Conflict):
    """The task is another worker's by now, or nobody's."""

    code = "lease_lost"


class RowTooBig(InvalidInput):
    """The columns of a row have together more than a page of the database can hold."""

    code = "row_too_big"


class Held(Unavailable):
    """Someone else works with a table, and did not let go of it in the short time that can be waited."""

    code = "held"


class StillNeeded(Conflict):
    """Something that others have made, such as a view, depends on a table, and goes on doing so."""

    code = "still_needed"


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """A table of features: its columns with their types of PostgreSQL, and which of them are ours."""

    columns: Mapping[str, str]
    feature_id: str = "fid"
    geometry: str = "geom"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Which chunks are in a staging table, and how many rows they have together."""

    chunks: list[int]
    row_count: int


@dataclass(frozen=True, slots=True)
class Description:
    """What a table says of itself: a sentence after the name of its job, and the field that filled each column."""

    sentence: str
    fields: Mapping[str, str]


class _Tables:
    """Runs statements about tables on a connection."""

    queries: ClassVar[Queries] = QUERIES

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def _waiting_briefly(self) -> AsyncIterator[None]:
        """Begin a transaction, or a part of one, that waits for locks only briefly; `Held` when one is not free."""
        try:
            async with self._connection.transaction():
                await self._run("wait_briefly", timeout=LOCK_TIMEOUT)
                yield
                await self._run("wait_as_usual")
        except Unavailable as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise Held(error.message, hint=error.hint, detail=error.detail) from error
            raise

    async def _drop(self, *names: str) -> None:
        for name in names:
            await self._run("drop_table", table=_identifier(name))

    async def _run(self, query: str, **parts: Any) -> dict[str, Any]:
        """Run a statement, and give its first row when it has one."""
        names = {name: part for name, part in parts.items() if isinstance(part, sql.Composable)}
        values = {name: part for name, part in parts.items() if name not in names}
        statement = self._composed(query, **names) if names else self.queries[query]
        with domain_errors(query.replace("_", " ")):
            cursor = await self._connection.execute(statement, values or None)
            return (await cursor.fetchone() or {}) if cursor.description else {}

    def _composed(self, query: str, **names: sql.Composable) -> sql.Composed:
        return sql.SQL(self.queries[query]).format(**names)


class AbandonedTables(_Tables):
    """What jobs that never came to their end have left; for a worker, or for the owner of the schema."""

    async def drop(self) -> list[str]:
        """Drop the tables of jobs that are gone or ended days ago, and name them; each job's in its own transaction.

        What someone holds is left for the next time.
        """
        with domain_errors("find abandoned tables"):
            rows = await (await self._connection.execute(self.queries["find_abandoned"])).fetchall()
        return [name for row in rows for name in await self._dropped(row["names"])]

    async def _dropped(self, names: list[str]) -> list[str]:
        try:
            async with self._waiting_briefly():
                await self._drop(*names)
        except (Held, Conflict):
            return []
        return names


class VectorRepository(_Tables):
    """Makes the tables of a job on a connection whose transaction belongs to the caller."""

    def __init__(self, connection: Connection, job_id: JobId) -> None:
        super().__init__(connection)
        self._job_id = job_id
        self._staging = staging_name(job_id)
        self._ledger = f"{self._staging}_chunks"
        self._overview = f"{self._staging}_overview"

    # Staging

    async def hold_lease(self, delivery: Delivery) -> None:
        """Make sure that the task is still in the hands that it was given to; `LeaseLost` when not."""
        given = {"task_id": delivery.task_id, "delivery_count": delivery.delivery_count}
        if not await self._run("hold_lease", **given):
            raise LeaseLost(f"The task {delivery.task_id} is no longer this worker's.")

    async def create_staging(self, table: FeatureTable, made_from: str) -> bool:
        """Make the staging table and its ledger; False when they are there, for what is `made_from` the same.

        `Held` when another attempt makes or fills them, or publishes what is in them.
        """
        async with self._waiting_briefly():
            return await self._create_staging(table, made_from)

    async def _create_staging(self, table: FeatureTable, made_from: str) -> bool:
        await self._run("lock_staging", job_id=self._job_id)
        comment = f"Staging of job {self._job_id}, made from {made_from}."
        state = await self._tables()
        if state["is_staged"] and state["staging_comment"] == comment:
            return False
        await self._drop(self._staging, self._ledger, self._overview)
        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in table.columns.items()]
        await self._run(
            "create_staging",
            table=_identifier(self._staging),
            feature_id=sql.Identifier(table.feature_id),
            columns=sql.SQL(", ").join(columns),
        )
        await self._run("create_ledger", ledger=_identifier(self._ledger))
        for name in (self._staging, self._ledger):
            await self._run("hide", table=_identifier(name))
            await self._run("comment", table=_identifier(name), comment=sql.Literal(comment))
        return True

    # Chunks

    async def find_chunk(self, index: int) -> dict[str, JsonValue] | None:
        """Give what the ledger has of a chunk, or None."""
        await self._check_staged()
        found = await self._run("find_chunk", ledger=_identifier(self._ledger), chunk=index)
        result: dict[str, JsonValue] | None = found.get("result")
        return result

    async def begin_chunk(self, columns: Sequence[str]) -> "ChunkRows":
        """Begin to fill these columns of the staging table; they must be its own."""
        await self._check_staged()
        known = (await self._run("find_columns", staging=_quoted(self._staging)))["names"]
        if unknown := [name for name in columns if name not in known]:
            raise Conflict(f"The staging table has no column {unknown[0][:100]!r}.")
        await self._run("allow_for_reading", timeout=CHUNK_TIMEOUT)
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        statement = self._composed("copy_rows", table=_identifier(self._staging), columns=names)
        return ChunkRows(self._connection, statement)

    async def note_chunk(self, index: int, row_count: int, result: Mapping[str, JsonValue]) -> None:
        """Write a chunk into the ledger; `AlreadyExists` when it is there."""
        given = {"chunk": index, "row_count": row_count, "result": Jsonb(dict(result))}
        await self._run("note_chunk", ledger=_identifier(self._ledger), **given)

    async def read_ledger(self) -> Ledger | None:
        """Tell what is loaded; None when there is no staging table."""
        if not (await self._tables())["is_staged"]:
            return None
        return Ledger(**await self._run("read_ledger", ledger=_identifier(self._ledger)))

    # Publishing

    async def index_key(self, table: FeatureTable) -> None:
        """Index the numbers of the features, if that is not done."""
        await self._index("index_key", f"{self._staging}_key", table.feature_id)

    async def index_geometry(self, table: FeatureTable) -> None:
        """Index the geometries, if that is not done; this may go on beside the other index."""
        await self._index("index_geometry", f"{self._staging}_geom", table.geometry)

    def overview_builder(self, table: FeatureTable) -> OverviewBuilder:
        """Return what prepares tiles of the staging table, in a transaction that ends with `keep_overview`."""
        attributes = [table.feature_id, *(name for name in table.columns if name != table.geometry)]
        source = OverviewSource(SCHEMA, self._staging, table.feature_id, table.geometry, attributes)
        return OverviewBuilder(self._connection, self._job_id, source)

    async def has_overview(self) -> bool:
        """Return whether an attempt has prepared the tiles already."""
        return bool((await self._tables())["has_overview"])

    async def keep_overview(self) -> None:
        """Mark the prepared tiles as those of this job, and hide them until they are published with the table."""
        overview = _identifier(self._overview)
        await self._run("hide", table=overview)
        await self._run("comment", table=overview, comment=sql.Literal(f"Staging of job {self._job_id}, tiles."))

    async def complete(self, described: Description) -> bool:
        """Make the staging table all that a live one is, but for its name; False when there is none."""
        await self._run("lock_staging", job_id=self._job_id)
        state = await self._tables()
        if not state["is_staged"]:
            return False
        staging = _identifier(self._staging)
        await self._name_indexes(staging, f"features_{state['staging_oid']}")
        await self._run("allow_vacuum", table=staging)
        for column, field in described.fields.items():
            place = sql.Identifier(SCHEMA, self._staging, column)
            await self._run("comment_on_column", column=place, comment=sql.Literal(field))
        hash_of_rows = (await self._run("hash_table", name=self._staging))["hash"]
        comment = f"{self._made_by()} {described.sentence} Content: {hash_of_rows}."
        await self._run("comment", table=staging, comment=sql.Literal(comment))
        if state["has_overview"]:
            await self._complete_overview(comment, f"features_{state['staging_oid']}_tiles")
        await self._run("analyze", table=staging)
        await self._drop(self._ledger)
        return True

    async def _complete_overview(self, comment: str, key: str) -> None:
        overview = _identifier(self._overview)
        await self._run("rename_index", index=_identifier(f"{self._overview}_pkey"), name=sql.Identifier(key))
        await self._run("comment", table=overview, comment=sql.Literal(OVERVIEW_COMMENT + comment))
        await self._run("analyze", table=overview)

    async def swap(self, name: str) -> bool:
        """Put the staging table in the place of the live one; False when that is being read for too long.

        `StillNeeded` when something depends on the live one, `OutputRefused` when the name is not the job's.
        """
        try:
            async with self._waiting_briefly():
                await self._run("lock_name", name=name)
                await self._run("promote_table", job_id=self._job_id, name=name)
        except Held:
            return False
        except Conflict as error:
            if isinstance(error.__cause__, DependentObjectsStillExist):
                raise StillNeeded(error.message, hint=error.hint, detail=error.detail) from error
            raise
        return True

    async def is_live(self, name: str) -> bool:
        """Tell whether the live table is one that this job has made."""
        comment = (await self._tables(name))["live_comment"]
        return str(comment).startswith(self._made_by())

    async def live_hash(self, name: str) -> str | None:
        """Return the SHA-256 of the rows that the live table was made of; None if an older release made it."""
        found: str | None = (await self._run("live_hash", live=_quoted(name)))["hash"]
        return found

    async def keep_live(self, name: str) -> bool:
        """Tell whether the live table is one that this job has made; it stays so until the transaction ends."""
        if not await self.is_live(name):
            return False
        await self._run("keep_in_place", table=_identifier(name))
        return await self.is_live(name)  # another one may have come before the lock

    def _made_by(self) -> str:
        return f"Made by job {self._job_id}:"

    async def _name_indexes(self, staging: sql.Identifier, prefix: str) -> None:
        """Give the indexes names of their own: the job may stage again, and the live table has these then."""
        key, geometry = f"{self._staging}_key", f"{self._staging}_geom"
        name = sql.Identifier(f"{prefix}_key")
        await self._run("add_primary_key", table=staging, name=name, index=sql.Identifier(key))
        await self._run("rename_index", index=_identifier(geometry), name=sql.Identifier(f"{prefix}_geom"))

    async def _index(self, query: str, index: str, column: str) -> None:
        names = {"index": sql.Identifier(index), "table": _identifier(self._staging), "column": sql.Identifier(column)}
        async with self._connection.transaction():
            await self._run("lock_index", job_id=self._job_id, name=index)
            if (await self._tables())["is_staged"]:  # another attempt may have published it
                await self._run(query, **names)

    async def _tables(self, live: str = "") -> dict[str, Any]:
        names = {"staging": self._staging, "ledger": self._ledger, "live": live or self._staging}
        names["overview"] = self._overview
        return await self._run("find_tables", **{part: _quoted(name) for part, name in names.items()})

    async def _check_staged(self) -> None:
        if not (await self._tables())["is_staged"]:
            raise NotFound("The job has no staging table.", hint="Let it begin again with the node that makes one.")


class ChunkRows:
    """Rows on their way into a table. Each stream of them is a COPY of its own: so errors are told soon."""

    def __init__(self, connection: Connection, statement: sql.Composed) -> None:
        self.count = 0
        self._cursor = connection.cursor()
        self._statement = statement
        self._copying = AsyncExitStack()
        self._copy: AsyncCopy | None = None

    async def write(self, piece: bytes, *, is_last: bool) -> None:
        """Write a piece of a stream; after the last one all its rows are in the table."""
        try:
            with domain_errors("load the features"):
                await self._write(piece, is_last=is_last)
        except InvalidInput as error:
            if isinstance(error.__cause__, ProgramLimitExceeded):
                raise RowTooBig(error.message, detail=error.detail) from error
            raise

    async def _write(self, piece: bytes, *, is_last: bool) -> None:
        if self._copy is None:
            self._copy = await self._copying.enter_async_context(self._cursor.copy(self._statement))
        await self._copy.write(piece)
        if is_last:
            await self._copying.aclose()
            self._copy = None
            self.count += self._cursor.rowcount

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: Any) -> None:
        """End a stream that is not whole; the database takes nothing of it."""
        with domain_errors("load the features"):
            await self._copying.__aexit__(*error)


def _identifier(table: str) -> sql.Identifier:
    return sql.Identifier(SCHEMA, table)


def _quoted(table: str) -> str:
    """Write a table's name as the functions of the catalogue read it."""
    return _identifier(table).as_string()
