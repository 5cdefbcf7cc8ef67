"""The tags of a COG, as GDAL itself writes them.

GDAL makes a file of one empty block in memory. Its tags (coordinate system, colours, names, nodata…) are
those of the COG, whatever the COG's size; only sizes and block addresses are ours.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import rasterio
from rasterio.enums import ColorInterp
from rasterio.io import DatasetWriter, MemoryFile

from graticule.handlers.raster.cog.profile import CogProfile
from graticule.handlers.raster.nodata import WIDE_INTEGERS

_NODATA, _ASCII = 42113, 2
_TYPE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}


@dataclass(frozen=True, slots=True)
class TiffField:
    """The value of a TIFF tag: its type, how many numbers or characters, and their bytes (little-endian)."""

    type: int
    count: int
    payload: bytes


TiffFields = Mapping[int, TiffField]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The tags of the image, and of its mask when it has one."""

    image: TiffFields
    mask: TiffFields | None


def skeleton_of(profile: CogProfile) -> Skeleton:
    """Let GDAL write a file with such a profile, and give its tags."""
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), MemoryFile() as memory:
        with memory.open(driver="GTiff", **_creation_options(profile)) as dataset:
            _describe(dataset, profile)
            if profile.has_mask:
                dataset.write_mask(True)
        directories = list(_directories(memory.read()))
    return Skeleton({**directories[0], **_wide_nodata(profile)}, directories[1] if profile.has_mask else None)


def _wide_nodata(profile: CogProfile) -> TiffFields:
    """Return the tag of a nodata value that rasterio, which passes doubles, could not write exactly."""
    if profile.nodata is None or profile.dtype not in WIDE_INTEGERS:
        return {}
    text = f"{profile.nodata:d}\0".encode()
    return {_NODATA: TiffField(_ASCII, len(text), text)}


def _creation_options(profile: CogProfile) -> dict[str, object]:
    return {
        "width": profile.block_size,
        "height": profile.block_size,
        "count": profile.count,
        "dtype": profile.dtype,
        "crs": profile.crs,
        "transform": profile.transform,
        "nodata": None if profile.dtype in WIDE_INTEGERS else profile.nodata,
        "tiled": True,
        "blockxsize": profile.block_size,
        "blockysize": profile.block_size,
        "interleave": "pixel",
        "compress": profile.encoding.compression,
        "predictor": profile.encoding.predictor,
        "photometric": _photometric(profile),
        "sparse_ok": True,
        "bigtiff": "NO",
        "endianness": "LITTLE",
    }


def _photometric(profile: CogProfile) -> str:
    if profile.encoding.compression == "jpeg":
        return "YCBCR"
    is_rgb = tuple(profile.colorinterp[:3]) == (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    return "RGB" if is_rgb else "MINISBLACK"


def _describe(dataset: DatasetWriter, profile: CogProfile) -> None:
    if profile.colormap is not None:
        dataset.write_colormap(1, profile.colormap)
    elif profile.colorinterp:
        dataset.colorinterp = profile.colorinterp
    if any(scale != 1 for scale in profile.scales):
        dataset.scales = profile.scales
    if any(offset != 0 for offset in profile.offsets):
        dataset.offsets = profile.offsets
    if any(profile.units):
        dataset.units = [unit or "" for unit in profile.units]
    for band, description in enumerate(profile.descriptions, start=1):
        if description:
            dataset.set_band_description(band, description)
    dataset.update_tags(**profile.tags)
    for band, tags in enumerate(profile.band_tags, start=1):
        dataset.update_tags(band, **tags)


def _directories(tiff: bytes) -> Iterator[TiffFields]:
    (offset,) = struct.unpack_from("<I", tiff, 4)
    while offset:
        (count,) = struct.unpack_from("<H", tiff, offset)
        entries = range(offset + 2, offset + 2 + 12 * count, 12)
        yield dict(_field(tiff, entry) for entry in entries)
        (offset,) = struct.unpack_from("<I", tiff, offset + 2 + 12 * count)


def _field(tiff: bytes, entry: int) -> tuple[int, TiffField]:
    tag, kind, count = struct.unpack_from("<HHI", tiff, entry)
    size = _TYPE_SIZES[kind] * count
    start = entry + 8 if size <= 4 else struct.unpack_from("<I", tiff, entry + 8)[0]
    return tag, TiffField(kind, count, tiff[start : start + size])
