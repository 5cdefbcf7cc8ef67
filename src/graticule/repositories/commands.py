"""What direct commands need of a transaction."""

from typing import Final

from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("commands.sql")


async def bound_transaction(connection: Connection, seconds: float) -> None:
    """Let no statement of this transaction take longer."""
    with domain_errors("bound the transaction"):
        await connection.execute(QUERIES["bound_transaction"], {"milliseconds": round(seconds * 1000)})
