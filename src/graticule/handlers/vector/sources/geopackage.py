"""What a GeoPackage has for layers, read without GDAL.

A GeoPackage is a database, and what looks like a table may be a query that never ends or makes gigabytes of nothing.
Only tables are read.
"""

import sqlite3
from typing import Final

from graticule.handlers.vector.described import Chunk
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.choosing import chosen
from graticule.handlers.vector.sources.crs_texts import check_crs_text
from graticule.handlers.vector.sources.texts import zone_type
from graticule.repositories.geopackages import Geopackage, folded, open_geopackage, quoted

RANGES_SECONDS: Final = 60


def feature_layer(file: str, wanted: str | None) -> str:
    """Give the layer that is meant; it is a table, or the file is rejected."""
    try:
        with open_geopackage(file) as package:
            kinds = package.kinds()
            _check_own_tables(package, kinds)
            for text in package.crs_definitions():
                check_crs_text(text, "gpkg_spatial_ref_sys")
            name = chosen(package.layers(), wanted)
            is_plain = kinds.get(folded(name)) == "table" and not package.has_computed_columns(name)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise rejected(Code.CORRUPT, "The tables of the file cannot be listed.") from error
    if not is_plain:
        raise rejected(Code.NOT_A_TABLE, "The layer is not a table, but worked out from others.", f"layer {name}")
    return name


def ranges(file: str, layer: str, rows: int) -> list[tuple[int, int, int]] | None:
    """Give parts of so many rows each, from a feature id to another; None when the ids do not tell rows apart."""
    try:
        with open_geopackage(file, RANGES_SECONDS) as package:
            key = package.integer_key(layer)
            return None if key is None else list(package.ranges(layer, key, rows))
    except (sqlite3.Error, OverflowError, UnicodeError):  # also when it takes too long
        return None


def zones(file: str, layer: str, columns: list[str]) -> list[str] | None:
    """Tell of each column of date-times whether they have a zone; None when that takes too long."""
    try:
        with open_geopackage(file, RANGES_SECONDS) as package:
            return [zone_type(package.zoned(layer, column)) for column in columns]
    except (sqlite3.Error, OverflowError, UnicodeError):
        return None


def filter_of(file: str, layer: str, chunk: Chunk | None) -> str | None:
    """Give what GDAL is told to read of a layer: the rows of a chunk, or all."""
    if chunk is None or chunk.begin is None or chunk.end is None:
        return None
    try:
        with open_geopackage(file) as package:
            key = package.integer_key(layer)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise rejected(Code.CORRUPT, "The tables of the file cannot be listed.") from error
    if key is None:
        raise rejected(Code.CORRUPT, "The rows of the layer have no ids.", f"layer {layer}")
    return f"{quoted(key)} >= {chunk.begin} AND {quoted(key)} < {chunk.end}"


def _check_own_tables(package: Geopackage, kinds: dict[str, str]) -> None:
    """Reject a file in which those of the format itself are not plain tables, for GDAL relies on them."""
    own = {name: kind for name, kind in kinds.items() if name.startswith(("gpkg_", "rtree_"))}
    for name, kind in own.items():
        is_index = name.startswith("rtree_") and kind == "virtual"
        is_table = kind == "table" or (name.startswith("rtree_") and kind == "shadow")
        if not is_index and not (is_table and not package.has_computed_columns(name)):
            raise rejected(Code.CORRUPT, f"{name[:100]} is not a table, as the format has it.")
