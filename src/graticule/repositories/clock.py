"""The database's clock, as a process knows it: the one that all processes share, however wrong their own may be."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("clock.sql")
AS_GOOD_AS_EQUAL: Final = timedelta(seconds=0.1)  # what the way to the database and back makes of equal clocks


class DatabaseClock:
    """Tells the database's time by this machine's clock and the difference between the two."""

    def __init__(self) -> None:
        self._ahead = timedelta()  # the database's clock of ours

    def now(self) -> datetime:
        """Tell the time."""
        return datetime.now(UTC) + self._ahead

    async def set_by(self, connection: AsyncConnection[Any]) -> None:
        """Compare the clocks. A small difference is not worth a jump."""
        asked = datetime.now(UTC)
        row: Any = await (await connection.execute(QUERIES["time"])).fetchone()
        answered = datetime.now(UTC)
        ahead = row["now"] - (asked + (answered - asked) / 2)
        if abs(ahead - self._ahead) > AS_GOOD_AS_EQUAL:
            self._ahead = ahead
