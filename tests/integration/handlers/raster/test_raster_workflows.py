"""The shipped raster workflows, led through their nodes with the real handlers; only the catalogue is left out."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.integration.handlers.raster.desk import JOB, Desk
from tests.unit.dag.jobs import PlayedJob
from tests.unit.handlers.raster.foreign_files import netcdf_with_times

import graticule.workflows
from graticule.core.states import JobStatus
from graticule.dag.graph import Graph
from graticule.dag.inputs import validate_inputs
from graticule.dag.state import Decision
from graticule.handlers import known_handlers
from graticule.handlers.outputs.staging import final_path, staged_path
from graticule.handlers.stac.inputs import ItemInputs
from graticule.services.workflow_library import compile_file
from graticule.worker.outcome import document

SOURCE = {"container_name": "bronze", "blob_name": "scene.tif"}
SUBMITTED = {
    "blob_prefix": "acme/data/a1/v1/r1",
    "stac_item_id": "item",
    "stac_collection_id": "collection",
    "asset_id": "a1",
    "platform_id": "acme",
    "platform_refs": {"dataset_id": "d"},
    "version_ordinal": 1,
    "version_label": "first",
    "revision": 1,
}


def workflow(name: str) -> Graph:
    compiled = compile_file(Path(graticule.workflows.__file__).with_name(f"{name}.yaml"), known_handlers())
    assert compiled.problems == ()
    assert compiled.graph is not None
    return compiled.graph


class Led:
    """A job that is led to its end: the nodes that ran, and what the catalogue would have been given."""

    def __init__(self, desk: Desk, name: str, **given: Any) -> None:
        self.desk = desk
        self.registered: ItemInputs | None = None
        self.handlers: list[str] = []
        graph = workflow(name)
        self.job = PlayedJob(graph, inputs=validate_inputs(graph, {**SOURCE, **given}))
        self._go_on(self.job.submit())
        assert self.job.status is JobStatus.COMPLETED

    def _go_on(self, decision: Decision) -> None:
        for task in decision.tasks:
            self.handlers.append(task.handler)
            output = self._output(task.handler, orjson.loads(document(task.params)))
            self._go_on(self.job.complete(task.node_id, output=output))

    def _output(self, handler: str, params: dict[str, Any]) -> Any:
        if handler == "raster.stac_register_item":
            self.registered = ItemInputs.model_validate(params)
            return {"stac_item_id": self.registered.stac_item_id}
        return self.desk.run(handler, **params)


def promoted(led: Led) -> list[str]:
    """Give where the registration will put what is staged."""
    assert led.registered is not None
    given, storage = led.registered, led.desk.storage
    folder = staged_path(storage, led.desk.job_id, "")
    assert {blob.removeprefix(folder) for blob in led.desk.blobs(folder)} == set(given.staged_files)
    return sorted(final_path(storage, given.blob_prefix, name) for name in given.staged_files)


def test_a_small_raster_becomes_one_cog(any_desk: Desk) -> None:
    any_desk.source("rgb")
    led = Led(any_desk, "raster_ingest", **SUBMITTED)
    assert led.handlers == ["raster.validate", "raster.create_cog", "raster.stac_register_item"]
    assert led.registered is not None
    assert led.registered.model_dump()["platform_refs"] == {"dataset_id": "d"}
    assert (led.registered.stac_item_id, led.registered.asset_id) == ("item", "a1")
    assert led.registered.product.path == "silver/acme/data/a1/v1/r1/cogs/scene.tif"
    assert promoted(led) == [led.registered.product.path]


def test_a_large_raster_becomes_tiles_and_a_mosaic(any_desk: Desk) -> None:
    any_desk.source("rgb", width=600, height=300)
    led = Led(any_desk, "raster_ingest", large_mb=0.4, tile_size=512, overlap=64, **SUBMITTED)
    assert led.handlers == [
        "raster.validate",
        "raster.generate_tiling_scheme",
        "raster.process_tile_batch",
        "raster.process_tile_batch",
        "raster.create_mosaicjson",
        "raster.stac_register_item",
    ]
    assert led.registered is not None
    assert (led.registered.product.tile_count, led.registered.source.raster_type) == (2, "rgb")
    prefix = "silver/acme/data/a1/v1/r1"
    assert promoted(led) == [
        f"{prefix}/cogs/scene_tile_0_0.tif",
        f"{prefix}/cogs/scene_tile_1_0.tif",
        f"{prefix}/mosaics/scene.json",
        f"{prefix}/schemes/scene.geojson",
    ]
    scheme = any_desk.storage.get(f"silver/{JOB[-8:]}/out/schemes/scene.geojson")
    assert led.registered.product.scheme_checksum == hashlib.sha256(scheme).hexdigest()


def test_what_is_chosen_of_a_file_reaches_every_task(any_desk: Desk) -> None:
    local = netcdf_with_times(any_desk.file("bronze/scene.nc"), ("t2m", "tp"))
    any_desk.storage.put("bronze/climate.nc", local.read_bytes())
    options = {"blob_name": "climate.nc", "subdataset": "tp", "time": "2024-01-02", "nodata": 100_000}
    led = Led(any_desk, "process_large_raster", extract_first=True, tile_size=512, overlap=0, **options, **SUBMITTED)
    assert led.registered is not None
    (band,) = led.registered.product.bands
    assert band.statistics is not None
    assert (band.nodata, band.statistics.minimum, band.statistics.maximum) == (100_000, 104_800, 109_599)
    assert led.registered.source.acquired_at == datetime(2024, 1, 2, tzinfo=UTC)
    assert led.registered.source.facts["variable"] == "tp"


@pytest.mark.parametrize("extract_first", [False, True])
def test_a_job_that_is_no_partners_has_names_of_its_own(any_desk: Desk, extract_first: bool) -> None:
    any_desk.source("categorical", width=600, height=300)
    options = {"tile_size": 512, "overlap": 0, "extract_first": extract_first}
    led = Led(any_desk, "process_large_raster", **options)
    assert ("raster.extract_tiles" in led.handlers) is extract_first
    given = led.registered
    assert given is not None
    assert given.blob_prefix.startswith("direct/bronze/scene-")
    assert given.stac_item_id == given.blob_prefix.replace("/", "-")
    assert given.stac_collection_id == "direct-bronze"
    assert given.tile_url is None
    assert all(blob.startswith(f"silver/{given.blob_prefix}/") for blob in promoted(led))


def test_inputs_of_a_large_raster_have_the_documented_defaults() -> None:
    given = validate_inputs(workflow("process_large_raster"), SOURCE)
    wanted = {
        **SOURCE,
        "tile_size": None,
        "overlap": 512,
        "output_tier": "analysis",
        "raster_type": "auto",
        "jpeg_quality": 85,
        "band_names": None,
        "overview_level": 2,
        "target_crs": "EPSG:4326",
    }
    assert {name: given[name] for name in wanted} == wanted
    common = set(workflow("raster_ingest").inputs) & set(given)
    assert {name: validate_inputs(workflow("raster_ingest"), SOURCE)[name] for name in common} == {
        name: given[name] for name in common
    }
