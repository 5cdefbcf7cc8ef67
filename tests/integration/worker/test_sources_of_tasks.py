"""A worker reads for an asset what its partner may name, whatever the parameters of the task say."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.integration.repositories import rows
from tests.integration.worker.conftest import JOB, Board, on_both_transports
from tests.rasters import make_raster
from tests.sources import put_source

from graticule.core.states import ResultStatus
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection

POINTS = (
    '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"a": 1},'
    ' "geometry": {"type": "Point", "coordinates": [7, 46]}}]}'
)
# Ways of naming the file of another partner, and one that is not there.
FOREIGN = (
    {"container_name": "bronze", "blob_name": "arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/links/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/link-{file}"},
    {"container_name": "bronze", "blob_name": "ddh/none-{file}"},
    {"container_name": "bronze", "blob_name": "none/{file}"},
    {"container_name": "none", "blob_name": "{file}"},
    {"container_name": "bronze", "blob_name": "ddh2/{file}"},  # whose partner's id begins as this one's
    {"container_name": "bronze", "blob_name": "dd/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/loop-{file}"},
    {"container_name": "bronze", "blob_name": "ddh/loops/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/outside-{file}"},
    {"container_name": "bronze", "blob_name": "ddh/outside/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/outside/none-{file}"},
    {"container_name": "bronze", "blob_name": "ddh/%2e%2e/arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/..%2farcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/%252e%252e/arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "arcgis/{file}?x"},
    {"container_name": "bronze", "blob_name": "vsizip/arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/{file}/inside"},
    {"container_name": "bronze", "blob_name": "GTIFF_DIR:1:arcgis/{file}"},
    {"container_name": "bronze/arcgis", "blob_name": "{file}"},
)
# Names that are none: they are refused by how they are written, before anything is looked for.
MALFORMED = (
    {"container_name": "bronze", "blob_name": "ddh/../arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh/../../../outside/{file}"},
    {"container_name": "bronze", "blob_name": "./arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "/arcgis/{file}"},
    {"container_name": "bronze", "blob_name": "ddh//{file}"},
    {"container_name": "bronze", "blob_name": "ddh\\..\\arcgis\\{file}"},
    {"container_name": "bronze", "blob_name": "arcgis/{file}\n"},
    {"container_name": "bronze", "blob_name": "/vsicurl/https://host/{file}"},
    {"container_name": "..", "blob_name": "bronze/arcgis/{file}"},
    {"container_name": "/vsicurl/https://host", "blob_name": "{file}"},
    {"container_name": "/vsizip/bronze", "blob_name": "arcgis/{file}"},
)
OTHER_FORMS = ("bronze/arcgis/dem.tif", "{storage}/bronze/arcgis/dem.tif", "https://host/dem.tif")


@pytest.fixture
async def storage(connection: Connection, board: Board, tmp_path: Path) -> Path:
    """Return a storage with files of two partners, for a job that is for an asset of one of them."""
    asset = rows.asset()
    await AssetRepository(connection).insert(asset)
    await AssetVersionRepository(connection).insert(rows.version(0))
    await connection.execute(
        "UPDATE dagapp.dag_jobs SET asset_id = %s, version_ordinal = 0, purpose = 'process' WHERE job_id = %s",
        [asset.asset_id, JOB],
    )
    assert asset.platform_id == "ddh"
    storage = tmp_path / "storage"
    for folder in ("bronze/ddh", "bronze/arcgis", "bronze/ddh2", "bronze/dd", "../outside"):
        put_source(storage, f"{folder}/plain.geojson", POINTS.encode())
        make_raster(storage / folder / "dem.tif", "dem", width=64, height=64)
    for file in ("dem.tif", "plain.geojson"):
        (storage / "bronze" / "ddh" / f"link-{file}").symlink_to(f"../arcgis/{file}")
        (storage / "bronze" / "ddh" / f"loop-{file}").symlink_to(f"loop-{file}")
        (storage / "bronze" / "ddh" / f"outside-{file}").symlink_to(f"../../../outside/{file}")
    own = storage / "bronze" / "ddh"
    (own / "links").symlink_to("../arcgis")
    (own / "loops").symlink_to("loops")
    (own / "outside").symlink_to("../../../outside")
    return storage


def named(form: dict[str, str], file: str) -> dict[str, str]:
    return {name: value.format(file=file) for name, value in form.items()}


@on_both_transports
@pytest.mark.parametrize(("handler", "file"), [("raster.validate", "dem.tif"), ("vector.validate", "plain.geojson")])
async def test_the_files_of_its_partner_are_read_and_no_others(
    board: Board, storage: Path, worker: FastAPI, handler: str, file: str
) -> None:
    own = await board.run(handler, **named({"container_name": "bronze", "blob_name": "ddh/{file}"}, file))
    assert own.status is ResultStatus.COMPLETED, own.error_message
    said = set()
    for form in FOREIGN:
        given = named(form, file)
        refused = await board.run(handler, **given)
        assert (refused.status, refused.retryable) == (ResultStatus.FAILED, False), given
        path = f"{given['container_name']}/{given['blob_name']}"
        said.add((refused.error_message or "").replace(path, "PATH"))
    assert len(said) == 1, "a file of another partner is refused in the words of a missing one"


async def test_a_malformed_name_is_refused_in_the_same_words_whatever_is_there(
    board: Board, storage: Path, worker: FastAPI
) -> None:
    for form in MALFORMED:
        said = set()
        for file in ("dem.tif", "none.tif"):
            refused = await board.run("raster.validate", **named(form, file))
            assert (refused.status, refused.retryable) == (ResultStatus.FAILED, False), form
            said.add((refused.error_message or "").replace(file, "FILE"))
        assert len(said) == 1, form
        assert "does not lead into the storage" in said.pop()


async def test_no_other_form_of_a_source_leads_out(board: Board, storage: Path, worker: FastAPI) -> None:
    for form in OTHER_FORMS:
        refused = await board.run("raster.validate", blob_name=form.format(storage=storage))
        assert (refused.status, refused.retryable) == (ResultStatus.FAILED, False), form
        assert "not_found" in (refused.error_message or ""), form


async def test_a_later_task_of_the_job_cannot_be_led_elsewhere_either(
    board: Board, storage: Path, worker: FastAPI
) -> None:
    for handler, given in {
        "raster.create_cog": {"source": "bronze/arcgis/dem.tif", "blob_prefix": "ddh/x"},
        "raster.generate_tiling_scheme": {"source": "bronze/ddh/links/dem.tif", "blob_prefix": "ddh/x"},
        "raster.blob_to_mount": {"container_name": "bronze", "blob_name": "arcgis/dem.tif"},
    }.items():
        refused = await board.run(handler, **given)
        assert refused.status is ResultStatus.FAILED, handler
        assert re.search("no file|not there", refused.error_message or ""), handler
        assert not (storage / "silver").exists() or not list((storage / "silver").rglob("*.tif")), handler


async def test_the_registry_counts_when_the_lease_is_given(
    board: Board, storage: Path, worker: FastAPI, connection: Connection
) -> None:
    foreign: dict[str, Any] = {"container_name": "bronze", "blob_name": "arcgis/dem.tif"}
    await connection.execute("UPDATE dagapp.platforms SET source_containers = '{bronze}' WHERE platform_id = 'ddh'")
    assert (await board.run("raster.validate", **foreign)).status is ResultStatus.COMPLETED
    await connection.execute("UPDATE dagapp.platforms SET source_containers = '{other}' WHERE platform_id = 'ddh'")
    assert (await board.run("raster.validate", **foreign)).status is ResultStatus.FAILED


async def test_a_job_that_is_for_no_asset_reads_any_container(
    board: Board, storage: Path, worker: FastAPI, connection: Connection
) -> None:
    await connection.execute("UPDATE dagapp.dag_jobs SET asset_id = NULL, version_ordinal = NULL, purpose = NULL")
    read = await board.run("raster.validate", container_name="bronze", blob_name="arcgis/dem.tif")
    assert read.status is ResultStatus.COMPLETED, read.error_message
