"""The state of the whole installation as Prometheus sees it: what only the database knows, read when it is asked for.

However often it is asked for, and by however many, it is read every few seconds at most, by one at a time, and nobody
waits long for it. While it cannot be read, its numbers are missing, and one says so.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from graticule.core.errors import GraticuleError
from graticule.core.ids import OwnerId
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.operations import MeasuredState, OperationViews

_log = get_logger(__name__)

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
COUNTED_UP_TO: Final = 25_000
UP: Final = "graticule_database_up"
UP_MEANS: Final = "Whether the state could be read from the database: 1, or 0 and the numbers of the state are missing."
# With their labels; all but the last are the same wherever they are asked for.
STATE: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "jobs_active": ("Jobs that have not ended.", ("status",)),
    "jobs_oldest_seconds": ("Time since the submission of the oldest job that has not ended.", ("status",)),
    "queue_depth": ("Messages of a queue: waiting, delayed until their time, or leased.", ("kind", "queue", "state")),
    "queue_oldest_seconds": ("How long the oldest message of a queue has waited.", ("kind", "queue")),
    "queue_workers": ("Live workers that serve a queue.", ("queue",)),
    "dead_letters_waiting": ("Dead letters that nobody has requeued or discarded.", ("kind", "queue")),
    "results_waiting": ("Reports of workers that no step has acted on.", ()),
    "results_oldest_seconds": ("How long the oldest report of a worker has waited for its step.", ()),
    "callbacks_waiting": ("Callbacks neither delivered nor given up.", ()),
    "callbacks_oldest_seconds": ("Age of the oldest callback that is neither delivered nor given up.", ()),
    "outputs_damaged": (
        "Versions in service whose outputs `graticule verify` found missing or changed, up to 1,000.",
        ("audience",),
    ),
    "outputs_verified_at": (
        "Unix time of the oldest check of a served output; absent before `graticule verify` has run.",
        (),
    ),
    "workers_alive": ("Workers that were heard of lately.", ()),
    "orchestrators_alive": ("Orchestrators that were heard of lately.", ()),
    "orchestrator_jobs_owned": ("Active jobs that this orchestrator decides for.", ()),
}

Reading = Callable[[], Awaitable[Sequence[MeasuredState]]]


def state_reading(database: Database, owner_id: OwnerId, job_queue: str, threshold_seconds: float) -> Reading:
    """Give what reads the state, as one orchestrator asks for it."""

    async def read() -> Sequence[MeasuredState]:
        async with database.connection() as connection:
            return await OperationViews(connection).state(owner_id, job_queue, threshold_seconds, COUNTED_UP_TO)

    return read


class StateMetrics(Collector):
    """Keeps the last reading for a while."""

    def __init__(self, read: Reading, registry: CollectorRegistry | None = None) -> None:
        if registry is not None:
            registry.register(self)
        self._read = read
        self._reading: asyncio.Task[None] | None = None
        self._found: Sequence[MeasuredState] | None = None
        self._read_at = -KEPT_SECONDS

    async def refresh(self) -> None:
        """Have the state read if the last reading is old; who does not get an answer in time goes on without."""
        if self._reading is None or self._reading.done():
            if time.monotonic() - self._read_at < KEPT_SECONDS:
                return
            self._reading = asyncio.create_task(self._keep_reading())
        _, unfinished = await asyncio.wait({self._reading}, timeout=PATIENCE_SECONDS)
        if unfinished:
            self._found = None
            if not self._reading.cancelling():  # a second time, it could not give its connection back
                self._reading.cancel()

    async def close(self) -> None:
        """End a reading that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _keep_reading(self) -> None:
        found: Sequence[MeasuredState] | None = None  # what was read before would look like what is there now
        try:
            found = await self._read()
        except GraticuleError as error:
            _log.warning("the state cannot be read for metrics", error=error.message)
        except Exception:
            _log.exception("the state cannot be read for metrics")
        finally:
            self._found, self._read_at = found, time.monotonic()

    def describe(self) -> Iterable[Metric]:
        """Name the numbers, without reading them."""
        yield GaugeMetricFamily(UP, UP_MEANS)
        for name, (meaning, labels) in STATE.items():
            yield GaugeMetricFamily(f"graticule_{name}", meaning, labels=labels)

    def collect(self) -> Iterable[Metric]:
        """Give the numbers of the last reading, or that there are none."""
        yield GaugeMetricFamily(UP, UP_MEANS, value=self._found is not None)
        if self._found is None:
            return
        for name, (meaning, labels) in STATE.items():
            family = GaugeMetricFamily(f"graticule_{name}", meaning, labels=labels)
            for number in self._found:
                if number.name == name:
                    family.add_metric(number.labels, number.value)
            yield family
