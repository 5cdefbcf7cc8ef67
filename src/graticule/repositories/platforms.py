"""The registry of partner systems."""

from datetime import datetime
from typing import ClassVar

from graticule.core.errors import NotFound
from graticule.core.ids import PlatformId
from graticule.core.models import Platform
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class PlatformRepository(Repository[Platform]):
    """Reads and writes partner systems."""

    model = Platform
    subject: ClassVar = "platform"
    queries: ClassVar = load_queries("platforms.sql")

    async def all(self, *, with_inactive: bool = False) -> list[Platform]:
        """Give the partners, by id."""
        return await self._all("list_platforms", {"with_inactive": with_inactive})

    async def set_active(self, platform_id: PlatformId, now: datetime, *, is_active: bool) -> Platform:
        """Open or close a partner for new submissions."""
        parameters = {"platform_id": platform_id, "is_active": is_active, "now": now}
        changed = await self._one("set_platform_active", parameters)
        if changed is None:
            raise NotFound(f"There is no platform {platform_id}.")
        return changed
