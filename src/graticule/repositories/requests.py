"""The work orders of partners."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from psycopg import sql

from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import PlatformRequest
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class RequestRepository(Repository[PlatformRequest]):
    """Reads and writes requests; how one goes on is written with the job that carries it out."""

    model = PlatformRequest
    subject: ClassVar = "request"
    queries: ClassVar = load_queries("requests.sql")

    async def lock_key(self, platform_id: PlatformId, idempotency_key: str) -> None:
        """Let no one else use this key until the transaction ends."""
        await self._execute("lock_idempotency_key", {"platform_id": platform_id, "idempotency_key": idempotency_key})

    async def find_by_idempotency_key(self, platform_id: PlatformId, idempotency_key: str) -> PlatformRequest | None:
        """Give the request that a partner's submission with this key made before."""
        parameters = {"platform_id": platform_id, "idempotency_key": idempotency_key}
        return await self._one("find_request_by_idempotency_key", parameters)

    async def submitter(self, asset_id: AssetId, version_ordinal: int, revision: int) -> str | None:
        """Return who submitted the source of a revision; None of one that no request made."""
        given = {"asset_id": asset_id, "version_ordinal": version_ordinal, "revision": revision}
        statement = sql.SQL(self.queries["submitter_of_revision"])
        row = await self._fetch_one(statement, given, "read who submitted a revision")
        return None if row is None else row["submitter"]

    async def fail(self, request_id: UUID | None, error: str, now: datetime) -> None:
        """End a request whose job has ended without it."""
        await self._one("fail_request", {"request_id": request_id, "error": error, "now": now})

    async def retry(self, request_id: UUID, job_id: JobId, now: datetime) -> PlatformRequest | None:
        """Let a request be carried out by a new job."""
        return await self._one("retry_request", {"request_id": request_id, "job_id": job_id, "now": now})
