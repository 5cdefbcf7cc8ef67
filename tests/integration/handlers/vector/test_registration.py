"""A table in the catalogue: with the files beside it, as long as it is the live one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from tests.conftest import TestDatabase, new_database
from tests.integration.repositories.rows import add_job
from tests.unit.handlers.stac.outputs import cog, item_inputs
from tests.unit.handlers.stac.table_outputs import BBOX, geoparquet, pmtiles, table, table_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.table import DatabaseRole
from graticule.handlers.context import Checkpoints, HandlerContext, Signals
from graticule.handlers.outputs.staging import scratch_path, staged_path
from graticule.handlers.raster.catalogue import stac_register_item as register_raster
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.inputs import ItemInputs
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.vector.registering import stac_register_item
from graticule.logs import get_logger
from graticule.repositories.catalogue import Document, reading
from graticule.repositories.database import Database
from graticule.repositories.vectors import Description, FeatureTable, VectorRepository
from graticule.services.asset_outcomes import VersionOutputs
from graticule.storage.local import LocalStorage

FINAL = "silver/direct/d/s/v1/r1"
BOTH: dict[str, Any] = {"geoparquet": geoparquet(), "pmtiles": pmtiles()}


@pytest.fixture(scope="module")
def created() -> Iterator[TestDatabase]:
    with new_database() as made:
        yield made


class Registry:
    """A worker's handler, a storage, and a collection and a table of the test's own."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.storage = database, LocalStorage(folder)
        self.collection_id, self.table_name = f"direct-{uuid4().hex[:12]}", f"direct_{uuid4().hex[:12]}"
        self.job_id, self.later_id = JobId(uuid4().hex), JobId(uuid4().hex)

    async def load(self, job_id: JobId | None = None) -> None:
        """Put a table of a job in the place of the live one."""
        async with self.database.connection() as connection, connection.transaction():
            tables = VectorRepository(connection, job_id or self.job_id)
            made = FeatureTable({"geom": "geometry(Point, 4326)"})
            await tables.create_staging(made, "a test")
            await tables.index_key(made)
            await tables.index_geometry(made)
            await tables.complete(Description("a test.", {"geom": "geom"}))
            assert await tables.swap(self.table_name)

    async def stage(self, *names: str, job_id: JobId | None = None) -> None:
        for name in names:
            await self.storage.put(scratch_path(self.storage, job_id or self.job_id, name), name.encode())

    async def register(self, *, job_id: JobId | None = None, **more: Any) -> HandlerResult:
        given = table_inputs(stac_collection_id=self.collection_id, table=table(table_name=self.table_name), **more)
        return await stac_register_item(self.context(TableInputs.model_validate(given), job_id or self.job_id))

    def context(self, params: Any, job_id: JobId) -> HandlerContext:
        return HandlerContext(
            task_id=TaskId("t"),
            job_id=job_id,
            node_id=NodeId("n"),
            retry_count=0,
            params=params,
            logger=get_logger("test"),
            signals=Signals(),
            report_progress=lambda _: None,
            storage=self.storage,
            checkpoint=cast("Checkpoints", None),
            database=self.database,
        )

    async def blobs(self) -> list[str]:
        return [blob.path async for blob in self.storage.list("silver/")]

    async def found(self) -> tuple[Document | None, Document | None]:
        async with reading(self.database) as catalogue:
            return await catalogue.item(self.collection_id, "parcels-v1"), await catalogue.collection(
                self.collection_id
            )


@pytest.fixture
async def registry(created: TestDatabase, tmp_path: Path) -> AsyncIterator[Registry]:
    async with Database(created.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=4) as database:
        registry = Registry(database, tmp_path)
        with psycopg.connect(created.url(), autocommit=True) as ask:
            for job_id in (registry.job_id, registry.later_id):
                add_job(ask, job_id)
        yield registry


def _output(result: HandlerResult) -> dict[str, Any]:
    assert result.error_message is None
    assert isinstance(result.output, dict)
    return result.output


