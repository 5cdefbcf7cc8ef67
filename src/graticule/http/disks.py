"""Is there room on the disks that a process writes to: a check of its readiness, and a metric."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import JsonValue

from graticule.http.probes import CheckResult
from graticule.storage.disk_space import MIB, free_bytes

MEASURE_SECONDS: Final = 2.0


class Disks(Collector):
    """The disks of one process, by what they are for."""

    def __init__(
        self, folders: Mapping[str, Path], min_free_mb: int, *, free: Callable[[Path], int] = free_bytes
    ) -> None:
        self._folders = folders
        self._min_free = min_free_mb * MIB
        self._free = free
        self._known: dict[str, int] = {}

    def install(self, app: FastAPI) -> None:
        """Let Prometheus see them."""
        app.state.registry.register(self)
        app.state.refreshes.append(self.refresh)

    async def check(self) -> CheckResult:
        """Find out whether every disk has room."""
        free = await self._measure()
        lacking = [name for name, count in free.items() if count < self._min_free]
        detail: dict[str, JsonValue] = {f"{name}_free_bytes": count for name, count in free.items()}
        if not lacking:
            return CheckResult(ok=True, detail=detail)
        full = ", ".join(f"{self._folders[name]} has {free[name] // MIB} MiB free" for name in lacking)
        fix = f"Free at least {self._min_free // MIB} MiB there, or lower GRATICULE_MIN_FREE_MB."
        return CheckResult(ok=False, detail=detail, reason=f"{full}. {fix}")

    async def refresh(self) -> None:
        """Measure for the metric; a network disk that does not answer has none."""
        self._known = {}
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(MEASURE_SECONDS):
                self._known = await self._measure()

    def collect(self) -> Iterable[Metric]:
        """Return how much was free when it was measured."""
        gauge = GaugeMetricFamily("graticule_disk_free_bytes", "Room on a disk that is written to.", labels=["disk"])
        for name, count in self._known.items():
            gauge.add_metric([name], count)
        yield gauge

    async def _measure(self) -> dict[str, int]:
        """Ask in a thread: the loop must not wait for a network disk."""
        return await asyncio.to_thread(lambda: {name: self._free(each) for name, each in self._folders.items()})
