"""The roles of the private cluster become logins, each with the password of the data folder."""

from psycopg import AsyncConnection, sql

from graticule.core.table import DatabaseRole
from graticule.embedded.credentials import Credentials


async def allow_logins(url: str, credentials: Credentials) -> None:
    """Let every role log in; the server gets only the hash of a password, so none can reach its log."""
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        for role in DatabaseRole:
            secret = credentials.password(role).encode()
            hashed = connection.pgconn.encrypt_password(secret, role.encode(), b"scram-sha-256").decode()
            statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(hashed))
            await connection.execute(statement)
