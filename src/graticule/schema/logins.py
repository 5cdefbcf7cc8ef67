"""The logins of identities of Azure: each may act as the role of its process, and as no other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import connected
from graticule.repositories.queries import load_queries

AZURES: Final = "postgres"  # the database that has Azure's functions
QUERIES = load_queries("logins.sql", package=__package__)
_OBJECT = re.compile(r"(?:^|,)oid=([0-9a-f-]{36})(?:,|$)", re.IGNORECASE)  # in `aadauth,oid=…,type=service`


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity by its name; one that was made anew has the same, and another object id."""

    name: str
    object_id: UUID | None = None


class Found(StrEnum):
    """How a login was found, and what was therefore done."""

    MISSING = "made"
    OF_ANOTHER = "made anew"
    RIGHT = "there"


async def ensure_logins(
    url: str, identities: Mapping[DatabaseRole, Identity], *, database: str = AZURES
) -> dict[DatabaseRole, Found]:
    """Let each identity log in and act as its role; tells of each how its login was found."""
    with domain_errors("make the logins"):
        connection = await connected(make_conninfo(url, dbname=database), autocommit=True, connect_timeout=10)
        async with connection:
            return {role: await _ensure(connection, role, identity) for role, identity in identities.items()}


async def _ensure(connection: AsyncConnection[Any], role: DatabaseRole, identity: Identity) -> Found:
    """Do it all or nothing: a login that is gone, or that may not act, would keep a process out."""
    login = sql.Identifier(identity.name)
    async with connection.transaction():
        found = await _found(connection, identity)
        if found is Found.OF_ANOTHER:
            await _drop(connection, identity)
        if found is not Found.RIGHT:
            await _create(connection, identity)
        await connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), login))
    return found


async def _found(connection: AsyncConnection[Any], identity: Identity) -> Found:
    row = await (await connection.execute(QUERIES["find_login"], {"login": identity.name})).fetchone()
    if row is None:
        return Found.MISSING
    if identity.object_id is None:  # who goes by the name has to know that it is the right one
        return Found.RIGHT
    if row[0] is None:
        raise ConfigurationError(
            f"There is a role {identity.name} that is of nobody in Entra ID.",
            hint="It was not made for this identity. Drop or rename it, or give the identity another name.",
        )
    labelled = _OBJECT.search(row[0])
    return Found.RIGHT if labelled and UUID(labelled[1]) == identity.object_id else Found.OF_ANOTHER


async def _drop(connection: AsyncConnection[Any], identity: Identity) -> None:
    try:
        await connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(identity.name)))
    except psycopg.errors.DependentObjectsStillExist:
        raise ConfigurationError(
            f"The login {identity.name} is of an identity that is no more, and owns something or has further rights.",
            hint="Take them from it (REASSIGN OWNED, DROP OWNED) in each database, and try again.",
        ) from None


async def _create(connection: AsyncConnection[Any], identity: Identity) -> None:
    named: dict[str, str] = {"login": identity.name}
    try:
        if identity.object_id is None:
            await connection.execute(QUERIES["create_login"], named)
        else:
            await connection.execute(QUERIES["create_login_of_object"], {**named, "object_id": str(identity.object_id)})
    except psycopg.errors.UndefinedFunction:
        raise ConfigurationError(
            "This server knows no identities of Entra ID.",
            hint="It has to be Azure Database for PostgreSQL, with an identity as its administrator.",
        ) from None
