"""The way of a child process to the staging table of its job: the worker writes for it, in one transaction.

The child works on partners' bytes and is not trusted: it reaches the table of its own job and no other, fills the
columns that this has, one chunk at a time, and nothing stays of a chunk that is not committed.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Self

from psycopg import Rollback
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from graticule.core import json_codec
from graticule.core.errors import ConfigurationError, GraticuleError
from graticule.handlers.context import NotStaged, TooWideRows
from graticule.messaging.postgres import delivery_of
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.vectors import RowTooBig, VectorRepository
from graticule.worker.child_frames import json_object
from graticule.worker.frames import BrokenFrame

STREAMS: Final = 4  # of a worker at once: each keeps a connection for as long as its chunk takes
MAX_PIECE_BYTES: Final = 4 * 1024 * 1024
MAX_RESULT_BYTES: Final = 64 * 1024
# Of one chunk: 250,000 rows have some 100 MB, and as many of the largest that are common, a country's coast, do not
# come near this. It keeps a child that never ends from filling the disk of the database.
MAX_CHUNK_BYTES: Final = 64 * 1024**3
_MOST_COLUMNS: Final = 1600  # of a table of PostgreSQL


class _Asked(BaseModel):
    """What a child asks for."""

    model_config = ConfigDict(extra="ignore", strict=True)

    do: str
    chunk: int = Field(0, ge=0, lt=2**31)
    columns: list[str] = Field([], max_length=_MOST_COLUMNS)
    is_last: bool = True


class Staging:
    """Lets the tasks of a worker load chunks, a few at a time."""

    def __init__(self, database: Database | None) -> None:
        self._database = database
        self._free = asyncio.Semaphore(_streams(database))

    def of(self, message: TaskMessage) -> "TaskStaging":
        """Give what one task may do."""
        return TaskStaging(self._database, self._free, message)


class TaskStaging:
    """Answers what the child process that runs a task asks of the staging table; leaving it undoes an open chunk."""

    def __init__(self, database: Database | None, free: asyncio.Semaphore, message: TaskMessage) -> None:
        self._database = database
        self._free = free
        self._message = message
        self._open: _OpenChunk | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._undo()

    async def answer(self, header: dict[str, Any], body: bytes) -> bytes:
        """Do what is asked, and give the answer; after an error nothing is left of the chunk that was open."""
        try:
            asked = _Asked.model_validate(header)
        except ValidationError:
            raise BrokenFrame from None
        try:
            return await self._done(asked, body)
        except GraticuleError:
            await self._undo()
            raise

    async def _done(self, asked: _Asked, body: bytes) -> bytes:
        if asked.do == "find":
            return json_codec.encode(await self._found(asked.chunk))
        if asked.do == "begin":
            await self._begin(asked.chunk, asked.columns)
        elif asked.do == "write":
            await self._current().write(body, is_last=asked.is_last)
        elif asked.do == "commit":
            await self._commit(body)
        elif asked.do == "undo":
            await self._undo()
        else:
            raise BrokenFrame
        return b""

    async def _found(self, index: int) -> dict[str, JsonValue] | None:
        async with self._reached().connection() as connection:
            return await VectorRepository(connection, self._message.job_id).find_chunk(index)

    async def _begin(self, index: int, columns: Sequence[str]) -> None:
        if self._open is not None:
            raise NotStaged("A chunk is being loaded already; a task loads one at a time.")
        self._open = _OpenChunk(self._message, index)
        await self._open.begin(self._reached(), self._free, columns)

    async def _commit(self, body: bytes) -> None:
        if len(body) > MAX_RESULT_BYTES:
            raise NotStaged(f"The result of a chunk has more than {MAX_RESULT_BYTES:,} bytes.")
        await self._current().commit(json_object(body))
        self._open = None

    async def _undo(self) -> None:
        if self._open is not None:
            left, self._open = self._open, None
            await left.undo()

    def _current(self) -> "_OpenChunk":
        if self._open is None:
            raise NotStaged("No chunk is being loaded.")
        return self._open

    def _reached(self) -> Database:
        if self._database is None:
            raise ConfigurationError("This worker has no database for handlers.")
        return self._database


class _OpenChunk:
    """A chunk in its transaction."""

    def __init__(self, message: TaskMessage, index: int) -> None:
        self._message = message
        self._index = index
        self._stack = AsyncExitStack()
        self._is_between = True  # two streams of rows
        self._size = 0  # bytes so far

    async def begin(self, database: Database, free: asyncio.Semaphore, columns: Sequence[str]) -> None:
        """Begin the transaction, once there is a connection for it."""
        await self._stack.enter_async_context(free)
        connection = await self._stack.enter_async_context(database.connection())
        with domain_errors("begin a chunk"):
            await self._stack.enter_async_context(connection.transaction())
        self._tables = VectorRepository(connection, self._message.job_id)
        self._rows = await self._stack.enter_async_context(await self._tables.begin_chunk(columns))

    async def write(self, piece: bytes, *, is_last: bool) -> None:
        """Write a piece of a stream of rows."""
        if len(piece) > MAX_PIECE_BYTES:
            raise NotStaged(f"A piece of rows has more than {MAX_PIECE_BYTES:,} bytes.")
        self._size += len(piece)
        if self._size > MAX_CHUNK_BYTES:
            raise NotStaged(f"A chunk has more than {MAX_CHUNK_BYTES:,} bytes.")
        self._is_between = is_last
        try:
            await self._rows.write(piece, is_last=is_last)
        except RowTooBig as error:
            raise TooWideRows(error.message, detail=error.detail) from error

    async def commit(self, result: dict[str, JsonValue]) -> None:
        """Write the chunk into the ledger and commit, if the task is still this worker's."""
        if not self._is_between:
            raise NotStaged("The rows of the chunk end in the middle.")
        await self._tables.note_chunk(self._index, self._rows.count, result)
        await self._tables.hold_lease(delivery_of(self._message))
        await self._stack.aclose()

    async def undo(self) -> None:
        """Roll back; where the connection is lost, the server does that by itself."""
        with suppress(GraticuleError):
            await self._stack.__aexit__(Rollback, Rollback(), None)


def _streams(database: Database | None) -> int:
    """Leave at least half of the connections to what else a worker does."""
    return STREAMS if database is None else max(1, min(STREAMS, database.pool_statistics()["pool_max"] // 2))
