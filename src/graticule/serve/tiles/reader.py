"""The reader of what is served: a COG, or a mosaic as if it were one.

It refuses what would be too much before it reads a pixel. A picture of an area that is far larger than the raster is
made from the part that the raster fills: GDAL would go through all of it, at the raster's own resolution.

Where longitudes go on beyond 180 degrees, tiles of either side are made from the half of the raster that lies there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, floor, isfinite, isnan, sqrt
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from affine import Affine
from morecantile import Tile
from rasterio.crs import CRS
from rasterio.dtypes import in_dtype_range
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader
from rasterio.warp import calculate_default_transform, transform_bounds
from rasterio.warp import transform as transform_points
from rio_tiler.constants import WGS84_CRS
from rio_tiler.errors import PointOutsideBounds, TileOutsideBounds
from rio_tiler.expression import get_expression_blocks
from rio_tiler.io import Reader
from rio_tiler.models import ImageData, Info, PointData

from graticule import telemetry
from graticule.core.errors import InvalidInput, NotFound
from graticule.core.json_codec import named_number
from graticule.handlers.raster.nodata import exact_nodata
from graticule.serve.tiles.budget import Budget
from graticule.serve.tiles.expressions import checked_expression, expression_count
from graticule.serve.tiles.gdal import open_geotiff, open_virtual
from graticule.serve.tiles.limits import (
    DEEPEST_SHAPE,
    DEEPEST_ZOOM,
    DEFAULT_SIDE,
    LARGEST_SIDE,
    LARGEST_TILE,
    MOST_BANDS,
    MOST_COORDINATES,
    MOST_DATA_TILES,
    MOST_SOURCE_PIXELS,
)
from graticule.serve.tiles.rendering import Picture, shown_bands, shown_values
from graticule.serve.tiles.virtual import HALF_TURN, TURN, Bounds, Span, VirtualRaster, lies_beyond, of_one_file

FAR_LARGER: Final = 2  # times the raster: from there on, only the part that it fills is read
SMALLEST_SEEN: Final = 0.25  # pixels of the picture
LARGEST_COORDINATE: Final = 1e9  # in any unit: PROJ goes around the earth for larger ones, turn by turn
MOST_SAMPLED: Final = 16  # files of a mosaic that a range of values is found in
MAP_TILE: Final = 512  # pixels of a side, as most maps ask for
_AROUND: Final = 48  # pixels of the picture: for what its kernel reaches, its buffer and its padding
_AROUND_DATA: Final = 64  # pixels of the data
_FLOAT_BYTES: Final = 8
_LONG_BYTES: Final = 4  # integers of 16 bits count as those of 32: a PNG of them takes as long
_BAND: Final = re.compile(r"\bb[0-9]+\b")
_AT_THE_EDGES: Final = ("buffer", "padding", "align_bounds_with_dataset")
_Data = TypeVar("_Data", ImageData, PointData)
_PARTS: Final = ("geometry", "geometries", "coordinates")  # of GeoJSON


class _Pixels(NamedTuple):
    """Pixels of a picture; `right` and `bottom` are the first that are not among them."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True, slots=True)
