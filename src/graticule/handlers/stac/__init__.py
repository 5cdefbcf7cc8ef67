"""STAC collections and items of what the raster handlers made. Nothing here reads a file or a database."""
