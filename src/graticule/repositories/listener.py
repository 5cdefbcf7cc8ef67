"""Hears what other processes notify, on a connection of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import AsyncConnection, sql

from graticule.core.backoff import Backoff
from graticule.core.errors import Unavailable
from graticule.core.table import DatabaseRole
from graticule.logs import get_logger
from graticule.repositories.database import session_conninfo
from graticule.repositories.login import connected
from graticule.repositories.queries import load_queries

_log = get_logger(__name__)
QUERIES = load_queries("listener.sql")
CONNECT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification; or, with no channel, that the listening began (anew): what was said before is not known."""

    channel: str | None
    payload: str = ""


class Listener:
    """Listens to channels, and connects again for as long as it is asked to go on."""

    def __init__(
        self,
        url: str,
        role: DatabaseRole,
        channels: Sequence[str],
        *,
        name: str = "graticule-listener",
        lock_key: int | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare to listen; `on_lost` is called when the connection is lost, for whoever relies on being told."""
        self._on_lost = on_lost
        self._conninfo = session_conninfo(url, role, name)
        self._channels = tuple(channels)
        self._lock_key = lock_key  # an advisory lock that this session holds for as long as it lives

    async def heard(self) -> AsyncIterator[Heard]:
        """Give notifications as they come; after each connect first a `Heard` without channel."""
        backoff = Backoff()
        while True:
            try:
                async with await self._connect() as connection:
                    await self._listen(connection)
                    yield Heard(None)
                    backoff.succeeded()
                    async for notify in connection.notifies():
                        yield Heard(notify.channel, notify.payload)
                    _log.warning("the listening connection was closed")
            except (psycopg.OperationalError, Unavailable) as error:  # no answer of the server, or no token for it
                _log.warning("the listening connection was lost", error=str(error))
            self._on_lost()
            await asyncio.sleep(backoff.next())

    async def _connect(self) -> AsyncConnection[tuple[object, ...]]:
        """Connect to the end: a session that is given up half-way stays with the server for a minute."""
        connecting = asyncio.ensure_future(connected(self._conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            with contextlib.suppress(psycopg.Error, Unavailable):
                await (await connecting).close()
            raise

    async def _listen(self, connection: AsyncConnection[tuple[object, ...]]) -> None:
        if self._lock_key is not None:
            await connection.execute(QUERIES["hold_lock"], {"lock_key": self._lock_key})
        for channel in self._channels:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))


@contextlib.asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[AsyncIterator[Heard]]:
    """Give the notifications of a listener, and close its connection at the end."""
    heard = listener.heard()
    try:
        yield heard
    finally:
        await heard.aclose()  # type: ignore[attr-defined]  # an async generator has it
