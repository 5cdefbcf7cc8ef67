"""The work orders of partners."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import PlatformRequest
from graticule.core.states import REQUEST, RequestStatus
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class RequestRepository(Repository[PlatformRequest]):
    """Reads and writes requests."""

    model = PlatformRequest
    subject: ClassVar = "request"
    queries: ClassVar = load_queries("requests.sql")

    async def find_by_idempotency_key(self, platform_id: PlatformId, idempotency_key: str) -> PlatformRequest | None:
        """Give the request that a partner's submission with this key made before."""
        parameters = {"platform_id": platform_id, "idempotency_key": idempotency_key}
        return await self._one("find_request_by_idempotency_key", parameters)

    async def of_asset(self, asset_id: AssetId, limit: int = 100) -> list[PlatformRequest]:
        """Give the requests for an asset, newest first."""
        return await self._all("requests_of_asset", {"asset_id": asset_id, "limit": limit})

    async def transition(
        self,
        request_id: UUID,
        new: RequestStatus,
        now: datetime,
        *,
        job_id: JobId | None = None,
        last_error: str | None = None,
    ) -> PlatformRequest:
        """Move a request to a new state."""
        values = {"job_id": job_id, "last_error": last_error, "now": now}
        return await self._transition("transition_request", REQUEST, new, {"request_id": request_id}, values)
