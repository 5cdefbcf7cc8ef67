"""A hand-made job is refused at submission when its inputs name outputs of an asset."""

from typing import Any

import pytest

from graticule.core.errors import OutputRefused
from graticule.dag.compile import compile_workflow
from graticule.dag.graph import Graph
from graticule.handlers.registry import known_handlers
from graticule.services.direct_outputs import check_direct_outputs
from graticule.services.workflow_library import compile_file, shipped_folder

LOADING = """
workflow_id: own
name: Own
version: 1
inputs: {{name: {{type: string}}, source: {{type: object, default: {{}}}}}}
nodes:
  start: {{type: start, next: finalize}}
  finalize:
    handler: vector.finalize
    params: {{source: "{{{{ inputs.source }}}}", loaded: [], table_name: {table_name}}}
    next: end
  end: {{type: end}}
"""


def _shipped(workflow_id: str) -> Graph:
    graph = compile_file(shipped_folder() / f"{workflow_id}.yaml", known_handlers()).graph
    assert graph is not None
    return graph


def _own(table_name: str) -> Graph:
    graph = compile_workflow(LOADING.format(table_name=table_name), file="own.yaml", handlers=known_handlers()).graph
    assert graph is not None
    return graph


@pytest.mark.parametrize(
    ("workflow_id", "inputs", "suggested"),
    [
        ("vector_ingest", {"table_name": "va_1_669b2ccd_v0"}, "direct_va_1_669b2ccd_v0"),
        ("vector_ingest", {"table_name": "x" * 60}, "direct_my_data"),
        ("vector_ingest", {"table_name": "direct_a", "blob_prefix": "ddh/a"}, "direct/ddh/a"),
        ("raster_ingest", {"blob_prefix": "ddh/a/669b2ccd/v0/r1"}, "direct/ddh/a/669b2ccd/v0/r1"),
        ("raster_ingest", {"stac_collection_id": "ddh-a"}, "direct-ddh-a"),
        ("process_large_raster", {"stac_collection_id": "ddh-a"}, "direct-ddh-a"),
    ],
)
def test_a_name_of_an_asset_is_refused_with_one_that_may_be_used(
    workflow_id: str, inputs: dict[str, Any], suggested: str
) -> None:
    with pytest.raises(OutputRefused) as refused:
        check_direct_outputs(_shipped(workflow_id), inputs)
    assert f"Name it {suggested!r}." in str(refused.value)


@pytest.mark.parametrize(
    ("workflow_id", "inputs"),
    [
        ("vector_ingest", {"table_name": "direct_roads", "blob_prefix": "direct/roads"}),
        ("raster_ingest", {"container_name": "bronze", "blob_prefix": None}),
        ("hello_world", {"table_name": "anything"}),
    ],
)
def test_names_in_the_namespace_and_other_inputs_pass(workflow_id: str, inputs: dict[str, Any]) -> None:
    check_direct_outputs(_shipped(workflow_id), inputs)


@pytest.mark.parametrize(
    "table_name", ["roads_669b2ccd_v0", '"{{ inputs.name }}"', "\"{{ inputs.name or 'direct_a' }}\""]
)
def test_a_workflow_of_ones_own_is_held_to_the_same(table_name: str) -> None:
    with pytest.raises(OutputRefused, match="roads_669b2ccd_v0"):
        check_direct_outputs(_own(table_name), {"name": "roads_669b2ccd_v0"})
