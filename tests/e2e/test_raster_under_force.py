"""Rasters on real installations whose worker is killed, and whose jobs are cancelled and removed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rasterio
from rio_cogeo.cogeo import cog_validate
from tests.e2e.conftest import on_both_installations
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.site import BRONZE, Site, opened_site
from tests.rasters import make_raster

pytestmark = [pytest.mark.timeout(180), on_both_installations]

TILES = 4
WIDE, SMALL = "wide.tif", "small.tif"  # one takes a while, the other is large enough to be cut
SCRATCH = re.compile("silver/[0-9a-f]{8}/")  # where jobs keep what they make before their end


@pytest.fixture
def site(up: Up, tmp_path: Path) -> Iterator[Site]:
    with opened_site(up, tmp_path) as site:
        yield site


@pytest.fixture
def wide(site: Site) -> str:
    return given(site, WIDE, width=1536 * TILES, height=1536)


@pytest.fixture
def small(site: Site) -> str:
    return given(site, SMALL, width=1536, height=768)


def given(site: Site, name: str, **size: int) -> str:
    """Give the path of a partner's raster in the storage."""
    path = f"{BRONZE}/{name}"
    if not site.storage.exists(path):
        raster = make_raster(site.copies / name, "rgb", **size, photometric="RGB")
        site.storage.put(path, raster.read_bytes())
    return path


def source_of(path: str) -> dict[str, str]:
    return dict(zip(("container_name", "blob_name"), path.split("/"), strict=True))


def scratch_of(job_id: str) -> str:
    """Name the folder of what a job makes before its end."""
    return job_id[-8:]


def test_a_killed_batch_goes_on_after_its_last_finished_tile(site: Site, wide: str) -> None:
    before = site.storage.stat(wide)
    tile_ids = [f"wide_tile_{column}_0" for column in range(TILES)]
    job_id = site.submit("one_batch", tile_ids=tile_ids)
    staged = f"{scratch_of(job_id)}/out/cogs"
    eventually(lambda: len(site.kept(staged)) >= 2, "two tiles")
    finished = dict(list(site.kept(staged).items())[:-1])  # the last may lack its checkpoint
    killed = site.up.child("worker")
    killed.kill()
    site.until(job_id, "completed")

    tiles = site.kept(staged)
    assert [Path(tile).stem for tile in tiles] == tile_ids
    assert all(cog_validate(site.copy(tile), strict=True)[0] for tile in tiles)
    assert finished.items() <= tiles.items()  # none was made again
    assert site.up.child("worker").pid != killed.pid
    assert site.storage.stat(wide) == before


def test_a_cancelled_job_ends_at_once_and_leaves_only_what_prune_removes(site: Site, wide: str) -> None:
    before, left_by_killed = site.kept(), site.half_written()
    job_id = site.submit("raster_ingest", **source_of(wide))
    eventually(lambda: site.half_written() - left_by_killed, "a COG that is being written")
    site.call("POST", f"/jobs/{job_id}/cancel")
    site.until(job_id, "cancelled")
    eventually(
        lambda: site.half_written() <= left_by_killed and not site.kept(scratch_of(job_id)),
        lambda: f"the end of the handler; {site.half_written()} {site.kept()}",
    )
    assert site.kept() == before
    Engine(site.up).ok("prune", "--older-than", "0h", "--yes")
    assert site.kept().items() <= before.items()
    assert not any(SCRATCH.match(path) for path in site.kept())
    assert not site.half_written()


def test_a_job_of_an_operator_ends_with_a_catalogued_cog_and_may_be_run_again(site: Site, small: str) -> None:
    before = site.kept().keys()
    result = site.run("raster_ingest", **source_of(small), output_tier="archive")
    path = result["blob_path"]
    assert site.kept().keys() - before == {path}
    cog = site.copy(path)
    assert cog_validate(cog, strict=True)[0]
    with rasterio.open(cog) as dataset:
        assert (dataset.crs.to_epsg(), dataset.compression.name) == (4326, "zstd")
    assert site.hash(path) == result["output_hash"]
    assert site.hash(small) == result["content_hash"]
    (found,) = site.up.query(f"SELECT content FROM pgstac.items WHERE id = '{result['stac_item_id']}'")
    assert path in json.dumps(found, default=str)

    again = site.run("process_large_raster", **source_of(small), tile_size=1024)
    assert again["tile_count"] > 1
    made = site.kept().keys() - before
    assert path in made  # tiles have a prefix of their job
    assert len([name for name in made if "/cogs/" in name]) == again["tile_count"] + 1


def test_a_large_raster_of_a_partner_ends_in_a_version_with_a_mosaic(site: Site, small: str) -> None:
    site.storage.copy(small, f"{BRONZE}/ddh/{SMALL}")
    submission = {
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": "small", "resource_id": "tif"},
        "version_label": "V1",
        "data_type": "raster",
        "container_name": BRONZE,
        "file_name": f"ddh/{SMALL}",
        "processing_options": {"pipeline": "large", "tile_size": 1024, "output_tier": "visualization"},
    }
    receipt = site.call("POST", "/submit", json=submission)
    asset = f"/assets/{receipt['asset_id']}"

    def version() -> Any:
        (found,) = site.call("GET", f"{asset}/versions")["items"]
        assert found["processing_state"] != "failed", found["last_error"]
        return found if found["processing_state"] == "completed" else None

    made = eventually(version, "the version", 60)
    mosaic = json.loads(site.storage.get(made["blob_path"]))
    tiles = {tile for of_square in mosaic["tiles"].values() for tile in of_square}
    assert mosaic["mosaicjson"] == "0.0.3"
    assert len(tiles) > 1
    for tile in tiles:
        with rasterio.open(site.copy(tile)) as dataset:
            assert dataset.compression.name == "jpeg"
            assert dataset.dataset_mask().any()
    assert made["validation"]["outcome"] == "ok"  # reprojection and tiling are information, not repairs
    assert made["content_hash"] == site.hash(small)
    assert made["output_hash"]
    assert len(made["bbox"]) == 4
    (found,) = site.up.query(f"SELECT id FROM pgstac.items WHERE id = '{made['stac_item_id']}'")
    assert found == (made["stac_item_id"],)
