"""A raster that is shown from the files of many: GDAL's virtual raster, written here and never read from a file.

Each file is named as `GTIFF_DIR:n:name`, the n-th image of a TIFF: no other driver takes such a name, so a file that
is not a TIFF any more cannot lead GDAL elsewhere. Overviews are written as rasters of their own, from the overviews
of the files. All files lie on one grid, and begin where pixels of their overviews do: so every pixel of every level
that the files have is one of theirs, as it is in a single file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from affine import Affine
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import DatasetReader

from graticule.core.errors import InvalidInput
from graticule.serve.tiles.gdal import open_geotiff
from graticule.serve.tiles.limits import MOST_DATA_TILES

BLOCK: Final = 512  # of the smallest overview, as of every block
MOST_IMAGES: Final = 64  # of one TIFF
HALF_TURN: Final = 180.0
TURN: Final = 360.0

_TYPES: Final = {
    "uint8": "Byte",
    "int8": "Int8",
    "uint16": "UInt16",
    "int16": "Int16",
    "uint32": "UInt32",
    "int32": "Int32",
    "uint64": "UInt64",
    "int64": "Int64",
    "float32": "Float32",
    "float64": "Float64",
}

# Where the name of a file stands in a document: its number, and whether it is in an overview.
_PLACE: Final = re.compile(r"\x1f(\d+),([01])\x1f")

Bounds = tuple[float, float, float, float]


class Box(NamedTuple):
    """A rectangle of pixels."""

    column: int
    row: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class DataTile:
    """A file, what it holds of the grid, and the part of that which no other file shows."""

    path: str  # of the blob: the name under which it is opened may hold a signature, which lasts for a while
    window: Box
    core: Box


@dataclass(frozen=True, slots=True)
class Bands:
    """What all files of a raster have in common: their bands, and which image of the TIFF is which."""

    dtype: str
    nodata: float | None
    color_names: tuple[str, ...]
    color_table: tuple[tuple[int, int, int, int], ...]
    descriptions: tuple[str | None, ...]
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    units: tuple[str | None, ...]
    images: tuple[int, ...]  # of the TIFF, by level
    masks: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.color_names)

    @property
    def reduction(self) -> str:
        """How pixels become one in levels that no file has."""
        return "nearest" if self.color_table else "average"


@dataclass(frozen=True, slots=True)
class Span:
    """Columns of a grid, and where they lie. A grid across the antimeridian has one on either side of it."""

    start: int
    stop: int
    height: int
    transform: Affine

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.stop - self.start

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north, in the grid's own projection."""
        west, north = self.transform @ (0, 0)
        east, south = self.transform @ (self.width, self.height)
        return west, south, east, north

    def box_of(self, area: Bounds, margin: float = 0) -> Box:
        """Give the pixels of the grid that lie in an area, and some more around it."""
        (left, top), (right, bottom) = ~self.transform @ (area[0], area[3]), ~self.transform @ (area[2], area[1])
        column, row = max(0, floor(left - margin)), max(0, floor(top - margin))
        last, lowest = min(self.width, ceil(right + margin)), min(self.height, ceil(bottom + margin))
        return Box(self.start + column, row, max(0, last - column), max(0, lowest - row))


@dataclass(frozen=True, slots=True)
class VirtualRaster:
    """A grid, and the files that it is shown from."""

    crs: str
    whole: Span
    halves: tuple[Span, ...]  # one on either side of the antimeridian, or the whole
    bands: Bands
    tiles: tuple[DataTile, ...]

    def document(self, readable: Callable[[str], str], span: Span | None = None, box: Box | None = None) -> str:
        """Write the part of it that lies in a box; what lies elsewhere is not there. `readable` names blobs."""
        tiles = () if box is None else tuple(tile for tile in self.tiles if _meet(tile.core, box))
        if len(tiles) > MOST_DATA_TILES:
            raise InvalidInput(
                f"This reaches over {len(tiles)} data files; {MOST_DATA_TILES} are read at once, at most.",
                hint="Ask for a smaller area, or for a higher zoom level.",
            )
        return _named(
            _document(self.crs, span or self.whole, self.bands, tiles), [readable(tile.path) for tile in tiles]
        )


