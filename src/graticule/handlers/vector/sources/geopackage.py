"""What a GeoPackage has for layers, read without GDAL.

A GeoPackage is a database, and what looks like a table may be a query that never ends or makes gigabytes of nothing.
Only tables are read.
"""

import sqlite3
from typing import Final

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Chunk
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.choosing import Choice, listed
from graticule.handlers.vector.sources.crs_texts import check_crs_text, code_in_wkt, is_self_contained
from graticule.handlers.vector.sources.projections import wkt_of_code
from graticule.handlers.vector.sources.texts import zone_type
from graticule.repositories.geopackages import (
    CRS_TABLE,
    CrsDefinition,
    Geopackage,
    folded,
    open_geopackage,
    quoted,
    replace_definitions,
)

RANGES_SECONDS: Final = 60
MAX_DEFINITIONS: Final = 20_000  # of CRSs; some programs write all that EPSG has, each in two columns


def feature_layers(file: str, choice: Choice) -> list[str]:
    """Return the layers that are meant; they are tables, or the file is rejected."""
    try:
        with open_geopackage(file) as package:
            kinds = package.kinds()
            _check_own_tables(package, kinds)
            _safe_definitions(package)
            names = choice.of(_candidates(package, kinds, choice.layer))
            views = [name for name in names if not _is_plain(package, kinds, name)]
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise rejected(Code.CORRUPT, "The tables of the file cannot be listed.") from error
    if views:
        raise rejected(Code.NOT_A_TABLE, "The layer is a view or has computed columns.", f"layer {views[0]}")
    return names


def crs_options(file: str) -> dict[str, str]:
    """Return options that keep GDAL from reading definitions of CRSs that lead to other files.

    For its connection, a temporary table with those of their codes takes the place of the file's own.
    """
    try:
        with open_geopackage(file) as package:
            replaced = _safe_definitions(package)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise rejected(Code.CORRUPT, "The tables of the file cannot be listed.") from error
    return {"PRELUDE_STATEMENTS": replace_definitions(replaced)} if replaced else {}


def _safe_definitions(package: Geopackage) -> list[tuple[CrsDefinition, str]]:
    """Return the definitions that lead elsewhere, each with the WKT of its code; one without a code is rejected."""
    replaced = []
    for number, each in enumerate(package.crs_definitions()):
        if number == MAX_DEFINITIONS:
            raise rejected(Code.CORRUPT, f"The file defines more than {MAX_DEFINITIONS:,} CRSs.", CRS_TABLE)
        if not is_self_contained(each.text):
            wkt = wkt_of_code(each.code) or wkt_of_code(code_in_wkt(each.text))
            if wkt is None or not isinstance(each.srs_id, int):
                check_crs_text(each.text, CRS_TABLE)
            else:
                replaced.append((each._replace(text=b""), wkt))  # which may be long
    return replaced


def _candidates(package: Geopackage, kinds: dict[str, str], wanted: str | None) -> list[str]:
    """Return the layers that may be meant; those without features count only if no other has any."""
    layers = package.layers()
    if not layers:
        raise _no_layer(package.other_contents())
    if wanted is not None or len(layers) == 1:
        return layers
    filled = [name for name in layers if not _is_plain(package, kinds, name) or package.has_rows(name)]
    return filled or layers


def _is_plain(package: Geopackage, kinds: dict[str, str], name: str) -> bool:
    return kinds.get(folded(name)) == "table" and not package.has_computed_columns(name)


def _no_layer(others: list[tuple[str, str]]) -> Rejected:
    tables = [name for name, kind in others if kind == "attributes"]
    if tables and len(tables) == len(others):
        return rejected(Code.NO_GEOMETRY, f"The GeoPackage has only tables without geometries: {listed(tables)}.")
    rasters = [name for name, kind in others if kind in {"tiles", "2d-gridded-coverage"}]
    if rasters:
        return rejected(Code.NO_LAYER, f"The GeoPackage has only rasters: {listed(rasters)}. Send it as a raster.")
    return rejected(Code.NO_LAYER, "The GeoPackage has no vector layer.")


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
