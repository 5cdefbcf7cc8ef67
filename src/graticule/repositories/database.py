"""The pool of connections through which a process reaches the database, as one role."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import FeatureNotSupported
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.base import AttemptWithBackoff
from psycopg_pool.pool_async import ReturnConnection

from graticule.core.backoff import FIRST_SECONDS, LONGEST_SECONDS
from graticule.core.fault_points import Commit, Moment, committing, reach
from graticule.core.table import DatabaseRole
from graticule.logs import get_logger
from graticule.repositories.clock import DatabaseClock
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import for_each_connection

Connection = AsyncConnection[DictRow]
# What is to be done once the transaction of a connection has committed.
_to_do: WeakKeyDictionary[Connection, list[Callable[[], None]]] = WeakKeyDictionary()
_log = get_logger(__name__)
# One plan for all runs of a statement, which goes from the given rows to the table by its index: that is made to look
# cheap, and everything else is turned off.
BY_KEY = (
    "plan_cache_mode=force_generic_plan",
    "cpu_operator_cost=0.00001",
    "enable_seqscan=off",
    "enable_hashjoin=off",
    "enable_mergejoin=off",
    "jit=off",
)


# A machine that is gone without a word: both sides know within half a minute, and not after the two hours that systems
# have as their default. An address may say otherwise.
KEEPALIVES: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
SERVER_KEEPALIVES = ("tcp_keepalives_idle=10", "tcp_keepalives_interval=5", "tcp_keepalives_count=3")


READING = frozenset({DatabaseRole.GATEWAY, DatabaseRole.SERVE_INTERNAL, DatabaseRole.SERVE_EXTERNAL})


class _LastUsedFirst(deque[Connection]):
    """Connections at rest: the server process that worked last has its plans and catalogues in the CPU's caches."""

    def append(self, connection: Connection) -> None:
        self.appendleft(connection)


class _SoonAgain(AttemptWithBackoff):
    """Attempts to connect; the library's would come at last minutes apart, and a server that is back would wait."""

    INITIAL_DELAY = FIRST_SECONDS

    def update_delay(self, now: float) -> None:
        super().update_delay(now)
        self.delay = min(self.delay, LONGEST_SECONDS)


