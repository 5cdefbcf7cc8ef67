"""How workflows of the platform family's earlier releases call handlers of ours: the names, and the parameters."""

from collections.abc import Mapping
from typing import Any, Final

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

SOURCE_PARAMETERS: Final = {"source_url": "source"}


def translate_tile(params: Any) -> Any:
    """Return the parameters of one tile, where a fan-out over `tile_list` hands the item on as it is."""
    if not isinstance(params, Mapping) or not isinstance(params.get("tile"), Mapping):
        return params
    rest = {name: value for name, value in params.items() if name not in {"tile", "tile_index"}}
    return {name: params["tile"][name] for name in ("scheme", "tile_id") if name in params["tile"]} | rest
