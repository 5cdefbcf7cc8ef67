"""A standing approval covers what was reviewed: no job of an operator changes what the public reads."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio.raw
import shapely
from tests.e2e.conftest import StartProcess
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.site import Site, opened_site

REVIEWED, FOREIGN = 5, 20


def _points(count: int) -> bytes:
    file = BytesIO()
    shapes = shapely.to_wkb(shapely.points([(float(number), 10.0) for number in range(count)]))
    names = np.array([f"well {number}" for number in range(count)], dtype=object)
    options = {"layer": "wells", "driver": "GPKG", "geometry_type": "Point", "crs": "EPSG:4326"}
    pyogrio.raw.write(file, geometry=shapes, field_data=[names], fields=["name"], **options)
    return file.getvalue()


def _version(site: Site, asset_id: str, **expected: Any) -> Any:
    """Wait until the version is like this."""

    def found() -> Any:
        version = site.call("GET", f"/assets/{asset_id}/versions")["items"][0]
        return version if expected.items() <= version.items() else None

    return eventually(found, lambda: f"{expected}; {site.call('GET', f'/assets/{asset_id}/versions')}", 60)


def _approved(site: Site) -> tuple[str, Any]:
    """Send a file of a partner, and approve what is made of it."""
    site.storage.put("bronze/ddh/wells.gpkg", _points(REVIEWED))
    sent = {"container_name": "bronze", "file_name": "ddh/wells.gpkg", "version_label": "1", "data_type": "vector"}
    refs = {"dataset_id": "wells", "resource_id": "ownership"}
    receipt = site.call("POST", "/submit", json={"platform_id": "ddh", "platform_refs": refs, **sent})
    version = _version(site, receipt["asset_id"], processing_state="completed")
    site.call("POST", f"/assets/{receipt['asset_id']}/approve", json={"clearance_level": "ouo"})
    return receipt["asset_id"], version


def test_an_operators_job_cannot_change_what_was_approved(up: Up, tmp_path: Path, start_process: StartProcess) -> None:
    with opened_site(up, tmp_path) as site:
        asset_id, version = _approved(site)
        site.storage.put("bronze/others/foreign.gpkg", _points(FOREIGN))
        given = {"container_name": "bronze", "blob_name": "others/foreign.gpkg"}
        for names in (
            {"table_name": version["table_name"]},
            {"table_name": "direct_foreign", "stac_collection_id": version["stac_collection_id"]},
            {"table_name": "direct_foreign", "blob_prefix": "ddh/wells"},
        ):
            asked = {"workflow_id": "vector_ingest", "input_params": {**given, **names}}
            refused = site.client.post("/api/v1/jobs", json=asked)
            assert (refused.status_code, refused.json()["code"]) == (422, "output_refused")
        assert site.run("vector_ingest", **given, table_name="direct_foreign")["row_count"] == FOREIGN
        site.call("POST", f"/assets/{asset_id}/clearance", json={"clearance_level": "public"})
        _version(site, asset_id, exported_revision=1)
    public = start_process("serve", GRATICULE_HOME=str(up.home), GRATICULE_SERVE_AUDIENCE="external")
    items = f"/features/{asset_id}/collections/features/items?f=json"
    assert public.until_status(items, 200).json()["numberMatched"] == REVIEWED