def virtual_raster(crs: CRS, whole: Span, bands: Bands, tiles: Sequence[DataTile]) -> VirtualRaster:
    """Make a virtual raster on a grid."""
    halves = _halves(whole) if crs.is_geographic else (whole,)
    return VirtualRaster(crs.to_wkt(), whole, halves, bands, tuple(tiles))


def lies_beyond(dataset: DatasetReader) -> bool:
    """Tell whether a raster's longitudes go on beyond 180 degrees, or begin before -180."""
    if not dataset.crs or not dataset.crs.is_geographic:
        return False
    slack = abs(dataset.transform.a)
    return bool(dataset.bounds.right > HALF_TURN + slack or dataset.bounds.left < -HALF_TURN - slack)


def of_one_file(path: str, name: str, dataset: DatasetReader) -> VirtualRaster:
    """Show a file as a virtual raster, for it lies across the antimeridian."""
    box = Box(0, 0, dataset.width, dataset.height)
    tile = DataTile(path, box, box)
    whole = Span(0, box.width, box.height, dataset.transform)
    return virtual_raster(dataset.crs, whole, bands_of(name, dataset), [tile])


def bands_of(name: str, dataset: DatasetReader) -> Bands:
    """Read what the files have in common from one of them, the largest."""
    images, masks = _images(name, dataset)
    return Bands(
        dtype=dataset.dtypes[0],
        nodata=dataset.nodata,
        color_names=tuple(color.name for color in dataset.colorinterp),
        color_table=_color_table(dataset),
        descriptions=tuple(dataset.descriptions),
        scales=tuple(dataset.scales),
        offsets=tuple(dataset.offsets),
        units=tuple(dataset.units),
        images=images,
        masks=masks,
    )


def level_count(width: int, height: int) -> int:
    """Give how many overviews a raster of this size has, each half as large as the one before."""
    levels = 0
    while _reduced(max(width, height), levels) > BLOCK:
        levels += 1
    return levels


