"""Files go in, and come out of the features' application: by a real worker, with its real child processes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate, count
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
import httpx
import psycopg
import shapely
from fastapi import FastAPI
from psycopg import sql
from psycopg.rows import dict_row
from shapely.geometry.base import BaseGeometry
from starlette.types import Receive, Scope, Send
from tests.conftest import TestDatabase
from tests.integration.handlers.vector.tables import ServedNumber

from graticule.config import Settings, StorageKind
from graticule.core.models.platform import DataType
from graticule.core.table import DatabaseRole
from graticule.handlers.vector.described import Chunk, Opening
from graticule.handlers.vector.sources import reading
from graticule.serve.features.app import create_features
from graticule.serve.features.connections import SESSION_SETTINGS
from graticule.serve.features.layer import Layers
from graticule.serve.served import Served
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.storage.place import storage_of
from graticule.worker.app import create_worker

QUEUE: Final = "container-tasks"
ITEMS: Final = "/collections/features/items"
COLUMNS: Final = """
    SELECT attname AS name, format_type(atttypid, atttypmod) AS type, col_description(attrelid, attnum) AS comment
    FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY tablename"
_WORKFLOW: Final = """
    INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
    VALUES (repeat('ab', 32), 'flow', '1', 'Flow', '{}')
"""
_JOB: Final = """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, owner_id)
    VALUES (%s, 'flow', '1', repeat('ab', 32), 'owner')
"""
_TASK: Final = """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params) VALUES (%s, %s, %s, %s, %s, %s)
"""
_RESULT: Final = "SELECT * FROM dagapp.dag_task_results WHERE task_id = %s AND status <> 'running'"
_CODE: Final = re.compile(r"\(([a-z0-9_]+), ")
Answer = TypeVar("Answer")


class Refused(Exception):
    """A step has failed."""

    def __init__(self, handler: str, result: dict[str, Any]) -> None:
        super().__init__(f"{handler}: {result['error_message']}")
        self.message = str(result["error_message"])
        self.retryable = bool(result["retryable"])
        found = _CODE.search(self.message)
        self.code = found[1] if found else None


@dataclass(frozen=True)
class Loaded:
    """A table as it is served, and what the steps have told."""

    source: dict[str, Any]
    result: dict[str, Any]
    columns: list[dict[str, Any]]  # of the table, in its order, without fid and geom
    geometry: str  # the type of the column
    features: list[dict[str, Any]]

    @property
    def shapes(self) -> list[BaseGeometry | None]:
        return [shape_of(feature["geometry"]) for feature in self.features]

    def values(self, column: str) -> list[Any]:
        return [feature["properties"][column] for feature in self.features]

    @property
    def fixes(self) -> set[str]:
        return {finding["code"] for finding in self.source["findings"]}


def original(column: dict[str, Any]) -> str:
    """Tell how the source calls a column; an empty name cannot be a comment."""
    comment, name = column["comment"], str(column["name"])
    return str(comment) if comment is not None else "" if name.startswith("field") else name


def shape_of(geometry: dict[str, Any] | None) -> BaseGeometry | None:
    return None if geometry is None else shapely.from_geojson(json.dumps(geometry))


class Database:
    """A database of its own, and what the orchestrator would do in it."""

    def __init__(self, database: TestDatabase) -> None:
        self.database = database
        self._numbers = count(1)
        self._connection = psycopg.connect(database.url(), autocommit=True, row_factory=dict_row)
        self.ask(_WORKFLOW)

    def close(self) -> None:
        self._connection.close()

    def ask(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def new_job(self) -> str:
        job_id = f"{next(self._numbers):032x}"
        self.ask(_JOB, job_id)
        return job_id

    def give(self, job_id: str, handler: str, params: dict[str, Any], node_id: str | None = None) -> str:
        """Give a task out."""
        number = next(self._numbers)
        task_id = f"t{number}"
        self.ask(_TASK, task_id, job_id, node_id or f"n{number}", QUEUE, handler, json.dumps(params))
        self.ask("SELECT pg_notify('graticule_queue_' || md5(%s), '')", QUEUE)
        return task_id

    def result(self, task_id: str) -> dict[str, Any] | None:
        found = self.ask(_RESULT, task_id)
        return found[0] if found else None

    def tables(self) -> list[str]:
        return [row["tablename"] for row in self.ask(TABLES)]

    def forget(self) -> None:
        """Drop all that was loaded."""
        for table in self.tables():
            self._connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("geo", table)))
        self.ask("DELETE FROM dagapp.dag_task_results; DELETE FROM dagapp.dag_tasks")


