"""A worker reads for an asset what its partner may name, whatever the parameters of the task say."""

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

SECRET = '{"type": "FeatureCollection", "features": []}'


@pytest.fixture
async def storage(connection: Connection, worker: FastAPI, tmp_path: Path) -> Path:
    """Return a storage with files of two partners, for a job that is for an asset of one of them."""
    asset = rows.asset()
    await AssetRepository(connection).insert(asset)
    await AssetVersionRepository(connection).insert(rows.version(0))
    await connection.execute(
        "UPDATE dagapp.dag_jobs SET asset_id = %s, version_ordinal = 0, purpose = 'process' WHERE job_id = %s",
        [asset.asset_id, JOB],
    )
    assert asset.platform_id == "ddh"
    storage: Path = worker.state.worker_storage
    for platform in ("ddh", "arcgis"):
        put_source(storage, f"bronze/{platform}/plain.geojson", SECRET.encode())
        make_raster(storage / "bronze" / platform / "dem.tif", "dem", width=64, height=64)
    (storage / "bronze" / "ddh" / "link.tif").symlink_to("../arcgis/dem.tif")
    (storage / "bronze" / "ddh" / "links").symlink_to("../arcgis")
    return storage
