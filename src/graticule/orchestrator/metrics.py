"""What is measured of one orchestrator among the others: that it lives, what wakes it, and what it takes over."""

from collections import Counter as Tally
from collections.abc import Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge

from graticule.core.states import MessageStatus
from graticule.messaging.metrics import Letter, QueueMetrics
from graticule.repositories.messages import ReturnedMessage
from graticule.repositories.tasks import ReapedTask


class WakeReason(StrEnum):
    """Why a job is looked at."""

    NOTIFICATION = "notification"
    POLL = "poll"  # no notification had told of it
    ALARM = "alarm"  # a retry is due
    DEADLINE = "deadline"  # a task is overdue
    TAKEN_OVER = "taken_over"


class TakeOver(StrEnum):
    """Why a job changes hands."""

    OWNER_GONE = "owner_gone"
    HANDED_OVER = "handed_over"


class OrchestratorMetrics:
    """One orchestrator; what it sets aside is counted with the queues."""

    def __init__(self, queues: QueueMetrics | None = None, registry: CollectorRegistry | None = None) -> None:
        """Without a registry it is counted for nobody."""
        self._queues = queues or QueueMetrics()
        self._beat = Gauge(
            "graticule_orchestrator_heartbeat_timestamp_seconds",
            "When this orchestrator last wrote its heartbeat; 0 before the first.",
            registry=registry,
        )
        self._wakes = Counter(
            "graticule_orchestrator_wakes_total", "Jobs that were looked at, by why.", ["reason"], registry=registry
        )
        for reason in WakeReason:
            self._wakes.labels(reason.value)
        self._jobs = Counter(
            "graticule_jobs_reclaimed_total",
            "Jobs taken over here: from an orchestrator that is gone, or that handed them over.",
            ["reason"],
            registry=registry,
        )
        for why in TakeOver:
            self._jobs.labels(why.value)
        self._tasks = Counter(
            "graticule_tasks_reclaimed_total",
            "Tasks taken from workers whose leases ran out.",
            ["queue"],
            registry=registry,
        )

    def beat(self) -> None:
        """Note that the heartbeat is written."""
        self._beat.set_to_current_time()

    def woken(self, reason: WakeReason) -> None:
        """Count a job that is to be looked at."""
        self._wakes.labels(reason.value).inc()

    def taken_over(self, *, from_dead: int, handed_over: int) -> None:
        """Count jobs that changed hands."""
        self._jobs.labels(TakeOver.OWNER_GONE.value).inc(from_dead)
        self._jobs.labels(TakeOver.HANDED_OVER.value).inc(handed_over)

    def tasks_reaped(self, tasks: Iterable[ReapedTask]) -> None:
        """Count tasks that silent workers held, and those of them that are dead."""
        tasks = list(tasks)
        for queue, count in Tally(task.queue for task in tasks).items():
            self._tasks.labels(queue).inc(count)
        for queue, count in Tally(task.queue for task in tasks if task.status is MessageStatus.DEAD).items():
            self._queues.set_aside(Letter.TASK, queue, count)

    def messages_returned(self, messages: Iterable[ReturnedMessage]) -> None:
        """Count the dead among messages that their orchestrator does not have any more."""
        for queue, count in Tally(each.queue for each in messages if each.status is MessageStatus.DEAD).items():
            self._queues.set_aside(Letter.JOB, queue, count)

    def message_set_aside(self, queue: str) -> None:
        """Count a message that can never become a job."""
        self._queues.set_aside(Letter.JOB, queue)
