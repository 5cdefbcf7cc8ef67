"""What is asked of a running server: whether it answers, what it can do, whether a database is there."""

from collections.abc import Collection
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from graticule.core.errors import Unavailable
from graticule.repositories.login import with_token_waiting
from graticule.repositories.queries import load_queries

_QUERIES = load_queries("server.sql", package=__package__)
_CREATE_DATABASE = sql.SQL("CREATE DATABASE {name}")


@dataclass(frozen=True)
class ServerFacts:
    """The major version of a server, and those of the asked extensions that it can create."""

    version: int
    extensions: frozenset[str]


async def refusal(url: str) -> str | None:
    """Why the server does not take a connection, or None when it does."""
    try:
        connection = await psycopg.AsyncConnection.connect(url, connect_timeout=5)
    except psycopg.OperationalError as error:
        return str(error)
    await connection.close()
    return None


async def ensure_database(url: str, name: str) -> bool:
    """Create a database when it is missing; tells whether it was."""
    try:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=10)
        async with connection:
            return await _created(connection, name)
    except psycopg.Error as error:
        raise Unavailable(
            f"The database {name} could not be looked up or created.",
            hint="See the server's log, and try again.",
            detail=str(error),
        ) from error


async def _created(connection: psycopg.AsyncConnection[TupleRow], name: str) -> bool:
    found = await connection.execute(_QUERIES["database_exists"], {"name": name})
    if await found.fetchone():
        return False
    try:
        await connection.execute(_CREATE_DATABASE.format(name=sql.Identifier(name)))
    except psycopg.errors.DuplicateDatabase:  # another program was faster
        return False
    return True


def facts(url: str, extensions: Collection[str], *, timeout: float) -> ServerFacts:
    """Ask a server for its version and for the extensions that it offers."""
    conninfo = with_token_waiting(url)
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=max(2, round(timeout))) as connection:
        rows = connection.execute(_QUERIES["available_extensions"], {"names": list(extensions)}).fetchall()
        version = connection.info.server_version // 10000
    return ServerFacts(version, frozenset(name for (name,) in rows))
