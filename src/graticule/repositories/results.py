"""What workers reported of their tasks."""

from typing import ClassVar

from graticule.core.ids import JobId
from graticule.core.models import TaskResult
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class ResultRepository(Repository[TaskResult]):
    """Reads and writes results."""

    model = TaskResult
    subject: ClassVar = "task result"
    queries: ClassVar = load_queries("results.sql")

    async def unprocessed(self, job_id: JobId, limit: int = 1000) -> list[TaskResult]:
        """Give the results of a job that nobody acted on yet, in the order of their arrival."""
        return await self._all("unprocessed_results", {"job_id": job_id, "limit": limit})
