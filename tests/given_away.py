"""What an installation has said and written, searched for secrets."""

from collections.abc import Iterable, Mapping
from typing import Final

import psycopg
from psycopg import sql
from tests.conftest import TestDatabase

# Parts of signatures, tokens and keys, whosever they are.
MARKS: Final = ("sig=", "sig%3D", "skoid=", "SharedAccessSignature", "SharedAccessKey", "AccountKey", "eyJ", "Bearer ")
TABLES: Final = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'
"""


def given_away(said: Mapping[str, str], secrets: Iterable[str]) -> set[tuple[str, str]]:
    """Give each secret, or what looks like one, with where it was said; `said` has texts by their places."""
    searched = (*secrets, *MARKS)
    return {(secret, where) for where, text in said.items() for secret in searched if secret in text}


async def all_rows(database: TestDatabase) -> dict[str, str]:
    """Give every row of every table as text, by table."""
    async with await psycopg.AsyncConnection.connect(database.url()) as connection:
        tables = await (await connection.execute(TABLES)).fetchall()
        found = {}
        for schema, table in tables:
            query = sql.SQL("SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM {} AS t")
            row = await (await connection.execute(query.format(sql.Identifier(schema, table)))).fetchone()
            found[f"{schema}.{table}"] = str(row[0]) if row else ""
    return found
