"""Jobs: insert, list, move from state to state, change hands."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from psycopg.types.json import Jsonb
from pydantic import JsonValue

from graticule.core.errors import OwnershipLost
from graticule.core.ids import JobId, OwnerId, WorkflowId
from graticule.core.models import Job
from graticule.core.states import JOB, JobStatus
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who writes to a job, and in which term: the two that every write carries."""

    owner_id: OwnerId | None
    owner_epoch: int


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

    async def page(
        self,
        *,
        status: JobStatus | None = None,
        workflow_id: WorkflowId | None = None,
        before: tuple[datetime, JobId] | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Give jobs, newest first, after the one that `before` names."""
        created_at, job_id = before or (None, None)
        parameters = {
            "status": status,
            "workflow_id": workflow_id,
            "before_created_at": created_at,
            "before_job_id": job_id,
            "limit": limit,
        }
        return await self._all("list_jobs", parameters)

    async def transition(
        self,
        job_id: JobId,
        new: JobStatus,
        owner: Ownership,
        now: datetime,
        *,
        error_message: str | None = None,
        result: JsonValue = None,
    ) -> Job:
        """Move a job to a new state, as its owner."""
        values = {
            "owner_id": owner.owner_id,
            "owner_epoch": owner.owner_epoch,
            "now": now,
            "error_message": error_message,
            "result": None if result is None else Jsonb(result),
        }
        return await self._transition("transition_job", JOB, new, {"job_id": job_id}, values)

    async def claim(self, job_id: JobId, owner_id: OwnerId, epoch_seen: int, now: datetime) -> Job:
        """Take an active job over in the term after `epoch_seen`; `OwnershipLost` when another was quicker."""
        parameters = {"job_id": job_id, "owner_id": owner_id, "owner_epoch": epoch_seen, "now": now}
        claimed = await self._one("claim_job", parameters)
        if claimed is None:
            present = await self.get(job_id=job_id)
            raise OwnershipLost(
                f"Job {job_id} is {present.status} and in term {present.owner_epoch}, not {epoch_seen}."
            )
        return claimed

    def _explain_refusal(self, present: Job, values: Mapping[str, Any]) -> None:
        if (present.owner_id, present.owner_epoch) != (values["owner_id"], values["owner_epoch"]):
            raise OwnershipLost(
                f"Job {present.job_id} belongs to {present.owner_id or 'nobody'} in term {present.owner_epoch}."
            )
