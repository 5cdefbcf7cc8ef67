"""The handlers of `vector_ingest` as a worker calls them, and files for them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio.raw
import shapely

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import HandlerContext, ProcessContext, Signals
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector import loading, reading, validation
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

JOB = JobId("0123456789abcdef0123456789abcdef")
FILE = "bronze/island/parcels.gpkg"
SQUARES = [shapely.box(600_000 + 1000 * n, 1_600_000, 600_900 + 1000 * n, 1_600_900) for n in range(5)]


@dataclass
class Chain:
    """The handlers, called as a worker calls them, on a storage and a database of their own."""

    folder: Path
    database: Database
    signals: Signals = field(default_factory=Signals)
    job_id: JobId = JOB
    told: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report: Callable[[dict[str, Any]], None] = self.told.append

    def put(self, path: str, data: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def etag(self, path: str) -> str:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            return storage.stat(path).etag

    def validate(self, path: str = FILE, layer: str | None = None) -> HandlerResult:
        container, _, blob = path.partition("/")
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            params = validation.Validate(container_name=container, blob_name=blob, layer=layer)
            return validation.validate(ProcessContext(**self._given(params), storage=storage))

    def read(self, source: Any, **options: str) -> HandlerResult:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            params = reading.Read(source=source, **options)
            return reading.read(ProcessContext(**self._given(params), storage=storage))

    async def load(self, features: Any) -> HandlerResult:
        return await loading.load(self._context(loading.Load(features=stored(features))))

    async def finalize(self, source: Any, loaded: Any) -> HandlerResult:
        params = loading.Finalize(source=source, loaded=stored(loaded), table_name="parcels_v0")
        return await loading.finalize(self._context(params))

    async def run(self, **options: str) -> dict[str, Any]:
        """Run all four, and give what the workflow ends with."""
        source = self.validate()
        read = self.read(source.output, **options)
        assert read.error_message is None
        loaded = await self.load(read.output)
        assert loaded.error_message is None
        done = await self.finalize(source.output, loaded.output)
        assert isinstance(done.output, dict), done
        return done.output

    def _context(self, params: Any) -> HandlerContext:
        return HandlerContext(**self._given(params), storage=LocalStorage(self.folder), database=self.database)

    def _given(self, params: Any) -> dict[str, Any]:
        return {
            "task_id": TaskId("t"),
            "job_id": self.job_id,
            "node_id": NodeId("n"),
            "retry_count": 0,
            "params": params,
            "logger": get_logger("test"),
            "signals": self.signals,
            "report_progress": self.report,
            "checkpoint": None,
        }


def stored(output: Any) -> Any:
    """Give an output as the next handler gets it: the database has its own order of the names in an object."""
    return json.loads(json.dumps(output, sort_keys=True))


def write_features(
    file: Path, shapes: list[Any], fields: dict[str, Any] | None = None, crs: str | None = "EPSG:32620", **more: Any
) -> bytes:
    file.parent.mkdir(parents=True, exist_ok=True)
    given = {"n": np.arange(len(shapes), dtype=np.int64)} if fields is None else fields
    options = {"driver": "GPKG", "layer": "parcels", "geometry_type": "Polygon", **more}
    pyogrio.raw.write(file, shapely.to_wkb(np.array(shapes)), list(given.values()), list(given), crs=crs, **options)
    return file.read_bytes()


def codes(result: HandlerResult) -> list[str]:
    assert result.report is not None, result
    findings: Any = result.report["findings"]
    assert all(finding["how_to_fix"] for finding in findings)
    return [finding["code"] for finding in findings]
