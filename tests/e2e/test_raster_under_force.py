"""Rasters on a real installation whose worker is killed, and whose jobs are cancelled and removed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import rasterio
from rio_cogeo.cogeo import cog_validate
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.rasters import make_raster

pytestmark = pytest.mark.timeout(180)

TILES = 4
CANCEL_SECONDS = 2.0


@dataclass(frozen=True)
class Site:
    """An installation, and a partner's raster in its storage."""

    up: Up

    @property
    def storage(self) -> Path:
        return self.up.home / "storage"

    @property
    def source(self) -> Path:
        return self.storage / "bronze" / "wide.tif"

    def call(self, method: str, path: str, **options: Any) -> Any:
        answer = httpx.request(
            method,
            f"http://127.0.0.1:{self.up.ports['orchestrator']}{path}",
            headers={"X-API-Key": self.up.admin_key},
            timeout=30,
            **options,
        )
        assert answer.status_code < 300, answer.text
        return answer.json()

    def submit(self, workflow_id: str, **inputs: Any) -> str:
        document = {"workflow_id": workflow_id, "input_params": inputs}
        return str(self.call("POST", "/api/v1/jobs", json=document)["job_id"])

    def until(self, job_id: str, status: str) -> Any:
        def asked() -> Any:
            job = self.call("GET", f"/api/v1/jobs/{job_id}")
            return job if job["status"] == status else None

        return eventually(asked, lambda: f"{status}; {self.call('GET', f'/api/v1/jobs/{job_id}')}", 60)

    def kept(self) -> set[str]:
        """Give all files that we made, whether finished or not."""
        silver = self.storage / "silver"
        return {str(file.relative_to(silver)) for file in silver.rglob("*") if file.is_file()}

    def staged(self, job_id: str) -> list[Path]:
        return sorted((self.storage / "silver" / job_id[-8:] / "out" / "cogs").glob("wide*"))


@pytest.fixture
def site(installation: Up) -> Site:
    site = Site(installation)
    if not site.source.exists():
        make_raster(site.source, "rgb", width=1536 * TILES, height=1536, photometric="RGB")
    return site


def test_a_killed_batch_goes_on_after_its_last_finished_tile(site: Site) -> None:
    before = hashlib.sha256(site.source.read_bytes()).hexdigest()
    tile_ids = [f"wide_tile_{column}_0" for column in range(TILES)]
    job_id = site.submit("one_batch", tile_ids=tile_ids)
    eventually(lambda: len(site.staged(job_id)) >= 2, "two tiles")
    finished = {file: file.stat().st_mtime_ns for file in site.staged(job_id)[:-1]}  # the last may lack its checkpoint
    killed = site.up.child("worker")
    killed.kill()
    site.until(job_id, "completed")

    tiles = site.staged(job_id)
    assert [tile.stem for tile in tiles] == tile_ids
    assert all(cog_validate(tile, strict=True)[0] for tile in tiles)
    assert {file: file.stat().st_mtime_ns for file in finished} == finished  # none was made again
    assert site.up.child("worker").pid != killed.pid
    assert hashlib.sha256(site.source.read_bytes()).hexdigest() == before


def test_a_cancelled_job_ends_at_once_and_leaves_only_what_prune_removes(site: Site) -> None:
    job_id = site.submit("raster_ingest", container_name="bronze", blob_name="wide.tif")
    scratch = f"{job_id[-8:]}/"
    eventually(lambda: any(name.startswith(scratch) for name in site.kept()), "a COG that is being written")
    site.call("POST", f"/api/v1/jobs/{job_id}/cancel")
    site.until(job_id, "cancelled")
    eventually(
        lambda: not any(name.startswith(scratch) for name in site.kept()),
        lambda: f"the end of the handler; {site.kept()}",
        CANCEL_SECONDS,
    )
    assert all(name.split("/")[0] != "direct" for name in site.kept())
    Engine(site.up).ok("prune", "--older-than", "0h", "--yes")
    assert site.kept() == set()


def test_a_job_of_an_operator_ends_with_a_catalogued_cog_and_may_be_run_again(site: Site) -> None:
    job = site.until(
        site.submit("raster_ingest", container_name="bronze", blob_name="wide.tif", output_tier="archive"), "completed"
    )
    result = job["result"]
    cog = site.storage / result["blob_path"]
    assert site.kept() == {str(cog.relative_to(site.storage / "silver"))}
    assert cog_validate(cog, strict=True)[0]
    with rasterio.open(cog) as dataset:
        assert (dataset.crs.to_epsg(), dataset.compression.name) == (4326, "zstd")
    assert hashlib.sha256(cog.read_bytes()).hexdigest() == result["output_hash"]
    assert hashlib.sha256(site.source.read_bytes()).hexdigest() == result["content_hash"]
    (found,) = site.up.query(f"SELECT content FROM pgstac.items WHERE id = '{result['stac_item_id']}'")
    assert result["blob_path"] in json.dumps(found, default=str)

    again = site.until(
        site.submit("process_large_raster", container_name="bronze", blob_name="wide.tif", tile_size=2048), "completed"
    )["result"]
    assert again["tile_count"] > 1
    assert str(cog.relative_to(site.storage / "silver")) not in site.kept()  # the same source: in place of the first
    assert len([name for name in site.kept() if "/cogs/" in name]) == again["tile_count"]


def test_a_large_raster_of_a_partner_ends_in_a_version_with_a_mosaic(site: Site) -> None:
    submission = {
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": "wide", "resource_id": "tif"},
        "version_label": "V1",
        "data_type": "raster",
        "container_name": "bronze",
        "file_name": "wide.tif",
        "processing_options": {"pipeline": "large", "tile_size": 2048, "output_tier": "visualization"},
    }
    receipt = site.call("POST", "/api/v1/submit", json=submission)
    asset = f"/api/v1/assets/{receipt['asset_id']}"

    def version() -> Any:
        (found,) = site.call("GET", f"{asset}/versions")["items"]
        assert found["processing_state"] != "failed", found["last_error"]
        return found if found["processing_state"] == "completed" else None

    made = eventually(version, "the version", 60)
    mosaic = json.loads((site.storage / made["blob_path"]).read_text())
    tiles = {tile for of_square in mosaic["tiles"].values() for tile in of_square}
    assert mosaic["mosaicjson"] == "0.0.3"
    assert len(tiles) > 1
    for tile in tiles:
        with rasterio.open(site.storage / tile) as dataset:
            assert dataset.compression.name == "jpeg"
            assert dataset.dataset_mask().any()
    assert made["validation"]["outcome"] == "fix"
    assert made["content_hash"] == hashlib.sha256(site.source.read_bytes()).hexdigest()
    assert made["output_hash"]
    assert len(made["bbox"]) == 4
    (found,) = site.up.query(f"SELECT id FROM pgstac.items WHERE id = '{made['stac_item_id']}'")
    assert found == (made["stac_item_id"],)