class _Pool(AsyncConnectionPool[Connection]):
    """The library's pool, which would give out the connection that has rested longest, and leaves no choice.

    It would also lose a connection whose user is cancelled while giving it back.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._pool = _LastUsedFirst()

    async def _add_connection(self, attempt: AttemptWithBackoff | None, growing: bool = False) -> None:
        await super()._add_connection(attempt or _SoonAgain(timeout=self.reconnect_timeout), growing)

    async def _putconn(self, conn: Connection, from_getconn: bool) -> None:
        try:
            await super()._putconn(conn, from_getconn=from_getconn)
        except asyncio.CancelledError:  # before it was handed on, for nothing is awaited afterwards
            self.run_task(ReturnConnection(self, conn, from_getconn=from_getconn))
            raise


class Database:
    """Connections that act as one role: whatever the login may do, they can do no more than that role."""

    def __init__(
        self,
        url: str,
        role: DatabaseRole,
        *,
        pool_size: int = 10,
        timeout_seconds: float = 5.0,
        name: str = "graticule",
        by_key: bool = False,
        clock: DatabaseClock | None = None,
    ) -> None:
        """Make a pool that is not open yet.

        `by_key` is for sessions whose statements all name their rows: they never plan to read a whole table or
        index, not even with a plan that was made, and kept, while the table was small.
        """
        self.role = role
        self.name = name
        self.clock = clock or DatabaseClock()
        self._pool = _Pool(
            for_each_connection(session_conninfo(url, role, name, by_key=by_key)),
            kwargs={
                "row_factory": dict_row,
                "autocommit": True,
                "connect_timeout": max(2, round(timeout_seconds)),
                "prepare_threshold": 0 if by_key else 5,
            },
            min_size=1,
            max_size=pool_size,
            timeout=timeout_seconds,
            configure=self.clock.set_by,
            open=False,
            name=name,
        )

    async def open(self) -> None:
        """Begin to connect, in the background: a database that is away now may come later."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def __aenter__(self) -> "Database":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Give a connection on which each statement commits by itself."""
        with domain_errors("reach the database"):
            async with self._pool.connection() as connection:
                try:
                    yield connection
                except Exception as error:
                    if _is_outdated(error):
                        await connection.close()
                    raise
                finally:
                    if connection.closed:  # the others, which rest, are likely to be broken, too
                        await self._pool.drain()

    @asynccontextmanager
    async def committing(self, commit: Commit) -> AsyncIterator[Connection]:
        """Give a connection for one statement that writes, and commits by itself."""
        async with self.connection() as connection:
            with committing(commit):
                yield connection

    @asynccontextmanager
    async def transaction(self, commit: Commit, *, dry_run: bool = False) -> AsyncIterator[Connection]:
        """Give a connection inside a transaction: all of it commits at the end, or none; of a dry run nothing."""
        async with self.connection() as connection:
            to_do: list[Callable[[], None]] = []
            _to_do[connection] = to_do
            try:
                async with connection.transaction(force_rollback=dry_run):
                    yield connection
                    if not dry_run:
                        reach(commit, Moment.BEFORE)
            finally:
                del _to_do[connection]
            if dry_run:
                return
            for act in to_do:
                _follow_up(act)
            reach(commit, Moment.AFTER)

    async def ping(self) -> dict[str, Any]:
        """Ask the server who it is, and how long the answer took."""
        started = time.perf_counter()
        async with self.connection() as connection:
            cursor = await connection.execute("SELECT current_setting('server_version') AS server_version")
            row = await cursor.fetchone() or {}
        return {
            **row,
            "role": self.role.value,
            "latency_ms": round((time.perf_counter() - started) * 1000, 2),
        }

    def now(self) -> datetime:
        """Tell the database's time."""
        return self.clock.now()

    def pool_statistics(self) -> dict[str, int]:
        """Give the pool's counters (size, available, waiting, …)."""
        return self._pool.get_stats()


def after_commit(connection: Connection, act: Callable[[], None]) -> None:
    """Act when the transaction that `Database.transaction` gave has committed, and not if it never does.

    Where there is none, what was written has committed by itself, and this acts at once. Savepoints are not looked at:
    whoever undoes one must not have asked for anything within it.
    """
    if connection in _to_do:
        _to_do[connection].append(act)
    else:
        _follow_up(act)


def _follow_up(act: Callable[[], None]) -> None:
    """Act on what has committed; an error must not look as if it had not, for it would be done again."""
    try:
        act()
    except Exception:
        _log.exception("what follows a commit has failed; what was written is written")


def _is_outdated(error: Exception) -> bool:
    """Tell whether a session knows statements only for rows as they were before a migration, and always will."""
    return any(isinstance(each, FeatureNotSupported) for each in (error, error.__cause__))


def session_conninfo(url: str, role: DatabaseRole, name: str, *, by_key: bool = False) -> str:
    """Give connection parameters whose sessions act as `role` from their first statement."""
    given = conninfo_to_dict(url)
    # Of two settings the last one counts: an address may have its own keepalives, and not its own role.
    settings = [f"-c {setting}" for setting in SERVER_KEEPALIVES]
    settings += [str(given.get("options") or ""), f"-c role={role}", "-c timezone=UTC"]
    # A process that was stopped in the middle of a transaction must not keep its locks from the others.
    settings.append("-c idle_in_transaction_session_timeout=60s")
    if role in READING:
        # What anyone may ask must not keep the server busy for long.
        settings += ["-c default_transaction_read_only=on", "-c statement_timeout=10s"]
    if by_key or role is DatabaseRole.WORKER:
        settings += [f"-c {setting}" for setting in BY_KEY]
    options = " ".join(filter(None, settings))
    return make_conninfo("", **{**KEEPALIVES, **given, "options": options, "application_name": name})
