"""All that is looked at in a partner's raster, and what is found.

What would be dangerous to read is found from the tags before any pixel is decoded; all other findings are told
together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyproj
from pydantic import JsonValue
from pyproj.exceptions import ProjError
from rasterio.crs import CRS
from rasterio.io import DatasetReader

from graticule.handlers.celestial import other_body
from graticule.handlers.findings import Finding, Rejected, Severity
from graticule.handlers.raster import tiff_layout
from graticule.handlers.raster.bounds import absurdity, is_outside_area_of_use, source_bounds, world_bounds
from graticule.handlers.raster.containers import choose_raster
from graticule.handlers.raster.file_kinds import READ_DIRECTLY, TIFF, FileKind
from graticule.handlers.raster.grid import output_grid
from graticule.handlers.raster.inspection import (
    RasterFacts,
    SampleFacts,
    block_bytes,
    crs_name,
    declared,
    facts_of,
    file_named_in,
    pixel_bytes,
    raw_bytes,
    too_many_bands,
)
from graticule.handlers.raster.nodata import Number, exact_nodata
from graticule.handlers.raster.opening import GDAL_ERRORS, gdal_environment, open_raster, unreadable
from graticule.handlers.raster.options import DEFAULT_CRS, Resampling, Tier, resolve_resampling
from graticule.handlers.raster.preparation import PlacedByPoints, Readable
from graticule.handlers.raster.raster_type import Declared, RasterType, fits, raster_type_of
from graticule.handlers.raster.sampling import Sample, Watch, holds_data, sampled
from graticule.handlers.raster.tiff_layout import index_size
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.handlers.raster.warp import nodata_of
from graticule.telemetry import span

_MEBIBYTE: Final = 1024 * 1024
_GIBIBYTE: Final = 1024 * _MEBIBYTE
CACHE_MB: Final = 64
LONGEST_SIDE: Final = 10_000_000  # pixels
MOST_RAW_BYTES: Final = 1024 * _GIBIBYTE
MAX_BLOCK_BYTES: Final = 128 * _MEBIBYTE
MAX_TILE_BYTES: Final = _GIBIBYTE  # of a tile of the usual 512 x 512 pixels with many bands, stored by pixel
BOMB_ABOVE_BYTES: Final = 16 * _GIBIBYTE
BOMB_RATIO: Final = 1000  # DEFLATE cannot do better: beyond it, nearly nothing is stored
MAX_PIXELS: Final = 200_000_000_000  # of each band: a thousand large tiles or so
MAX_SPARSE_PIXELS: Final = 250_000_000  # whatever is stored of them
MAX_PIXELS_PER_BYTE: Final = 4000  # beyond the index: of constant areas, hardly more are stored in one
_METHODS: Final = {"nearest": "nearest-neighbour"}
DTYPES: Final = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float32", "float64"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made of the raster."""

    target_crs: str | None = None
    raster_type: RasterType | None = None
    output_tier: Tier = "analysis"
    resampling: Resampling = "auto"


@dataclass(frozen=True, slots=True)
class Examined:
    """A raster that can be used."""

    facts: RasterFacts
    raw_bytes: int
    findings: list[Finding]  # what is repaired on the way


def examine(readable: Readable, wanted: Wanted, watch: Watch) -> Examined:
    """Look at a raster; one that cannot be used is `Rejected` with all that was found.

    One that is placed by control points alone is `PlacedByPoints`.
    """
    name, kind, size = readable.opened, readable.kind, readable.size
    with span("gdal.examine", size_bytes=size), gdal_environment(CACHE_MB), open_raster(name, kind) as dataset:
        try:
            if dataset.gcps[0] and dataset.transform.is_identity:
                raise PlacedByPoints
            if kind in READ_DIRECTLY:
                choose_raster(dataset, kind, name, None)
            _check(list(find_dangers(dataset, size)))
            return _examined(dataset, readable, wanted=wanted, watch=watch)
        except GDAL_ERRORS as error:  # a tag that cannot be read
            raise unreadable(name, error, Code.CORRUPT) from None


