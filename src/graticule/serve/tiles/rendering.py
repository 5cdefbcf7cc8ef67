"""How values become colours, and what is chosen for a caller who leaves it open.

A picture needs one or three bands, and a range of values that it goes from black to white in. Where neither is asked
for, the first bands are shown, from the 2nd to the 98th percentile of all of the raster: every tile has the same range.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import ceil, isfinite, isnan, sqrt
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader
from rio_tiler.expression import parse_expression
from rio_tiler.models import ImageData
from titiler.core.utils import render_image

from graticule.core.errors import InvalidInput
from graticule.serve.tiles.errors import LIBRARY_ERRORS
from graticule.serve.tiles.gdal import open_geotiff, without_names
from graticule.telemetry import span

SAMPLE_SIDE: Final = 512  # pixels that a range is found in, as of the smallest overview
PERCENTILES: Final = (2, 98)
MOST_KEPT: Final = 4096
_PICTURES: Final = frozenset({"tile", "preview", "bbox_image", "feature_image"})  # endpoints
_DATA: Final = frozenset({"npy", "tif", "tiff", "pngraw"})  # formats whose values are the raster's own
_CHOOSES_BANDS: Final = ("bidx", "expression", "algorithm", "colormap", "colormap_name")
_CHOOSES_RANGES: Final = ("rescale", "algorithm", "colormap", "colormap_name")
_NO_VALUES: Final = (0.0, 1.0)

Range = tuple[float, float]


class Shown(NamedTuple):
    """What a picture is made of."""

    bands: tuple[int, ...]
    expression: str | None
    nodata: float | None  # when it is not the raster's own
    unscale: bool


class KnownRanges:
    """Keeps the ranges that were found last; each is looked for once, however many ask for it at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Future[Sequence[Range]]] = OrderedDict()
        self._lock = Lock()

    def find(self, key: Any, look: Callable[[], Sequence[Range]]) -> Sequence[Range]:
        """Give what is known, or look."""
        with self._lock:
            known = self._kept.get(key)
            found = self._kept[key] = known or Future()
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if known is None:
            self._look(key, found, look)
        return found.result()

    def _look(self, key: Any, found: "Future[Sequence[Range]]", look: Callable[[], Sequence[Range]]) -> None:
        try:
            found.set_result(look())
        except BaseException as error:  # those that wait must hear of it, whatever it is
            with self._lock:
                self._kept.pop(key, None)
            found.set_exception(error)


@dataclass(frozen=True, slots=True)
class Picture:
    """What a request leaves open of the picture of an asset, and what is known of that asset's values."""

    revision: Any
    known: KnownRanges
    leaves_bands: bool
    leaves_ranges: bool

    def ranges(self, shown: Shown, dataset: DatasetReader, files: Callable[[], Sequence[str]]) -> Sequence[Range]:
        """Give the ranges of bands in all of the raster; `files` names those to look at."""
        return self.known.find(
            (self.revision, shown), lambda: _told_ranges(shown, dataset) or _found_ranges(shown, files())
        )


def asked_picture(request: Request, revision: Any, known: KnownRanges) -> Picture:
    """Tell what a request leaves open."""
    given = request.query_params
    drawn = request.scope["endpoint"].__name__ in _PICTURES
    drawn = drawn and request.path_params.get("format", given.get("format")) not in _DATA
    return Picture(
        revision,
        known,
        leaves_bands=drawn and not any(name in given for name in _CHOOSES_BANDS),
        leaves_ranges=drawn and not any(name in given for name in _CHOOSES_RANGES),
    )


def shown_bands(dataset: DatasetReader) -> Sequence[int] | None:
    """Choose the bands of a picture: the first three, or the first; None when all of them are shown."""
    bands = _colors(dataset)
    if len(bands) in {1, 3}:
        return None
    return bands[: 3 if len(bands) > 3 else 1]


def shown_values(dataset: DatasetReader, options: dict[str, Any]) -> Shown:
    """Tell what a picture is made of, by how it is read."""
    expression, nodata = options.get("expression"), options.get("nodata")
    bands = parse_expression(expression) if expression else options.get("indexes") or _colors(dataset)
    is_own = nodata is None or isnan(nodata)  # what is no number never counts
    return Shown(tuple(bands), expression, None if is_own else nodata, bool(options.get("unscale")))


