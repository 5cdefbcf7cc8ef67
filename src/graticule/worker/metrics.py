"""What is measured of a worker."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.05, 0.5, 2, 10, 60, 300, 1800, 7200)


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
        self._lost = Counter("graticule_worker_leases_lost_total", "Tasks lost while they ran.", registry=registry)
        self._held = Gauge("graticule_worker_leases_held", "Tasks under a lease of this worker.", registry=registry)
        self._running = Gauge("graticule_worker_tasks_running", "Handlers that run now.", registry=registry)

    def watch(self, held: Callable[[], float], running: Callable[[], float]) -> None:
        """Have these numbers read when someone asks."""
        self._held.set_function(held)
        self._running.set_function(running)

    def ended(self, handler: str, outcome: str, seconds: float | None) -> None:
        """Count a task."""
        self._tasks.labels(handler, outcome).inc()
        if seconds is not None:
            self._seconds.labels(handler).observe(seconds)

    def lease_lost(self) -> None:
        """Count a task that was lost."""
        self._lost.inc()