class Asset:
    """What is opened: a COG, or a mosaic; how blobs are named to be opened; and the picture that is made of it."""

    path: str
    readable: Callable[[str], str] = field(repr=False)
    picture: Picture = field(repr=False)
    mosaic: VirtualRaster | None = field(default=None, repr=False)
    budget: Budget = field(default_factory=Budget)  # of the request

    def for_statistics(self, shapes: int = 1) -> Self:
        """Give it as it is read to make statistics of some shapes."""
        return replace(self, budget=self.budget.of_statistics(shapes))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A picture: its box in the projection that it is drawn in, its size in pixels, and how it is read."""

    box: Bounds
    crs: CRS
    width: int
    height: int
    options: dict[str, Any]

    @property
    def pixel(self) -> tuple[float, float]:
        """How wide and how high a pixel is."""
        west, south, east, north = self.box
        return (east - west) / self.width, (north - south) / self.height

    def with_its_buffer(self) -> "_Wanted":
        """Take the pixels that are wanted around it into it."""
        options = {name: value for name, value in self.options.items() if name not in _AT_THE_EDGES}
        buffer = self.options.get("buffer") or 0
        (across, down), (west, south, east, north) = self.pixel, self.box
        box = (west - buffer * across, south - buffer * down, east + buffer * across, north + buffer * down)
        return _Wanted(box, self.crs, self.width + int(2 * buffer), self.height + int(2 * buffer), options)

    def part(self, pixels: "_Pixels") -> "_Wanted":
        """Give the part of it between these pixels."""
        (across, down), (west, _, _, north) = self.pixel, self.box
        left, top, right, bottom = pixels
        box = (west + left * across, north - bottom * down, west + right * across, north - top * down)
        return _Wanted(box, self.crs, right - left, bottom - top, self.options)


class AssetReader(Reader):
    """Reads one asset. It is opened for each request, and serves that one alone.

    TiTiler's endpoints call its methods by the names of their arguments; those that are not named here go through.
    """

    input: Asset  # type: ignore[assignment]
    dataset: DatasetReader
    width: int
    height: int
    transform: Affine

    def __attrs_post_init__(self) -> None:
        """Open the raster; of a mosaic, no file is opened before it is needed."""
        mosaic = self.input.mosaic
        path, readable = self.input.path, self.input.readable
        opened = open_geotiff(readable(path)) if mosaic is None else open_virtual(mosaic.document(readable))
        self.dataset = self._ctx_stack.enter_context(opened)
        if mosaic is None and lies_beyond(opened):
            mosaic = of_one_file(path, readable(path), opened)
        self._virtual: VirtualRaster | None = mosaic
        super().__attrs_post_init__()  # type: ignore[no-untyped-call]

    def info(self) -> Info:
        """Return what is known of the raster, with the nodata value in full."""
        found = super().info()
        nodata = exact_nodata(self.dataset)
        if nodata is None or found.nodata_type not in {"Nodata", "None"}:  # rasterio knows none that no double can be
            return found
        return found.model_copy(update={"nodata_type": "Nodata", "nodata_value": named_number(nodata)})

    @property
    def places(self) -> Sequence[Bounds]:
        """Where the raster lies, in its own projection: on either side of the antimeridian when it crosses that."""
        return [self.bounds] if self._virtual is None else [span.bounds for span in self._virtual.halves]

    def get_geographic_bounds(self, crs: CRS) -> Bounds:
        """Give the bounds in degrees; west is greater than east across the antimeridian."""
        if self._virtual is None or not self.crs.is_geographic:
            found: Bounds = super().get_geographic_bounds(crs)
            return found
        first, last = self.places[0], self.places[-1]
        return first[0], first[1], last[2], first[3]

    @property
    def minzoom(self) -> int:
        """The zoom level from which on a tile is made: not from too many files."""
        zoom = int(super().minzoom)
        while zoom < self.maxzoom and self._files_of_a_tile(zoom) > MOST_DATA_TILES:
            zoom += 1
        return min(zoom, DEEPEST_ZOOM)

    @property
    def maxzoom(self) -> int:
        """The zoom level whose pixels are about as large as the raster's."""
        return min(int(super().maxzoom), DEEPEST_ZOOM)

    def tile_exists(self, tile_x: int, tile_y: int, tile_z: int) -> bool:
        """Tell whether a tile shows a part of the raster."""
        area = self._area(self._tile_box(tile_x, tile_y, tile_z), self.tms.rasterio_crs)
        return any(_meet(area, place) for place in self.places)

    def tile(  # type: ignore[override]
        self, tile_x: int, tile_y: int, tile_z: int, tilesize: int | None = None, **options: Any
    ) -> ImageData:
        """Read a map tile."""
        box, matrix = self._tile_box(tile_x, tile_y, tile_z), self.tms.matrix(tile_z)
        width, height = tilesize or matrix.tileWidth, tilesize or matrix.tileHeight
        if max(width, height) > LARGEST_TILE:
            raise InvalidInput(f"tilesize: a tile has at most {LARGEST_TILE} x {LARGEST_TILE} pixels.")
        options = self._with_bands(options)
        _check_count(width * height, self._most_pixels(options))
        area = self._area(box, self.tms.rasterio_crs)
        if not any(_meet(area, place) for place in self.places):
            raise TileOutsideBounds
        return self._picture(_Wanted(box, self.tms.rasterio_crs, width, height, options), area)

    def part(  # type: ignore[override]
        self,
        bbox: Sequence[float],
        *,
        dst_crs: CRS | None = None,
        bounds_crs: CRS = WGS84_CRS,
        max_size: int | None = None,
        height: int | None = None,
        width: int | None = None,
        **options: Any,
    ) -> ImageData:
        """Read a box, at most 1024 pixels wide and high when no size is given."""
        box = self._unwrapped(_checked_box(bbox), bounds_crs)
        area = self._area(box, bounds_crs)
        if not any(_meet(area, place) for place in (*self.places, self.bounds)):
            raise TileOutsideBounds
        crs = dst_crs or bounds_crs
        placed = _rising(box if crs == bounds_crs else transform_bounds(bounds_crs, crs, *box, densify_pts=21), crs)
        options = self._with_bands(options)
        most = self._most_pixels(options)
        size = _limited(self._native_size(placed, area), max_size, width, height, most)
        self._check_proportion(size, area)
        wanted = _Wanted(placed, crs, *size, options)
        if width or height or self._is_far_larger(area):
            return self._picture(wanted, area)
        return self._shown(wanted, area, {"max_size": max(size)})

    def feature(  # type: ignore[override]
        self, shape: dict[str, Any], shape_crs: CRS = WGS84_CRS, **options: Any
    ) -> ImageData:
        """Read what lies in a shape."""
        if coordinate_count(shape) > MOST_COORDINATES:
            raise InvalidInput(f"A shape has at most {MOST_COORDINATES:,} coordinates.")
        return super().feature(self.turned(shape, shape_crs), shape_crs=shape_crs, **options)

    def turned(self, shape: dict[str, Any], crs: CRS) -> dict[str, Any]:
        """Give a shape with its longitudes in the turn of the earth in which the raster lies."""
        if self._virtual is None or crs != self.crs or not crs.is_geographic:
            return shape
        found: dict[str, Any] = self._turned(shape)
        return found

    def read(self, **options: Any) -> ImageData:  # type: ignore[override]
        """Read all of the raster."""
        max_size, width, height = (options.pop(name, None) for name in ("max_size", "width", "height"))
        options = self._with_bands(options)
        size = _limited((self.width, self.height), max_size, width, height, self._most_pixels(options))
        self._check_proportion(size, tuple(self.bounds))  # type: ignore[arg-type]
        fixed: dict[str, Any] = {"width": size[0], "height": size[1]} if width or height else {"max_size": max(size)}
        with self._showing(None, self.bounds, 0):
            image = self._named(super().read(**fixed, **options), options)
        return self._with_ranges(image, options)

    def point(  # type: ignore[override]
        self, lon: float, lat: float, coord_crs: CRS = WGS84_CRS, **options: Any
    ) -> PointData:
        """Read the values of one pixel."""
        self._check_options(options)
        if not max(abs(lon), abs(lat)) <= LARGEST_COORDINATE:
            raise PointOutsideBounds
        xs, ys = ([lon], [lat]) if coord_crs == self.crs else transform_points(coord_crs, self.crs, [lon], [lat])
        if not (isfinite(xs[0]) and isfinite(ys[0])):
            raise PointOutsideBounds
        x, y = self._turned_longitude(xs[0]), ys[0]
        with self._showing(None, (x, y, x, y), _AROUND_DATA):
            return self._named(super().point(x, y, coord_crs=self.crs, **self._with_indexes(options)), options)

    def _turned_longitude(self, x: float) -> float:
        """Give a longitude in the turn of the earth in which the raster lies."""
        if not self.crs.is_geographic or self.bounds[0] <= x <= self.bounds[2]:
            return x
        farthest = (self.bounds[0] + self.bounds[2]) / 2 - HALF_TURN
        return float(farthest + (x - farthest) % TURN)

    def _turned(self, shape: Any) -> Any:
        if isinstance(shape, dict):
            return {name: self._turned(part) if name in _PARTS else part for name, part in shape.items()}
        if _is_position(shape):
            return [self._turned_longitude(shape[0]), *shape[1:]]
        return [self._turned(part) for part in shape]

    @cached_property
    def _dst_geom_in_tms_crs(self) -> tuple[Affine, int, int]:
        """Where the raster lies on the map: the half of it, when it lies at both of the map's ends."""
        if self._virtual is None or not self.crs.is_geographic:
            found: tuple[Affine, int, int] = super()._dst_geom_in_tms_crs
            return found
        span = max(self._virtual.halves, key=lambda each: each.width)
        return calculate_default_transform(self.crs, self.tms.rasterio_crs, span.width, span.height, *span.bounds)  # type: ignore[no-any-return]

    def _files_of_a_tile(self, zoom: int) -> int:
        """Tell about how many files of a mosaic a large tile is made from."""
        if self._virtual is None or len(self._virtual.tiles) <= MOST_DATA_TILES:
            return 1
        first = self._virtual.tiles[0].core
        across = MAP_TILE << (self.maxzoom - zoom)
        return (ceil(across / first.width) + 1) * (ceil(across / first.height) + 1)

    def _tile_box(self, x: int, y: int, z: int) -> Bounds:
        if self.tms.minzoom <= z <= min(DEEPEST_ZOOM, self.tms.maxzoom):
            matrix = self.tms.matrix(z)
            if 0 <= x < matrix.matrixWidth and 0 <= y < matrix.matrixHeight:
                return tuple(self.tms.xy_bounds(Tile(x=x, y=y, z=z)))  # type: ignore[return-value]
        raise NotFound("There is no such tile in this tile matrix set.")

    def _area(self, box: Bounds, crs: CRS) -> Bounds:
        """Give the box around a box in the raster's projection; all of the raster when that is not known."""
        if crs == self.crs:
            return box
        found = transform_bounds(crs, self.crs, *box, densify_pts=21)
        if not all(map(isfinite, found)):
            return tuple(self.bounds)  # type: ignore[return-value]
        west, south, east, north = found
        return (west, south, east if west <= east or not self.crs.is_geographic else east + TURN, north)

    def _unwrapped(self, box: Bounds, crs: CRS) -> Bounds:
        """Turn a box in degrees to where the raster lies."""
        if not crs.is_geographic:
            return box
        west, south, east, north = _rising(box, crs)
        turns = (-TURN, 0, TURN) if self.crs.is_geographic else (0,)
        moved = [(west + turn, south, east + turn, north) for turn in turns]
        return next((each for each in moved if _meet(each, self.bounds)), (west, south, east, north))

    def _is_far_larger(self, area: Bounds) -> bool:
        west, south, east, north = self.bounds
        return area[2] - area[0] > FAR_LARGER * (east - west) or area[3] - area[1] > FAR_LARGER * (north - south)

    def _native_size(self, placed: Bounds, area: Bounds) -> tuple[float, float]:
        """Give about how many pixels a box has at the resolution of the raster."""
        across = max(1.0, (area[2] - area[0]) / abs(self.transform.a))
        west, south, east, north = placed
        return across, max(1.0, across * (north - south) / (east - west))

    def _most_pixels(self, options: dict[str, Any]) -> int:
        """Give how many pixels may be read in this way; refuse what cannot be read at all."""
        bands = self._check_options(options)
        expression, kind = options.get("expression"), np.dtype(self.dataset.dtypes[0])
        out = expression_count(expression) if expression else 0
        becomes_float = bool(expression or options.get("unscale")) or kind.kind not in "iu"
        count = max(len(bands) or self.dataset.count, out)
        least = _FLOAT_BYTES if becomes_float else _LONG_BYTES if kind.itemsize > 1 else 1
        return self.input.budget.most_pixels(count, max(least, kind.itemsize))

    def _check_options(self, options: dict[str, Any]) -> Sequence[int]:
        """Give the bands that are asked for; refuse those that are not there, and what would take too long."""
        bands = _bands_asked(options)
        if bands and not 1 <= min(bands) <= max(bands) <= self.dataset.count:
            raise InvalidInput(f"There is no such band: the bands are 1 to {self.dataset.count}.")
        self._check_nodata(options.get("nodata"))
        methods = (options.get("resampling_method"), options.get("reproject_method"))
        if "mode" in methods and self.dataset.dtypes[0] != "uint8":
            # GDAL compares all pixels with each other
            raise InvalidInput("mode: this is for rasters of bytes.", hint="Choose nearest.")
        return bands

    def _with_bands(self, options: dict[str, Any]) -> dict[str, Any]:
        """Choose the bands of a picture, when its caller leaves that open."""
        bands = shown_bands(self.dataset) if self.input.picture.leaves_bands else None
        return self._with_indexes(options) if bands is None else {**options, "indexes": bands}

    def _with_indexes(self, options: dict[str, Any]) -> dict[str, Any]:
        """Name all bands where none are asked for: rio-tiler looks at all of them for each, 16 s for 1,024 bands."""
        if options.get("indexes") or options.get("expression") or self.dataset.count <= MOST_BANDS:
            return options
        colors = self.dataset.colorinterp
        data = [
            band for band, color in zip(self.dataset.indexes, colors, strict=True) if color is not ColorInterp.alpha
        ]
        return {**options, "indexes": data}

    def _with_ranges(self, image: ImageData, options: dict[str, Any]) -> ImageData:
        """Tell the ranges of a picture's values in all of the raster, when its caller leaves them open."""
        picture = self.input.picture
        kind = image.array.dtype
        if picture.leaves_ranges and kind.kind in "iuf" and kind != np.uint8 and not self.colormap:
            shown = shown_values(self.dataset, options)
            image.dataset_statistics = picture.ranges(shown, self.dataset, self._sampled_files)
        return image

    def _sampled_files(self) -> Sequence[str]:
        """Name files that stand for all of them, always the same."""
        tiles = () if self._virtual is None else self._virtual.tiles
        if len(tiles) > MOST_SAMPLED:
            places = np.random.default_rng(0).choice(len(tiles), MOST_SAMPLED, replace=False)
            tiles = tuple(tiles[place] for place in places)
        return [self.input.readable(path) for path in [tile.path for tile in tiles] or [self.input.path]]

    def _check_proportion(self, size: tuple[int, int], area: Bounds) -> None:
        """Refuse a picture so narrow that far more is read than is shown: overviews shrink both sides alike."""
        across, down = abs(self.transform.a), abs(self.transform.e)
        west, south, east, north = self.bounds
        columns = (min(area[2], east) - max(area[0], west)) / across
        rows = (min(area[3], north) - max(area[1], south)) / down
        shrunk = min((area[2] - area[0]) / across / size[0], (area[3] - area[1]) / down / size[1])
        if columns > 0 and rows > 0 and columns * rows / max(1.0, shrunk) ** 2 > MOST_SOURCE_PIXELS:
            raise InvalidInput("Width and height are too far from the proportions of the area.")

    def _named(self, data: _Data, options: dict[str, Any]) -> _Data:
        """Describe each band by its own name; the library gives all of them that of the last."""
        names = {f"b{band}": name or f"b{band}" for band, name in enumerate(self.dataset.descriptions, 1)}
        expression = options.get("expression")
        data.band_descriptions = (
            [_BAND.sub(lambda found: names[found[0]], block) for block in get_expression_blocks(expression)]
            if expression
            else [names[name] for name in data.band_names]
        )
        return data

    def _check_nodata(self, nodata: float | None) -> None:
        kind = np.dtype(self.dataset.dtypes[0]).kind
        if nodata is None or (kind == "f" and (isnan(nodata) or not isfinite(nodata))):
            return
        if not isfinite(nodata) or not in_dtype_range(nodata, self.dataset.dtypes[0]):
            raise InvalidInput(f"nodata: this value cannot stand in a raster of {self.dataset.dtypes[0]}.")

    def _picture(self, wanted: _Wanted, area: Bounds) -> ImageData:
        """Read a picture of a fixed size."""
        with telemetry.span("gdal.read", width=wanted.width, height=wanted.height):
            return self._read_picture(wanted, area)

    def _read_picture(self, wanted: _Wanted, area: Bounds) -> ImageData:
        if not self._is_far_larger(area):
            return self._shown(wanted, area, {"width": wanted.width, "height": wanted.height})
        whole = wanted.with_its_buffer()
        filled = [pixels for place in self.places if (pixels := self._filled(whole, place)) is not None]
        if not filled:
            raise TileOutsideBounds
        return _pasted(whole, [(self._one_part(whole.part(pixels)), pixels) for pixels in filled])

    def _one_part(self, part: _Wanted) -> ImageData:
        return self._shown(part, self._area(part.box, part.crs), {"width": part.width, "height": part.height})

    def _filled(self, wanted: _Wanted, place: Bounds) -> _Pixels | None:
        """Give the pixels of a picture that a part of the raster fills; None when it is too small to be seen."""
        bounds = place if wanted.crs == self.crs else transform_bounds(self.crs, wanted.crs, *place, densify_pts=21)
        if not all(map(isfinite, bounds)):
            return _Pixels(0, 0, wanted.width, wanted.height)
        (west, _, _, north), (across, down) = wanted.box, wanted.pixel
        if bounds[2] - bounds[0] < SMALLEST_SEEN * across and bounds[3] - bounds[1] < SMALLEST_SEEN * down:
            return None
        found = _Pixels(
            max(0, floor((bounds[0] - west) / across)),
            max(0, floor((north - bounds[3]) / down)),
            min(wanted.width, ceil((bounds[2] - west) / across)),
            min(wanted.height, ceil((north - bounds[1]) / down)),
        )
        return found if found.left < found.right and found.top < found.bottom else None

    def _shown(self, wanted: _Wanted, area: Bounds, size: dict[str, Any]) -> ImageData:
        """Read a picture from where it lies: from one half of the raster, or from both."""
        margin = _AROUND_DATA + _AROUND * (area[2] - area[0]) / abs(self.transform.a) / wanted.width
        images = []
        for span, there in self._spans(wanted, area):
            with self._showing(span, there, margin):
                box, crs = wanted.box, wanted.crs
                image = super().part(box, dst_crs=crs, bounds_crs=crs, **size, **wanted.options)
                images.append(self._named(image, wanted.options))
        return self._with_ranges(_merged(images), wanted.options)

    def _spans(self, wanted: _Wanted, area: Bounds) -> Sequence[tuple[Span | None, Bounds]]:
        """Give the halves of a raster that a picture in another projection is made from, and where it lies there."""
        virtual = self._virtual
        if virtual is None or wanted.crs == self.crs or virtual.halves == (virtual.whole,):
            return [(None, area)]
        turned = [(area[0] + turn, area[1], area[2] + turn, area[3]) for turn in (-TURN, 0, TURN)]
        found = [(span, there) for span in virtual.halves for there in turned if _meet(there, span.bounds)]
        return found or [(None, area)]

    @contextmanager
    def _showing(self, span: Span | None, area: Bounds, margin: float) -> Iterator[None]:
        """Let the dataset be the part of a virtual raster that lies around an area, while pixels are read."""
        if self._virtual is None:
            yield
            return
        whole, shown = self.dataset, span or self._virtual.whole
        document = self._virtual.document(self.input.readable, shown, shown.box_of(area, margin))
        with open_virtual(document) as around:
            self.dataset = around
            try:
                yield
            finally:
                self.dataset = whole


