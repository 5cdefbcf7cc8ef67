"""Tasks: the attempts that were sent to queues."""

from typing import ClassVar

from graticule.core.ids import JobId
from graticule.core.models import Task
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class TaskRepository(Repository[Task]):
    """Reads and writes tasks."""

    model = Task
    subject: ClassVar = "task"
    queries: ClassVar = load_queries("tasks.sql")

    async def of_job(self, job_id: JobId) -> list[Task]:
        """Give all attempts of a job, oldest first."""
        return await self._all("tasks_of_job", {"job_id": job_id})

    async def dead(self, queue: str | None = None, limit: int = 100) -> list[Task]:
        """Give the dead letters, newest first."""
        return await self._all("dead_tasks", {"queue": queue, "limit": limit})
