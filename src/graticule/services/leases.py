"""Leases for workers that do not reach the database: the rows say who holds a task, and here they are asked for it."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from graticule.core.fault_points import Commit
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.models.fields import JsonObject, TaskKey, WorkerKey
from graticule.messaging.metrics import Letter, QueueMetrics
from graticule.repositories.database import Database
from graticule.repositories.tasks import Delivery, LeaseState, TaskRepository
from graticule.services.results import DeliveryCount

MOST_TASKS: Final = 1000  # in one request
LONGEST_DELAY_SECONDS: Final = 86_400.0
EXAMPLE: Final = "01a1e0340e647089aacb762008f1f8db_validate_0"


class _OfWorker(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    worker_id: WorkerKey


class WantedTasks(_OfWorker):
    """Tasks whose messages a worker has received."""

    task_ids: list[TaskKey] = Field(min_length=1, max_length=MOST_TASKS, examples=[[EXAMPLE]])


class TakenTask(BaseModel):
    """How a task stands for the worker that asked for it."""

    model_config = ConfigDict(from_attributes=True)

    is_held: bool = Field(description="False: it has ended, or another worker has it. Its message is one too many.")
    job_id: JobId
    node_id: NodeId
    queue: str
    handler: str
    timeout_seconds: int
    retry_count: int
    delivery_count: int
    max_deliveries: int
    priority: int
    traceparent: str | None = None
    params: JsonObject | None = Field(None, description="Of a task that is held.")


class TakenTasks(BaseModel):
    """The tasks that were asked for; one that is not named does not exist."""

    tasks: dict[TaskId, TakenTask]
    # Not a field of each task: workers of an older release know all fields that a task can have.
    sources: dict[TaskId, list[str]] = Field(
        default_factory=dict,
        description="Of a task that is for an asset: where the files of its partner may lie. It may read no others.",
    )


class HeldTask(BaseModel):
    """A task in the delivery in which a worker holds it."""

    model_config = ConfigDict(frozen=True)

    task_id: TaskKey = Field(examples=[EXAMPLE])
    delivery_count: DeliveryCount

    @property
    def delivery(self) -> Delivery:
        """Give the name of its lease."""
        return Delivery(self.task_id, self.delivery_count)


class HeldTasks(_OfWorker):
    """The tasks that a worker holds."""

    tasks: list[HeldTask] = Field(min_length=1, max_length=MOST_TASKS)

    @property
    def deliveries(self) -> Sequence[Delivery]:
        """Give the names of their leases."""
        return [task.delivery for task in self.tasks]


class LeaseStates(BaseModel):
    """What became of leases."""

    tasks: dict[TaskId, LeaseState]


class GivenBack(HeldTasks):
    """Tasks that others are to run."""

    delay_seconds: Annotated[float, Field(ge=0, le=LONGEST_DELAY_SECONDS)] = 0.0
    counts: bool = Field(True, description="False: the delivery brings the tasks no nearer to their last.")


class TaskIds(BaseModel):
    """The tasks whose lease was held."""

    task_ids: list[TaskId]


class SetAside(_OfWorker, HeldTask):
    """A task that nobody can run."""

    reason: str = Field(min_length=1, max_length=4000)


class SetAsideReceipt(BaseModel):
    """Whether a task was set aside."""

    accepted: bool = Field(description="False: the task is no longer this worker's.")


class LeaseService:
    """Gives, prolongs and takes back leases; whoever lost one changes nothing."""

    def __init__(self, database: Database, lease_seconds: float, metrics: QueueMetrics | None = None) -> None:
        self._database = database
        self._metrics = metrics or QueueMetrics()
        self._lease_seconds = lease_seconds

    async def take(self, wanted: WantedTasks) -> TakenTasks:
        """Lease tasks that wait; asked again, tell of those that the worker holds the same."""
        async with self._database.committing(Commit.CLAIM) as connection:
            taken = await TaskRepository(connection).take(wanted.worker_id, wanted.task_ids, self._lease_seconds)
        for task in taken.values():
            self._metrics.waited(task.queue, task.waited_seconds, task.delivery_count)
        return TakenTasks(
            tasks={task_id: TakenTask.model_validate(each) for task_id, each in taken.items()},
            sources={task_id: [*each.sources] for task_id, each in taken.items() if each.sources is not None},
        )

    async def renew(self, held: HeldTasks) -> LeaseStates:
        """Prolong leases, and tell of each whether it is still held."""
        async with self._database.committing(Commit.RENEW) as connection:
            tasks = TaskRepository(connection)
            return LeaseStates(tasks=await tasks.renew(held.worker_id, held.deliveries, self._lease_seconds))

    async def give_back(self, given: GivenBack) -> TaskIds:
        """Let tasks be sent anew."""
        async with self._database.committing(Commit.ABANDON) as connection:
            found = await TaskRepository(connection).abandon(
                given.worker_id, given.deliveries, delay_seconds=given.delay_seconds, counts=given.counts
            )
        return TaskIds(task_ids=sorted(found))

    async def dead_letter(self, given: SetAside) -> SetAsideReceipt:
        """Set a task aside for good; its node fails with the reason."""
        reason = given.reason.replace("\0", "\N{REPLACEMENT CHARACTER}")
        async with self._database.committing(Commit.DEAD_LETTER) as connection:
            queue = await TaskRepository(connection).dead_letter(given.worker_id, given.delivery, reason)
        if queue is not None:
            self._metrics.set_aside(Letter.TASK, queue)
        return SetAsideReceipt(accepted=queue is not None)
