"""A standing approval covers what was reviewed: no job of an operator changes what the public reads."""

from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pyogrio.raw
import shapely
from tests.e2e.conftest import StartProcess, StartUp
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.site import Site, opened_site
from tests.rasters import make_raster

from graticule.services.workflow_library import shipped_folder

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
        wanted = {"client_id": f"{role}-{uuid4().hex}", "display_name": role, "roles": [role]}
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


def _processed(site: Site, dataset: str = "wells", state: str = "completed") -> tuple[str, Any]:
    """Send a file of a partner, and wait for the version that is made of it."""
    site.storage.put("bronze/ddh/wells.gpkg", _points(REVIEWED))
    sent = {"container_name": "bronze", "file_name": "ddh/wells.gpkg", "version_label": "1", "data_type": "vector"}
    refs = {"dataset_id": dataset, "resource_id": "ownership"}
    receipt = site.call("POST", "/submit", json={"platform_id": "ddh", "platform_refs": refs, **sent})
    return receipt["asset_id"], _version(site, receipt["asset_id"], processing_state=state)


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
        asset_id, version = _processed(site, "forged")
        (seen,) = [each for each in reviewer.get("/api/reviews")["items"] if each["asset_id"] == asset_id]
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
        assert decided["asset"]["clearance_state"] == "public"
        ((export_id,),) = site.up.query(
            f"SELECT job_id FROM dagapp.dag_jobs WHERE purpose = 'export' AND asset_id = '{asset_id}'"
        )
        assert "its rows are not those that were approved" in site.until(export_id, "failed")["error_message"]
        assert _version(site, asset_id)["exported_revision"] is None
        assert site.up.query(f"SELECT to_regclass('external.{version['table_name']}')") == [(None,)]


VECTOR_INGEST = (shipped_folder() / "vector_ingest.yaml").read_text()
TABLE = "{{ inputs.table_name }}"
NESTED = {
    TABLE: "{{ inputs.platform_refs.table }}",
    "{{ inputs.blob_prefix }}": "{{ inputs.platform_refs.prefix }}",
    "{{ inputs.stac_collection_id }}": "{{ inputs.platform_refs.collection }}",
}
REQUIRED = "table_name: {type: string, required: true,"


class OwnWorkflows:
    """The workflows that an operator puts into the folder of an installation, made of the shipped one."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site, self._folder = site, folder

    def use(self, workflow_id: str, replaced: dict[str, str]) -> None:
        text = VECTOR_INGEST.replace("workflow_id: vector_ingest", f"workflow_id: {workflow_id}")
        for before, after in replaced.items():
            assert before in text
            text = text.replace(before, after)
        (self._folder / "own.yaml").write_text(text)
        page = self._site.call("POST", "/workflows/reload")
        assert [each for each in page["problems"] if each["severity"] == "error"] == []
        assert workflow_id in {each["workflow_id"] for each in page["items"]}

    def run(self, workflow_id: str, **inputs: Any) -> str:
        """Run a job that must be refused, and return why."""
        asked = {"workflow_id": workflow_id, "input_params": {**SOURCE, **inputs}}
        answer = self._site.client.post("/api/v1/jobs", json=asked)
        if answer.status_code == 422:
            assert answer.json()["code"] == "output_refused"
            return str(answer.json()["detail"])
        assert answer.status_code == 201, answer.text
        return str(self._site.until(answer.json()["job_id"], "failed")["error_message"])


SOURCE = {"container_name": "bronze", "blob_name": "others/foreign.gpkg"}


def _kept(site: Site, asset_id: str, version: dict[str, Any]) -> Any:
    """Return all that an approval of a table stands for, and what is told of it."""
    items = f"SELECT id, content FROM pgstac.items WHERE collection = '{version['stac_collection_id']}'"
    rows = f"SELECT * FROM geo.{version['table_name']} ORDER BY fid"
    history = site.call("GET", f"/assets/{asset_id}/history")["items"]
    return _version(site, asset_id), site.up.query(rows), site.up.query(items), history


def test_workflows_of_an_operator_reach_no_output_of_an_asset(
    home: Path, start_up: StartUp, folder: Path, tmp_path: Path
) -> None:
    """By names that are computed, nested or a default, also of a definition in the place of the shipped one."""
    workflows = folder / "workflows"
    workflows.mkdir()
    with opened_site(start_up(home, GRATICULE_WORKFLOWS=str(workflows)).until_ready(), tmp_path) as site:
        asset_id, version = _approved(site)
        before = _kept(site, asset_id, version)
        site.storage.put("bronze/others/foreign.gpkg", _points(FOREIGN))
        owned = {"table": version["table_name"], "prefix": "ddh/wells", "collection": version["stac_collection_id"]}
        direct = {"table": "direct_own", "prefix": "direct/own", "collection": "direct-own"}
        own = OwnWorkflows(site, workflows)

        own.use("nested", NESTED)
        for kind, name in owned.items():
            given = {"table_name": "direct_own", "platform_refs": {**direct, kind: name}}
            assert f"may not write the {kind} '{name}" in own.run("nested", **given, geoparquet=True)
        site.run("nested", **SOURCE, table_name="direct_own", platform_refs=direct)

        own.use("computed", {TABLE: "wells_{{ inputs.version_label }}"})
        label = owned["table"].removeprefix("wells_")
        assert "may not write the table" in own.run("computed", table_name="direct_own", version_label=label)

        default = REQUIRED.replace("required: true", f"default: {owned['table']}")
        for workflow_id in ("by_default", "vector_ingest"):
            own.use(workflow_id, {REQUIRED: default})
            assert "may not write" in own.run(workflow_id)
            own.use(workflow_id, {TABLE: owned["table"]})
            assert "may not write" in own.run(workflow_id, table_name="direct_own")

        other, failed = _processed(site, "others", "failed")  # by the definition above, and so into the foreign table
        assert (failed["approval_state"], "may not write the table" in failed["last_error"]) == ("failed", True)
        assert other != asset_id
        assert _kept(site, asset_id, version) == before


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
