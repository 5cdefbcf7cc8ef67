"""The tables of a GeoPackage, checked before GDAL reads it: a view would run whatever its author has written."""

import sqlite3
from typing import Final

from graticule.core.validation import shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.crs_texts import check_crs_text
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.repositories.geopackages import CRS_TABLE, Geopackage, folded, open_geopackage

WHERE: Final = "gpkg_contents"
RASTER_CONTENTS: Final = frozenset({"tiles", "2d-gridded-coverage"})


def check_tables(path: str) -> None:
    """Reject a GeoPackage without rasters, with views in the place of tables, or with a CRS that leads elsewhere."""
    try:
        with open_geopackage(path) as package:
            rasters = _list_rasters(package)
            computed = _find_computed(package, rasters)
            for each in package.crs_definitions():
                check_crs_text(each.text, CRS_TABLE)
    except (sqlite3.Error, OverflowError, UnicodeError):
        raise Rejected([finding(Code.CORRUPT, "Its list of contents cannot be read.", WHERE)]) from None
    if not rasters:
        what = "The GeoPackage contains no raster. Vector layers are sent with data_type vector."
        raise Rejected([finding(Code.NOT_A_RASTER, what, WHERE)])
    if computed is not None:
        raise Rejected([finding(Code.CORRUPT, f"'{shortened(computed, 64)}' is not a plain table.", WHERE)])


def list_raster_tables(path: str) -> list[str]:
    """Return the names of the tables that hold rasters, of a GeoPackage that was checked."""
    with open_geopackage(path) as package:
        return _list_rasters(package)


def _list_rasters(package: Geopackage) -> list[str]:
    return [name for name, content in package.other_contents() if content in RASTER_CONTENTS]


def _find_computed(package: Geopackage, rasters: list[str]) -> str | None:
    """Return the first table that GDAL would read and that is a view, or has columns computed on reading."""
    kinds = package.kinds()
    tables = [*(name for name in kinds if name.startswith("gpkg_")), *map(folded, rasters)]
    return next((name for name in tables if kinds.get(name) != "table" or package.has_computed_columns(name)), None)
