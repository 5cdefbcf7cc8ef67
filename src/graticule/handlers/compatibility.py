"""Names under which workflows of the platform family's earlier releases call handlers of ours."""

from typing import Final

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
