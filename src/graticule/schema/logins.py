"""The logins of identities of Azure: each may act as the role of its process, and as no other."""

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import connected
from graticule.repositories.queries import load_queries

AZURES: Final = "postgres"  # the database that has Azure's function
QUERIES = load_queries("logins.sql", package=__package__)


async def ensure_logins(
    url: str, logins: Mapping[DatabaseRole, str], *, database: str = AZURES
) -> dict[DatabaseRole, bool]:
    """Let each identity log in and act as its role; tells of each whether its login had to be made."""
    with domain_errors("make the logins"):
        connection = await connected(make_conninfo(url, dbname=database), autocommit=True, connect_timeout=10)
        async with connection:
            return {role: await _ensure(connection, role, login) for role, login in logins.items()}


async def _ensure(connection: AsyncConnection[Any], role: DatabaseRole, login: str) -> bool:
    found = await (await connection.execute(QUERIES["has_login"], {"login": login})).fetchone()
    is_missing = not (found and found[0])
    if is_missing:
        try:
            await connection.execute(QUERIES["create_login"], {"login": login})
        except psycopg.errors.UndefinedFunction:
            raise ConfigurationError(
                "This server knows no identities of Entra ID.",
                hint="It has to be Azure Database for PostgreSQL, with an identity as its administrator.",
            ) from None
    await connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(login)))
    return is_missing