def _examined(dataset: DatasetReader, readable: Readable, *, wanted: Wanted, watch: Watch) -> Examined:
    name, kind, size = readable.opened, readable.kind, readable.size
    facts, said = facts_of(dataset, kind), declared(dataset)
    findings = [*find_type_problems(dataset), *_places(dataset), *_targets(dataset, said, wanted)]
    if not any(each.severity is Severity.REJECT for each in findings):
        findings += _grids(dataset, wanted, size)
    sample, unread = _decoded(dataset, name, kind, size, watch)
    findings += unread
    facts = facts.model_copy(update=_seen(said, wanted, sample) | _sent(readable))
    _check(findings, facts)
    findings += [*_empty_values(dataset, sample), *_conversion(readable), *_reprojection(dataset, facts, wanted)]
    findings += _repairs(facts, readable.sent_as)
    return Examined(facts, raw_bytes(dataset), findings)


def _seen(said: Declared, wanted: Wanted, sample: Sample) -> dict[str, object]:
    found = wanted.raster_type or raster_type_of(said, sample.values())
    told = SampleFacts(
        blocks=sample.blocks,
        pixels=sample.pixels,
        valid_pixels=sample.valid_pixels,
        is_complete=sample.is_complete,
    )
    return {"raster_type": found, "sample": told}


def _sent(readable: Readable) -> dict[str, object]:
    """Return what of the facts is of the file that was sent, and not of what was made of it."""
    done = readable.conversion
    if done is None:
        return {}
    return {"driver": done.driver, "variable": done.variable, "control_points": done.control_points, "is_cog": False}


def _conversion(readable: Readable) -> Iterator[Finding]:
    """Find what was done when it was converted."""
    done = readable.conversion
    yield from done.findings if done else ()
    if done and done.control_points and not done.has_grid:
        what = f"The image is georeferenced by {done.control_points} ground control points."
        yield finding(Code.GCPS_ONLY, what, "geotransform")
    elif done and done.has_rpcs and not done.has_grid:
        yield finding(Code.WARPED_BY_RPCS, "The image is georeferenced by RPCs and the given height.", "rpc_height")


def _check(findings: list[Finding], facts: RasterFacts | None = None) -> None:
    """Reject a raster for all reasons at once."""
    rejections = [each for each in findings if each.severity is Severity.REJECT]
    if rejections:
        told: dict[str, JsonValue] = facts.model_dump(mode="json") if facts else {}
        raise Rejected(rejections, told)


def find_dangers(dataset: DatasetReader, size: int, band_count: int | None = None) -> Iterator[Finding]:
    """Find what must not be read any further; of some of its bands, if only these are meant."""
    if not dataset.count:
        yield no_raster()
    if dataset.crs and (named := file_named_in(dataset.crs)):
        yield finding(Code.REFERS_TO_OTHER_FILES, f"Its CRS names the file '{named}'.", "CRS")
    if dataset.count:
        yield from _sizes(dataset, size, band_count or dataset.count)


def _sizes(dataset: DatasetReader, size: int, band_count: int) -> Iterator[Finding]:
    raw, (height, width) = raw_bytes(dataset) // dataset.count * band_count, dataset.block_shapes[0]
    shape = f"{dataset.width} x {dataset.height} pixels, {band_count} bands"
    pixels = _too_many_pixels(dataset, dataset.width, dataset.height, size, "It has")
    if (found := too_many_bands(band_count)) is not None:
        yield found
    if max(dataset.width, dataset.height) > LONGEST_SIDE or raw > MOST_RAW_BYTES:
        yield finding(Code.TOO_LARGE, f"It is larger than what is accepted: {shape}.")
    elif raw > BOMB_ABOVE_BYTES and raw > BOMB_RATIO * size:
        what = f"Its {size} bytes would become {raw} bytes of pixels ({shape})."
        yield finding(Code.DECOMPRESSION_BOMB, what)
    elif pixels is not None:
        yield pixels
    limit = max(MAX_BLOCK_BYTES, min(MAX_TILE_BYTES, 512 * 512 * pixel_bytes(dataset)))
    if block_bytes(dataset) > limit:
        what = f"A block of {width} x {height} pixels takes more than {limit // _MEBIBYTE} MiB of memory."
        yield finding(Code.BLOCK_TOO_LARGE, what, "block layout")


