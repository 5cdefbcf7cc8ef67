"""The handlers that publish and withdraw, called as a worker calls them, for an asset of the test's own."""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from tests.unit.handlers.stac.outputs import cog, item_inputs, mosaic
from tests.unit.handlers.stac.table_outputs import table, table_inputs

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import Checkpoint, HandlerContext, Signals
from graticule.handlers.registry import find_handler
from graticule.handlers.result import HandlerResult
from graticule.logs import get_logger
from graticule.repositories.catalogue import Document, reading
from graticule.repositories.database import Database
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import document, validated

MODULES = {
    "publish": "graticule.handlers.publish.handlers",
    "raster": "graticule.handlers.raster.catalogue",
    "vector": "graticule.handlers.vector.registering",
}
START = datetime.fromisoformat("2026-01-01T00:00:00Z")
numbers = itertools.count(1)


class Saved:
    """The checkpoints of one job; a worker keeps them in the database."""

    def __init__(self) -> None:
        self.all: list[Checkpoint] = []

    async def load(self) -> Checkpoint | None:
        return self.all[-1] if self.all else None

    async def save(self, phase: str, data: Mapping[str, Any] | None = None, artifacts: Sequence[str] = ()) -> None:
        self.all.append(Checkpoint(phase, orjson.loads(document(dict(data or {}))), tuple(artifacts)))


