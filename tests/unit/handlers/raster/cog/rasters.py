"""Rasters in memory, and the COGs written from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rio_cogeo.cogeo import cog_validate

from graticule.handlers.raster.cog.encoding import Encoding
from graticule.handlers.raster.cog.profile import CogProfile
from graticule.handlers.raster.cog.writer import WrittenCog, write_cog
from graticule.handlers.raster.pixels import Box, Pixels

Array = NDArray[Any]

RGB = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
DEFLATE = Encoding("deflate", level=1, predictor=2)
FLOAT_DEFLATE = Encoding("deflate", level=1, predictor=3)


@dataclass(frozen=True, slots=True)
class ArraySource:
    """A source that has all pixels in memory."""

    data: Array
    valid: NDArray[np.bool_] | None = None

    def read(self, box: Box) -> Pixels:
        assert box.width > 0
        assert box.height > 0
        assert box.column + box.width <= self.data.shape[2]
        assert box.row + box.height <= self.data.shape[1]
        place = (slice(box.row, box.row + box.height), slice(box.column, box.column + box.width))
        return Pixels(self.data[:, *place], None if self.valid is None else self.valid[place])


def noise(dtype: str, shape: tuple[int, int, int], seed: int = 1, low: int = 0, high: int = 200) -> Array:
    """Smooth slopes with a little noise, as a lens sees them."""
    _, height, width = shape
    slope = np.add.outer(np.arange(height), np.arange(width)) / (height + width) * (high - low) * 0.9 + low
    grain = np.random.default_rng(seed).random(shape) * (high - low) * 0.1
    result: Array = (slope + grain).astype(dtype)
    return result


def profile_for(data: Array, **changes: Any) -> CogProfile:
    count, height, width = data.shape
    settings: dict[str, Any] = {
        "width": width,
        "height": height,
        "count": count,
        "dtype": str(data.dtype),
        "crs": CRS.from_epsg(32633),
        "transform": Affine(10, 0, 500_000, 0, -10, 5_000_000),
        "encoding": FLOAT_DEFLATE if data.dtype.kind == "f" else DEFLATE,
        "overview_resampling": "average",
        **changes,
    }
    return CogProfile(**settings)


def write(
    path: Path, data: Array, valid: NDArray[np.bool_] | None = None, *, sources: int = 1, **changes: Any
) -> WrittenCog:
    return write_cog(
        path,
        profile_for(data, **changes),
        [ArraySource(data, valid)] * sources,
        on_progress=lambda done, total: None,
    )


def level(path: Path, overview: int | None = None) -> Array:
    """All bands of the image, or of one of its overviews (0 is the largest)."""
    return _opened(path, overview, lambda dataset: dataset.read())


def mask(path: Path, overview: int | None = None) -> Array:
    return _opened(path, overview, lambda dataset: dataset.dataset_mask())


def _opened(path: Path, overview: int | None, look: Any) -> Array:
    options = {} if overview is None else {"OVERVIEW_LEVEL": overview}
    with rasterio.open(path, **options) as dataset:
        result: Array = look(dataset)
        return result


def validated(path: Path) -> tuple[bool, list[str], list[str]]:
    """The verdict of the validator: whether all is well, errors and warnings."""
    return cog_validate(path, strict=True, quiet=True)


def assert_cog(path: Path) -> None:
    """The file is a COG without a fault, and GDAL sees it as one of its own."""
    assert validated(path) == (True, [], [])
    with rasterio.open(path) as dataset:
        assert dataset.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"


def gdal_overviews(path: Path, data: Array, factors: list[int], **profile: Any) -> list[Array]:
    """The average overviews that GDAL itself makes."""
    count, height, width = data.shape
    settings = {"width": width, "height": height, "count": count, "dtype": data.dtype, "driver": "GTiff", **profile}
    with rasterio.open(path, "w", crs="EPSG:32633", transform=Affine(10, 0, 5, 0, -10, 5), **settings) as dataset:
        dataset.write(data)
    with rasterio.open(path, "r+") as dataset:
        dataset.build_overviews(factors, rasterio.enums.Resampling.average)
    return [level(path, number) for number in range(len(factors))]