async def test_a_table_is_catalogued_with_the_files_beside_it(registry: Registry) -> None:
    await registry.load()
    await registry.stage("out/geoparquet/parcels.parquet", "out/pmtiles/parcels.pmtiles", "source/parcels.shp")
    output = _output(await registry.register(**BOTH))
    assert await registry.blobs() == [f"{FINAL}/geoparquet/parcels.parquet", f"{FINAL}/pmtiles/parcels.pmtiles"]
    kept = VersionOutputs.model_validate(output)
    assert (kept.blob_path, kept.table_name, kept.bbox) == (BOTH["geoparquet"]["path"], registry.table_name, BBOX)
    assert (kept.stac_item_id, kept.stac_collection_id) == ("parcels-v1", registry.collection_id)
    assert (kept.content_hash, len(kept.output_hash or "")) == ("ef" * 32, 64)
    assert output["validation"] == {"outcome": "ok", "findings": [], "facts": {"layer": "parcels", "repaired": 1}}
    assert output["columns"]["geom"] == "geometry(MultiPolygon, 4326)"
    item, collection = await registry.found()
    assert item is not None
    assert collection is not None
    assert_valid(item)
    assert_valid(collection)
    assert item["assets"]["pmtiles"]["file:size"] == len("out/pmtiles/parcels.pmtiles")
    assert collection["extent"]["spatial"]["bbox"] == [BBOX]
    assert collection["summaries"] == {"proj:code": ["EPSG:4326"]}
    assert (collection["keywords"], set(collection["item_assets"])) == (
        ["vector", "ddh"],
        {"geoparquet", "pmtiles", "features"},
    )


async def test_a_second_run_changes_nothing_but_when_it_was_written(registry: Registry) -> None:
    await registry.load()
    runs: list[dict[str, Any]] = [{}, BOTH]
    for exports in runs:
        await registry.stage(*(f"out/{file['name']}" for file in exports.values()))
        first, before = _output(await registry.register(**exports)), await registry.found()
        assert _output(await registry.register(**exports)) == first
        again = await registry.found()
        assert await registry.blobs() == sorted(file["path"] for file in exports.values())
        for item, _ in (before, again):
            assert item is not None
            item["properties"].pop("updated")
        assert again == before


async def test_without_files_what_an_earlier_job_has_left_goes(registry: Registry) -> None:
    await registry.load()
    await registry.stage("out/geoparquet/parcels.parquet")
    _output(await registry.register(geoparquet=geoparquet()))
    await registry.load(registry.later_id)
    await registry.stage("source/parcels.shp", job_id=registry.later_id)
    output = _output(await registry.register(job_id=registry.later_id))
    assert (output["blob_path"], output["geoparquet_path"]) == (None, None)
    assert await registry.blobs() == []
    item, _ = await registry.found()
    assert item is not None
    assert_valid(item)
    assert set(item["assets"]) == {"features"}


async def test_a_table_that_another_job_has_replaced_is_not_catalogued(registry: Registry) -> None:
    await registry.load()
    await registry.load(registry.later_id)
    await registry.stage("out/geoparquet/parcels.parquet")
    result = await registry.register(geoparquet=geoparquet())
    assert f"Another job has replaced the table '{registry.table_name}'" in str(result.error_message)
    assert not result.retryable
    assert await registry.blobs() == [staged_path(registry.storage, registry.job_id, "geoparquet/parcels.parquet")]
    assert await registry.found() == (None, None)
    registry.table_name = "never_was"
    assert not (await registry.register()).retryable


async def test_nobody_replaces_the_table_before_it_is_catalogued(registry: Registry, created: TestDatabase) -> None:
    await registry.load()
    held = "SELECT mode FROM pg_locks WHERE granted AND relation = %s::regclass AND mode LIKE '%%Share%%'"
    with psycopg.connect(created.url(), autocommit=True) as ask:
        async with registry.database.connection() as connection, connection.transaction():
            assert await VectorRepository(connection, registry.job_id).keep_live(registry.table_name)
            assert ask.execute(held, [f"geo.{registry.table_name}"]).fetchall() == [("AccessShareLock",)]


async def test_a_collection_holds_rasters_and_tables(registry: Registry) -> None:
    await registry.stage("out/cogs/scene.tif", job_id=registry.later_id)
    at = {"blob_prefix": "direct/d/r/v1/r1", "stac_collection_id": registry.collection_id}
    given = item_inputs(cog(blob_path="silver/direct/d/r/v1/r1/cogs/scene.tif"), **at)
    _output(await register_raster(registry.context(ItemInputs.model_validate(given), registry.later_id)))
    await registry.load()
    await registry.stage("out/geoparquet/parcels.parquet")
    _output(await registry.register(geoparquet=geoparquet()))
    async with reading(registry.database) as catalogue:
        raster = await catalogue.item(registry.collection_id, "scene-v1")
    item, collection = await registry.found()
    for document in (raster, item, collection):
        assert document is not None
        assert_valid(document)
    assert [set(each["assets"]) for each in (raster or {}, item or {})] == [{"data"}, {"geoparquet"}]