def _reduced(length: int, level: int) -> int:
    """Give how many pixels of a level so many pixels are."""
    return -(-length // (1 << level))


def _halves(whole: Span) -> tuple[Span, ...]:
    """Cut a grid at the antimeridian.

    The cut is made between two pixels. Each half is stretched by half a pixel at most, so that it ends there.
    """
    west, _, east, _ = whole.bounds
    turns = floor((west + HALF_TURN + whole.transform.a) / TURN) * TURN
    west, east = west - turns, east - turns
    cut = round((HALF_TURN - west) / whole.transform.a)
    if not 0 < cut < whole.width:
        return (_placed(whole, 0, whole.width, west, east) if turns else whole,)
    return (
        _placed(whole, 0, cut, west, HALF_TURN),
        _placed(whole, cut, whole.width, -HALF_TURN, east - TURN),
    )


def _placed(whole: Span, start: int, stop: int, west: float, east: float) -> Span:
    old = whole.transform
    return Span(start, stop, whole.height, Affine((east - west) / (stop - start), 0, west, 0, old.e, old.f))


def _images(name: str, dataset: DatasetReader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the images of a TIFF that hold the pixels of each level, and those that hold its mask."""
    sizes = [(dataset.width, dataset.height)]
    sizes += [(ceil(dataset.width / each), ceil(dataset.height / each)) for each in dataset.overviews(1)]
    flags = dataset.mask_flag_enums[0]
    has_mask = MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags
    found: dict[bool, list[int]] = {False: [], True: []}
    for place in range(1, MOST_IMAGES + 1):
        with open_geotiff(f"GTIFF_DIR:{place}:{name}") as image:
            if image.shape[::-1] in sizes:
                found[image.tags(1, ns="IMAGE_STRUCTURE").get("NBITS") == "1"].append(place)
        if len(found[False]) == len(sizes) and (not has_mask or len(found[True]) == len(sizes)):
            break
    return tuple(found[False]), tuple(found[True]) if has_mask else ()


def _color_table(dataset: DatasetReader) -> tuple[tuple[int, int, int, int], ...]:
    if dataset.colorinterp[0] is not ColorInterp.palette:
        return ()
    colors: dict[int, tuple[int, int, int, int]] = dataset.colormap(1)
    return tuple(colors.get(value, (0, 0, 0, 0)) for value in range(max(colors) + 1))


def _meet(first: Box, second: Box) -> bool:
    return (
        first.column < second.column + second.width
        and second.column < first.column + first.width
        and first.row < second.row + second.height
        and second.row < first.row + first.height
    )


def _named(document: str, names: Sequence[str]) -> str:
    """Write names in the places that a document has for them: as XML, or as XML within XML, in overviews."""
    written = [(escape(name), escape(escape(name))) for name in names]
    return _PLACE.sub(lambda place: written[int(place[1])][int(place[2])], document)


@lru_cache(maxsize=128)  # without names: a signature must not be kept
def _document(crs: str, span: Span, bands: Bands, tiles: tuple[DataTile, ...]) -> str:
    levels = range(1, level_count(span.width, span.height) + 1)
    drawn = [_Level(span, bands, tiles, level) for level in levels]
    shown = [level.dataset(crs, level.bands()) for level in drawn]
    masks = [level.dataset(crs, level.mask()) for level in drawn] if bands.masks else []
    full = _Level(span, bands, tiles, 0)
    return full.dataset(crs, full.bands(shown) + (f"<MaskBand>{full.mask(masks)}</MaskBand>" if bands.masks else ""))


@dataclass(frozen=True, slots=True)
class _Level:
    """Writes one level of a virtual raster."""

    span: Span
    all_bands: Bands
    tiles: tuple[DataTile, ...]
    level: int

    @property
    def width(self) -> int:
        return _reduced(self.span.width, self.level)

    @property
    def height(self) -> int:
        return _reduced(self.span.height, self.level)

    def dataset(self, crs: str, content: str) -> str:
        # Exact for the level that everything else is reckoned by; the others take their place from it.
        across, down = (1, 1) if self.level == 0 else (self.span.width / self.width, self.span.height / self.height)
        place = self.span.transform
        numbers = (place.c, place.a * across, place.b, place.f, place.d, place.e * down)
        return (
            f'<VRTDataset rasterXSize="{self.width}" rasterYSize="{self.height}">'
            f"<SRS>{escape(crs)}</SRS>"
            f"<GeoTransform>{', '.join(map(repr, numbers))}</GeoTransform>{content}</VRTDataset>"
        )

    def bands(self, overviews: Sequence[str] = ()) -> str:
        return "".join(self._band(index, overviews) for index in range(self.all_bands.count))

    def mask(self, overviews: Sequence[str] = ()) -> str:
        """Write the mask: its images hold 0 and 1, and a mask has 0 and 255."""
        sources = "".join(
            self._source("ComplexSource", place, self.all_bands.masks, 1, "<ScaleRatio>255</ScaleRatio>")
            for place in range(len(self.tiles))
        )
        # As the mask of a raster it is band 0, which nobody writes; as an overview of that, it is a band of its own.
        return f"{_opened('uint8', 1 if self.level else 0)}{_overviews(overviews, 1)}{sources}</VRTRasterBand>"

    def _band(self, index: int, overviews: Sequence[str]) -> str:
        sources = "".join(
            self._source("SimpleSource", place, self.all_bands.images, index + 1, "")
            for place in range(len(self.tiles))
        )
        return (
            f"{_opened(self.all_bands.dtype, index + 1)}{''.join(_described(self.all_bands, index))}"
            f"{_overviews(overviews, index + 1)}{sources}</VRTRasterBand>"
        )

    def _source(self, kind: str, place: int, images: Sequence[int], band: int, extra: str) -> str:
        (window, core), span = (self.tiles[place].window, self.tiles[place].core), self.span
        own = min(self.level, level_count(window.width, window.height), len(images) - 1)
        scale = _Scale(own, self.level)
        across = scale.pieces(
            _Side(window.column, window.width), _Side(core.column, core.width), _Side(span.start, span.width)
        )
        down = scale.pieces(_Side(window.row, window.height), _Side(core.row, core.height), _Side(0, span.height))
        resampled = "" if own == self.level else f' resampling="{self.all_bands.reduction}"'
        name = f"GTIFF_DIR:{images[own]}:\x1f{place},{min(self.level, 1)}\x1f"
        return "".join(
            f'<{kind}{resampled}><SourceFilename relativeToVRT="0" shared="0">{name}</SourceFilename>'
            f"<SourceBand>{band}</SourceBand>"
            f'<SrcRect xOff="{x.read!r}" yOff="{y.read!r}" xSize="{x.length!r}" ySize="{y.length!r}"/>'
            f'<DstRect xOff="{x.shown!r}" yOff="{y.shown!r}" xSize="{x.shown_length!r}" ySize="{y.shown_length!r}"/>'
            f"{extra}</{kind}>"
            for y in down
            for x in across
        )


class _Piece(NamedTuple):
    """Columns, or rows, of a file: where they are read in one of its levels, and where they are shown."""

    read: float
    length: float
    shown: float
    shown_length: float


class _Scale(NamedTuple):
    """From the level of a file to the one that is written, which is the same or a smaller one."""

    own: int
    level: int

    def pieces(self, window: "_Side", core: "_Side", span: "_Side") -> list[_Piece]:
        """Give what a file shows along one axis: of its pixels those of its core, in the span that is written.

        At its end a level has a pixel for what is left, however little that is. It is a piece of its own, for the
        others would be stretched otherwise.
        """
        first, last = max(core.start, span.start), min(core.stop, span.stop)
        if first >= last:
            return []
        read, shown = (first - window.start) / 2**self.own, (first - span.start) / 2**self.level
        end, shown_end = window.place(last, self.own), span.place(last, self.level)
        times = 2 ** (self.level - self.own)
        even = (end - read) // times
        if times == 1 or even in {0, shown_end - shown} or not shown.is_integer():
            return [_Piece(read, end - read, shown, shown_end - shown)]
        rest = _Piece(read + even * times, end - read - even * times, shown + even, shown_end - shown - even)
        return [_Piece(read, even * times, shown, even), rest]


class _Side(NamedTuple):
    """Pixels along one axis."""

    start: int
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length

    def place(self, pixel: int, level: int) -> float:
        """Give where a pixel lies in a level, counted from the start; the stop is the end of the level."""
        return _reduced(self.length, level) if pixel == self.stop else (pixel - self.start) / float(2**level)


def _opened(dtype: str, band: int) -> str:
    return f'<VRTRasterBand dataType="{_TYPES[dtype]}" band="{band}" blockXSize="{BLOCK}" blockYSize="{BLOCK}">'


def _described(bands: Bands, index: int) -> Iterator[str]:
    yield f"<ColorInterp>{bands.color_names[index].capitalize()}</ColorInterp>"
    yield from _element("Description", bands.descriptions[index])
    yield from _element("UnitType", bands.units[index])
    if bands.nodata is not None:
        yield f"<NoDataValue>{bands.nodata!r}</NoDataValue>"
    if (bands.scales[index], bands.offsets[index]) != (1.0, 0.0):
        yield f"<Offset>{bands.offsets[index]!r}</Offset><Scale>{bands.scales[index]!r}</Scale>"
    if bands.color_table:
        yield f"<ColorTable>{''.join(map(_entry, bands.color_table))}</ColorTable>"


def _element(name: str, text: str | None) -> Iterator[str]:
    if text:
        yield f"<{name}>{escape(text)}</{name}>"


def _entry(color: tuple[int, int, int, int]) -> str:
    return f"<Entry {' '.join(f'c{place}={quoteattr(str(part))}' for place, part in enumerate(color, 1))}/>"


def _overviews(documents: Sequence[str], band: int) -> str:
    return "".join(
        f'<Overview><SourceFilename relativeToVRT="0">{escape(document)}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand></Overview>"
        for document in documents
    )