class Publisher:
    """An asset with versions, a worker, and what its handlers leave."""

    def __init__(self, admin: psycopg.Connection[Any], database: Database, folder: Path) -> None:
        self.admin, self.database, self.folder = admin, database, folder
        self.storage: LocalStorage = LocalStorage(folder)
        self.asset_id, self.dataset = uuid4().hex, "roads_dem"
        self.item_id = "roads-{asset}-v{ordinal}-r{revision}"
        self.signals = Signals()
        self.told: list[dict[str, Any]] = []
        self.on_progress: Callable[[dict[str, Any]], None] = self.told.append
        self.saved: dict[str, Saved] = {}
        self.processing: JobId | None = None

    @property
    def collection(self) -> str:
        return f"ddh-{self.dataset.replace('_', '-')}-{self.asset_id[:8]}"

    @property
    def public(self) -> str:
        return f"{self.collection}-public"

    # What decisions do

    def job(self, purpose: str, ordinal: int = 0, **inputs: Any) -> JobId:
        """Start a job; one that processes a version is the one that the version names, also if it runs already."""
        if purpose == "process" and self.processing is not None:
            query = "UPDATE dagapp.dag_jobs SET input_params = input_params || %s WHERE job_id = %s"
            self.admin.execute(query, (Jsonb(inputs), self.processing))
            return self.processing
        number = next(numbers)
        job_id = JobId(f"{number:032x}")
        at = START + timedelta(seconds=number)
        versions = [{"version_prefix": self.prefix(each), "stac_collection_id": self.collection} for each in range(5)]
        with self.admin.transaction():
            self.admin.execute("SET LOCAL session_replication_role = replica")  # the version has no row here
            self.admin.execute(
                "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, asset_id,"
                " version_ordinal, purpose, created_at, updated_at, input_params)"
                " VALUES (%s, 'w', '1', repeat('a', 64), 'running', %s, %s, %s, %s, %s, %s)",
                (job_id, self.asset_id, ordinal, purpose, at, at, Jsonb(inputs or {"versions": versions})),
            )
            if purpose == "process":
                self.admin.execute(
                    "INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, current_job_id,"
                    " stac_item_id, approval_state, approved_revision, reviewer, reviewed_at)"
                    " VALUES (%s, %s, %s, %s, %s, 'approved', 1, 'r', now()) ON CONFLICT (asset_id, version_ordinal)"
                    " DO UPDATE SET current_job_id = excluded.current_job_id",
                    (self.asset_id, ordinal, f"V{ordinal}", job_id, inputs.get("stac_item_id")),
                )
        return job_id

    def cancel(self, job_id: JobId) -> None:
        """Ask for the end of a job, of which its worker has not heard yet."""
        query = "UPDATE dagapp.dag_jobs SET cancel_requested_at = now() WHERE job_id = %s"
        self.admin.execute(query, (job_id,))

    # What was made before

    def prefix(self, ordinal: int = 0) -> str:
        return f"ddh/{self.dataset}/{self.asset_id[:8]}/v{ordinal}"

    async def made(self, content: bytes = b"cog", *, ordinal: int = 0, revision: int = 1) -> dict[str, Any]:
        """Make a raster of one file, and give what its version knows of it."""
        path = f"silver/{self.prefix(ordinal)}/r{revision}/cogs/scene.tif"
        product = cog(blob_path=path, checksum=hashlib.sha256(content).hexdigest())
        return await self._registered({"cogs/scene.tif": content}, product, ordinal, revision)

    async def made_mosaic(self, *, ordinal: int = 0, revision: int = 1, tiles: int = 3) -> dict[str, Any]:
        """Make a raster of many files."""
        at = f"silver/{self.prefix(ordinal)}/r{revision}"
        cogs = [f"cogs/scene_tile_{n}_0.tif" for n in range(tiles)]
        text = orjson.dumps({"mosaicjson": "0.0.3", "tiles": {"0320": [f"{at}/{name}" for name in cogs]}})
        scheme = {"type": "FeatureCollection", "name": "scene", "source": "bronze/in/scene.tif", "source_etag": "e"}
        files = {name: name.encode() * 1000 for name in cogs} | {
            "mosaics/scene.json": text,
            "schemes/scene.geojson": orjson.dumps({**scheme, "blob_prefix": at, "tile_size": 512, "features": []}),
        }
        path = f"{at}/mosaics/scene.json"
        names = ("mosaics/scene.json", "schemes/scene.geojson")
        checksum, scheme_checksum = (hashlib.sha256(files[name]).hexdigest() for name in names)
        made = {"mosaic_path": path, "blob_path": path, "files": [*files]}
        product = mosaic(**made, checksum=checksum, scheme_checksum=scheme_checksum)
        return await self._registered(files, product, ordinal, revision)

    async def made_features(self, exports: Mapping[str, bytes], *, revision: int = 1) -> dict[str, Any]:
        """Make a table of features with files beside it, and give what its version knows of them."""
        name, prefix = f"roads_{self.asset_id[:8]}_v0_r{revision}", f"{self.prefix()}/r{revision}"
        ids = {"stac_item_id": f"roads-{self.asset_id[:8]}-v0-r{revision}", "stac_collection_id": self.collection}
        job_id = self.job("process", 0, table_name=name, blob_prefix=prefix, **ids)
        self.made_table(name, (1, "a"), job_id=job_id)
        given = {}
        for kind, data in exports.items():
            file = f"{kind}/roads.{kind}"
            await self.storage.put(f"silver/{job_id[-8:]}/out/{file}", data)
            given[kind] = {
                "name": file,
                "path": f"silver/{prefix}/{file}",
                "checksum": hashlib.sha256(data).hexdigest(),
            }
        version = {"asset_id": self.asset_id, "version_ordinal": 0, "revision": revision, "blob_prefix": prefix}
        inputs = table_inputs(**ids, **version, table=table(table_name=name), **given)
        done = await self.run("vector.stac_register_item", job_id, **inputs)
        assert isinstance(done.output, dict), done.error_message
        return {each: done.output[each] for each in ("blob_path", "table_name", *ids)}

    async def _registered(
        self, files: Mapping[str, bytes], product: dict[str, Any], ordinal: int, revision: int
    ) -> dict[str, Any]:
        item_id = self.item_id.format(asset=self.asset_id[:8], ordinal=ordinal, revision=revision)
        prefix = f"{self.prefix(ordinal)}/r{revision}"
        ids = {"stac_item_id": item_id, "stac_collection_id": self.collection}
        job_id = self.job("process", ordinal, blob_prefix=prefix, **ids)
        for name, data in files.items():
            await self.storage.put(f"silver/{job_id[-8:]}/out/{name}", data)
        version = {"asset_id": self.asset_id, "version_ordinal": ordinal, "revision": revision}
        given = item_inputs(product, blob_prefix=prefix, title="Roads", **ids, **version)
        done = await self.run("raster.stac_register_item", job_id, **given)
        assert done.error_message is None, done.error_message
        return {"blob_path": product["blob_path"], **ids}

    def made_table(self, name: str, *rows: tuple[int, str], job_id: str = "x") -> None:
        """Make a table of features, as `vector.finalize` does: it belongs to the owner of the schema."""
        table = sql.Identifier("geo", name)
        with self.admin.transaction():
            self.admin.execute("SET LOCAL ROLE graticule_worker")
            self.admin.execute(
                sql.SQL(
                    "CREATE TABLE {} (fid bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text NOT NULL,"
                    " geom public.geometry(MultiPolygon, 4326))"
                ).format(table)
            )
            self.admin.execute(sql.SQL("CREATE INDEX ON {} USING gist (geom)").format(table))
            comment = sql.Literal(f"Made by job {job_id}: a table.")
            self.admin.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, comment))
            self.admin.execute(sql.SQL("COMMENT ON COLUMN {}.name IS 'What it is called.'").format(table))
            for row in rows:
                square = f"MULTIPOLYGON((({row[0]} 0,{row[0]} 1,{row[0] + 1} 1,{row[0]} 0)))"
                self.admin.execute(
                    sql.SQL("INSERT INTO {} VALUES (%s, %s, public.ST_GeomFromText(%s, 4326))").format(table),
                    (*row, square),
                )
            self.admin.execute("RESET ROLE")
            self.admin.execute("SELECT dagapp.take_table('geo', %s)", [name])

    # What a worker does

    async def run(self, handler: str, job_id: JobId, **given: Any) -> HandlerResult:
        """Run a handler with these parameters."""
        found = find_handler(handler, MODULES[handler.partition(".")[0]])
        assert found is not None
        ctx = HandlerContext(
            task_id=TaskId("t"),
            job_id=job_id,
            node_id=NodeId("n"),
            retry_count=0,
            params=validated(found.params, given),
            logger=get_logger("test"),
            signals=self.signals,
            report_progress=self.on_progress,
            storage=self.storage,
            checkpoint=self.saved.setdefault(job_id, Saved()),
            database=self.database,
        )
        result = await found.function(ctx)
        assert isinstance(result, HandlerResult)
        return result

    async def export(
        self, outputs: dict[str, Any], *, job_id: JobId | None = None, ordinal: int = 0, revision: int = 1, **more: Any
    ) -> HandlerResult:
        """Export a revision; without a job, by one that is started now. A job keeps the inputs that it has."""
        version = {"asset_id": self.asset_id, "version_ordinal": ordinal, "version_prefix": self.prefix(ordinal)}
        kind = "vector" if outputs.get("table_name") else "raster"
        given = {**version, "revision": revision, "data_type": kind, **outputs, **more}
        job_id = job_id or self.job("export", ordinal, **given)
        query = "UPDATE dagapp.dag_jobs SET input_params = %s || input_params WHERE job_id = %s"
        self.admin.execute(query, (Jsonb(given), job_id))
        return await self.run("publish.export", job_id, **given)

    async def reverse(self, *, job_id: JobId | None = None, ordinal: int = 0, **more: Any) -> HandlerResult:
        given = {"asset_id": self.asset_id, "version_ordinal": ordinal, "version_prefix": self.prefix(ordinal), **more}
        given.setdefault("stac_collection_id", self.collection)
        return await self.run("publish.reverse", job_id or self.job("reversal", ordinal), **given)

    async def unpublish(self, *ordinals: int, job_id: JobId | None = None, **more: Any) -> HandlerResult:
        versions = [
            {"version_ordinal": ordinal, "version_prefix": self.prefix(ordinal), "stac_collection_id": self.collection}
            for ordinal in ordinals
        ]
        job_id = job_id or self.job("unpublish", ordinals[-1])
        return await self.run("publish.unpublish", job_id, asset_id=self.asset_id, versions=versions, **more)

    # What is there

    async def blobs(self, zone: str = "external") -> dict[str, bytes]:
        """Give the blobs of the asset in a zone, by what follows its prefix."""
        at = f"{zone}/ddh/{self.dataset}/{self.asset_id[:8]}/"
        paths = [blob.path async for blob in self.storage.list(at)]
        return {path.removeprefix(at): await self.storage.get(path) for path in paths}

    async def collection_of(self, collection_id: str) -> Document | None:
        async with reading(self.database) as catalogue:
            return await catalogue.collection(collection_id)

    async def item(self, item_id: str, collection_id: str | None = None) -> Document | None:
        async with reading(self.database) as catalogue:
            return await catalogue.item(collection_id or self.public, item_id)

    def items(self, collection_id: str) -> list[str]:
        query = "SELECT id FROM pgstac.items WHERE collection = %s ORDER BY id"
        return [row[0] for row in self.admin.execute(query, (collection_id,))]

    def tables(self, schema: str = "external") -> list[str]:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE %s ORDER BY 1"
        return [row[0] for row in self.admin.execute(query, (schema, f"%{self.asset_id[:8]}%"))]

    def note(self, job_id: JobId, data: dict[str, Any]) -> None:
        """Keep the checkpoint of a job where a worker keeps it."""
        with self.admin.transaction():
            self.admin.execute("SET LOCAL session_replication_role = replica")
            self.admin.execute(
                "INSERT INTO dagapp.dag_checkpoints (job_id, node_id, task_id, phase, data, artifacts, saved_at)"
                " VALUES (%s, 'export', 't', 'factory', %s, '{}', now())",
                (job_id, Jsonb(data)),
            )


def output(result: HandlerResult) -> Any:
    assert result.error_message is None, result.error_message
    assert not result.is_interrupted
    return result.output
