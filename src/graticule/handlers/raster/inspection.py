"""What is to be known of a raster, read from its tags: no pixel is decoded."""

import re
from math import isfinite
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict
from rasterio.crs import CRS
from rasterio.enums import MaskFlags
from rasterio.io import DatasetReader

from graticule.core import json_codec
from graticule.core.validation import Finding, shortened
from graticule.handlers.raster import tiff_layout
from graticule.handlers.raster.bounds import source_bounds, world_bounds
from graticule.handlers.raster.file_kinds import TIFF, FileKind
from graticule.handlers.raster.nodata import WIDE_INTEGERS, exact_nodata
from graticule.handlers.raster.opening import GDAL_ERRORS
from graticule.handlers.raster.raster_type import Declared, RasterType
from graticule.handlers.raster.validation_codes import Code, finding

MAX_BANDS: Final = 1024
MOST_BANDS_TOLD: Final = 64
MOST_OVERVIEWS_TOLD: Final = 32
LONGEST_TEXT: Final = 200  # characters of what a file says
LONGEST_DESCRIPTION: Final = 100  # of each band
LONGEST_UNIT: Final = 20
LONGEST_WKT: Final = 2000
# The few tags that say something of the picture itself.
TAGS_TOLD: Final = ("AREA_OR_POINT", "TIFFTAG_DATETIME", "TIFFTAG_SOFTWARE", "TIFFTAG_COPYRIGHT")
_CONFIDENCE: Final = 90  # percent; below, a CRS that only resembles a known one would get its code
_FILES_OF_A_CRS: Final = re.compile(r'PARAMETERFILE\["[^"]*",\s*"([^"]*)"|\+\w+=([^\s"]*)')
_COMPLEX_SIZES: Final = {"complex_int16": 4}  # GDAL has it, numpy does not

Number = int | float | str  # a string for what JSON cannot tell: nan, inf, -inf


class BandFacts(BaseModel):
    """What a file says of a band."""

    model_config = ConfigDict(frozen=True)

    dtype: str
    nodata: Number | None
    colour: str
    description: str | None
    unit: str | None
    scale: Number
    offset: Number


class SampleFacts(BaseModel):
    """How much was decoded, and how much of it is data."""

    model_config = ConfigDict(frozen=True)

    blocks: int
    pixels: int
    valid_pixels: int
    is_complete: bool


class RasterFacts(BaseModel):
    """What is known of a raster; `bounds` are in its CRS, `bbox` in EPSG:4326, west > east across the antimeridian."""

    model_config = ConfigDict(frozen=True)

    driver: str
    width: int
    height: int
    band_count: int
    dtype: str
    nodata: Number | None
    crs: str | None  # its code, or else its WKT, or the name of one whose WKT is very long
    transform: tuple[Number, ...]
    bounds: tuple[float, float, float, float] | None
    bbox: tuple[float, float, float, float] | None
    resolution: tuple[Number, Number]
    is_north_up: bool
    control_points: int
    block_width: int
    block_height: int
    is_tiled: bool
    interleave: str | None
    compression: str | None
    overviews: list[int]
    is_cog: bool
    has_alpha: bool
    has_mask: bool
    has_colour_table: bool
    tags: dict[str, str]
    bands: list[BandFacts]  # of the first bands, when there are very many
    variable: str | None = None  # of a file that holds several rasters
    raster_type: RasterType | None = None
    sample: SampleFacts | None = None


def facts_of(dataset: DatasetReader, kind: FileKind) -> RasterFacts:
    """Read what the tags say."""
    transform, is_tiff = dataset.transform, kind is TIFF
    bounds = source_bounds(transform, dataset.width, dataset.height)
    height, width = dataset.block_shapes[0]
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    return RasterFacts(
        driver=dataset.driver,
        width=dataset.width,
        height=dataset.height,
        band_count=dataset.count,
        dtype=dataset.dtypes[0],
        nodata=_nodata(dataset, dataset.nodatavals[0]),
        crs=crs_name(dataset.crs),
        transform=tuple(told(value) for value in transform[:6]),
        bounds=bounds if all(map(isfinite, bounds)) else None,
        bbox=world_bounds(dataset.crs, transform, dataset.width, dataset.height) if dataset.crs else None,
        resolution=(told(abs(transform.a)), told(abs(transform.e))),
        is_north_up=is_north_up(dataset),
        control_points=len(dataset.gcps[0]),
        block_width=width,
        block_height=height,
        is_tiled=tiff_layout.is_tiled(dataset),
        interleave=structure.get("INTERLEAVE"),
        compression=structure.get("COMPRESSION"),
        overviews=dataset.overviews(1)[:MOST_OVERVIEWS_TOLD],
        is_cog=is_tiff and tiff_layout.is_cog(dataset),
        has_alpha=any(flags == [MaskFlags.per_dataset, MaskFlags.alpha] for flags in dataset.mask_flag_enums),
        has_mask=dataset.mask_flag_enums[0] == [MaskFlags.per_dataset],
        has_colour_table=has_colour_table(dataset),
        tags=_tags(dataset),
        bands=_bands(dataset),
    )


