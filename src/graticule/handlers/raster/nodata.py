"""The nodata value of a raster, exactly."""

import re
import struct
from math import isfinite
from pathlib import Path
from typing import Any, Final
from uuid import uuid4
from xml.etree import ElementTree as ET

import numpy as np
import rasterio
import rasterio.shutil

WIDE_INTEGERS: Final = frozenset(
    {"int64", "uint64"}
)  # a double, as which rasterio tells nodata, does not hold them all
MAX_EXACT_INTEGER: Final = 2**53  # that a double holds, and so rasterio writes
_INTEGER: Final = re.compile(r"[-+]?\d+")
_NODATA_TAG, _ASCII = 42113, 2

Number = int | float


def exact_nodata(dataset: Any) -> Number | None:
    """Return the nodata value of the first band with all its digits."""
    nodata: float | None = dataset.nodata
    return exact_nodatavals(dataset)[0] if dataset.dtypes[0] in WIDE_INTEGERS else nodata


def exact_nodatavals(dataset: Any) -> tuple[Number | None, ...]:
    """Return the nodata value of each band with all its digits."""
    if dataset.dtypes[0] not in WIDE_INTEGERS:
        return tuple(dataset.nodatavals)
    root = ET.fromstring(_described(dataset))  # noqa: S314 - GDAL's own
    said = [band.findtext("NoDataValue") for band in root.findall("VRTRasterBand")]
    return tuple(None if text is None else parse_number(text) for text in said)


def parse_number(text: str) -> Number:
    """Return a number; a whole one with all its digits."""
    return int(text) if _INTEGER.fullmatch(text.strip()) else float(text)


def can_hold(dtype: str, value: Number) -> bool:
    """Return whether a pixel of a type can have this value; one of a float also if it is rounded."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return abs(value) <= float(np.finfo(kind).max) or (isinstance(value, float) and not isfinite(value))
    is_whole = isinstance(value, int) or value.is_integer()
    return is_whole and int(np.iinfo(kind).min) <= value <= int(np.iinfo(kind).max)


def replace_nodata(path: Path, nodata: int) -> None:
    """Replace the nodata value of a GeoTIFF that was just written: rasterio passes doubles."""
    text = f"{nodata}\0".encode()
    with path.open("r+b") as file:
        head = file.read(16)
        is_big = head[2] == ord("+")
        forms = ("Q", "HHQQ", "Q") if is_big else ("H", "HHII", "I")
        count, entry, start = (struct.Struct(f"<{form}") for form in forms)
        file.seek(start.unpack_from(head, 8 if is_big else 4)[0])
        for _ in range(count.unpack(file.read(count.size))[0]):
            if entry.unpack(file.read(entry.size))[0] == _NODATA_TAG:
                place = file.tell() - entry.size
                end = file.seek(0, 2)
                file.write(text)
                file.seek(place)
                file.write(entry.pack(_NODATA_TAG, _ASCII, len(text), end))
                return


def _described(dataset: Any) -> str:
    """Return GDAL's own description of a dataset, which has 64-bit integers in full."""
    name = f"/vsimem/{uuid4()}.vrt"
    rasterio.shutil.copy(dataset, name, driver="VRT")
    try:
        with rasterio.open(name, driver="VRT") as described:
            return str(described.tags(ns="xml:VRT")["xml:VRT"])
    finally:
        rasterio.shutil.delete(name)
