"""Logins with passwords, on a server that knows no identities: the role of each process, and that of a scaler."""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection, errors, sql

from graticule.core.table import DatabaseRole
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import connected
from graticule.repositories.queries import load_queries

SCALER: Final = "graticule_scaler"
LOGINS: Final = (*(role.value for role in DatabaseRole if role is not DatabaseRole.OWNER), SCALER)
QUERIES = load_queries("passwords.sql", package=__package__)
ATTEMPTS: Final = 8


async def set_passwords(url: str, passwords: Mapping[str, str]) -> None:
    """Let roles log in, each with its password: all of them, or none."""
    with domain_errors("make the logins"):
        for _ in range(ATTEMPTS - 1):
            # Roles are the server's: another database's deployment alters them, too, and who comes second is refused
            # ("tuple concurrently updated").
            with contextlib.suppress(errors.InternalError_):
                await _try_to_set(url, passwords)
                return
        await _try_to_set(url, passwords)


async def ensure_scaler(connection: AsyncConnection[Any]) -> None:
    """Make the role of a scaler, which can do nothing yet."""
    await connection.execute(QUERIES["ensure_scaler"])


async def _try_to_set(url: str, passwords: Mapping[str, str]) -> None:
    async with await connected(url, connect_timeout=10) as connection:
        if SCALER in passwords:
            await ensure_scaler(connection)
            await connection.execute(QUERIES["grant_scaler"])
        for role, password in passwords.items():
            await _set_password(connection, role, password)


async def _set_password(connection: AsyncConnection[Any], role: str, password: str) -> None:
    """Tell the server only the hash of a password, so that none can reach its log."""
    hashed = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    await connection.execute(
        sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(hashed))
    )
