"""The pool of connections: which one is given out."""

from graticule.repositories.database import Connection, Database


async def _pid(connection: Connection) -> int:
    row = await (await connection.execute("SELECT pg_backend_pid() AS pid")).fetchone()
    assert row is not None
    return int(row["pid"])


async def test_the_connection_that_was_used_last_is_given_out_next(pool: Database) -> None:
    async with pool.connection() as first, pool.connection() as second:
        both = {await _pid(first), await _pid(second)}
    async with pool.connection() as connection:
        last = await _pid(connection)
    assert last in both
    for _ in range(5):
        async with pool.connection() as connection:
            assert await _pid(connection) == last
