"""What is measured of queues, by whoever does it: how long tasks wait, what is set aside, what a broker carries."""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram

WAITS = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200)


class Letter(StrEnum):
    """What can be set aside because nobody could do anything with it."""

    TASK = "task"
    JOB = "job"  # a message that asks for a job
    MESSAGE = "message"  # of a broker: one that tells of no task, and asks for no job


class QueueMetrics:
    """The queues as one process sees them. Their names come from workflows and settings: they are few."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Without a registry they are counted for nobody."""
        self._waits = Histogram(
            "graticule_task_wait_seconds",
            "Time from when a task could be taken to its first lease.",
            ["queue"],
            buckets=WAITS,
            registry=registry,
        )
        self._dead = Counter(
            "graticule_dead_letters_total", "What was set aside for good.", ["kind", "queue"], registry=registry
        )
        self._sent = Counter(
            "graticule_broker_messages_sent_total", "Tasks that a broker took.", ["queue"], registry=registry
        )
        self._received = Counter(
            "graticule_broker_messages_received_total", "Messages that a broker gave.", ["queue"], registry=registry
        )
        self._errors = Counter(
            "graticule_broker_errors_total", "What a broker was asked for and did not do.", ["queue"], registry=registry
        )

    def waited(self, queue: str, seconds: float | None, delivery_count: int) -> None:
        """Note how long a task that was leased had waited; after its first delivery, that is no wait any more."""
        if seconds is not None and delivery_count == 1:
            self._waits.labels(queue).observe(max(0.0, seconds))

    def set_aside(self, kind: Letter, queue: str, count: int = 1) -> None:
        """Count dead letters."""
        self._dead.labels(kind.value, queue).inc(count)

    def sent(self, queue: str, count: int) -> None:
        """Count what a broker took."""
        self._sent.labels(queue).inc(count)

    def received(self, queue: str, count: int) -> None:
        """Count what a broker gave."""
        self._received.labels(queue).inc(count)

    def broker_failed(self, queue: str) -> None:
        """Count what a broker did not do."""
        self._errors.labels(queue).inc()