def _too_many_pixels(dataset: DatasetReader, width: int, height: int, size: int, whose: str) -> Finding | None:
    """Find that pixels of a source, or of what it becomes, are more than what is stored of them accounts for.

    Each of them is warped, compressed and looked at, also where a sparse file holds nothing.
    """
    stored = max(0, size - index_size(dataset)) if dataset.driver in TIFF.drivers else size
    limit = min(MAX_PIXELS, max(MAX_SPARSE_PIXELS, MAX_PIXELS_PER_BYTE * stored))
    if width * height <= limit:
        return None
    what = f"{whose} {width} x {height} pixels; with {stored} bytes of data, up to {limit} are accepted."
    return finding(Code.TOO_MANY_PIXELS, what)


def find_type_problems(dataset: DatasetReader) -> Iterator[Finding]:
    """Find pixels that cannot be served."""
    kinds = sorted(set(dataset.dtypes))
    if any(dtype.startswith("complex") for dtype in kinds):
        yield finding(Code.COMPLEX_TYPE, f"Its pixels are complex numbers ({', '.join(kinds)}).", "bands")
    elif len(kinds) > 1:
        yield finding(Code.UNSUPPORTED_TYPE, f"Its bands are of several types ({', '.join(kinds)}).", "bands")
    elif kinds[0] not in DTYPES:
        yield finding(Code.UNSUPPORTED_TYPE, f"Pixels of the type {kinds[0]} cannot be served.", "bands")


def _places(dataset: DatasetReader) -> Iterator[Finding]:
    """Find what is wrong with the place on the earth."""
    crs, transform = dataset.crs or dataset.gcps[1], dataset.transform
    if not crs and not (transform.is_identity and dataset.rpcs):  # those are always in degrees
        yield finding(Code.NO_CRS, "It does not say in which CRS it is.", "CRS")
    elif crs and not (crs.is_geographic or crs.is_projected):
        yield finding(Code.UNSUPPORTED_CRS, "Its CRS is tied to no place on the earth's surface.", "CRS")
    elif crs and (body := other_body(pyproj.CRS.from_wkt(crs.to_wkt()))):
        yield finding(Code.OTHER_BODY, f"The CRS is for {body}, not for the Earth.", "CRS")
        return
    if transform.is_identity:
        yield _without_place(dataset)
    elif crs and (crs.is_geographic or crs.is_projected):
        yield from _position(dataset, crs)


def _position(dataset: DatasetReader, crs: CRS) -> Iterator[Finding]:
    transform = dataset.transform
    bounds = source_bounds(transform, dataset.width, dataset.height)
    world = world_bounds(crs, transform, dataset.width, dataset.height)
    where = f"bounds {', '.join(f'{value:g}' for value in bounds)}"
    if absurd := absurdity(crs, transform, bounds, world):
        yield finding(Code.ABSURD_BOUNDS, absurd, where)
        return
    if world and is_outside_area_of_use(crs, world):
        what = f"It lies outside the area of use of its CRS, {_short(crs_name(crs))}."
        yield finding(Code.OUTSIDE_AREA_OF_USE, what, where)
    if not (transform.b or transform.d) and (transform.e > 0 or transform.a < 0):
        yield finding(Code.FLIPPED, "Its first row is not the northernmost, or it is mirrored.", "geotransform")


def _without_place(dataset: DatasetReader) -> Finding:
    if dataset.rpcs is not None:
        return rpc_only()
    return finding(Code.NO_GEOTRANSFORM, "It does not say where on the earth it lies.", "geotransform")


def no_raster() -> Finding:
    """Return the finding about a file without pixels."""
    return finding(Code.NOT_A_RASTER, "The file contains no raster.")


def rpc_only() -> Finding:
    """Return the finding about an image that needs a height."""
    what = "The image is georeferenced only by RPCs, which need a terrain height."
    return finding(Code.RPC_ONLY, what, "rpc_height")


def unusable_nodata(nodata: Number, dtype: str) -> Finding:
    """Return the finding about a nodata value that is dropped."""
    what = f"Its nodata value is {nodata:g}, which no pixel of the type {dtype} can have."
    return finding(Code.UNUSABLE_NODATA, what, "nodata")