class Ingestion:
    """A worker at work, and the application that serves what it has loaded."""

    def __init__(self, database: TestDatabase, home: Path, **settings: Any) -> None:
        self.home = home
        self.settings = Settings(home=home, worker_grace_seconds=1, storage_root=self.storage, **settings)
        self.rows = Database(database)
        self._runner = asyncio.Runner()
        self._end = asyncio.Event()
        self._ready = asyncio.Event()
        self._features: FastAPI = create_features()
        self._numbers = count(1)
        self._main = self._runner.get_loop().create_task(self._run())
        self.run(self._until_ready())

    @property
    def storage(self) -> Path:
        return self.home / "storage"

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Let the worker work until something is done."""
        return self._runner.run(work)

    def close(self) -> None:
        self._end.set()
        self.run(_until(self._main))
        self._runner.close()
        self.rows.close()

    async def _until_ready(self) -> None:
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait({waiting, self._main}, return_when=asyncio.FIRST_COMPLETED)
        if self._main.done():
            await self._main

    async def _run(self) -> None:
        worker = create_worker(
            self.settings, self.rows.database.url(DatabaseRole.WORKER), queues=[QUEUE], concurrency=4
        )
        async with worker.router.lifespan_context(worker), self._pool():
            self._ready.set()
            await self._end.wait()

    @asynccontextmanager
    async def _pool(self) -> AsyncIterator[None]:
        url = self.rows.database.url(DatabaseRole.SERVE_INTERNAL)
        async with asyncpg.create_pool(url, min_size=0, max_size=2, server_settings=SESSION_SETTINGS) as pool:
            self._features.state.pool = pool
            yield

    def new_file(self, ending: str) -> Path:
        """Give a name for a partner's file."""
        file = self.storage / "bronze" / f"f{next(self._numbers)}" / f"a.{ending}"
        file.parent.mkdir(parents=True)
        return file

    def step(self, job_id: str, handler: str, **params: Any) -> dict[str, Any]:
        """Run a step to its end, and give its output."""
        (output,) = self.steps(job_id, handler, [params])
        return output

    def steps(self, job_id: str, handler: str, params: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run steps beside each other."""
        tasks = [self.rows.give(job_id, handler, each) for each in params]
        return [self._output(handler, result) for result in self.run(self.results(tasks))]

    async def results(self, tasks: list[str]) -> list[dict[str, Any]]:
        return [await self.until(lambda task=task: self.rows.result(task), task) for task in tasks]  # type: ignore[misc]

    async def until(self, question: Callable[[], Answer | None], what: str, seconds: float = 60) -> Answer:
        async with asyncio.timeout(seconds):
            while not (answer := question()):  # noqa: ASYNC110 - what others write into a table gives no signal
                await asyncio.sleep(0.004)
        return answer

    def _output(self, handler: str, result: dict[str, Any]) -> dict[str, Any]:
        if result["status"] != "completed":
            raise Refused(handler, result)
        if result["output_ref"] is not None:
            with BlockingStorage(storage_of(self.settings)) as storage:
                found: dict[str, Any] = json.loads(storage.get(result["output_ref"]))
            return found
        output: dict[str, Any] = result["output"]
        return output

    def load(self, file: Path, *, rows_per_chunk: int | None = None, **options: Any) -> Loaded:
        """Take a file through all steps, and ask for its features."""
        job_id = self.rows.new_job()
        source = self.validated(job_id, file, **options)
        if rows_per_chunk is not None:
            source["chunks"] = self.chunks(source, rows_per_chunk)
        table_name = f"direct_{job_id[-8:]}"
        result = self.loaded(job_id, source, table_name)
        return self.served(source, result, table_name)

    def attempted(self, file: Path, **options: Any) -> "Loaded | Refused":
        """Take a file through all steps, or give why it was refused: for good, and with a code."""
        try:
            return self.load(file, **options)
        except Refused as refused:
            assert refused.code is not None  # noqa: PT017 - it is given back
            assert not refused.retryable  # noqa: PT017
            return refused

    def validated(self, job_id: str, file: Path, **options: Any) -> dict[str, Any]:
        container, _, blob = self.stored(file).partition("/")
        return self.step(job_id, "vector.validate", container_name=container, blob_name=blob, **options)

    def stored(self, file: Path) -> str:
        """Give the path of a partner's file in the storage, to which it is sent where that is not on this machine."""
        path = str(file.relative_to(self.storage))
        if self.settings.storage is not StorageKind.LOCAL:
            with BlockingStorage(storage_of(self.settings)) as storage:
                storage.put(path, file.read_bytes())
        return path

    def loaded(self, job_id: str, source: dict[str, Any], table_name: str) -> dict[str, Any]:
        """Run the steps after the validation."""
        staged = self.step(job_id, "vector.stage", source=source)
        chunks = [{"source": staged["source"], "chunk": chunk} for chunk in staged["chunks"]]
        loaded = self.steps(job_id, "vector.load", chunks)
        return self.step(job_id, "vector.finalize", source=source, loaded=loaded, table_name=table_name)

    def chunks(self, source: dict[str, Any], rows_per_chunk: int, folder: Path | None = None) -> list[dict[str, Any]]:
        """Share the rows out: into many small chunks, where the format can be read in parts."""
        kept = storage_of(self.settings) if folder is None else LocalStorage(folder)
        with BlockingStorage(kept) as storage:
            opening = Opening.model_validate(source["opening"])
            ranges = [each for each in reading.ranges(storage, opening, rows_per_chunk) or [] if each[2]]
        if not ranges:
            return list(source["chunks"])
        firsts = accumulate((rows for _, _, rows in ranges), initial=1)
        chunks = [
            Chunk(index=index, first_fid=first, row_count=rows, begin=begin, end=end)
            for index, ((begin, end, rows), first) in enumerate(zip(ranges, firsts, strict=False))
        ]
        return [chunk.model_dump(mode="json") for chunk in chunks]

    def served(self, source: dict[str, Any], result: dict[str, Any], table_name: str) -> Loaded:
        """Ask for all features of a table."""
        columns = self.rows.ask(COLUMNS, f"geo.{table_name}")
        features = self.run(self._asked(table_name))
        (geometry,) = [column["type"] for column in columns if column["name"] == "geom"]
        own = [column for column in columns if column["name"] not in {"fid", "geom"}]
        return Loaded(source, result, own, geometry, features)

    async def _asked(self, table_name: str) -> list[dict[str, Any]]:
        self._features.state.layers = Layers()
        transport = httpx.ASGITransport(Gate(self._features, table_name))
        async with httpx.AsyncClient(transport=transport, base_url="https://maps.example") as client:
            response = await client.get(ITEMS, params={"f": "geojson", "limit": 10_000})
        assert response.status_code == 200, response.text
        page = json.loads(response.content, parse_float=ServedNumber.of)
        assert page["numberMatched"] == page["numberReturned"] == len(page["features"])
        features: list[dict[str, Any]] = page["features"]
        return features


@dataclass(frozen=True)
class Gate:
    """What stands before the application and decides what is served."""

    app: FastAPI
    table_name: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        served = Served(
            "a", 1, 1, DataType.VECTOR, table_schema="geo", table_name=self.table_name, output_hash=self.table_name
        )
        state = {**scope.get("state", {}), "served": served}
        await self.app(
            {**scope, "path": f"/features/a{scope['path']}", "root_path": "/features/a", "state": state}, receive, send
        )


async def _until(task: "asyncio.Task[None]") -> None:
    await task
