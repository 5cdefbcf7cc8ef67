"""Which workflow does the work on an asset version, and with which inputs."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from graticule.core.asset_names import OutputNames, output_names
from graticule.core.compatibility import translate_inputs
from graticule.core.errors import FieldFault, InvalidInput
from graticule.core.exchange import PlatformSubmission
from graticule.core.ids import PlatformId
from graticule.core.models import AssetVersion, GeospatialAsset, PlatformRequest
from graticule.core.models.engine import JobPurpose
from graticule.core.models.platform import DataType
from graticule.dag.graph import Graph
from graticule.dag.inputs import faults

PIPELINE: Final = "pipeline"  # the option that chooses the workflow; all others are inputs of it
STANDARD: Final = "standard"
PIPELINES: Final[Mapping[DataType, Mapping[str, str]]] = {
    DataType.RASTER: {STANDARD: "raster_ingest", "large": "process_large_raster"},
    DataType.VECTOR: {STANDARD: "vector_ingest"},
}
PUBLISHING: Final[Mapping[JobPurpose, str]] = {
    JobPurpose.EXPORT: "adf_export",
    JobPurpose.REVERSAL: "adf_reversal",
    JobPurpose.UNPUBLISH: "unpublish",
}
OUTPUTS: Final = (
    "blob_path",
    "table_name",
    "stac_item_id",
    "stac_collection_id",
    "external_blob_path",
    "export_run_id",
)
SUPPLIED: Final = (  # what a workflow is told of a submission, whatever the options are
    *("container_name", "blob_name", "asset_id", "platform_id", "platform_refs", "version_label", "version_ordinal"),
    *("revision", "request_id", "table_name", "blob_prefix", "stac_item_id", "stac_collection_id"),
)


def ingest_workflow(asked: PlatformSubmission) -> str:
    """Choose by data type, and by the option `pipeline`."""
    pipelines = PIPELINES[asked.data_type]
    wanted = asked.processing_options.get(PIPELINE, STANDARD)
    if not isinstance(wanted, str) or wanted not in pipelines:
        what = f"there is no such pipeline for a {asked.data_type}."
        fault = option_fault(PIPELINE, what, "invalid_option")
        hint = f"Choose one of: {', '.join(pipelines)}."
        raise InvalidInput(f"processing_options.{PIPELINE}: {what}", hint=hint, faults=[fault])
    return pipelines[wanted]


def check_options(graph: Graph, asked: PlatformSubmission) -> None:
    """Refuse options that the workflow does not have, values that they cannot have, and those that are missing."""
    options = _options(graph, asked)
    allowed = sorted(set(graph.inputs) - set(SUPPLIED))
    if unknown := sorted(set(options) - set(allowed)):
        raise InvalidInput(
            f"processing_options: {', '.join(unknown)} is not an option of this pipeline.",
            hint=f"Its options: {', '.join(allowed) or 'none'}.",
            faults=[option_fault(name, "This pipeline has no such option.", "unknown_option") for name in unknown],
        )
    wrong = [(name, what) for name, value in options.items() for what in faults(graph.inputs[name], value)]
    wrong += [(name, "is required") for name in allowed if graph.inputs[name].required and options.get(name) is None]
    if wrong:
        raise InvalidInput(
            f"processing_options: {'; '.join(f'{name} {what}' for name, what in wrong)}.",
            faults=[option_fault(name, f"It {what}.", "invalid_option") for name, what in wrong],
        )


def _options(graph: Graph, asked: PlatformSubmission) -> dict[str, JsonValue]:
    given = {name: value for name, value in asked.processing_options.items() if name != PIPELINE}
    return translate_inputs(graph.inputs, given, default_container=None)


def option_fault(name: str, message: str, kind: str) -> FieldFault:
    """Describe what is wrong with a processing option."""
    return FieldFault(("body", "processing_options", name), message, kind)


def ingest_inputs(
    graph: Graph, asked: PlatformSubmission, asset: GeospatialAsset, request: PlatformRequest
) -> dict[str, JsonValue]:
    """Give a workflow those of our inputs that it declares, and the caller's options."""
    check_options(graph, asked)
    ordinal, revision = request.version_ordinal, request.revision
    names = _names(asset, asked.version_label, ordinal, revision)
    ours: dict[str, JsonValue] = {
        "container_name": asked.container_name,
        "blob_name": asked.file_name,
        "asset_id": asset.asset_id,
        "platform_id": asset.platform_id,
        "platform_refs": dict(asset.platform_refs),
        "version_label": asked.version_label,
        "version_ordinal": ordinal,
        "revision": revision,
        "request_id": str(request.request_id),
        "table_name": names.table_name,
        "blob_prefix": names.blob_prefix,
        "stac_item_id": names.stac_item_id,
        "stac_collection_id": names.stac_collection_id,
    }
    return {**{name: value for name, value in ours.items() if name in graph.inputs}, **_options(graph, asked)}


def publishing_inputs(
    graph: Graph, asset: GeospatialAsset, versions: list[AssetVersion], copies: list[dict[str, JsonValue]]
) -> dict[str, JsonValue]:
    """Give a workflow that publishes or withdraws those of our inputs that it declares; the last version is the one."""
    of_versions = [_outputs(asset, version) for version in versions]
    ours: dict[str, JsonValue] = {
        "asset_id": asset.asset_id,
        "platform_id": asset.platform_id,
        "data_type": asset.data_type,
        **(of_versions[-1] if of_versions else {}),
        "exported_revision": versions[-1].exported_revision if versions else None,
        "versions": [*of_versions],
        "copies": [*copies],
    }
    return {name: value for name, value in ours.items() if name in graph.inputs and value is not None}


def blob_prefix_of(asset: GeospatialAsset, version: AssetVersion) -> str:
    """Return the prefix below which the newest revision of a version has its files."""
    return _names(asset, version.version_label, version.version_ordinal, version.revision).blob_prefix


def _names(asset: GeospatialAsset, label: str, ordinal: int, revision: int) -> OutputNames:
    return output_names(
        PlatformId(asset.platform_id),
        asset.short_id or asset.asset_id,
        {name: value for name, value in asset.platform_refs.items() if isinstance(value, str | int)},
        label=label,
        ordinal=ordinal,
        revision=revision,
    )


def _outputs(asset: GeospatialAsset, version: AssetVersion) -> dict[str, JsonValue]:
    names = _names(asset, version.version_label, version.version_ordinal, version.revision)
    return {
        "version_ordinal": version.version_ordinal,
        "revision": version.revision,
        "version_prefix": names.blob_prefix.rpartition("/")[0],
        **{name: getattr(version, name) for name in OUTPUTS},
    }
