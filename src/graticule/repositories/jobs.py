"""Jobs, as they are read; steps and changes of hands have repositories of their own."""

from collections.abc import Collection
from typing import ClassVar

from graticule.core.ids import JobId
from graticule.core.models import Job
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class JobRepository(Repository[Job]):
    """Reads and writes jobs."""

    model = Job
    subject: ClassVar = "job"
    queries: ClassVar = load_queries("jobs.sql")

    async def find_by_idempotency_key(self, idempotency_key: str) -> Job | None:
        """Give the job that a submission with this key made before."""
        return await self._one("find_job_by_idempotency_key", {"idempotency_key": idempotency_key})

    async def by_ids(self, job_ids: Collection[JobId]) -> list[Job]:
        """Give those of the jobs that are there, in no order."""
        return await self._all("jobs_by_ids", {"job_ids": list(job_ids)})
