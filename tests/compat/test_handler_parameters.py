"""Handlers take the parameters that workflows of earlier releases name, and write nowhere else for it."""

from typing import Any

import pytest
from tests.integration.handlers.raster.desk import Desk

from graticule.handlers.compatibility import HANDLER_ALIASES, SOURCE_PARAMETERS
from graticule.worker.outcome import InvalidParams

SCENE = {"container_name": "bronze", "blob_name": "scene.tif"}
TILING = {**SCENE, "tile_size": None, "overlap": 512, "output_container": "silver"}
DETECTED = {"detected_type": "rgb", "band_count": 3, "data_type": "uint8"}
COG = {
    **SCENE,
    "source_crs": "EPSG:32620",
    "target_crs": "EPSG:4326",
    "raster_type": DETECTED,
    "output_tier": "analysis",
    "output_blob_name": "cogs/scene/scene_tile_0_0_cog.tif",
    "jpeg_quality": 85,
}
TODAY = {
    "generate_tiling_scheme": {"source": "bronze/scene.tif", "overlap": 512},
    "create_cog": {"source": "bronze/scene.tif", "target_crs": "EPSG:4326", "raster_type": "rgb", "jpeg_quality": 85},
}


@pytest.fixture(autouse=True)
def _scene(desk: Desk) -> None:
    desk.source("rgb", width=600, height=300)


def run(desk: Desk, name: str, params: dict[str, Any]) -> Any:
    return desk.run(HANDLER_ALIASES.get(name, name), **params)


def test_validation_takes_the_path_of_a_blob(desk: Desk) -> None:
    told = run(desk, "raster.validate", {"blob_path": "bronze/scene.tif"})
    assert told == run(desk, "raster.validate", SCENE)
    assert told["source"] == "bronze/scene.tif"


@pytest.mark.parametrize(("name", "params"), [("generate_tiling_scheme", TILING), ("create_cog", COG)])
def test_the_parameters_of_a_stage_are_those_of_today(desk: Desk, name: str, params: dict[str, Any]) -> None:
    made = run(desk, name, params)
    written = desk.blobs("silver")
    assert written
    assert made == run(desk, name, TODAY[name]), "the names of outputs follow from the job and the source alone"
    assert desk.blobs("silver") == written
    told = str(made.get("blob_path") or made["blob_prefix"])
    assert told.removeprefix("silver/").startswith("direct/bronze/scene-")


@pytest.mark.parametrize("name", ["create_cog", "generate_tiling_scheme"])
@pytest.mark.parametrize("alias", sorted(SOURCE_PARAMETERS))
def test_a_source_has_each_of_its_names_alone(desk: Desk, name: str, alias: str) -> None:
    other = next(each for each in SOURCE_PARAMETERS if each != alias)
    for twice in ("source", other):
        with pytest.raises(InvalidParams, match="another name of `source`") as refused:
            run(desk, name, {alias: "bronze/scene.tif", twice: "bronze/scene.tif"})
        assert "Value error" not in str(refused.value)


def test_a_blob_may_name_its_container_itself(desk: Desk) -> None:
    assert run(desk, "create_cog", {"blob_name": "bronze/scene.tif"}) == run(desk, "create_cog", SCENE)
    assert run(desk, "create_cog", {"container_name": None, "blob_name": "bronze/scene.tif"})


@pytest.mark.parametrize("detected", ["unknown", None, ["rgb"]])
def test_a_type_that_is_not_known_is_found_out(desk: Desk, detected: Any) -> None:
    kind = {**DETECTED, "detected_type": detected}
    assert run(desk, "create_cog", {**SCENE, "raster_type": kind}) == run(desk, "create_cog", SCENE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"container_name": "bronze"},  # of which nothing is named
        {**SCENE, "unknown": 1},
        {**SCENE, "raster_type": "no type"},
        {"container_name": 5, "blob_name": ["scene.tif"]},
        {"blob_name": 5},
    ],
)
def test_what_was_wrong_stays_wrong(desk: Desk, wrong: dict[str, Any]) -> None:
    result = None
    try:
        result = desk.result("raster.create_cog", **wrong)
    except InvalidParams:
        return
    assert result.error_message is not None
