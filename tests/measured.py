"""Every metric as it is declared: dashboards, alerts and the documentation are held against this."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Metric

from graticule.core.table import DatabaseRole
from graticule.http.connections import ConnectionMetrics
from graticule.http.database import PoolMetrics
from graticule.http.disks import Disks
from graticule.http.metrics import HttpMetrics, create_registry
from graticule.messaging.metrics import QueueMetrics
from graticule.orchestrator.metrics import OrchestratorMetrics
from graticule.repositories.database import Database
from graticule.serve.unreadable import UnreadableOutputs
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.state_metrics import StateMetrics
from graticule.worker.metrics import WorkerMetrics

OURS = re.compile(r"graticule_\w+")
# What a sample of each type adds to the name of its metric.
SAMPLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "gauge": {"": ()},
    "info": {"_info": ()},
    "counter": {"_total": ()},
    "histogram": {"_bucket": ("le",), "_count": (), "_sum": ()},
}


@dataclass(frozen=True)
class Measured:
    """A metric."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def shown_name(self) -> str:
        """Give the name as one writes it in a query."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.type, "")

    def samples(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Give the names of its samples, with the labels that each has."""
        for suffix, more in SAMPLES[self.type].items():
            yield self.name + suffix, frozenset({*self.labels, *more})


def _of_every_process(registry: CollectorRegistry) -> None:
    HttpMetrics(registry)
    ConnectionMetrics(registry)
    PoolMetrics(registry, Database("", DatabaseRole.GATEWAY, name="pool"))


def _of_disks(registry: CollectorRegistry) -> None:
    registry.register(Disks({}, 0))


async def _nothing() -> list[Any]:
    return []


PARTS: Mapping[str, tuple[Callable[[CollectorRegistry], object], ...]] = {
    "every process": (_of_every_process,),
    "orchestrators": (EngineMetrics, lambda registry: OrchestratorMetrics(None, registry)),
    "the whole installation": (lambda registry: StateMetrics(_nothing, registry),),
    "queues": (QueueMetrics,),
    "workers": (WorkerMetrics,),
    "services": (UnreadableOutputs,),
    "disks": (_of_disks,),
}


@cache
def measured(part: str) -> dict[str, Measured]:
    """Give the metrics of a part; those of the queues are not told again as the workers'."""
    registry = create_registry("any") if part == "every process" else CollectorRegistry()
    for make in PARTS[part]:
        make(registry)
    found = {each.name: each for each in _declared(registry)}
    return {name: each for name, each in found.items() if part == "queues" or name not in _queues()}


def every_metric() -> dict[str, Measured]:
    return {name: each for part in PARTS for name, each in measured(part).items()}


def every_sample() -> dict[str, frozenset[str]]:
    """Give the names of all samples with their labels."""
    return dict(sample for each in every_metric().values() for sample in each.samples())


@cache
def _queues() -> frozenset[str]:
    registry = CollectorRegistry()
    QueueMetrics(registry)
    return frozenset(each.name for each in _declared(registry))


def _declared(registry: CollectorRegistry) -> Iterator[Measured]:
    for collector in registry._collector_to_names:
        families: Iterable[Metric] = getattr(collector, "describe", collector.collect)()
        for family in families:
            if family.name.startswith("graticule_"):
                yield Measured(family.name, family.type, _labels(collector, family), family.documentation)


def _labels(collector: Any, family: Any) -> tuple[str, ...]:
    if family.type == "info":
        return ("process", "version")
    return tuple(collector._labelnames if hasattr(collector, "_labelnames") else family._labelnames)
