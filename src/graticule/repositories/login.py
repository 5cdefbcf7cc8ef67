"""How a new connection logs in: with the password of its address, or with a token that Entra ID gives for an hour.

PostgreSQL asks for it only when a connection begins, so the ones that are open outlive their token.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from psycopg import AsyncConnection, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from graticule.core.token_login import TOKEN_FOR_PASSWORD
from graticule.identity import DATABASE_SCOPE, awaited_token, azure_credential, token

Conninfo = str | Callable[[], Awaitable[str]]


def shows_token(conninfo: str) -> bool:
    """Tell whether the password of an address is a token."""
    return conninfo_to_dict(conninfo).get("password") == TOKEN_FOR_PASSWORD


def for_each_connection(conninfo: str) -> Conninfo:
    """Give the address for a pool of psycopg: itself, or what makes it anew for each connection."""
    if not shows_token(conninfo):
        return conninfo
    azure_credential(for_database=True)  # missing packages are said at the start, not by each attempt to connect

    async def with_token_of_now() -> str:
        return await with_token(conninfo)

    return with_token_of_now


def password_for_each_connection(conninfo: str) -> Callable[[], Awaitable[str]] | None:
    """Give what asyncpg calls for the password of each connection; None: the address has it."""
    if not shows_token(conninfo):
        return None
    azure_credential(for_database=True)
    return _current_token


async def with_token(conninfo: str) -> str:
    """Give an address that can be connected to now."""
    return make_conninfo(conninfo, password=await _current_token()) if shows_token(conninfo) else conninfo


def with_token_waiting(conninfo: str) -> str:
    """Give the same to one who cannot await."""
    return make_conninfo(conninfo, password=token(DATABASE_SCOPE)) if shows_token(conninfo) else conninfo


async def libpq_environment(conninfo: str, **variables: str) -> dict[str, str]:
    """Give the environment of a program that connects: its arguments could be read by every user."""
    options = pq.Conninfo.parse((await with_token(conninfo)).encode())
    given = {each.envvar.decode(): each.val.decode() for each in options if each.val and each.envvar}
    return {**os.environ, **given, **variables}


async def connected(conninfo: str, **options: Any) -> AsyncConnection[TupleRow]:
    """Connect, on no pool."""
    return await AsyncConnection.connect(await with_token(conninfo), **options)


async def _current_token() -> str:
    return await awaited_token(DATABASE_SCOPE)
