"""What a submission's options become: inputs of the workflow that is shipped for its data."""

from datetime import UTC, datetime
from typing import Any

import pytest

from graticule.core.errors import InvalidInput
from graticule.core.exchange import PlatformSubmission
from graticule.core.models import GeospatialAsset, PlatformRequest
from graticule.handlers.registry import known_handlers
from graticule.services.workflow_choice import SUPPLIED, ingest_inputs, ingest_workflow
from graticule.services.workflow_library import compile_file, shipped_folder

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REQUEST = "0b9ae4c1-53f1-4d2d-8f6c-2f0b4d6c1a77"
OPTIONS: dict[str, Any] = {
    "layer": "parcels",
    "layers": "all",
    "source_crs": "EPSG:25832",
    "target_crs": "EPSG:3857",
    "encoding": "CP1252",
    "x_column": "x",
    "y_column": "y",
    "wkt_column": "wkt",
    "geoparquet": True,
    "pmtiles": True,
    "pmtiles_max_zoom": 12,
}


def _inputs(options: dict[str, Any], data_type: str = "vector") -> dict[str, Any]:
    asked = PlatformSubmission(
        platform_id="ddh",
        platform_refs={"dataset_id": "d"},
        version_label="1",
        data_type=data_type,
        container_name="bronze",
        file_name="ddh/parcels.zip",
        processing_options=options,
    )
    refs = {"platform_id": "ddh", "platform_refs": {"dataset_id": "d"}, "data_type": data_type}
    asset = GeospatialAsset.model_validate(
        {"asset_id": "a" * 32, "short_id": "a" * 8, **refs, "created_at": NOW, "updated_at": NOW}
    )
    compiled = compile_file(shipped_folder() / f"{ingest_workflow(asked)}.yaml", known_handlers())
    assert compiled.graph is not None, compiled.problems
    work = {"request_id": REQUEST, "platform_id": "ddh", "asset_id": "a" * 32, "version_ordinal": 0, "revision": 2}
    times = {"created_at": NOW, "updated_at": NOW}
    request = PlatformRequest.model_validate({**work, **times, "request_body": {}, "submitted_by": "portal"})
    return ingest_inputs(compiled.graph, asked, asset, request)


def test_a_vector_is_given_all_options_and_the_names_of_its_outputs() -> None:
    given = _inputs(OPTIONS)
    assert {name: given[name] for name in OPTIONS} == OPTIONS
    assert {name: given[name] for name in given.keys() - OPTIONS.keys()} == {
        "container_name": "bronze",
        "blob_name": "ddh/parcels.zip",
        "asset_id": "a" * 32,
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": "d"},
        "version_label": "1",
        "version_ordinal": 0,
        "revision": 2,
        "request_id": REQUEST,
        "table_name": "d_1_aaaaaaaa_v0_r2",
        "blob_prefix": "ddh/d/aaaaaaaa/v0/r2",
        "stac_item_id": "d-1-aaaaaaaa-v0-r2",
        "stac_collection_id": "ddh-d-aaaaaaaa",
    }
    assert given.keys() - OPTIONS.keys() == {*SUPPLIED}


def test_a_wrong_option_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidInput) as caught:
        _inputs({"geoparquett": True})
    assert str(caught.value) == (
        f"processing_options: geoparquett is not an option of this pipeline. Its options: {', '.join(sorted(OPTIONS))}."
    )


@pytest.mark.parametrize("pipeline", [{}, {"pipeline": "large"}])
def test_bands_are_named_by_number_also_where_a_list_was_sent(pipeline: dict[str, str]) -> None:
    assert _inputs({"band_names": ["Red"], **pipeline}, "raster")["band_names"] == {"1": "Red"}


def test_no_earlier_form_makes_an_option_of_what_is_none() -> None:
    with pytest.raises(InvalidInput, match="band_names is not an option"):
        _inputs({"band_names": ["Red"]})
