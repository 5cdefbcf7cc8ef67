"""What a GeoPackage has for layers, read without GDAL.

A GeoPackage is a database, and what looks like a table may be a query that never ends or makes gigabytes of nothing.
Only tables are read.
"""

import sqlite3

from graticule.handlers.vector.rejecting import Code, rejected
from graticule.repositories.geopackages import open_geopackage


def feature_layer(file: str, wanted: str | None) -> str:
    """Give the layer that is meant; it is a table, or the file is rejected."""
    try:
        with open_geopackage(file) as package:
            kinds = package.kinds()
            _check_own_tables(kinds)
            name = chosen(package.layers(), wanted)
            is_plain = kinds.get(name.casefold()) == "table" and not package.has_computed_columns(name)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise rejected(Code.CORRUPT, "The tables of the file cannot be listed.") from error
    if not is_plain:
        raise rejected(Code.NOT_A_TABLE, "The layer is not a table, but worked out from others.", f"layer {name}")
    return name


def chosen(names: list[str], wanted: str | None) -> str:
    """Give the layer that is meant, of all that there are."""
    if not names:
        raise rejected(Code.NO_LAYER, "The file has no layer of features.")
    if wanted is None and len(names) > 1:
        raise rejected(Code.SEVERAL_LAYERS, f"The file has {len(names)} layers: {', '.join(names)}.")
    if wanted is not None and wanted not in names:
        raise rejected(Code.UNKNOWN_LAYER, f"The file has no layer {wanted[:100]!r}; it has: {', '.join(names)}.")
    return wanted or names[0]


def _check_own_tables(kinds: dict[str, str]) -> None:
    """Reject a file in which those of the format itself are not tables, for GDAL relies on them."""
    for name, kind in kinds.items():
        if (name.startswith("gpkg_") and kind != "table") or (name.startswith("rtree_") and kind == "view"):
            raise rejected(Code.CORRUPT, f"{name[:100]} is not a table, as the format has it.")
