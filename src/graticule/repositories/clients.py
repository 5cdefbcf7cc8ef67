"""Who may call."""

from typing import ClassVar

from graticule.core.models import ApiClient
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class ClientRepository(Repository[ApiClient]):
    """Reads and writes API clients."""

    model = ApiClient
    subject: ClassVar = "client"
    queries: ClassVar = load_queries("clients.sql")

    async def find_by_key_hash(self, key_hash: str) -> ApiClient | None:
        """Give the active client whose key has this hash."""
        return await self._one("find_client_by_key_hash", {"key_hash": key_hash})

    async def all(self) -> list[ApiClient]:
        """Give all clients, by id."""
        return await self._all("list_clients", {})
