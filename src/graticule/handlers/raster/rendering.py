"""From a source to a COG on a part of the output's grid, in one pass, with the statistics of its pixels."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import JsonValue
from rasterio.crs import CRS
from rasterio.errors import CRSError, RasterioIOError
from rasterio.io import DatasetReader

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.core.validation import shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.cog.encoding import Encoding, encoding_of
from graticule.handlers.raster.cog.profile import CogProfile, OverviewResampling, profile_of
from graticule.handlers.raster.cog.writer import OnProgress, WrittenCog, write_cog
from graticule.handlers.raster.grid import OutputGrid
from graticule.handlers.raster.inspection import block_bytes, too_many_bands
from graticule.handlers.raster.nodata import Number
from graticule.handlers.raster.opening import open_raster, undamaged, unreadable
from graticule.handlers.raster.options import AUTO, DEFAULT_CRS, OutputOptions, named_bands, resolve_resampling
from graticule.handlers.raster.pixels import Box, Moved, Pixels, PixelSource
from graticule.handlers.raster.raster_type import Declared, RasterType, raster_type_of
from graticule.handlers.raster.statistics import BandStatistics, Counting, is_data, merged
from graticule.handlers.raster.validation_codes import Code
from graticule.handlers.raster.warp import needs_mask, nodata_of, opened_source
from graticule.telemetry import span

BLOCKS_BYTES: Final = 64 * 1024 * 1024  # of many bands a block is large, and each thread holds several: fewer threads


@dataclass(frozen=True, slots=True)
class Rendering:
    """What is made of a source, wherever on the grid."""

    opened: str  # the source's name for GDAL
    grid: OutputGrid
    options: OutputOptions


@dataclass(frozen=True, slots=True)
class Rendered:
    """A COG that was written, and the statistics of what counts in it."""

    cog: WrittenCog
    profile: CogProfile
    bands: list[BandStatistics]


@dataclass(frozen=True, slots=True)
class NodataMasked:
    """A source whose nodata value, and what is not a number, becomes a mask."""

    source: PixelSource
    nodata: Number | None  # a lossy encoding would blur the value itself

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box, valid where any band holds data."""
        pixels = self.source.read(box)
        valid = np.logical_or.reduce([is_data(band, self.nodata) for band in pixels.data])
        return Pixels(pixels.data, valid if pixels.valid is None else valid & pixels.valid)


def output_options(params: OutputOptions) -> OutputOptions:
    """Give the options alone of parameters that hold more."""
    return OutputOptions(**{name: getattr(params, name) for name in OutputOptions.model_fields})


def target_crs_of(options: OutputOptions) -> CRS:
    """Give the projection of the output."""
    try:
        return CRS.from_user_input(options.target_crs or DEFAULT_CRS)
    except CRSError:
        raise InvalidInput(
            "target_crs is not a projection that is known here.", hint="Write a code such as EPSG:4326."
        ) from None


def encoding_for(dataset: DatasetReader, options: OutputOptions) -> tuple[Encoding, list[str]]:
    """Give how the output is compressed, and a warning where the tier cannot have its usual way."""
    return encoding_of(
        options.output_tier,
        dtype=dataset.dtypes[0],
        count=dataset.count,
        has_alpha=any(each.name == "alpha" for each in dataset.colorinterp),
        jpeg_quality=options.jpeg_quality,
    )


def raster_type_for(dataset: DatasetReader, options: OutputOptions) -> RasterType:
    """Give what the caller, or validation, says that the pixels are; without that, what the file declares."""
    if options.raster_type != AUTO:
        return RasterType(options.raster_type)
    return raster_type_of(
        Declared(
            dtype=dataset.dtypes[0],
            colours=[each.name for each in dataset.colorinterp],
            descriptions=dataset.descriptions,
            units=dataset.units,
        )
    )


def profile_for(dataset: DatasetReader, rendering: Rendering, box: Box) -> CogProfile:
    """Give the profile of the COG of a part of the grid; a raster whose pixels are too large is rejected."""
    if (found := too_many_bands(dataset.count)) is not None:
        raise Rejected([found])
    options, part = rendering.options, rendering.grid.part(box)
    is_classes = raster_type_for(dataset, options) is RasterType.CATEGORICAL
    overviews: OverviewResampling = "nearest" if is_classes else "average"
    return profile_of(
        dataset,
        width=box.width,
        height=box.height,
        crs=part.crs,
        transform=part.transform,
        encoding=encoding_for(dataset, options)[0],
        overview_resampling=overviews,
        has_mask=needs_mask(dataset, rendering.grid),
        band_names=named_bands(options.band_names, dataset.descriptions),
        nodata=nodata_of(dataset),
    )


