"""The query parameters of rasters, each with its bounds. They have the names and meanings that TiTiler gives them."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, Final, Literal

from color_operations import parse_operations
from fastapi import Query, Request
from pydantic import Field, ValidationError
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rio_tiler.colormap import cmap, parse_color
from rio_tiler.errors import InvalidColorFormat
from rio_tiler.models import ImageData
from rio_tiler.types import ColorMapType, RIOResampling, WarpResampling
from titiler.core.algorithm.base import BaseAlgorithm
from titiler.core.algorithm.dem import Contours, HillShade, Slope, TerrainRGB, Terrarium
from titiler.core.algorithm.index import NormalizedIndex
from titiler.core.dependencies import DefaultDependency

from graticule.core.errors import InvalidInput
from graticule.serve.tiles.expressions import checked_expression
from graticule.serve.tiles.limits import (
    DEEPEST_ZOOM,
    DEFAULT_SIDE,
    FINEST_COVER,
    LARGEST_SIDE,
    LARGEST_TILE,
    LONGEST_COLORMAP,
    LONGEST_EXPRESSION,
    LONGEST_FORMULA,
    MOST_AROUND,
    MOST_BANDS,
    MOST_BINS,
    MOST_CATEGORIES,
    MOST_COLORS,
    MOST_PERCENTILES,
)

Numbers = Annotated[str, Field(max_length=64)]
Zoom = Annotated[int | None, Query(ge=0, le=DEEPEST_ZOOM)]
Side = Annotated[int | None, Field(gt=0, le=LARGEST_SIDE)]
TileSize = Annotated[int, Query(gt=0, le=LARGEST_TILE, description="Pixels of a tile's side.")]

_CRS: Final = re.compile(
    r"(?:EPSG:|https?://www\.opengis\.net/def/crs/EPSG/[0-9.]{1,8}/)(?P<code>[0-9]{4,6})"
    r"|(?:OGC:)?CRS84|https?://www\.opengis\.net/def/crs/OGC/(?:1\.3|0)/CRS84",
    re.ASCII | re.IGNORECASE,
)
ALGORITHMS: Final[dict[str, type[BaseAlgorithm]]] = {
    "hillshade": HillShade,
    "slope": Slope,
    "contours": Contours,
    "terrarium": Terrarium,
    "terrainrgb": TerrainRGB,
    "normalizedIndex": NormalizedIndex,
}


@dataclass
class LayerParams(DefaultDependency):
    """Which bands."""

    indexes: Annotated[
        list[Annotated[int, Field(ge=1, le=65535)]] | None,
        Query(alias="bidx", max_length=MOST_BANDS, description="Bands, from 1 on."),
    ] = None
    expression: Annotated[
        str | None,
        Query(max_length=LONGEST_EXPRESSION, description="Band math, such as `(b1-b2)/(b1+b2)`; several with `;`."),
    ] = None

    def __post_init__(self) -> None:
        """Refuse an expression that might do harm."""
        if self.expression is not None:
            checked_expression(self.expression)


@dataclass
class DatasetParams(DefaultDependency):
    """How pixels are read."""

    nodata: Annotated[
        Literal["nan", "inf", "-inf"] | float | None,
        Query(description="Take this value for missing data, whatever the raster says."),
    ] = None
    unscale: Annotated[bool | None, Query(description="Apply the raster's scale and offset.")] = None
    resampling_method: Annotated[
        RIOResampling | None, Query(alias="resampling", description="How pixels become fewer or more.")
    ] = None
    reproject_method: Annotated[
        WarpResampling | None, Query(alias="reproject", description="How pixels are found in another projection.")
    ] = None

    def __post_init__(self) -> None:
        """Take all values of `nodata` as numbers."""
        self.nodata = None if self.nodata is None else float(self.nodata)


@dataclass
class TileParams(DefaultDependency):
    """What is read around a tile."""

    buffer: Annotated[
        float | None,
        Query(gt=0, le=MOST_AROUND, multiple_of=0.5, description="Pixels that are added on each side of a tile."),
    ] = None
    padding: Annotated[
        int | None, Query(gt=0, le=MOST_AROUND, description="Pixels that are read around a tile, and not shown.")
    ] = None


@dataclass
class SizeParams(DefaultDependency):
    """How large a picture is; `width` and `height` may stand in the path, too."""

    max_size: Annotated[
        int | None,
        Field(gt=0, le=LARGEST_SIDE, description=f"Longest side, at most; {DEFAULT_SIDE} when no size is given."),
    ] = None
    height: Side = None
    width: Side = None

    def __post_init__(self) -> None:
        """Let a size go before a limit."""
        self.max_size = None if self.width or self.height else self.max_size or DEFAULT_SIDE


@dataclass
class RenderParams(DefaultDependency):
    """How values become colours."""

    rescale: Annotated[
        list[Numbers] | None,
        Query(max_length=MOST_BANDS, description="`min,max` of what is drawn; once, or for each band."),
    ] = None
    color_formula: Annotated[
        str | None, Query(max_length=LONGEST_FORMULA, description="Operations of rio-color, such as `gamma rgb 1.5`.")
    ] = None
    add_mask: Annotated[bool | None, Query(alias="return_mask", description="Draw what is missing as clear.")] = None

    def __post_init__(self) -> None:
        """Read the ranges, and try the formula."""
        if self.rescale is not None:
            self.rescale = [_range("rescale", text) for text in self.rescale]  # type: ignore[misc]
        if self.color_formula is not None:
            _check_formula(self.color_formula)


@dataclass
class StatisticsParams(DefaultDependency):
    """Which statistics."""

    categorical: Annotated[bool | None, Query(description="Count values, for categories.")] = None
    categories: Annotated[
        list[float] | None, Query(alias="c", max_length=MOST_CATEGORIES, description="Values that are counted.")
    ] = None
    percentiles: Annotated[
        list[Annotated[int, Field(ge=0, le=100)]] | None, Query(alias="p", max_length=MOST_PERCENTILES)
    ] = None

    def __post_init__(self) -> None:
        """Give the usual percentiles when none are asked for."""
        self.percentiles = self.percentiles or [2, 98]


@dataclass
class HistogramParams(DefaultDependency):
    """How values are gathered in bins."""

    bins: Annotated[
        str | None,
        Query(
            alias="histogram_bins", max_length=8192, description=f"Their number, at most {MOST_BINS}, or their edges."
        ),
    ] = None
    range: Annotated[Numbers | None, Query(alias="histogram_range", description="`min,max`")] = None

    def __post_init__(self) -> None:
        """Read both."""
        self.bins = _bins(self.bins or "10")  # type: ignore[assignment]
        if self.range is not None:
            self.range = _range("histogram_range", self.range)  # type: ignore[assignment]


def cover_scale(cover_scale: Annotated[int | None, Query(gt=0, le=FINEST_COVER)] = None) -> int:
    """Into how many parts each side of a pixel is cut, to tell how much of it a shape covers."""
    return cover_scale or FINEST_COVER


def coord_crs(crs: Annotated[str | None, Query(alias="coord_crs", max_length=64)] = None) -> CRS | None:
    """Give the coordinate reference system of what is sent."""
    return None if crs is None else known_crs("coord_crs", crs)


def dst_crs(crs: Annotated[str | None, Query(alias="dst_crs", max_length=64)] = None) -> CRS | None:
    """Give the coordinate reference system of the picture."""
    return None if crs is None else known_crs("dst_crs", crs)


def bounds_crs(crs: Annotated[str | None, Query(max_length=64)] = None) -> CRS | None:
    """Give the coordinate reference system of bounds."""
    return None if crs is None else known_crs("crs", crs)


def zooms(minzoom: Zoom = None, maxzoom: Zoom = None) -> None:
    """Bound what is declared without bounds elsewhere."""


def readable_accept(request: Request) -> None:
    """Refuse a header that the library would stumble over."""
    for choice in request.headers.get("accept", "").split(","):
        if any(part.count("=") != 1 for part in choice.split(";")[1:]):
            raise InvalidInput("The header Accept cannot be read.")


def color_map(
    colormap_name: Annotated[Literal[tuple(cmap.list())] | None, Query(description="A known colour map.")] = None,  # type: ignore[valid-type]
    colormap: Annotated[
        str | None, Query(max_length=LONGEST_COLORMAP, description="One of your own, as JSON: `{value: colour}`.")
    ] = None,
) -> ColorMapType | None:
    """Give the colours of values."""
    if colormap_name:
        return _known_colors(colormap_name)
    return None if colormap is None else _own_colors(colormap)


def interval_count(colormap: str) -> int:
    """Give how many intervals a colour map has; one of single values has none."""
    colors = _own_colors(colormap)
    return 0 if isinstance(colors, dict) else len(colors)


def algorithm(
    algorithm: Annotated[Literal[tuple(ALGORITHMS)] | None, Query(description="What is made of a picture.")] = None,  # type: ignore[valid-type]
    algorithm_params: Annotated[
        str | None, Query(max_length=500, description="Its parameters, as a JSON object.")
    ] = None,
) -> Callable[[ImageData], ImageData] | None:
    """Give what is made of a picture, for heights most of all."""
    if algorithm is None:
        return None
    kind = ALGORITHMS[algorithm]
    given = _json("algorithm_params", algorithm_params or "{}")
    if not isinstance(given, dict) or not given.keys() <= _parameters(kind):
        raise InvalidInput(f"algorithm_params: an object of {', '.join(sorted(_parameters(kind))) or 'nothing'}.")
    try:
        chosen = kind(**given)
    except ValidationError as error:
        raise InvalidInput(f"algorithm_params: {error.errors()[0]['msg']}.") from None
    return lambda image: _applied(chosen, image)


@lru_cache(maxsize=256)
def known_crs(name: str, text: str) -> CRS:
    """Give a coordinate reference system by its code; nothing else is read."""
    found = _CRS.fullmatch(text)
    try:
        crs = None if found is None else CRS.from_epsg(found["code"]) if found["code"] else CRS.from_string("OGC:CRS84")
    except CRSError:
        crs = None
    if crs is None or not (crs.is_geographic or crs.is_projected):
        raise InvalidInput(f"{name}: there is no such coordinate reference system.", hint="Write EPSG:3857 or CRS84.")
    return crs


def _applied(chosen: BaseAlgorithm, image: ImageData) -> ImageData:
    try:
        made: ImageData = chosen(image)
    except (ValueError, IndexError, ArithmeticError):
        raise InvalidInput("The algorithm cannot be applied to these bands.") from None
    if made.width < 1 or made.height < 1:
        raise InvalidInput("The algorithm leaves nothing of a picture as small as this.")
    return made


def _parameters(kind: type[BaseAlgorithm]) -> set[str]:
    """Give what a caller may choose; all else of an algorithm describes it, or is a type of numpy's."""
    return {
        name
        for name in kind.model_fields
        if not name.startswith(("input_", "output_")) and name not in {"title", "description"}
    }


