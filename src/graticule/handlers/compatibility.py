"""How workflows of the platform family's earlier releases call handlers of ours: the names, and the parameters."""

from collections.abc import Mapping
from typing import Any, Final

from graticule.core.compatibility import NO_REASON, translate_fields
from graticule.handlers.raster.raster_type import RasterType
from graticule.handlers.result import HandlerResult

# A package that registers a handler of such a name keeps it: the alias is for names that nobody else has.
HANDLER_ALIASES: Final = {
    "raster_validate": "raster.validate",
    "validate_raster": "raster.validate",
    "raster_cog_docker": "raster.create_cog",
    "raster.process": "raster.create_cog",
    "create_cog": "raster.create_cog",
    "generate_tiling_scheme": "raster.generate_tiling_scheme",
    "extract_tiles": "raster.extract_tiles",
    "create_cog_tile": "raster.process_tile",
    "create_mosaicjson_with_stats": "raster.create_mosaicjson",
    "raster.stac_register": "raster.stac_register_item",
    "finalize": "raster.stac_register_item",
}

# Names of parameters, each with the one that it stands for.
SOURCE_PARAMETERS: Final = dict.fromkeys(("source_url", "blob_path", "blob_name"), "source")
VALIDATION_PARAMETERS: Final = {"blob_path": "blob_name"}
# Accepted where a source becomes tiles or a COG, and without effect: the file says which CRS it has, and an output is
# named after its job, so that none can take the place of another's.
UNUSED_PARAMETERS: Final = frozenset({"source_crs", "output_container", "output_blob_name"})
# All that a handler of the staged API returns: `{"success": True, "result": {...}}`.
_RETURNED: Final = frozenset({"success", "result", "error", "error_message"})


def translate_source(params: Any) -> Any:
    """Return the parameters of what reads a source, where that is named as a container and a blob of it."""
    if not isinstance(params, Mapping):
        return params
    given = {name: value for name, value in params.items() if name not in UNUSED_PARAMETERS}
    given = _without_container_of_path(given)
    for name in ("blob_name", "blob_path"):
        if name in given and (container := given.pop("container_name", None)):
            given[name] = f"{container}/{given[name]}"
    kind = given.get("raster_type")
    if isinstance(kind, Mapping):  # what an earlier stage found of the pixels
        detected = kind.get("detected_type")
        given["raster_type"] = detected if detected in [*RasterType] else "auto"
    return translate_fields(given, SOURCE_PARAMETERS)


def translate_validation(params: Any) -> Any:
    """Return the parameters of a validation, where they name the path of a blob."""
    if not isinstance(params, Mapping):
        return params
    return translate_fields(_without_container_of_path(params), VALIDATION_PARAMETERS)


def _without_container_of_path(params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out a container that the path of the blob begins with, as `bronze` of `bronze/a.tif`, or that is null."""
    container, path = params.get("container_name"), params.get("blob_path")
    is_in_path = path is not None and (container is None or str(path).startswith(f"{container}/"))
    return {name: value for name, value in params.items() if not (is_in_path and name == "container_name")}


def translate_return(value: Any) -> Any:
    """Return what a handler gave back, where it says `success` and `result` in a plain document."""
    if not isinstance(value, dict) or not isinstance(value.get("success"), bool) or not value.keys() <= _RETURNED:
        return value
    if value.keys() == {"success"}:
        return value
    if value["success"]:
        return HandlerResult.completed(value["result"]) if "result" in value else value
    return HandlerResult.failure(str(value.get("error_message") or value.get("error") or NO_REASON))


def translate_tile(params: Any) -> Any:
    """Return the parameters of one tile, where a fan-out over `tile_list` hands the item on as it is."""
    if not isinstance(params, Mapping) or not isinstance(params.get("tile"), Mapping):
        return params
    rest = {name: value for name, value in params.items() if name not in {"tile", "tile_index"}}
    return {name: params["tile"][name] for name in ("scheme", "tile_id") if name in params["tile"]} | rest
