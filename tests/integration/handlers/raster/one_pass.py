"""What GDAL makes of a whole raster in one pass: the measure for all that the handlers make of it in pieces."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.vrt import WarpedVRT

Array = NDArray[Any]

# `gdalwarp -et 0`: every pixel is transformed by itself, and a band's nodata is no other band's.
EXACT: dict[str, Any] = {"tolerance": 1e-9, "UNIFIED_SRC_NODATA": "PARTIAL"}


@dataclass(frozen=True)
class Whole:
    """All pixels of an output: `data` and `valid` are (bands, rows, columns), `mask` is (rows, columns)."""

    data: Array
    valid: Array
    nodata: float | None
    has_mask: bool
    colorinterp: tuple[ColorInterp, ...]

    @property
    def mask(self) -> Array:
        """Where any band holds data; an alpha band itself says nothing about that."""
        colours = [place for place, colour in enumerate(self.colorinterp) if colour is not ColorInterp.alpha]
        found: Array = np.logical_or.reduce([self.valid[place] for place in colours])
        return found


def one_pass(path: Path, grid: dict[str, Any]) -> Whole:
    """Warp a file to a grid, as the handlers tell it."""
    place = {"transform": Affine(*grid["transform"]), "width": grid["width"], "height": grid["height"]}
    with rasterio.open(path) as dataset:
        nodata, flags = dataset.nodata, set(dataset.mask_flag_enums[0])
        if flags == {MaskFlags.all_valid} and np.dtype(dataset.dtypes[0]).kind == "f":
            nodata = math.nan  # what is missing of floats need not be told by a mask
        has_mask = nodata is None and MaskFlags.alpha not in flags
        with WarpedVRT(dataset, crs=grid["crs"], add_alpha=has_mask, nodata=nodata, **place, **EXACT) as warped:
            data = warped.read()
        bands = data[: dataset.count].astype(dataset.dtypes[0])  # WarpedVRT gives int8 as int16
        valid = np.broadcast_to(data[-1] != 0, bands.shape) if has_mask else _valid(nodata, bands)
        return Whole(bands, valid, nodata, has_mask, dataset.colorinterp)


def _valid(nodata: float | None, bands: Array) -> Array:
    if nodata is not None:
        return ~np.isnan(bands) if np.isnan(nodata) else bands != bands.dtype.type(nodata)
    valid = np.broadcast_to(bands[-1] != 0, bands.shape).copy()
    valid[-1] = True
    return valid