def render(image: ImageData, **options: Any) -> tuple[bytes, str]:
    """Draw a picture; values that a format does not have, or a formula that does not fit, are the caller's."""
    try:
        with span("gdal.encode", width=image.width, height=image.height):
            drawn: tuple[bytes, str] = render_image(image, **_with_ranges(image, options))
    except (*LIBRARY_ERRORS, ValueError, IndexError, KeyError, TypeError, ArithmeticError) as error:
        raise InvalidInput(
            "These bands cannot be drawn in this way.",
            hint="Choose one or three bands, a rescale, or another format.",
            detail=without_names(repr(error)),
        ) from None
    return drawn


def _colors(dataset: DatasetReader) -> Sequence[int]:
    """Give all bands but those that say how much is seen."""
    return [band for band, color in enumerate(dataset.colorinterp, 1) if color is not ColorInterp.alpha]


def _with_ranges(image: ImageData, options: dict[str, Any]) -> dict[str, Any]:
    """Let the ranges of the raster stand in for those that a caller leaves open."""
    rescale = options.get("rescale")
    if rescale is not None:
        return {**options, "rescale": rescale[: image.count]}
    if not image.dataset_statistics or not _needs_ranges(image, options):
        return options
    if image.array.dtype.kind == "f":  # what is no number cannot be seen
        image.array = np.ma.fix_invalid(image.array, copy=False, fill_value=0)
    if image.array.dtype == np.int8:  # colours are written into it, from 0 to 255
        image.array = image.array.astype(np.int16)  # type: ignore[assignment]
    return {**options, "rescale": image.dataset_statistics}


def _needs_ranges(image: ImageData, options: dict[str, Any]) -> bool:
    if image.array.dtype == np.uint8 or options.get("colormap"):
        return False
    output_format = options.get("output_format")
    return output_format is None or output_format.value not in _DATA


def _told_ranges(shown: Shown, dataset: DatasetReader) -> Sequence[Range]:
    """Give the ranges that a file tells itself, when it does of all bands."""
    if shown.expression is not None or shown.nodata is not None:
        return []
    tags = (dataset.tags(band) for band in shown.bands)
    try:
        told = [(float(tag["STATISTICS_MINIMUM"]), float(tag["STATISTICS_MAXIMUM"])) for tag in tags]
    except (KeyError, ValueError):
        return []
    if shown.unscale:
        scales = [(dataset.scales[band - 1], dataset.offsets[band - 1]) for band in shown.bands]
        told = [(low * by + add, high * by + add) for (low, high), (by, add) in zip(told, scales, strict=True)]
    return [_usable(*sorted(each)) for each in told]


def _found_ranges(shown: Shown, files: Sequence[str]) -> Sequence[Range]:
    """Find ranges in a reduced picture of some files."""
    side = ceil(SAMPLE_SIDE / sqrt(len(files)))
    samples = [list(_samples(name, shown, side)) for name in files]
    return [_middle(np.concatenate(band)) for band in zip(*samples, strict=True)]


def _samples(name: str, shown: Shown, side: int) -> Iterator[NDArray[Any]]:
    """Give the values of a file, band by band."""
    with open_geotiff(name) as dataset:
        reduction = max(1.0, max(dataset.shape) / side)
        shape = (len(shown.bands), *(ceil(length / reduction) for length in dataset.shape))
        values = dataset.read(list(shown.bands), out_shape=shape, masked=True)
        scales, offsets = (
            np.array([every[band - 1] for band in shown.bands]).reshape(-1, 1, 1)
            for every in (dataset.scales, dataset.offsets)
        )
    if shown.nodata is not None:
        values = np.ma.masked_where(values.data == shown.nodata, values)
    image = ImageData(
        values * scales + offsets if shown.unscale else values, band_names=[f"b{band}" for band in shown.bands]
    )
    for band in (image.apply_expression(shown.expression) if shown.expression else image).array:
        seen = band.compressed()
        yield seen[np.isfinite(seen)]


def _middle(values: NDArray[Any]) -> Range:
    """Give the range of values without the few that lie apart."""
    if not values.size:
        return _NO_VALUES
    low, high = np.percentile(values, PERCENTILES)
    return _usable(float(low), float(high))


def _usable(low: float, high: float) -> Range:
    """Widen a range that has no extent: all that lies in it is grey."""
    if not isfinite(high - low):
        return _NO_VALUES
    if low < high:
        return low, high
    around = max(1.0, abs(low) / 1000)
    return low - around, high + around
