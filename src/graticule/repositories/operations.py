"""What operators look at: queues, processes, and the numbers of the last days."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel, Field

from graticule.core.ids import OwnerId, WorkflowId
from graticule.core.models import Orchestrator, Worker
from graticule.core.states import JobStatus
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views

MOST_PROCESSES: Final = 1000
MOST_QUEUES: Final = 100
MAX_DAMAGED: Final = 1000


class ProcessState(StrEnum):
    """Whether a process is there."""

    ALIVE = "alive"
    STALE = "stale"  # it did not say that it stops, and has not been heard of for too long
    GONE = "gone"  # an orchestrator whose session has ended: the others are taking its jobs
    STOPPED = "stopped"


class Queue(BaseModel):
    """What is in a queue now, and who serves it."""

    queue: str
    queued: int = Field(description="Waiting for a worker.")
    delayed: int = Field(description="Waiting for their time.")
    leased: int = Field(description="In the hands of a worker.")
    dead: int
    workers: int = Field(description="Live workers that serve this queue.")
    unserved: int = Field(0, description="Tasks that wait although no live worker serves this queue.")
    oldest_seconds: float | None = Field(description="How long the oldest has been waiting for a worker.")


class WorkerNow(Worker):
    """A worker, and what it holds."""

    state: ProcessState
    active_tasks: int


class OrchestratorNow(Orchestrator):
    """An orchestrator, and what it owns."""

    state: ProcessState
    active_jobs: int


class EndedJobs(BaseModel):
    """How many jobs ended in an hour."""

    hour: datetime
    completed: int
    failed: int
    cancelled: int


class Durations(BaseModel):
    """How long the jobs of a workflow took."""

    workflow_id: WorkflowId
    jobs: int
    p50_seconds: float
    p95_seconds: float


class MeasuredState(BaseModel):
    """One number of the state, with the labels that tell it from others of the same name."""

    name: str
    labels: list[str]
    value: float


class OperationViews(Views):
    """Reads what operators look at; a process is alive if it was heard of within `threshold` seconds."""

    queries: ClassVar = load_queries("operations.sql")

    async def queues(self, threshold: float) -> list[Queue]:
        """Give the queues that hold something or are served."""
        return await self._views(Queue, "queues_now", {"threshold": threshold})

    async def state(self, owner_id: OwnerId, job_queue: str, threshold: float, bound: int) -> list[MeasuredState]:
        """Give the state of all and of one orchestrator as numbers; what waits is counted up to a bound."""
        given = {"owner_id": owner_id, "job_queue": job_queue, "threshold": threshold, "bound": bound}
        bounds = {"most_queues": MOST_QUEUES, "most_damaged": MAX_DAMAGED}
        return await self._views(MeasuredState, "state_now", {**given, **bounds})

    async def workers(self, threshold: float, *, stopped: bool) -> list[WorkerNow]:
        """Give the workers; those that stopped only if wanted."""
        parameters = {"threshold": threshold, "stopped": stopped, "limit": MOST_PROCESSES}
        return await self._views(WorkerNow, "workers_now", parameters)

    async def orchestrators(self, threshold: float, *, stopped: bool) -> list[OrchestratorNow]:
        """Give the orchestrators; those that stopped only if wanted."""
        parameters = {"threshold": threshold, "stopped": stopped, "limit": MOST_PROCESSES}
        return await self._views(OrchestratorNow, "orchestrators_now", parameters)

    async def jobs_by_status(self, bound: int) -> dict[JobStatus, int]:
        """Count the jobs of each status, each up to a bound."""
        rows = await self._rows("jobs_by_status", {"bound": bound})
        return {JobStatus(row["status"]): row["jobs"] for row in rows}

    async def ended_by_hour(self, bound: int) -> list[EndedJobs]:
        """Count the jobs that ended in the last 24 hours, at most the newest `bound` of them."""
        return await self._views(EndedJobs, "jobs_ended_by_hour", {"bound": bound})

    async def durations(self, bound: int) -> list[Durations]:
        """Give the median and the 95th percentile of the last 7 days, over at most the newest `bound` jobs."""
        return await self._views(Durations, "durations_by_workflow", {"bound": bound})
