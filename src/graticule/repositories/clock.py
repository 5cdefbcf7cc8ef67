"""The database's clock, as a process knows it: the one that all processes share, however wrong their own may be."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("clock.sql")
AS_GOOD_AS_EQUAL: Final = timedelta(seconds=0.1)  # what the way to the database and back makes of equal clocks
LONGEST_WAY_SECONDS: Final = 1.0  # an answer that took longer says little of the time at which it was given


class DatabaseClock:
    """Tells the database's time by what has passed since it was asked for it: nobody can set that."""

    def __init__(self) -> None:
        self._at, self._began = datetime.now(UTC), _passed()
        self._was_set = False

    def now(self) -> datetime:
        """Tell the time."""
        return self._at + timedelta(seconds=_passed() - self._began)

    async def set_by(self, connection: AsyncConnection[Any]) -> None:
        """Ask for the time. A small difference is not worth a jump."""
        asked = _passed()
        row: Any = await (await connection.execute(QUERIES["time"])).fetchone()
        way = _passed() - asked
        there = row["now"] + timedelta(seconds=way / 2)
        is_news = not self._was_set or way < LONGEST_WAY_SECONDS
        if is_news and abs(there - self.now()) > AS_GOOD_AS_EQUAL:
            self._at, self._began = there, asked + way
        self._was_set = True


def _passed() -> float:
    """Give seconds that pass while the machine sleeps, too, where it can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