def _range(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0
    if not (isfinite(low) and isfinite(high) and low < high and isfinite(high - low)):
        raise InvalidInput(f"{name}: write two numbers, the lower first: 0,3000.")
    return low, high


def _bins(text: str) -> int | list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and numbers[0] in range(1, MOST_BINS + 1):
        return int(numbers[0])
    rises = all(first < second for first, second in pairwise(numbers))
    if not 2 <= len(numbers) <= MOST_BINS + 1 or not rises or not all(map(isfinite, numbers)):
        raise InvalidInput(f"histogram_bins: write 1 to {MOST_BINS}, or edges that rise.")
    return numbers


@lru_cache(maxsize=256)
def _check_formula(text: str) -> None:
    """Try a formula; whether it fits the bands is seen when it is applied."""
    try:
        list(parse_operations(text))
    except (ValueError, KeyError, IndexError, TypeError, ArithmeticError):
        raise InvalidInput("color_formula: it cannot be read.", hint="gamma rgb 1.5, sigmoidal rgb 10 0.3, …") from None


@lru_cache(maxsize=64)
def _known_colors(name: str) -> ColorMapType:
    return cmap.get(name)


@lru_cache(maxsize=64)
def _own_colors(text: str) -> ColorMapType:
    """Read colours of single values, or of intervals."""
    given = _json("colormap", text)
    try:
        if isinstance(given, dict):
            single = {int(value): _color(color) for value, color in given.items()}
            if 0 < len(single) <= MOST_COLORS and all(abs(value) < 2**53 for value in single):
                return single
        elif 0 < len(given) <= MOST_COLORS:
            return [((float(low), float(high)), _color(color)) for (low, high), color in given]
    except (ValueError, TypeError, OverflowError, InvalidColorFormat):
        pass
    raise InvalidInput(f'colormap: write an object of 1 to {MOST_COLORS} colours: {{"1": "#ff0000"}}.')


def _color(given: Any) -> tuple[int, int, int, int]:
    color: tuple[Any, ...] = parse_color(given)
    red, green, blue, alpha = color
    if not all(isinstance(part, int) and 0 <= part <= 255 for part in color):
        raise ValueError("not a colour")
    return red, green, blue, alpha


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{name}: this is not JSON.") from None
