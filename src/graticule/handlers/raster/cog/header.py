"""The head of a COG: everything before its pixels, in the order that GDAL's COG driver defines.

First the image's directory of tags, then its mask's, the overviews' from large to small, and the
overviews' masks'; after them the addresses of all blocks. The blocks follow, from the smallest overview to
the full image.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graticule.handlers.raster.cog.skeleton import Skeleton, TiffField, TiffFields

CLASSIC_LIMIT = 2**32 - 1  # a larger file needs the 64-bit addresses of BigTIFF

_SUBFILE_TYPE, _WIDTH, _HEIGHT, _TILE_OFFSETS, _TILE_SIZES, _JPEG_TABLES = 254, 256, 257, 324, 325, 347
_REDUCED, _MASK = 1, 4
_LONG, _LONG8 = 4, 16

# What an overview has of the image's tags: those that say how to decode a block, and nodata.
_DECODING = {258, 259, 262, 277, 284, 317, 320, 322, 323, 338, 339, 530, 532, 42113}

_LAYOUT = (
    b"LAYOUT=IFDS_BEFORE_DATA\n"
    b"BLOCK_ORDER=ROW_MAJOR\n"
    b"BLOCK_LEADER=SIZE_AS_UINT4\n"
    b"BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
    b"KNOWN_INCOMPATIBLE_EDITION=NO\n "  # the space is part of it: room to make NO a YES
)
_MASK_LAYOUT = b"MASK_INTERLEAVED_WITH_IMAGERY=YES\n"

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where the blocks of a directory lie, row by row, counted from its level's first byte. Size 0: absent."""

    offsets: Integers
    sizes: Integers


@dataclass(frozen=True, slots=True)
class LevelIndex:
    """A level of the pyramid: how large it is in pixels and in bytes, and where its blocks lie."""

    width: int
    height: int
    size: int
    image: Blocks
    mask: Blocks


@dataclass(frozen=True, slots=True)
class _Format:
    """How a TIFF writes its structure: with addresses of 32 bits, or of 64 (BigTIFF)."""

    opening: bytes
    address: str
    entry_count: str
    entry: str
    address_type: int

    @property
    def address_size(self) -> int:
        return struct.calcsize(self.address)


_CLASSIC = _Format(b"II*\0", "<I", "<H", "<HHI4s", _LONG)
_BIG = _Format(b"II+\0\x08\0\0\0", "<Q", "<Q", "<HHQ8s", _LONG8)


def cog_header(skeleton: Skeleton, levels: Sequence[LevelIndex]) -> bytes:
    """Give the head of a COG with these levels, the full image first."""
    size = len(_header(_CLASSIC, skeleton, levels, data_start=0))
    if size + sum(level.size for level in levels) <= CLASSIC_LIMIT:
        return _header(_CLASSIC, skeleton, levels, data_start=size)
    size = len(_header(_BIG, skeleton, levels, data_start=0))
    return _header(_BIG, skeleton, levels, data_start=size)


def _header(form: _Format, skeleton: Skeleton, levels: Sequence[LevelIndex], data_start: int) -> bytes:
    """Write the head. Its length does not depend on where the data start, so it can be asked for first."""
    writer = _HeaderWriter(form, has_mask=skeleton.mask is not None)
    starts = _level_starts(levels, data_start)
    for fields, level, blocks, start in _directories(skeleton, levels, starts):
        writer.add_directory({**fields, **_size_fields(level), **_tile_fields(blocks, start, form)})
    return writer.finished()


def _level_starts(levels: Sequence[LevelIndex], data_start: int) -> list[int]:
    smaller = np.cumsum([0, *(level.size for level in reversed(levels[1:]))])[::-1]
    return [data_start + int(size) for size in smaller]


def _directories(
    skeleton: Skeleton, levels: Sequence[LevelIndex], starts: Sequence[int]
) -> Iterator[tuple[TiffFields, LevelIndex, Blocks, int]]:
    full, *overviews = zip(levels, starts, strict=True)
    for group, reduced in (([full], 0), (overviews, _REDUCED)):
        image = _overview_fields(skeleton.image) if reduced else _image_fields(skeleton.image)
        for level, start in group:
            yield image, level, level.image, start
        for level, start in group if skeleton.mask else ():
            yield {**(skeleton.mask or {}), _SUBFILE_TYPE: _longs([_MASK | reduced])}, level, level.mask, start


def _image_fields(image: TiffFields) -> TiffFields:
    """Each JPEG block of ours has its own tables: common ones would be read in vain."""
    return {tag: field for tag, field in image.items() if tag != _JPEG_TABLES}


def _overview_fields(image: TiffFields) -> TiffFields:
    kept = {tag: field for tag, field in image.items() if tag in _DECODING}
    return {**kept, _SUBFILE_TYPE: _longs([_REDUCED])}


def _size_fields(level: LevelIndex) -> TiffFields:
    return {_WIDTH: _longs([level.width]), _HEIGHT: _longs([level.height])}


def _tile_fields(blocks: Blocks, start: int, form: _Format) -> TiffFields:
    offsets = np.where(blocks.sizes > 0, blocks.offsets + start, 0)
    encoded = offsets.astype(f"<u{form.address_size}").tobytes()
    return {_TILE_OFFSETS: TiffField(form.address_type, len(offsets), encoded), _TILE_SIZES: _longs(blocks.sizes)}


def _longs(values: Sequence[int] | Integers) -> TiffField:
    return TiffField(_LONG, len(values), np.asarray(values).astype("<u4").tobytes())


class _HeaderWriter:
    """Writes directories one after the other, each with its values, and the addresses of blocks after all."""

    def __init__(self, form: _Format, *, has_mask: bool) -> None:
        self._form = form
        layout = _LAYOUT + (_MASK_LAYOUT if has_mask else b"")
        ghost = b"GDAL_STRUCTURAL_METADATA_SIZE=%06d bytes\n%s" % (len(layout), layout)
        self._head = bytearray(form.opening + bytes(form.address_size) + ghost)
        self._link = len(form.opening)  # where the address of the next directory goes
        self._tiles: list[tuple[int, int, TiffField]] = []

    def add_directory(self, fields: TiffFields) -> None:
        entry_size = struct.calcsize(self._form.entry)
        start = self._appended(struct.pack(self._form.entry_count, len(fields)))
        self._point_to(start)
        entry = self._appended(bytes(entry_size * len(fields) + self._form.address_size), aligned=False)
        self._link = entry + entry_size * len(fields)
        for tag, field in sorted(fields.items()):
            if tag in {_TILE_OFFSETS, _TILE_SIZES}:
                self._tiles.append((entry, tag, field))
            else:
                self._write_entry(entry, tag, field)
            entry += entry_size

    def finished(self) -> bytes:
        for entry, tag, field in self._tiles:
            self._write_entry(entry, tag, field)
        return bytes(self._head)

    def _write_entry(self, entry: int, tag: int, field: TiffField) -> None:
        value = field.payload
        if len(value) > self._form.address_size:
            value = struct.pack(self._form.address, self._appended(value))
        struct.pack_into(self._form.entry, self._head, entry, tag, field.type, field.count, value)

    def _point_to(self, start: int) -> None:
        struct.pack_into(self._form.address, self._head, self._link, start)

    def _appended(self, content: bytes, *, aligned: bool = True) -> int:
        """Append at an even address, as TIFF demands, and give that address."""
        if aligned and len(self._head) % 2:
            self._head += b"\0"
        start = len(self._head)
        self._head += content
        return start
