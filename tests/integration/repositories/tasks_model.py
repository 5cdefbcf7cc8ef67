"""What jobs of one task are to the queue and to their owners, in a few lines of Python."""

from collections.abc import Iterable
from dataclasses import dataclass, field

UNDER_WAY = {"dispatched", "running"}
MAX_DELIVERIES = 2


@dataclass(frozen=True)
class Lease:
    """What a worker was given: it names a task and one of its deliveries."""

    worker: str
    task_id: str
    delivery: int


@dataclass
class ModelTask:
    """An attempt of a job's node."""

    task_id: str
    job_id: str
    status: str = "queued"
    holder: str | None = None
    delivery: int = 0

    def is_held(self, lease: Lease) -> bool:
        return (self.status, self.holder, self.delivery) == ("leased", lease.worker, lease.delivery)

    def is_withdrawn(self, lease: Lease) -> bool:
        return (self.status, self.delivery) == ("withdrawn", lease.delivery)

    def becomes(self, status: str) -> None:
        self.status, self.holder = status, None


@dataclass
class ModelResult:
    """What was reported of a task."""

    task_id: str
    status: str
    is_processed: bool = False


@dataclass
class ModelJob:
    """A job with one node."""

    job_id: str
    owner: str | None
    task_id: str  # the attempt of its node
    epoch: int = 1
    status: str = "running"
    node: str = "dispatched"
    is_to_cancel: bool = False
    retry_count: int = 0
    version: int = 0  # another one with every change of the row

    @property
    def is_active(self) -> bool:
        return self.status == "running"

    def goes_to(self, owner: str | None) -> None:
        self.owner = owner
        self.epoch += 1
        self.version += 1


@dataclass
class Model:
    """All that there is."""

    jobs: dict[str, ModelJob] = field(default_factory=dict)
    tasks: dict[str, ModelTask] = field(default_factory=dict)
    results: list[ModelResult] = field(default_factory=list)

    def submit(self, job_id: str, owner: str) -> None:
        self.jobs[job_id] = ModelJob(job_id, owner, f"{job_id}_a_0")
        self._dispatch(self.jobs[job_id])

    def _dispatch(self, job: ModelJob) -> None:
        self.tasks[job.task_id] = ModelTask(job.task_id, job.job_id)

    # What a worker does

    def queued(self) -> set[str]:
        return {task.task_id for task in self.tasks.values() if task.status == "queued"}

    def claim(self, worker: str, task_id: str) -> Lease:
        task = self.tasks[task_id]
        task.status, task.holder, task.delivery = "leased", worker, task.delivery + 1
        return Lease(worker, task_id, task.delivery)

    def renew(self, lease: Lease) -> str:
        task = self.tasks[lease.task_id]
        if task.is_held(lease):
            return "held"
        return "withdrawn" if task.status == "withdrawn" else "lost"

    def finish(self, lease: Lease, status: str) -> bool:
        task = self.tasks[lease.task_id]
        if not (task.is_held(lease) or task.is_withdrawn(lease)):
            return False
        task.becomes("done")
        self.results.append(ModelResult(lease.task_id, status))
        return True

    def tell(self, lease: Lease) -> bool:
        is_held = self.tasks[lease.task_id].is_held(lease)
        if is_held:
            self.results.append(ModelResult(lease.task_id, "running"))
        return is_held

    def abandon(self, lease: Lease, *, counts: bool) -> bool:
        task = self.tasks[lease.task_id]
        is_held = task.is_held(lease)
        if is_held:
            task.becomes("queued")
            task.delivery -= 0 if counts else 1
        return is_held

    def set_aside(self, lease: Lease) -> bool:
        task = self.tasks[lease.task_id]
        is_held = task.is_held(lease)
        if is_held:
            self._die(task)
        return is_held

    def _die(self, task: ModelTask) -> None:
        task.becomes("dead")
        self.results.append(ModelResult(task.task_id, "failed"))

    # What an operator does

    def requeue(self, task_id: str) -> str:
        task = self.tasks[task_id]
        job = self.jobs[task.job_id]
        if task.status != "dead":
            return "not_dead"
        if job.task_id == task_id and job.node in UNDER_WAY:
            task.becomes("queued")
            task.delivery = 0
            for result in self.unprocessed(task.job_id):
                result.is_processed |= result.task_id == task_id  # that it failed is forgotten
            return "requeued"
        return "job_failed" if (job.task_id, job.node, job.status) == (task_id, "failed", "failed") else "not_awaited"

    def discard(self, task_id: str) -> bool:
        is_dead = self.tasks[task_id].status == "dead"
        if is_dead:
            self.tasks[task_id].becomes("withdrawn")
        return is_dead

    def cancel(self, job_id: str, by: str) -> None:
        job = self.jobs[job_id]
        if job.is_active:
            job.version += not job.is_to_cancel
            job.is_to_cancel = True
            self.step(job_id, by)

    def resume(self, job_id: str, by: str) -> bool:
        job = self.jobs[job_id]
        if job.status != "failed":
            return False
        job.goes_to(by)
        self.step(job_id, by)
        job.retry_count += 1
        job.status, job.node, job.task_id = "running", "dispatched", f"{job_id}_a_{job.retry_count}"
        job.is_to_cancel = False
        self._dispatch(job)
        return True

    # What an orchestrator does

    def expire(self) -> dict[str, str]:
        leased = [task for task in self.tasks.values() if task.status == "leased"]
        for task in leased:
            if task.delivery >= MAX_DELIVERIES:
                self._die(task)
            else:
                task.becomes("queued")
        return {task.task_id: task.status for task in leased}

    def unprocessed(self, job_id: str) -> list[ModelResult]:
        return [
            result for result in self.results if self.tasks[result.task_id].job_id == job_id and not result.is_processed
        ]

    def step(self, job_id: str, by: str) -> None:
        """Let an instance look at a job; one that is not its owner moves nothing."""
        job = self.jobs[job_id]
        results = self.unprocessed(job_id)
        is_ending = job.is_to_cancel and job.is_active
        if job.owner != by or not (results or is_ending):
            return
        job.version += 1
        for result in results:
            result.is_processed = True
            if job.is_active and job.task_id == result.task_id and job.node in UNDER_WAY:
                self._take(job, result.status)
        if job.is_to_cancel and job.is_active:
            self._end(job, "cancelled")
        elif job.is_active and job.node == "completed":
            job.status = "completed"

    def _take(self, job: ModelJob, status: str) -> None:
        if status == "failed":
            self._end(job, "failed")
        else:
            job.node = status

    def _end(self, job: ModelJob, status: str) -> None:
        """End a job before its time; what has completed stays."""
        job.status = status
        job.node = "failed" if job.node in UNDER_WAY else job.node
        for task in self.tasks.values():
            if task.job_id == job.job_id and task.status in {"queued", "leased"}:
                task.becomes("withdrawn")

    def change_hands(self, owner: str, new: str | None) -> set[str]:
        """Give the active jobs of an owner, or of nobody, to another, or to nobody."""
        moved = [job for job in self._active() if job.owner == owner or (job.owner is None and new is not None)]
        for job in moved:
            job.goes_to(new)
        return {job.job_id for job in moved}

    def _active(self) -> Iterable[ModelJob]:
        return [job for job in self.jobs.values() if job.is_active]