def render(path: Path, rendering: Rendering, box: Box, core: Box, *, threads: int, on_progress: OnProgress) -> Rendered:
    """Read, warp, count and write a part of the grid as a COG; only the core of it counts in the statistics."""
    with open_raster(rendering.opened) as dataset:
        profile, nodata = profile_for(dataset, rendering, box), nodata_of(dataset)
        largest = max(profile.block_bytes, block_bytes(dataset))
        rendering = replace(rendering, options=_with_resampling(dataset, rendering.options))
    inner = Box(core.column - box.column, core.row - box.row, core.width, core.height)
    fitting = min(threads, max(1, BLOCKS_BYTES // largest))
    with (
        span("gdal.render", width=box.width, height=box.height, bands=profile.count),
        readable_source(rendering.opened),
        counted_sources(rendering, profile, nodata, box=box, core=inner, threads=fitting) as sources,
    ):
        written = write_cog(path, profile, sources, on_progress=on_progress)
    return Rendered(written, profile, merged_bands([source.bands() for source in sources]))


def _with_resampling(dataset: DatasetReader, options: OutputOptions) -> OutputOptions:
    method = resolve_resampling(options.resampling, options.output_tier, raster_type_for(dataset, options))
    return options.model_copy(update={"resampling": method})


@contextmanager
def readable_source(opened: str) -> Iterator[None]:
    """Reject a source whose pixels cannot be decoded: validation has seen only some of them."""
    try:
        with undamaged(opened):
            yield
    except RasterioIOError as error:
        raise unreadable(opened, error, Code.CORRUPT, "pixels") from None


@contextmanager
def counted_sources(
    rendering: Rendering, profile: CogProfile, nodata: Number | None, *, box: Box, core: Box, threads: int
) -> Iterator[list[Counting]]:
    """Open the source once for each thread; what passes in the core is counted."""
    with ExitStack() as stack:
        yield [
            Counting(
                _masked(Moved(_opened(stack, rendering), box.column, box.row), profile, nodata),
                profile.count,
                core,
                nodata=nodata,
                alpha=profile.alpha,
            )
            for _ in range(threads)
        ]


def _opened(stack: ExitStack, rendering: Rendering) -> PixelSource:
    return stack.enter_context(opened_source(rendering.opened, rendering.grid, resampling=rendering.options.resampling))


def _masked(source: PixelSource, profile: CogProfile, nodata: Number | None) -> PixelSource:
    tells = nodata is not None or np.dtype(profile.dtype).kind == "f"
    return NodataMasked(source, nodata) if profile.has_mask and tells else source


def merged_bands(parts: Sequence[Sequence[BandStatistics]]) -> list[BandStatistics]:
    """Give the statistics of each band over all parts."""
    return [merged(of_band) for of_band in zip(*parts, strict=True)]


def sums_of(bands: Sequence[BandStatistics]) -> list[JsonValue]:
    """Give what of statistics can be added up, and nothing that follows from it."""
    return [{name: value for name, value in band.to_json().items() if name not in {"mean", "stddev"}} for band in bands]


def described_bands(profile: CogProfile, bands: Sequence[BandStatistics]) -> list[dict[str, Any]]:
    """Say of each band what it is called, what it holds, and its statistics."""
    return [_described(profile, place, band) for place, band in enumerate(bands)]


def _described(profile: CogProfile, place: int, band: BandStatistics) -> dict[str, Any]:
    return {
        "name": shortened((profile.descriptions[place] if profile.descriptions else None) or f"b{place + 1}", 100),
        "data_type": profile.dtype,
        "color_interpretation": profile.colorinterp[place].name if profile.colorinterp else "undefined",
        "nodata": json_codec.named_number(profile.nodata),
        "unit": shortened((profile.units[place] if profile.units else None) or "", 20) or None,
        "scale": profile.scales[place] if profile.scales else 1.0,
        "offset": profile.offsets[place] if profile.offsets else 0.0,
        "statistics": band.to_json(),
    }