def _merged(images: Sequence[ImageData]) -> ImageData:
    """Fill what is missing in the first of some pictures from the others."""
    first, *others = images
    for other in others:
        missing = np.ma.getmaskarray(first.array).all(axis=0)
        first.array[:, missing] = other.array[:, missing]
        if first.alpha_mask is not None and other.alpha_mask is not None:
            first.alpha_mask[missing] = other.alpha_mask[missing]
    return first


def _pasted(wanted: _Wanted, parts: Sequence[tuple[ImageData, _Pixels]]) -> ImageData:
    """Put parts into a picture that is empty elsewhere."""
    first = parts[0][0]
    fill = 0 if first.nodata is None else first.nodata
    array = np.ma.MaskedArray(np.full((first.count, wanted.height, wanted.width), fill, first.array.dtype), mask=True)
    alpha = None if first.alpha_mask is None else np.zeros(array.shape[1:], first.alpha_mask.dtype)
    for image, (left, top, right, bottom) in parts:
        array[:, top:bottom, left:right] = image.array
        if alpha is not None:
            alpha[top:bottom, left:right] = image.alpha_mask
    return ImageData(
        array,
        crs=first.crs,
        bounds=wanted.box,
        band_names=first.band_names,
        band_descriptions=first.band_descriptions,
        nodata=first.nodata,
        scales=first.scales,
        offsets=first.offsets,
        metadata=first.metadata,
        dataset_statistics=first.dataset_statistics,
        alpha_mask=alpha,
    )


