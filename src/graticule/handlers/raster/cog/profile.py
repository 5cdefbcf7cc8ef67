"""What a COG is to hold besides its pixels, and what of it comes from the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Literal

import numpy as np
from affine import Affine
from rasterio.crs import CRS
from rasterio.dtypes import in_dtype_range
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader

from graticule.handlers.raster.cog.encoding import Encoding
from graticule.handlers.raster.nodata import WIDE_INTEGERS, Number, exact_nodata

BLOCK_SIZE = 512
MAX_PIXEL_BYTES = 512  # of all bands, in a block of full size: 128 MiB
MANY_BANDS_BLOCK_BYTES = 16 * 2**20  # in blocks of larger pixels: whoever reads one band decodes all of a block

OverviewResampling = Literal["average", "nearest"]
Color = tuple[int, int, int, int]
Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CogProfile:
    """A COG without its pixels. Sequences have one entry per band."""

    width: int
    height: int
    count: int
    dtype: str
    crs: CRS
    transform: Affine
    encoding: Encoding
    overview_resampling: OverviewResampling
    nodata: Number | None = None
    has_mask: bool = False
    colorinterp: Sequence[ColorInterp] = ()
    colormap: Mapping[int, Color] | None = None
    descriptions: Sequence[str | None] = ()
    scales: Sequence[float] = ()
    offsets: Sequence[float] = ()
    units: Sequence[str | None] = ()
    tags: Tags = field(default_factory=dict)
    band_tags: Sequence[Tags] = ()

    @property
    def alpha(self) -> int | None:
        """The index of the alpha band."""
        return self.colorinterp.index(ColorInterp.alpha) if ColorInterp.alpha in self.colorinterp else None

    @property
    def fill(self) -> Any:
        """What a pixel holds that is not there, as a number of the file's own type."""
        return np.dtype(self.dtype).type(0 if self.nodata is None else self.nodata)

    @property
    def block_size(self) -> int:
        """How many pixels a side of a block has."""
        return block_size_for(self.count * np.dtype(self.dtype).itemsize)

    @property
    def block_bytes(self) -> int:
        """How large a block is before it is compressed."""
        return self.block_size**2 * self.count * np.dtype(self.dtype).itemsize


def block_size_for(pixel_bytes: int) -> int:
    """Return the side of a block of pixels of so many bytes: 512, and of very many bands a power of two below."""
    size = BLOCK_SIZE
    while pixel_bytes > MAX_PIXEL_BYTES and size**2 * pixel_bytes > MANY_BANDS_BLOCK_BYTES:
        size //= 2
    return size


def profile_of(
    dataset: DatasetReader,
    *,
    width: int,
    height: int,
    crs: CRS,
    transform: Affine,
    encoding: Encoding,
    overview_resampling: OverviewResampling,
    has_mask: bool,
    band_names: Sequence[str] | None = None,
    nodata: Number | EllipsisType | None = ...,
) -> CogProfile:
    """Give the profile of a COG on such a grid that keeps what the source says of its bands.

    Without `nodata` the source's own is kept. A lossy encoding keeps no exact values, hence a mask
    stands in for nodata there.
    """
    wanted = exact_nodata(dataset) if nodata is ... else nodata
    kept = wanted if wanted is not None and _fits(wanted, dataset.dtypes[0]) else None
    lossy_nodata = kept is not None and not encoding.is_lossless
    colormap = _colormap(dataset)
    return CogProfile(
        width=width,
        height=height,
        count=dataset.count,
        dtype=dataset.dtypes[0],
        crs=crs,
        transform=transform,
        encoding=encoding,
        overview_resampling="nearest" if colormap else overview_resampling,
        nodata=None if lossy_nodata else kept,
        has_mask=has_mask or lossy_nodata,
        colorinterp=tuple(dataset.colorinterp),
        colormap=colormap,
        descriptions=tuple(band_names or dataset.descriptions),
        scales=tuple(dataset.scales),
        offsets=tuple(dataset.offsets),
        units=tuple(dataset.units),
        tags=_lasting(dataset.tags()),
        band_tags=tuple(_lasting(dataset.tags(band)) for band in dataset.indexes),
    )


def _fits(nodata: Number, dtype: str) -> bool:
    if dtype in WIDE_INTEGERS:
        return int(np.iinfo(dtype).min) <= nodata <= int(np.iinfo(dtype).max)
    return bool(in_dtype_range(nodata, dtype))


def _colormap(dataset: DatasetReader) -> Mapping[int, Color] | None:
    """A TIFF has a colour table only for a single band of 8 or 16 bits."""
    if dataset.count != 1 or dataset.dtypes[0] not in {"uint8", "uint16"}:
        return None
    try:
        colormap: Mapping[int, Color] = dataset.colormap(1)
    except ValueError:  # there is none
        return None
    return colormap


def _lasting(tags: Tags) -> Tags:
    """Statistics are those of the source's pixels, which the new file may not have."""
    return {name: value for name, value in tags.items() if not name.startswith("STATISTICS_")}
