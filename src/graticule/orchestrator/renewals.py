"""Renews copies for the public beside the loop: now and then it looks for some that are outdated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graticule.config import Settings
from graticule.core.cancellation import end_tasks
from graticule.core.errors import PASSING
from graticule.core.ids import AssetId
from graticule.logs import get_logger
from graticule.orchestrator.parts import persistently
from graticule.services.publishing import CopyRenewal

_log = get_logger(__name__)


class Renewals:
    """Starts exports for as long as it runs; any number of orchestrators share the work."""

    def __init__(self, copies: CopyRenewal, settings: Settings) -> None:
        self._copies = copies
        self._poll_seconds = settings.orchestrator_poll_interval

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run beside the caller."""
        task = asyncio.create_task(persistently(self._renew))
        try:
            yield
        finally:
            await end_tasks(task)

    async def _renew(self) -> None:
        while True:
            for asset_id in await self._copies.assets():
                await self._renew_one(asset_id)
            await asyncio.sleep(self._poll_seconds)

    async def _renew_one(self, asset_id: AssetId) -> None:
        """Start the exports of an asset; one that cannot be exported must not hold up the others."""
        try:
            jobs = await self._copies.renew(asset_id)
        except PASSING:
            raise
        except Exception:
            _log.exception("copies for the public cannot be renewed", asset_id=asset_id)
        else:
            _log.info("copies for the public are renewed", asset_id=asset_id, jobs=jobs)
