"""What an owner knows of its jobs from the steps that it took: so much need not be read for the next step."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from graticule.core.ids import JobId
from graticule.dag.deciding.step import ACTIVE
from graticule.repositories.steps import JobSnapshot

TEXT_KEPT: Final = 16 * 1024 * 1024  # of all jobs together, as JSON; in memory it is a few times as much


class KnownJobs(Mapping[JobId, JobSnapshot]):
    """Active jobs as their last step left them; those with the latest steps are kept.

    Nothing rests on this being right: a job is read again when its version is another, and each write names it.
    """

    def __init__(self) -> None:
        self._jobs: dict[JobId, JobSnapshot] = {}  # the one whose step is longest ago is the first
        self._size = 0

    def __getitem__(self, job_id: JobId) -> JobSnapshot:
        return self._jobs[job_id]

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def take(self, job_ids: Iterable[JobId]) -> dict[JobId, JobSnapshot]:
        """Take out what is known of these jobs: while a step is under way, nothing is known for sure."""
        taken = {job_id: self._jobs.pop(job_id) for job_id in job_ids if job_id in self._jobs}
        self._size -= sum(job.size for job in taken.values())
        return taken

    def keep(self, snapshot: JobSnapshot) -> None:
        """Keep a job that goes on; others make room."""
        self.take([snapshot.job.job_id])
        if snapshot.job.status in ACTIVE:
            self._jobs[snapshot.job.job_id] = snapshot
            self._size += snapshot.size
        while self._size > TEXT_KEPT:
            self.take([next(iter(self._jobs))])