def declared(dataset: DatasetReader) -> Declared:
    """Give what the file says of its bands, as far as it tells what kind of raster it is."""
    return Declared(
        dtype=dataset.dtypes[0],
        colours=[colour.name for colour in dataset.colorinterp],
        descriptions=dataset.descriptions,
        units=dataset.units,
        has_colour_table=has_colour_table(dataset),
    )


def crs_name(crs: CRS | None) -> str | None:
    """Give the code of a CRS, its WKT when it has none, None when there is no CRS."""
    if not crs:
        return None
    authority = crs.to_authority(confidence_threshold=_CONFIDENCE)
    if authority:
        return ":".join(authority)
    wkt = str(crs.to_wkt())
    return wkt if len(wkt) <= LONGEST_WKT else shortened(wkt.partition('"')[2].partition('"')[0], LONGEST_TEXT)


def file_named_in(crs: CRS) -> str | None:
    """Give the file that a CRS names by its place, as PROJ would open it; grids of PROJ itself have a name alone."""
    found = _FILES_OF_A_CRS.finditer(str(crs.to_wkt(version="WKT2_2019")))
    names = (each[1] or each[2] for each in found)
    return next((shortened(name, LONGEST_TEXT) for name in names if "/" in name or "\\" in name), None)


def is_north_up(dataset: DatasetReader) -> bool:
    """Tell whether rows go from north to south and columns from west to east."""
    transform = dataset.transform
    return bool(transform.b == transform.d == 0 and transform.a > 0 and transform.e < 0)


def pixel_bytes(dataset: DatasetReader) -> int:
    """Give how many bytes a pixel of all bands takes."""
    return sum(_COMPLEX_SIZES.get(dtype) or np.dtype(dtype).itemsize for dtype in dataset.dtypes)


def block_bytes(dataset: DatasetReader) -> int:
    """Return how many bytes a block takes in memory: of all bands if they are stored by pixel, else of one."""
    height, width = dataset.block_shapes[0]
    is_by_pixel = dataset.tags(ns="IMAGE_STRUCTURE").get("INTERLEAVE") == "PIXEL"
    size = int(height * width * pixel_bytes(dataset))
    return size if is_by_pixel else size // dataset.count


def too_many_bands(count: int) -> Finding | None:
    """Return a finding about a raster with more bands than are accepted."""
    if count <= MAX_BANDS:
        return None
    return finding(Code.TOO_MANY_BANDS, f"It has {count:,} bands; at most {MAX_BANDS:,} are accepted.", "bands")


def raw_bytes(dataset: DatasetReader) -> int:
    """Give how many bytes the pixels take without compression."""
    return int(dataset.width) * int(dataset.height) * pixel_bytes(dataset)


def has_colour_table(dataset: DatasetReader) -> bool:
    """Tell whether the values of the first band are entries of a table of colours."""
    try:
        return bool(dataset.colormap(1))
    except GDAL_ERRORS:
        return False


def told(value: float) -> Number:
    """Give a number as JSON can tell it."""
    return json_codec.named_number(float(value))


def _nodata(dataset: DatasetReader, nodata: float | None) -> Number | None:
    exact = exact_nodata(dataset) if dataset.dtypes[0] in WIDE_INTEGERS else nodata
    return json_codec.named_number(exact)


def _tags(dataset: DatasetReader) -> dict[str, str]:
    said = dataset.tags()
    return {name: shortened(said[name], LONGEST_TEXT) for name in TAGS_TOLD if name in said}


def _bands(dataset: DatasetReader) -> list[BandFacts]:
    each = zip(
        dataset.dtypes,
        dataset.nodatavals,
        dataset.colorinterp,
        dataset.descriptions,
        dataset.units,
        dataset.scales,
        dataset.offsets,
        strict=True,
    )
    return [
        BandFacts(
            dtype=dtype,
            nodata=_nodata(dataset, nodata),
            colour=colour.name,
            description=None if description is None else shortened(description, LONGEST_DESCRIPTION),
            unit=shortened(unit, LONGEST_UNIT) if unit else None,
            scale=told(scale),
            offset=told(offset),
        )
        for _, (dtype, nodata, colour, description, unit, scale, offset) in zip(
            range(MOST_BANDS_TOLD), each, strict=False
        )
    ]
