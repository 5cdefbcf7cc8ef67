"""Who may call."""

from collections.abc import Collection
from datetime import datetime
from typing import ClassVar

from graticule.core.errors import NotFound
from graticule.core.ids import ClientId
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

    async def set_key(self, client_id: ClientId, key_hash: str, now: datetime) -> ApiClient:
        """Replace the key of a client."""
        changed = await self._one("set_client_key", {"client_id": client_id, "key_hash": key_hash, "now": now})
        if changed is None:
            raise NotFound(f"There is no client {client_id}.")
        return changed

    async def set_active(self, client_id: ClientId, now: datetime, *, is_active: bool) -> ApiClient | None:
        """Let a client call, or not; None when it is so already, or when there is no such client."""
        parameters = {"client_id": client_id, "is_active": is_active, "now": now}
        return await self._one("set_client_active", parameters)

    async def note_used(self, client_ids: Collection[ClientId], now: datetime, before: datetime) -> int:
        """Write down that clients have called, unless that was done after `before`; tell for how many it was."""
        parameters = {"client_ids": list(client_ids), "now": now, "before": before}
        return await self._execute("note_clients_used", parameters)
