"""A standing approval covers what was reviewed: no job of an operator changes what the public reads."""

from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyogrio.raw
import shapely
from tests.e2e.conftest import StartProcess
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.site import Site, opened_site
from tests.rasters import make_raster

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


class Caller:
    """Someone with a role of its own, at the gateway."""

    def __init__(self, site: Site, role: str) -> None:
        wanted = {"client_id": f"{role}-of-outputs", "display_name": role, "roles": [role]}
        key = site.call("POST", "/clients", json=wanted)["key"]
        self._url, self._headers = f"http://127.0.0.1:{site.up.port}", {"X-API-Key": key}

    def get(self, path: str) -> Any:
        answer = httpx.get(f"{self._url}{path}", headers=self._headers, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, status: int, **body: Any) -> Any:
        answer = httpx.post(f"{self._url}{path}", json=body, headers=self._headers, timeout=30)
        assert answer.status_code == status, answer.text
        return answer.json()


def _processed(site: Site) -> tuple[str, Any]:
    """Send a file of a partner, and wait for the version that is made of it."""
    site.storage.put("bronze/ddh/wells.gpkg", _points(REVIEWED))
    sent = {"container_name": "bronze", "file_name": "ddh/wells.gpkg", "version_label": "1", "data_type": "vector"}
    refs = {"dataset_id": "wells", "resource_id": "ownership"}
    receipt = site.call("POST", "/submit", json={"platform_id": "ddh", "platform_refs": refs, **sent})
    return receipt["asset_id"], _version(site, receipt["asset_id"], processing_state="completed")


def _approved(site: Site) -> tuple[str, Any]:
    asset_id, version = _processed(site)
    site.call("POST", f"/assets/{asset_id}/approve", json={"clearance_level": "ouo"})
    return asset_id, version


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


def test_a_table_with_another_row_than_was_reviewed_is_neither_approved_nor_exported(up: Up, tmp_path: Path) -> None:
    with opened_site(up, tmp_path) as site:
        reviewer = Caller(site, "reviewer")
        asset_id, version = _processed(site)
        (seen,) = reviewer.get("/api/reviews")["items"]
        assert (seen["output_hash"], seen["revision"]) == (version["output_hash"], 1)
        named = {"asset_id": asset_id, "output_hash": seen["output_hash"], "expected_version": seen["asset_version"]}

        def rename(before: str, after: str) -> None:
            of_owner = f"SET ROLE graticule_owner; UPDATE geo.{version['table_name']}"
            site.up.query(f"{of_owner} SET name = '{after}' WHERE name = '{before}'")

        rename("well 3", "forged")
        for level in ("ouo", "public"):
            refused = reviewer.post("/api/platform/approve", 409, clearance_level=level, **named)
            assert (refused["code"], "its rows are not those" in refused["detail"]) == ("outputs_changed", True)
        assert _version(site, asset_id) == version
        rename("forged", "well 3")
        reviewer.post("/api/platform/approve", 200, clearance_level="ouo", **named)
        rename("well 3", "forged")
        decided = reviewer.post(f"/api/assets/{asset_id}/clearance", 200, clearance_level="public", revision=1)
        (export,) = site.call("GET", "/jobs?workflow_id=adf_export")["items"]
        assert "its rows are not those that were approved" in site.until(export["job_id"], "failed")["error_message"]
        assert decided["asset"]["clearance_state"] == "public"
        assert _version(site, asset_id)["exported_revision"] is None
        assert site.up.query("SELECT relname FROM pg_class WHERE relnamespace = 'external'::regnamespace") == []


def _served(site: Site, version: dict[str, Any]) -> tuple[str, list[tuple[Any, ...]]]:
    """Return what stands behind an approval: the hash of the file, and the item as the catalog has it."""
    collection = version["stac_collection_id"]
    items = site.up.query(f"SELECT id, content FROM pgstac.items WHERE collection = '{collection}' ORDER BY id")
    return site.hash(version["blob_path"]), items


def _raster_of(site: Site, name: str, height: int) -> dict[str, str]:
    site.storage.put(f"bronze/{name}", make_raster(site.copies / "made.tif", "rgb", height=height).read_bytes())
    return {"container_name": "bronze", "blob_name": name}


def test_an_operators_raster_cannot_take_the_place_of_an_approved_one(up: Up, tmp_path: Path) -> None:
    with opened_site(up, tmp_path) as site:
        operator, reviewer = Caller(site, "operator"), Caller(site, "reviewer")
        _raster_of(site, "ddh/ortho.tif", 260)
        sent = {"container_name": "bronze", "file_name": "ddh/ortho.tif", "version_label": "1", "data_type": "raster"}
        refs = {"dataset_id": "ortho", "resource_id": "ownership"}
        receipt = operator.post("/api/platform/submit", 202, platform_id="ddh", platform_refs=refs, **sent)
        asset_id = receipt["asset_id"]
        version = _version(site, asset_id, processing_state="completed")
        decision = {"asset_id": asset_id, "clearance_level": "ouo", "revision": 1}
        operator.post("/api/platform/approve", 403, **decision)
        original = site.storage.get(version["blob_path"])
        site.storage.put(version["blob_path"], original[:-1] + bytes([original[-1] ^ 1]))
        refused = reviewer.post("/api/platform/approve", 409, **decision)
        assert (refused["code"], "was changed" in refused["detail"]) == ("outputs_changed", True)
        site.storage.put(version["blob_path"], original)
        reviewer.post("/api/platform/approve", 200, **decision)
        before = _served(site, version)
        prefix = version["blob_path"].split("/", 1)[1].rsplit("/cogs/")[0]
        ids = {name: version[name] for name in ("stac_item_id", "stac_collection_id")}
        foreign = _raster_of(site, "others/foreign.tif", 200)
        for names in ({"blob_prefix": prefix}, ids, {"blob_prefix": prefix, **ids}):
            asked = {"workflow_id": "raster_ingest", "input_params": {**foreign, **names}}
            assert operator.post("/api/gateway/submit", 422, **asked)["code"] == "output_refused"
        assert site.run("raster_ingest", **foreign)["blob_path"] != version["blob_path"]
        assert _served(site, version) == before
        assert _version(site, asset_id, approval_state="approved", revision=1)["output_hash"] == version["output_hash"]
