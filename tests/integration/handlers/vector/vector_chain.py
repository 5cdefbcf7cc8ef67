"""The steps of `vector_ingest` that load a table, called as a worker calls them, and files for them."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyogrio.raw
import shapely
from tests.integration.repositories import rows

from graticule.core.errors import GraticuleError
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.states import MessageStatus
from graticule.handlers.context import HandlerContext, ProcessContext, Signals
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector import loading, validation
from graticule.handlers.vector.described import Chunk, Opening
from graticule.handlers.vector.sources import reading
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.worker.child_staging import RelayedStaging
from graticule.worker.staging import Staging, TaskStaging

JOB = JobId("0123456789abcdef0123456789abcdef")
OTHER_JOB = JobId("f" * 32)
FILE = "bronze/island/parcels.gpkg"
TABLE = "direct_parcels"
SQUARES = [shapely.box(600_000 + 1000 * n, 1_600_000, 600_900 + 1000 * n, 1_600_900) for n in range(5)]


class NearLink:
    """The way from a handler to the worker's side of staging, without a process between."""

    def __init__(self, staging: TaskStaging, lost: str | None) -> None:
        self._staging = staging
        self._lost = lost
        self._loop = asyncio.get_running_loop()

    def ask(self, header: dict[str, Any], body: bytes | memoryview = b"") -> tuple[dict[str, Any], bytes]:
        asked = asyncio.run_coroutine_threadsafe(self._staging.answer(header, bytes(body)), self._loop)
        try:
            answer = asked.result(30)
        except GraticuleError as error:
            return {"error": str(error), "code": error.code}, b""
        return ({"error": "The answer was lost."}, b"") if header["do"] == self._lost else ({}, answer)


@dataclass
class Chain:
    """The handlers, called as a worker calls them, on a storage and a database of their own."""

    folder: Path
    database: Database
    signals: Signals = field(default_factory=Signals)
    job_id: JobId = JOB
    told: list[dict[str, Any]] = field(default_factory=list)
    lost: str | None = None  # what the worker does, without an answer that reaches the handler

    def __post_init__(self) -> None:
        self.report: Callable[[dict[str, Any]], None] = self.told.append

    def put(self, path: str, data: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def etag(self, path: str) -> str:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            return storage.stat(path).etag

    def validate(self, path: str = FILE, layer: str | None = None, **options: Any) -> HandlerResult:
        container, _, blob = path.partition("/")
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            params = validation.Validate(container_name=container, blob_name=blob, layer=layer, **options)
            return validation.validate(ProcessContext(**self._given(params), storage=storage))

    def source(self, rows_per_chunk: int | None = None, path: str = FILE) -> dict[str, Any]:
        """Validate a file, and share its rows out into small chunks."""
        found = self.validate(path)
        assert isinstance(found.output, dict), found
        if rows_per_chunk is None:
            return found.output
        return {**found.output, "chunks": self._chunks(Opening.model_validate(found.output["opening"]), rows_per_chunk)}

    def _chunks(self, opening: Opening, rows_per_chunk: int) -> list[dict[str, Any]]:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            ranges = reading.ranges(storage, opening, rows_per_chunk) or []
        firsts = accumulate((count for _, _, count in ranges), initial=1)
        return [
            Chunk(index=index, first_fid=first, row_count=count, begin=begin, end=end).model_dump(mode="json")
            for index, ((begin, end, count), first) in enumerate(zip(ranges, firsts, strict=False))
        ]

    async def stage(self, source: Any, **options: str) -> HandlerResult:
        return await loading.stage(self._context(loading.Stage(source=stored(source), **options)))

    async def load(self, source: Any, index: int = 0, **options: str) -> HandlerResult:
        """Load one chunk, in a thread where a worker has a process."""
        params = loading.Load(source=stored(source), chunk=stored(source["chunks"][index]), **options)
        message = TaskMessage(self._task_id, self.job_id, NodeId("n"), "vector.load", {}, "q", delivery_count=1)
        async with Staging(self.database).of(message) as staging:
            relayed = RelayedStaging(NearLink(staging, self.lost))
            return await asyncio.to_thread(self._loaded, params, relayed)

    def _loaded(self, params: loading.Load, staging: RelayedStaging) -> HandlerResult:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            return loading.load(ProcessContext(**self._given(params), storage=storage, staging=staging))

    async def load_all(self, source: Any, **options: str) -> list[Any]:
        return [output_of(await self.load(source, chunk["index"], **options)) for chunk in source["chunks"]]

    async def finalize(self, source: Any, loaded: Any, table_name: str = TABLE, **options: str) -> HandlerResult:
        given = {"source": stored(source), "loaded": stored(loaded), "table_name": table_name, **options}
        return await loading.finalize(self._context(loading.Finalize.model_validate(given)))

    async def prepare(self, source: Any, **options: str) -> list[Any]:
        """Stage and load, and give what the chunks gave."""
        output_of(await self.stage(source, **options))
        return await self.load_all(source, **options)

    async def run(self, rows_per_chunk: int | None = None, **options: str) -> dict[str, Any]:
        """Run all steps, and give what the last one gave."""
        source = self.source(rows_per_chunk)
        loaded = await self.prepare(source, **options)
        done: dict[str, Any] = output_of(await self.finalize(source, loaded, **options))
        return done

    @property
    def _task_id(self) -> TaskId:
        return TaskId(f"{self.job_id}_n_0")

    def _context(self, params: Any) -> HandlerContext:
        return HandlerContext(**self._given(params), storage=LocalStorage(self.folder), database=self.database)

    def _given(self, params: Any) -> dict[str, Any]:
        return {
            "task_id": self._task_id,
            "job_id": self.job_id,
            "node_id": NodeId("n"),
            "retry_count": 0,
            "params": params,
            "logger": get_logger("test"),
            "signals": self.signals,
            "report_progress": self.report,
            "checkpoint": None,
        }


def begin_job(url: str, job_id: JobId, **job: Any) -> None:
    """Do what an orchestrator does: there is a job, and a worker has its task."""
    task = rows.task(
        f"{job_id}_n_0",
        job_id=job_id,
        status=MessageStatus.LEASED,
        leased_by=WorkerId("w"),
        lease_expires_at=rows.LATER,
        delivery_count=1,
    )
    with psycopg.connect(url) as connection:
        for row in (rows.job(job_id, **job), task):
            connection.execute(statements.insert(type(row)), statements.parameters(row))


def output_of(result: HandlerResult) -> Any:
    assert result.error_message is None, result
    assert not result.is_interrupted
    return result.output


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
