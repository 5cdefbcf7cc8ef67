"""Connections for the libraries that bring their own SQL, with the rights and the limits of one audience."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode

import asyncpg
from psycopg.conninfo import conninfo_to_dict

from graticule.core.audience import Audience
from graticule.repositories.database import KEEPALIVES, session_conninfo
from graticule.repositories.login import password_for_each_connection

CONNECT_SECONDS: Final = 5.0
Prepare = Callable[[asyncpg.Connection], Awaitable[None]]


@asynccontextmanager
async def opened_pool(
    url: str, audience: Audience, *, size: int, name: str, settings: Mapping[str, str], prepare: Prepare
) -> AsyncIterator[asyncpg.Pool]:
    """Give a pool of connections that only read, as the audience's role; at first none of them is open.

    A database that is away at the start may come later: a request that needs one then fails by itself.
    """
    pool = asyncpg.create_pool(
        _address(url, audience, name),
        password=password_for_each_connection(url),
        min_size=0,
        max_size=size,
        timeout=CONNECT_SECONDS,
        server_settings=dict(settings),
        init=prepare,
    )
    async with pool:
        yield pool


def _address(url: str, audience: Audience, name: str) -> str:
    """Write our address as asyncpg reads it. It has no keepalives; the server has its own, see `session_conninfo`."""
    parts: dict[str, Any] = conninfo_to_dict(session_conninfo(url, audience.role, name))
    query = {key: str(value) for key, value in parts.items() if value is not None and key not in KEEPALIVES}
    return f"postgresql:///{quote(query.pop('dbname', ''))}?{urlencode(query, quote_via=quote)}"
