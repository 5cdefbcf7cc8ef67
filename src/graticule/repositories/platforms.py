"""The registry of partner systems."""

from typing import ClassVar

from psycopg import sql

from graticule.core.errors import NotFound
from graticule.core.ids import PlatformId
from graticule.core.models import Platform
from graticule.repositories import statements
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

    async def add(self, platform: Platform) -> bool:
        """Add a partner; False when there is one of this name."""
        return await self._execute("add_platform", statements.parameters(platform)) == 1

    async def held(self, platform_id: PlatformId) -> Platform:
        """Give a partner that nobody else changes, and to which nobody adds assets, until the transaction ends."""
        return self._found(platform_id, await self._one("hold_platform", {"platform_id": platform_id}))

    async def kept(self, platform_id: PlatformId) -> Platform | None:
        """Give a partner that nobody changes until the transaction ends; others may add assets, too."""
        return await self._one("keep_platform", {"platform_id": platform_id})

    async def change(self, platform: Platform) -> Platform:
        """Write a partner anew."""
        return self._found(platform.platform_id, await self._one("change_platform", statements.parameters(platform)))

    async def has_assets(self, platform_id: PlatformId) -> bool:
        """Tell whether a partner has ever sent anything."""
        statement = sql.SQL(self.queries["platform_has_assets"])
        row = await self._fetch_one(statement, {"platform_id": platform_id}, "look for assets of the platform")
        return bool(row and row["has_assets"])

    def _found(self, platform_id: str, found: Platform | None) -> Platform:
        if found is None:
            raise NotFound(f"There is no {self.subject} {platform_id}.")
        return found