def _targets(dataset: DatasetReader, said: Declared, wanted: Wanted) -> Iterator[Finding]:
    """Find what does not go with what was asked for."""
    if wanted.raster_type and not fits(wanted.raster_type, said):
        colours = ", ".join(said.colours[:8])
        what = f"Its bands ({colours}; {said.dtype}) are not those of the type {wanted.raster_type}."
        yield finding(Code.TYPE_MISMATCH, what, "raster_type")
    if wanted.target_crs and known_crs(wanted.target_crs) is None:
        what = "The target CRS is not known, or has no place on the earth."
        yield finding(Code.UNKNOWN_TARGET_CRS, what, "target_crs")


def _reprojection(dataset: DatasetReader, facts: RasterFacts, wanted: Wanted) -> Iterator[Finding]:
    """Say how the raster is resampled, if it is."""
    method = resolve_resampling(wanted.resampling, wanted.output_tier, facts.raster_type)
    how = f"with {_METHODS.get(method, method.replace('_', ' '))} resampling"
    if wanted.target_crs and dataset.crs and known_crs(wanted.target_crs) != dataset.crs:
        what = f"Reprojected from {_short(crs_name(dataset.crs))} to {wanted.target_crs} {how}."
        yield finding(Code.OTHER_CRS, what, "CRS")
    elif dataset.transform.b or dataset.transform.d:
        yield finding(Code.ROTATED, f"Its grid is rotated; resampled to a north-up grid {how}.", "geotransform")


def _grids(dataset: DatasetReader, wanted: Wanted, size: int) -> list[Finding]:
    """Find that no sensible grid can be made of it in the CRS of the output."""
    try:
        grid = output_grid(dataset, known_crs(wanted.target_crs or DEFAULT_CRS))
    except Rejected as rejected:
        return rejected.findings
    except (*GDAL_ERRORS, ProjError):
        return [finding(Code.UNUSABLE_GRID, "It cannot be brought into the CRS of the output.", "target_crs")]
    found = _too_many_pixels(dataset, grid.width, grid.height, size, f"In {crs_name(grid.crs)} it would have")
    return [] if found is None else [found]


def known_crs(code: str) -> CRS | None:
    """Give the CRS of a code such as EPSG:4326, if it can be the CRS of a map."""
    authority, _, number = code.partition(":")
    try:
        crs = CRS.from_authority(authority, number)
    except GDAL_ERRORS:
        return None
    return crs if crs.is_geographic or crs.is_projected else None


def _short(name: str | None) -> str:
    return name if name and len(name) < 32 else "a CRS without a code"


def _decoded(
    dataset: DatasetReader, name: str, kind: FileKind, size: int, watch: Watch
) -> tuple[Sample, list[Finding]]:
    """Decode a sample, and find what cannot be decoded or holds no data."""
    cut = tiff_layout.block_past(dataset, size) if kind is TIFF else None
    if cut:
        what = f"Its end is missing: a block ends at byte {cut.offset + cut.size}, and the file has {size}."
        return Sample(), [finding(Code.TRUNCATED, what, cut.where)]
    try:
        sample = sampled(dataset, name, kind, watch)
        if holds_data(dataset, name, sample, size, watch) is False:
            return sample, [finding(Code.ALL_NODATA, "No pixel of it holds data: all are nodata or masked.", "pixels")]
    except Rejected as rejected:
        return Sample(), rejected.findings
    return sample, []


def _empty_values(dataset: DatasetReader, sample: Sample) -> Iterator[Finding]:
    """Find what is wrong with the value that stands for no data."""
    nodata = exact_nodata(dataset)
    if nodata is not None and nodata_of(dataset) is None:
        yield unusable_nodata(nodata, dataset.dtypes[0])
    if nodata is None and sample.has_nan:
        yield finding(Code.NAN_WITHOUT_NODATA, "Some pixels are NaN, and no nodata value is named.", "nodata")


def _repairs(facts: RasterFacts, kind: FileKind) -> Iterator[Finding]:
    """Find what keeps it from being served as it is."""
    if facts.is_cog:
        return
    is_large, layout = max(facts.width, facts.height) > 512, "block layout"
    if is_large and not facts.is_tiled:
        yield finding(Code.NOT_TILED, f"Its blocks are strips of {facts.block_height} rows.", layout)
    if is_large and not facts.overviews:
        yield finding(Code.NO_OVERVIEWS, "It has no overviews.", layout)
    yield finding(Code.NOT_COG, f"It is a {kind.name} file that is not cloud-optimized.", layout)