def _limited(
    own: tuple[float, float], max_size: int | None, wanted_width: int | None, wanted_height: int | None, most: int
) -> tuple[int, int]:
    """Give the size of a picture: the one that is wanted, or its own up to the limits."""
    width, height = own
    ratio = height / width
    if wanted_width or wanted_height:
        size = wanted_width or ceil((wanted_height or 1) / ratio), wanted_height or ceil((wanted_width or 1) * ratio)
        _check_count(size[0] * size[1], most)
    else:
        fitting = floor(sqrt(most * max(ratio, 1 / ratio)))
        longest = min(max_size or DEFAULT_SIDE, max(width, height), max(1, fitting))
        size = (ceil(longest / ratio), ceil(longest)) if ratio > 1 else (ceil(longest), ceil(longest * ratio))
    if not 1 <= min(size) <= max(size) <= LARGEST_SIDE:
        raise InvalidInput(f"A picture has 1 to {LARGEST_SIDE} pixels in each direction.")
    return size


def _check_count(pixels: int, most: int) -> None:
    if pixels > most:
        raise InvalidInput(
            f"At most {most:,} pixels are made in this way.", hint="Ask for fewer pixels, or for fewer bands."
        )


def _bands_asked(options: dict[str, Any]) -> Sequence[int]:
    if options.get("expression"):
        return checked_expression(options["expression"])
    bands: Sequence[int] = options.get("indexes") or ()
    if len(bands) > MOST_BANDS:
        raise InvalidInput(f"bidx: at most {MOST_BANDS} bands are read at once.")
    return bands


