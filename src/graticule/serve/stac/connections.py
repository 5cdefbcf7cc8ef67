"""Connections to the catalogue, and what its errors mean to a caller."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import asyncpg
from fastapi import HTTPException, Request
from stac_fastapi.pgstac.db import con_init

from graticule.core.errors import Unavailable
from graticule.logs import get_logger

SESSION_SETTINGS: Final[dict[str, str]] = {
    "search_path": "pgstac,public",
    "default_transaction_read_only": "on",
    "TimeZone": "UTC",
    "pgstac.readonly": "true",  # it keeps no statistics of searches
    "pgstac.format_cache": "false",
    "pgstac.context": "on",  # it counts what matches, and that under row-level security
    "pgstac.context_stats_ttl": "-1s",  # counts that others have left may be of more than this audience sees
}
"""What every session of the pool is set to."""

prepare_connection = con_init
"""Makes a new connection of the pool read JSON; the `init` of the pool."""

_CANCELED: Final = "57014"
_AWAY: Final = ("08", "53", "57P")
# What pgstac itself refuses, and where what a caller asked for does not fit: values, types, functions of a type, syntax
# of a search by words, too deep a nesting, and shapes that PostGIS cannot compute with.
_CAUSED_BY_CALLER: Final = ("22", "P0001", "42601", "42804", "42883", "42846", "42725", "42P18", "54001", "XX000")
_LONGEST_TOLD: Final = 200

_log = get_logger(__name__)


@asynccontextmanager
async def connection_of(request: Request, kind: Literal["r", "w"] = "r") -> AsyncIterator[Any]:
    """Give a connection of the pool that the application has; there is none to write with."""
    if kind != "r":
        raise HTTPException(405, "The catalogue can only be read here.")
    with translated():
        async with request.app.state.readpool.acquire() as connection:
            yield connection


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into those of HTTP; its own words are for the log."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _meaning(error) from error
    except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise Unavailable("The catalogue cannot be reached now.", detail=repr(error)) from error


def _meaning(error: Any) -> Exception:
    state = str(error.sqlstate)
    if state == _CANCELED:
        return HTTPException(504, "The search took too long. Ask for less at once.")
    if state.startswith(_AWAY):
        return Unavailable("The catalogue cannot be reached now.", detail=str(error))
    if state.startswith(_CAUSED_BY_CALLER):
        _log.info("search refused by the database", state=state, detail=str(error))
        said = str(error)[:_LONGEST_TOLD] if state == "P0001" else "A value does not fit what it is compared with."
        return HTTPException(400, f"The catalogue cannot answer this. {said}")
    unforeseen: Exception = error
    return unforeseen
