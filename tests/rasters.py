"""Small rasters of every kind that partners send."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import rasterio
import rasterio.shutil
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp

UTM_20: Final = "EPSG:32620"
COLOURS: Final = {0: (0, 0, 0, 255), 1: (10, 120, 40, 255), 2: (200, 180, 90, 255), 3: (30, 60, 200, 255)}


@dataclass(frozen=True)
class Kind:
    """How a raster is made: `bands` gives (bands, rows, columns) for a size."""

    bands: Callable[[int, int], NDArray[Any]]
    crs: str = UTM_20
    origin: tuple[float, float] = (500_000, 2_000_000)
    pixel: float = 10
    nodata: float | None = None
    profile: Mapping[str, Any] = field(default_factory=dict)
    colorinterp: tuple[ColorInterp, ...] | None = None
    colormap: Mapping[int, tuple[int, int, int, int]] | None = None


def _noise(bands: int, height: int, width: int, top: int, dtype: str) -> NDArray[Any]:
    return np.random.default_rng(7).integers(0, top, (bands, height, width)).astype(dtype)


def _dem(height: int, width: int) -> NDArray[Any]:
    rows, columns = np.mgrid[0:height, 0:width]
    heights: NDArray[np.float32] = (800 + 300 * np.sin(rows / 31) * np.cos(columns / 47) + rows * 0.25).astype(
        "float32"
    )
    heights[height // 3 : height // 2, width // 4 : width // 3] = -9999
    return heights.reshape(1, height, width)


def _rgba(height: int, width: int) -> NDArray[Any]:
    data = _noise(4, height, width, 256, "uint8")
    data[3] = np.where(np.arange(width) % 37 < 5, 0, 255)
    data[:3, data[3] == 0] = 0
    return data


KINDS: Final[Mapping[str, Kind]] = {
    "rgb": Kind(lambda h, w: _noise(3, h, w, 256, "uint8"), profile={"photometric": "RGB"}),
    "multispectral": Kind(lambda h, w: _noise(4, h, w, 10_000, "uint16"), profile={"photometric": "MINISBLACK"}),
    "dem": Kind(_dem, nodata=-9999),
    "categorical": Kind(lambda h, w: _noise(1, h, w, 4, "uint8"), colormap=COLOURS),
    "rgba": Kind(
        _rgba,
        profile={"photometric": "RGB", "alpha": "YES"},
        colorinterp=(ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha),
    ),
    "antimeridian": Kind(
        lambda h, w: _noise(1, h, w, 60_000, "uint16"), crs="EPSG:32660", origin=(826_000, 1_000_000), pixel=25
    ),
    "arctic": Kind(
        lambda h, w: _noise(1, h, w, 30_000, "int16"),
        crs="EPSG:3413",
        origin=(600_000, -850_000),
        pixel=100,
        nodata=-32768,
    ),
}


def make_raster(path: Path, name: str, *, width: int = 300, height: int = 260, **changes: Any) -> Path:
    """Write a raster of a kind; `changes` go into GDAL's profile."""
    kind = KINDS[name]
    data = kind.bands(height, width)
    profile = {
        "driver": "GTiff",
        "width": width,
        "height": height,
        "count": len(data),
        "dtype": data.dtype.name,
        "crs": kind.crs,
        "transform": Affine(kind.pixel, 0, kind.origin[0], 0, -kind.pixel, kind.origin[1]),
        "nodata": kind.nodata,
        **kind.profile,
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(path, "w", **profile) as dataset:
        dataset.write(data)
        if kind.colorinterp is not None:
            dataset.colorinterp = kind.colorinterp
        if kind.colormap is not None:
            dataset.write_colormap(1, dict(kind.colormap))
    return path


def write_with_nodata(path: Path, data: NDArray[Any], nodata: int, **profile: Any) -> Path:
    """Write integers of 64 bits with their nodata value, which rasterio itself would round to a double."""
    plain, described = path.with_suffix(".plain.tif"), path.with_suffix(".vrt")
    count, height, width = data.shape
    options = {"crs": "EPSG:4326", "transform": Affine(0.01, 0, 10, 0, -0.01, 50), **profile}
    with rasterio.open(
        plain, "w", driver="GTiff", count=count, height=height, width=width, dtype=data.dtype, **options
    ) as dataset:
        dataset.write(data)
    rasterio.shutil.copy(plain, described, driver="VRT")
    tag = f"<NoDataValue>{nodata}</NoDataValue><ColorInterp>"
    described.write_text(described.read_text().replace("<ColorInterp>", tag))
    rasterio.shutil.copy(described, path, driver="GTiff")
    plain.unlink()
    described.unlink()
    return path
