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

BLOCK_SIZE = 512

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
    nodata: float | None = None
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
    def block_bytes(self) -> int:
        """How large a block is before it is compressed."""
        return BLOCK_SIZE * BLOCK_SIZE * self.count * np.dtype(self.dtype).itemsize


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
    nodata: float | EllipsisType | None = ...,
) -> CogProfile:
    """Give the profile of a COG on such a grid that keeps what the source says of its bands.

    Without `nodata` the source's own is kept. A lossy encoding keeps no exact values, hence a mask
    stands in for nodata there.
    """
    wanted = dataset.nodata if nodata is ... else nodata
    kept = wanted if wanted is not None and in_dtype_range(wanted, dataset.dtypes[0]) else None
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
