"""The jobs that an orchestrator has to look at."""

import asyncio
from itertools import islice

from graticule.core.ids import JobId
from graticule.services.step_reading import Wake


class Inbox:
    """Gathers reasons to look at jobs; a job is given out once at a time.

    While steps are taken, what comes in meanwhile gathers here: batches are large when the load is high, and
    of one job when it is low.
    """

    def __init__(self) -> None:
        self._waiting: dict[JobId, Wake] = {}
        self._held: set[JobId] = set()
        self._changed = asyncio.Event()

    def add(self, job_id: JobId, wake: Wake | None = None) -> None:
        """Let a job be looked at."""
        present = self._waiting.setdefault(job_id, Wake())
        if wake is not None:
            present.merge(wake)
        self._changed.set()

    async def take(self, limit: int) -> dict[JobId, Wake]:
        """Wait for jobs that nobody looks at now, and give up to `limit` of them, the longest waiting first."""
        while not (free := list(islice((job_id for job_id in self._waiting if job_id not in self._held), limit))):
            self._changed.clear()
            await self._changed.wait()
        self._held.update(free)
        return {job_id: self._waiting.pop(job_id) for job_id in free}

    def release(self, job_ids: set[JobId]) -> None:
        """Note that these jobs were looked at."""
        self._held -= job_ids
        self._changed.set()
