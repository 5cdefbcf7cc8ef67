"""The roles of the private cluster become logins, each with the password of the data folder."""

from graticule.core.table import DatabaseRole
from graticule.embedded.credentials import Credentials
from graticule.schema.passwords import set_passwords


async def allow_logins(url: str, credentials: Credentials) -> None:
    """Let every role log in."""
    await set_passwords(url, {role: credentials.password(role) for role in DatabaseRole})
