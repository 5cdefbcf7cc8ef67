"""The nodata value of a raster, exactly."""

import re
from typing import Any, Final
from uuid import uuid4

import rasterio
import rasterio.shutil

WIDE_INTEGERS: Final = frozenset(
    {"int64", "uint64"}
)  # a double, as which rasterio tells nodata, does not hold them all
_NODATA: Final = re.compile(r"<NoDataValue>(-?\d+)</NoDataValue>")

Number = int | float


def exact_nodata(dataset: Any) -> Number | None:
    """Return the nodata value of the first band with all its digits."""
    nodata: float | None = dataset.nodata
    if dataset.dtypes[0] not in WIDE_INTEGERS:
        return nodata
    found = _NODATA.search(_described(dataset))
    return int(found[1]) if found else nodata


def _described(dataset: Any) -> str:
    """Return GDAL's own description of a dataset, which has 64-bit integers in full."""
    name = f"/vsimem/{uuid4()}.vrt"
    rasterio.shutil.copy(dataset, name, driver="VRT")
    try:
        with rasterio.open(name, driver="VRT") as described:
            return str(described.tags(ns="xml:VRT")["xml:VRT"])
    finally:
        rasterio.shutil.delete(name)
