"""How a file's bands are described.

Twice, for two kinds of readers: `bands` is part of STAC since 1.1 and is where newer ones look first; `raster:bands` of
the raster extension 1.1 is what older ones know, and has scale and offset.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from pystac.extensions.raster import DataType, NoDataStrings, RasterBand
from pystac.extensions.raster import Statistics as RasterStatistics

from graticule.handlers.stac.inputs import Band, Statistics

_OTHER: Final = "other"
_TYPES: Final = frozenset(each.value for each in DataType)
_NOT_NUMBERS: Final = frozenset(each.value for each in NoDataStrings)


def core_bands(bands: Sequence[Band]) -> list[dict[str, Any]]:
    """Give `bands`."""
    return [_core_band(number, band) for number, band in enumerate(bands, 1)]


def raster_bands(bands: Sequence[Band]) -> list[RasterBand]:
    """Give `raster:bands`; a band of which nothing is known has at least a type."""
    return [_raster_band(band) for band in bands]


def described(named: Sequence[Band], counted: Sequence[Band]) -> list[Band]:
    """Join what is the same for all tiles with what was counted in one of them."""
    if len(named) != len(counted):
        return list(counted or named)
    return [
        name.model_copy(update={"statistics": count.statistics}) for name, count in zip(named, counted, strict=True)
    ]


def with_valid_percent(bands: Sequence[Band], pixels: int) -> list[Band]:
    """Tell how many of all pixels are valid."""
    return [_with_valid_percent(band, pixels) for band in bands]


def _with_valid_percent(band: Band, pixels: int) -> Band:
    found = band.statistics
    if found is None or found.count is None or found.valid_percent is not None:
        return band
    percent = min(100.0, 100 * found.count / pixels)
    return band.model_copy(update={"statistics": found.model_copy(update={"valid_percent": percent})})


def _core_band(number: int, band: Band) -> dict[str, Any]:
    described = {
        "name": band.name or f"b{number}",
        "description": band.description,
        "data_type": _data_type(band),
        "nodata": _nodata(band),
        "unit": band.unit or None,
        "statistics": _statistics(band.statistics),
    }
    return {name: value for name, value in described.items() if value is not None}


def _raster_band(band: Band) -> RasterBand:
    found = _statistics(band.statistics)
    if found:
        found.pop("count", None)  # it has no such field
    nodata = _nodata(band)
    is_scaled = (band.scale or 1, band.offset or 0) != (1, 0)
    return RasterBand.create(
        nodata=NoDataStrings(nodata) if isinstance(nodata, str) else nodata,
        data_type=DataType(_data_type(band) or _OTHER),
        unit=band.unit or None,
        scale=band.scale if is_scaled else None,
        offset=band.offset if is_scaled else None,
        statistics=RasterStatistics.create(**found) if found else None,
    )


def _data_type(band: Band) -> str | None:
    if band.data_type is None:
        return None
    name = band.data_type.lower().replace("complex64", "cfloat32").replace("complex128", "cfloat64")
    return name if name in _TYPES else _OTHER


def _nodata(band: Band) -> float | int | str | None:
    if isinstance(band.nodata, str):
        name = band.nodata.lower()
        return name if name in _NOT_NUMBERS else None
    is_whole = band.nodata is not None and "int" in (band.data_type or "") and float(band.nodata).is_integer()
    return int(band.nodata) if is_whole else band.nodata  # type: ignore[arg-type]


def _statistics(found: Statistics | None) -> dict[str, Any] | None:
    """Give what is known; of a band without a valid pixel that is only their number."""
    if found is None:
        return None
    values = {
        "minimum": found.minimum,
        "maximum": found.maximum,
        "mean": found.average,
        "stddev": found.deviation,
        "count": found.count,
        "valid_percent": found.valid_percent,
    }
    known = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return known or None
