"""What is measured of a worker."""

from collections.abc import Callable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from graticule.messaging.metrics import QueueMetrics
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.tasks import LeaseState

_SECONDS = (0.005, 0.05, 0.5, 2, 10, 60, 300, 1800, 7200)


class Renewal(StrEnum):
    """What came of the wish to renew a lease."""

    RENEWED = "renewed"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


class WorkerMetrics:
    """Tasks by handler and outcome, how long they took, and what became of leases."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tasks = Counter(
            "graticule_worker_tasks_total", "Tasks that ended here.", ["handler", "outcome"], registry=registry
        )
        self._seconds = Histogram(
            "graticule_worker_task_duration_seconds",
            "Time that handlers took.",
            ["handler"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._lost = Counter(
            "graticule_worker_leases_lost_total",
            "Tasks that this worker held and may not go on with: lost to others, or withdrawn with their job.",
            ["state"],
            registry=registry,
        )
        self._renewals = Counter(
            "graticule_worker_lease_renewals_total",
            "Leases that were to be renewed: renewed, refused, or unanswered.",
            ["outcome"],
            registry=registry,
        )
        for state in (LeaseState.LOST, LeaseState.WITHDRAWN):
            self._lost.labels(state.value)
        for outcome in Renewal:
            self._renewals.labels(outcome.value)
        self._held = Gauge("graticule_worker_leases_held", "Tasks under a lease of this worker.", registry=registry)
        self._running = Gauge("graticule_worker_tasks_running", "Handlers that run now.", registry=registry)
        self._slots = Gauge("graticule_worker_slots", "Handlers that may run at once.", registry=registry)
        self._unwritten = Gauge(
            "graticule_worker_results_unwritten", "Results that wait to be written.", registry=registry
        )
        self.queues = QueueMetrics(registry)

    def watch(
        self, *, slots: int, held: Callable[[], float], running: Callable[[], float], unwritten: Callable[[], float]
    ) -> None:
        """Have these numbers read when someone asks."""
        self._slots.set(slots)
        self._held.set_function(held)
        self._running.set_function(running)
        self._unwritten.set_function(unwritten)

    def ended(self, handler: str, outcome: str, seconds: float | None) -> None:
        """Count a task."""
        self._tasks.labels(handler, outcome).inc()
        if seconds is not None:
            self._seconds.labels(handler).observe(seconds)

    def taken(self, message: TaskMessage) -> None:
        """Note how long a task had waited for this worker."""
        self.queues.waited(message.queue, message.waited_seconds, message.delivery_count)

    def renewed(self, outcome: Renewal, count: int) -> None:
        """Count leases that were to be renewed."""
        self._renewals.labels(outcome.value).inc(count)

    def lease_lost(self, state: LeaseState) -> None:
        """Count a task that was lost."""
        self._lost.labels(state.value).inc()