def _checked_box(box: Sequence[float]) -> Bounds:
    west, south, east, north = box
    if not all(abs(number) <= LARGEST_COORDINATE for number in box) or south >= north or west == east:
        raise InvalidInput("The box is not one.", hint="Write minx,miny,maxx,maxy, in the units of coord_crs.")
    return west, south, east, north


def _rising(box: Bounds, crs: CRS) -> Bounds:
    """Let a box in degrees go on beyond the antimeridian; in any other projection its west is no more than its east."""
    west, south, east, north = _checked_box(box)
    if west > east and not crs.is_geographic:
        raise InvalidInput("The box is not one: minx is above maxx.")
    return west, south, east + TURN if west > east else east, north


def coordinate_count(part: Any, depth: int = 0) -> int:
    """Give how many positions a GeoJSON object has, or raise that it is none."""
    if depth > DEEPEST_SHAPE or not isinstance(part, dict | list | tuple):
        raise InvalidInput("The shape is not one of GeoJSON.", hint="Its coordinates are lists of numbers.")
    if _is_position(part):
        return 1
    inner = [part[name] for name in _PARTS if part.get(name) is not None] if isinstance(part, dict) else part
    return sum(coordinate_count(each, depth + 1) for each in inner)


def _is_position(part: Any) -> bool:
    return isinstance(part, list | tuple) and len(part) > 0 and isinstance(part[0], int | float)


def _meet(first: Bounds, second: Bounds) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
