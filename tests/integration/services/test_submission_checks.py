"""What is refused at the door: before anything of a submission is written, with the field that is wrong."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from tests.integration.services.desk import RITA, Desk, submission
from tests.integration.services.engine import Bench, Shelf, flow
from tests.sources import put_source

from graticule.core.errors import InvalidInput, Refused, SourceNotFound, Unavailable
from graticule.core.models.platform import DataType
from graticule.core.refusals import Refusal
from graticule.repositories.database import Database
from graticule.services.submission_checks import SubmissionChecks
from graticule.services.submissions import SubmissionService
from graticule.storage.local import LocalStorage
from graticule.storage.protocol import BlobInfo

OPTIONS = """{
  container_name: {type: string, required: true}, blob_name: {type: string, required: true},
  target_crs: {type: string}, source_crs: {type: string}, resampling: {type: string, enum: [auto, nearest]},
  jpeg_quality: {type: integer, minimum: 1, maximum: 100}, geoparquet: {type: boolean}, band_names: {type: object}}"""
WORKFLOWS = tuple(
    flow("\n  start: {type: start, next: end}", workflow_id=name, inputs=OPTIONS)
    for name in ("raster_ingest", "vector_ingest")
)
TABLES = ("platform_requests", "geospatial_assets", "asset_versions", "dag_jobs", "dag_job_events", "dag_workflows")


class SlowStorage(LocalStorage):
    """A storage that does not answer."""

    def limited_to(self, sources: Sequence[str] | None) -> Self:
        return self

    async def stat(self, path: str) -> BlobInfo:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.fixture
async def desk(pool: Database, tmp_path: Path) -> Desk:
    made = Desk(pool, tmp_path)
    made.bench = Bench(pool, tmp_path / "bench", *WORKFLOWS)
    shelf: Any = Shelf(*WORKFLOWS)
    checks = SubmissionChecks(pool, LocalStorage(made.sources))
    made.submissions = SubmissionService(pool, made.bench.jobs, shelf, checks)
    return made


async def refused(desk: Desk, data_type: str = "raster", **options: Any) -> list[str]:
    """Submit options that are refused, and return the fields that are wrong; nothing was written."""
    with pytest.raises(InvalidInput) as caught:
        await desk.submit(data_type=data_type, processing_options=options)
    assert caught.value.faults
    assert not isinstance(caught.value, SourceNotFound)
    for table in TABLES:
        (count,) = await desk.rows(f"SELECT count(*) FROM dagapp.{table}")
        assert count == {"count": 0}, table
    for fault in caught.value.faults:
        assert fault.loc[:2] == ("body", "processing_options")
    return [str(fault.loc[2]) for fault in caught.value.faults]


@pytest.mark.parametrize(
    "options",
    [
        {"colour": "red"},
        {"container_name": "silver"},
        {"blob_name": "arcgis/secret.tif"},
        {"pipeline": "none"},
        {"pipeline": 1},
        {"resampling": "cubic spline"},
        {"resampling": 1},
        {"jpeg_quality": 0},
        {"jpeg_quality": 101},
        {"jpeg_quality": "85"},
        {"jpeg_quality": 85.5},
        {"geoparquet": "yes"},
        {"band_names": "Red"},
        {"target_crs": 4326},
        *({"target_crs": code} for code in ("EPSG:999999", "EPSG:0", "EPSG:", "garbage", "", "WGS 84", "EPSG:4326 ")),
        *({"source_crs": code} for code in ("FOO:4326", "+init=file", "+proj=longlat", "@/etc/passwd", "/etc/passwd")),
        {"source_crs": "EPSG:\n4326"},
        {"source_crs": "E" * 100_000},
    ],
)
async def test_an_option_that_cannot_be_used_is_named(desk: Desk, options: dict[str, Any]) -> None:
    assert await refused(desk, **options) == [*options]


async def test_all_that_is_wrong_is_named_at_once(desk: Desk) -> None:
    assert await refused(desk, colour=1, taste=2) == ["colour", "taste"]
    assert await refused(desk, jpeg_quality=0, resampling="x") == ["jpeg_quality", "resampling"]
    assert await refused(desk, target_crs="EPSG:1", source_crs="EPSG:2") == ["source_crs", "target_crs"]


async def test_bands_may_be_named_in_a_list(desk: Desk) -> None:
    receipt = await desk.submit(data_type="raster", processing_options={"band_names": ["Red", "Green"]})
    (job,) = await desk.jobs(receipt.asset_id)
    assert job.input_params["band_names"] == {"1": "Red", "2": "Green"}


async def test_a_table_takes_codes_of_epsg_alone(desk: Desk) -> None:
    assert await refused(desk, "vector", target_crs="ESRI:54009") == ["target_crs"]


@pytest.mark.parametrize("code", ["EPSG:4326", "EPSG:32620", "ESRI:54009", "EPSG:7415", "OGC:CRS84"])
async def test_codes_that_proj_knows_are_taken(desk: Desk, code: str) -> None:
    for label in ("V1", "V2"):  # the second time without asking
        await desk.submit(
            label, processing_options={"target_crs": code}, platform_refs={"dataset_id": label, "resource_id": "r"}
        )


@pytest.mark.parametrize("name", ["ddh/none.tif", "arcgis/dem.tif", "ddh/loop.tif", "ddh/folder", "ddh/out.tif"])
async def test_a_file_that_is_not_there_is_not_waited_for(desk: Desk, name: str) -> None:
    put_source(desk.sources, "bronze/arcgis/dem.tif")
    put_source(desk.sources, "bronze/ddh/folder/dem.tif")
    (desk.sources / "bronze/ddh/loop.tif").symlink_to("loop.tif")
    (desk.sources / "bronze/ddh/out.tif").symlink_to("/etc/passwd")
    with pytest.raises(SourceNotFound):
        await desk.submissions.submit(submission(file_name=name), RITA)
    assert await desk.rows("SELECT * FROM dagapp.platform_requests") == []


@pytest.mark.parametrize("name", ["ddh/towns.gdb", "ddh/towns.zip", "ddh/deep/er/é ü.tif"])
async def test_folders_of_a_format_and_archives_are_there(desk: Desk, name: str) -> None:
    put_source(desk.sources, f"bronze/{name}/a00000001.gdbtable" if name.endswith(".gdb") else f"bronze/{name}")
    await desk.submissions.submit(submission(file_name=name), RITA)


async def test_a_storage_that_does_not_answer_is_given_up_and_nothing_is_written(desk: Desk, pool: Database) -> None:
    shelf: Any = Shelf(*WORKFLOWS)
    checks = SubmissionChecks(pool, SlowStorage(desk.sources), source_seconds=0.05)
    service = SubmissionService(pool, desk.bench.jobs, shelf, checks)
    with pytest.raises(Unavailable, match="nothing was kept"):
        await service.submit(submission(), RITA)
    assert await desk.rows("SELECT * FROM dagapp.platform_requests") == []


async def test_a_version_is_processed_again_only_while_its_file_is_there(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.execute(
        "UPDATE dagapp.asset_versions SET processing_state = 'failed', last_error = 'e'; "
        "UPDATE dagapp.platform_requests SET status = 'failed', last_error = 'e'"
    )
    file = desk.sources / "bronze/ddh/dem/europe.tif"
    content = file.read_bytes()
    file.unlink()
    for again in (desk.retry, desk.reprocess):
        with pytest.raises(SourceNotFound):
            await again(receipt.asset_id)
    file.write_bytes(content)
    await desk.execute("UPDATE dagapp.platforms SET source_containers = '{other}' WHERE platform_id = 'ddh'")
    for again in (desk.retry, desk.reprocess):
        with pytest.raises(SourceNotFound):
            await again(receipt.asset_id)
    await desk.execute("UPDATE dagapp.platforms SET source_containers = NULL WHERE platform_id = 'ddh'")
    assert (await desk.retry(receipt.asset_id)).request_id == receipt.request_id


async def test_a_platform_that_takes_nothing_says_so_whether_or_not_the_file_is_there(desk: Desk) -> None:
    await desk.execute("UPDATE dagapp.platforms SET is_active = false WHERE platform_id = 'ddh'")
    with pytest.raises(Refused) as caught:
        await desk.submissions.submit(submission(file_name="ddh/none.tif", data_type=DataType.VECTOR), RITA)
    assert caught.value.code == Refusal.PLATFORM_INACTIVE
