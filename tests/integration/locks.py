"""Who waits for whom."""

import asyncio

from graticule.repositories.database import Connection


async def waiting_for_a_lock(connection: Connection) -> None:
    """Wait until a session of this database waits for a lock."""
    async with asyncio.timeout(20):
        while True:
            cursor = await connection.execute(
                "SELECT 1 FROM pg_locks WHERE NOT granted"
                " AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
            )
            if await cursor.fetchone() is not None:
                return
            await asyncio.sleep(0.01)
