"""Where the parts of a TIFF lie, as its tags say: enough to see that its end is missing, or that it is a COG."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from math import ceil
from typing import Final

from rasterio.io import DatasetReader

MOST_LOOKED_AT: Final = 50_000  # blocks
_FIRST_DIRECTORY_BEFORE: Final = 300
_SMALL: Final = 512
_INDEX_ENTRY_BYTES: Final = 16  # in a BigTIFF, and 8 in others


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block and the bytes that it takes in the file."""

    band: int
    column: int
    row: int
    offset: int
    size: int

    @property
    def where(self) -> str:
        """Name it for a reader."""
        return f"band {self.band}, block column {self.column}, row {self.row}"


def is_tiled(dataset: DatasetReader) -> bool:
    """Tell whether blocks are not as wide as the image."""
    _, width = dataset.block_shapes[0]
    return bool(width != dataset.width)


def block_past(dataset: DatasetReader, size: int) -> StoredBlock | None:
    """Give a block that ends after the end of the file; of very many blocks only a part is looked at."""
    return next((block for block in _looked_at(dataset) if block.offset + block.size > size), None)


def index_size(dataset: DatasetReader) -> int:
    """Return how many bytes the places and sizes of all blocks take in the file at most, of missing blocks too."""
    height, width = dataset.block_shapes[0]
    blocks: int = ceil(dataset.width / width) * ceil(dataset.height / height)
    return _INDEX_ENTRY_BYTES * blocks * (int(dataset.count) if _is_by_band(dataset) else 1)


def stored_size(dataset: DatasetReader, column: int, row: int) -> int:
    """Give how many bytes a block of all bands takes in the file; 0 for one that was left out."""
    bands = dataset.indexes if _is_by_band(dataset) else (1,)
    return sum(block.size for band in bands if (block := _block(dataset, band, column, row)))


def is_cog(dataset: DatasetReader) -> bool:
    """Tell whether it is a cloud-optimized GeoTIFF, overviews included: `rio cogeo validate --strict` agrees."""
    reductions = dataset.overviews(1)
    is_large = max(dataset.width, dataset.height) > _SMALL
    if is_large and not (reductions and is_tiled(dataset)):
        return False
    if "KNOWN_INCOMPATIBLE_EDITION=YES" in (dataset.get_tag_item("GDAL_STRUCTURAL_METADATA", "TIFF") or ""):
        return False
    return reductions == sorted(reductions) and _is_in_order(dataset, reductions)


def _is_in_order(dataset: DatasetReader, reductions: list[int]) -> bool:
    """All directories come first, the largest image's before; then the pixels, the largest image's last."""
    levels = [None, *range(len(reductions))]
    directories = [int(dataset.get_tag_item("IFD_OFFSET", "TIFF", bidx=1, ovr=level) or 0) for level in levels]
    pixels = [first for level in reversed(levels) if (first := _first_offset(dataset, level, reductions))]
    is_sorted = all(before < after for before, after in [*pairwise(directories), *pairwise(pixels)])
    return is_sorted and 0 < directories[0] <= _FIRST_DIRECTORY_BEFORE and min(pixels, default=2**63) > directories[-1]


def _first_offset(dataset: DatasetReader, level: int | None, reductions: list[int]) -> int:
    """Give where the first block that is not left out begins; 0 when all are."""
    reduction = 1 if level is None else reductions[level]
    columns, rows = _blocks(dataset, reduction)
    places = ((column, row) for row in range(rows) for column in range(columns))
    found = (_block(dataset, 1, column, row, level) for column, row in islice(places, MOST_LOOKED_AT))
    return next((block.offset for block in found if block), 0)


def _looked_at(dataset: DatasetReader) -> Iterator[StoredBlock]:
    """Go through the blocks from the last one on: what is cut off lacks its end."""
    columns, rows = _blocks(dataset)
    bands = dataset.indexes if _is_by_band(dataset) else (1,)
    step = ceil(columns * rows * len(bands) / MOST_LOOKED_AT)
    for band in reversed(bands):
        for place in range(columns * rows - 1, -1, -step):
            if block := _block(dataset, band, place % columns, place // columns):
                yield block


def _blocks(dataset: DatasetReader, reduction: int = 1) -> tuple[int, int]:
    height, width = dataset.block_shapes[0]
    return ceil(ceil(dataset.width / reduction) / width), ceil(ceil(dataset.height / reduction) / height)


def _block(dataset: DatasetReader, band: int, column: int, row: int, level: int | None = None) -> StoredBlock | None:
    offset = dataset.get_tag_item(f"BLOCK_OFFSET_{column}_{row}", "TIFF", bidx=band, ovr=level)
    if offset is None:
        return None
    size = dataset.get_tag_item(f"BLOCK_SIZE_{column}_{row}", "TIFF", bidx=band, ovr=level)
    return StoredBlock(band, column, row, int(offset), int(size or 0))


def _is_by_band(dataset: DatasetReader) -> bool:
    return bool(dataset.count > 1 and dataset.tags(ns="IMAGE_STRUCTURE").get("INTERLEAVE") == "BAND")
