"""The raster that is meant in a partner's file, written as a GeoTIFF. Runs in the process of `sandbox`.

GDAL opens the file under a name of ours in an empty folder, with the drivers of its kind alone. So it finds nothing
beside it, and names in the file lead nowhere.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio import enums
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.io import DatasetReader
from rasterio.rpc import RPC
from rasterio.vrt import WarpedVRT
from rasterio.windows import Window

from graticule.handlers.findings import Finding, Rejected, Severity
from graticule.handlers.raster import containers, warp
from graticule.handlers.raster.acceptance import accepted_kind
from graticule.handlers.raster.cog.profile import MAX_PIXEL_BYTES, block_size_for
from graticule.handlers.raster.examination import (
    find_dangers,
    find_type_problems,
    known_crs,
    no_raster,
    rpc_only,
    unusable_nodata,
)
from graticule.handlers.raster.file_kinds import (
    ACCEPTED,
    CONTAINERS,
    CONVERTED,
    ENVI,
    HDF5,
    HEAD_BYTES,
    NETCDF,
    TIFF,
    FileKind,
)
from graticule.handlers.raster.grid import OutputGrid, check_grid_size
from graticule.handlers.raster.inspection import TAGS_TOLD, declared, pixel_bytes
from graticule.handlers.raster.nodata import (
    MAX_EXACT_INTEGER,
    WIDE_INTEGERS,
    Number,
    can_hold,
    exact_nodatavals,
    replace_nodata,
)
from graticule.handlers.raster.opening import GDAL_ERRORS, gdal_environment, open_raster, unreadable
from graticule.handlers.raster.options import DEFAULT_CRS, Resampling, resolve_resampling
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.raster_type import SampledValues, raster_type_of
from graticule.handlers.raster.references import check_local_references
from graticule.handlers.raster.sandbox import Conversion, ConversionRequest, Warping
from graticule.handlers.raster.selection import SourceSelection
from graticule.handlers.raster.sidecars import BandNotes, read_sidecars
from graticule.handlers.raster.source_file import file_of
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.storage.paths import partial_name

CACHE_MB: Final = 128
MAX_INTERLEAVED_BANDS: Final = 4  # by pixel; more are written band by band
LOOK_PIXELS: Final = 512  # on a side, that are looked at to find out what they are
MAX_RAW_BYTES: Final = 64 * 1024**3
CHUNK_BYTES: Final = 64 * 1024**2
_TIFF_DATETIME: Final = "%Y:%m:%d %H:%M:%S"
_ENDINGS: Final = (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5")
_DEFAULT_ENDINGS: Final = {NETCDF: ".nc", HDF5: ".h5"}
_KINDS: Final = {kind.name: kind for kind in ACCEPTED}
_WGS84: Final = CRS.from_epsg(4326)

Watch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Picked:
    """The raster that is meant: a dataset, its bands, and all that is said of it."""

    dataset: DatasetReader
    bands: tuple[int, ...]
    notes: tuple[BandNotes, ...]  # of each band
    variable: str | None
    crs: CRS | None
    transform: Affine | None
    gcps: tuple[GroundControlPoint, ...]
    rpcs: RPC | None
    mask: DatasetReader | None = None

    @property
    def nodata(self) -> Number | None:
        """The value of pixels without data that they can have; a GeoTIFF has one for all bands."""
        said = (each.nodata for each in self.notes if each.nodata is not None)
        return next((nodata for nodata in said if can_hold(self.dataset.dtypes[0], nodata)), None)

    @property
    def unusable_nodata(self) -> Number | None:
        """A value that is said to mean no data, and that no pixel can have."""
        said = (each.nodata for each in self.notes if each.nodata is not None)
        return next((nodata for nodata in said if not can_hold(self.dataset.dtypes[0], nodata)), None)

    @property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel of its bands."""
        return pixel_bytes(self.dataset) // int(self.dataset.count) * len(self.bands)

    @property
    def is_warped(self) -> bool:
        """Whether it has no grid of its own, but only points or polynomials that place it."""
        return self.transform is None and bool(self.gcps or self.rpcs)


def convert(request: ConversionRequest, watch: Watch) -> Conversion:
    """Find the raster that is meant, and write it if the file cannot be read as it is."""
    kind = _KINDS[request.kind]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graticule-source-")))
        stack.enter_context(gdal_environment(CACHE_MB))
        name = _link(folder, request, kind)
        check_local_references(name, kind, request.sidecars.get(".hdr"), watch)
        with _open(name, kind) as container:
            chosen = containers.choose_raster(container, kind, name, request.selection.variable)
            dataset = container if chosen is None else stack.enter_context(_open(chosen.opened, kind))
            if not dataset.count:
                raise Rejected([no_raster()])
            picked = _pick(dataset, chosen, request, folder, stack)
            _reject(_find_problems(picked, request))
            done = _describe(picked, kind, request)
            if done.is_needed and request.output is not None:
                _reject([*_find_misfits(picked, request.selection)])
                watch()
                _write(picked, request, Path(request.output), watch)
            return done


def _link(folder: Path, request: ConversionRequest, kind: FileKind) -> str:
    """Return the file a name of ours in a folder where nothing else is; what is only read over the network has none."""
    if request.name.startswith("/vsi"):
        return request.name
    ending = request.ending.casefold()
    name = folder / f"source{ending if ending in _ENDINGS else _DEFAULT_ENDINGS.get(kind, '.dat')}"
    name.symlink_to(request.name)
    if kind is ENVI:
        (folder / "source.hdr").symlink_to(request.sidecars[".hdr"])
    return str(name)


@contextmanager
def _open(name: str, kind: FileKind) -> Iterator[DatasetReader]:
    # ENVI's driver looks for the header only if it may look at all; here there is nothing else.
    look = "TRUE" if kind is ENVI else "EMPTY_DIR"
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN=look), open_raster(name, kind) as dataset:
        yield dataset


def _find_problems(picked: Picked, request: ConversionRequest) -> list[Finding]:
    size = max(1, file_of(request.name).state().size)
    return [*find_dangers(picked.dataset, size, len(picked.bands)), *find_type_problems(picked.dataset)]


def _reject(findings: Sequence[Finding]) -> None:
    if rejections := [each for each in findings if each.severity is Severity.REJECT]:
        raise Rejected(rejections)


def _pick(
    dataset: DatasetReader,
    chosen: containers.Candidate | None,
    request: ConversionRequest,
    folder: Path,
    stack: ExitStack,
) -> Picked:
    selection = request.selection
    bands = (chosen.bands if chosen else ()) or tuple(dataset.indexes)
    if selection.time is not None:
        bands = tuple(containers.select_time(dataset, bands, selection.time))
    sidecars = {ending: Path(path) for ending, path in request.sidecars.items()}
    beside = read_sidecars(sidecars, folder, with_crs=selection.source_crs is None)
    mask = stack.enter_context(_open_mask(Path(request.sidecars[".msk"]))) if ".msk" in request.sidecars else None
    points, points_crs = dataset.gcps
    own = exact_nodatavals(dataset)
    given = known_crs(selection.source_crs) if selection.source_crs else None
    return Picked(
        dataset=dataset,
        bands=bands,
        notes=tuple(
            _note(dataset, band, beside.bands.get(band, BandNotes()), selection.nodata, own[band - 1]) for band in bands
        ),
        variable=chosen.name if chosen else None,
        crs=given or beside.crs or dataset.crs or beside.prj_crs or beside.gcp_crs or points_crs or None,
        transform=beside.transform or _own_transform(dataset) or (None if points else beside.world_transform),
        gcps=beside.gcps or tuple(points),
        rpcs=dataset.rpcs if selection.rpc_height is not None else None,
        mask=mask,
    )


def _own_transform(dataset: DatasetReader) -> Affine | None:
    return None if dataset.transform.is_identity else dataset.transform


def _note(
    dataset: DatasetReader, band: int, beside: BandNotes, given: Number | None = None, own: Number | None = None
) -> BandNotes:
    """Return what is said of a band: by the submitter, by a file beside it, and by itself, in this order."""
    place = band - 1
    return BandNotes(
        nodata=next((each for each in (given, beside.nodata, own) if each is not None), None),
        scale=dataset.scales[place] if beside.scale is None else beside.scale,
        offset=dataset.offsets[place] if beside.offset is None else beside.offset,
        unit=beside.unit or dataset.units[place] or "",
        description=beside.description or dataset.descriptions[place],
    )


@contextmanager
def _open_mask(path: Path) -> Iterator[DatasetReader]:
    with path.open("rb") as file:
        is_tiff = accepted_kind(file.read(HEAD_BYTES)) is TIFF
    if not is_tiff:
        raise Rejected([finding(Code.CORRUPT, "The .msk file is not a TIFF.", ".msk")])
    with open_raster(str(path), TIFF) as mask:
        yield mask


def _describe(picked: Picked, kind: FileKind, request: ConversionRequest) -> Conversion:
    is_changed = request.selection.changes_source or bool(request.sidecars) or picked.is_warped
    # By ranges over a network, NetCDF and HDF5 are slow, and GDAL takes the one for the other.
    is_elsewhere = request.is_remote and kind in CONTAINERS
    # The blocks of a COG of many bands are small: in a file that stores each band in large ones, all would be decoded
    # for each of them.
    is_transposed = kind in CONTAINERS and picked.pixel_bytes > MAX_PIXEL_BYTES
    return Conversion(
        findings=[*_find_unusable_nodata(picked)],
        is_needed=kind in CONVERTED or picked.variable is not None or is_changed or is_elsewhere or is_transposed,
        driver=picked.dataset.driver,
        variable=picked.variable,
        control_points=len(picked.gcps),
        has_rpcs=picked.rpcs is not None,
        has_grid=not picked.is_warped,
    )


def _find_unusable_nodata(picked: Picked) -> Iterator[Finding]:
    if (nodata := picked.unusable_nodata) is not None:
        yield unusable_nodata(nodata, picked.dataset.dtypes[0])


def _find_misfits(picked: Picked, selection: SourceSelection) -> Iterator[Finding]:
    """Find what cannot be written, or does not go with what was said."""
    dataset = picked.dataset
    if picked.mask is not None and picked.mask.shape != dataset.shape:
        yield finding(Code.CORRUPT, "The .msk file and the raster differ in size.", ".msk")
    if dataset.width * dataset.height * picked.pixel_bytes > MAX_RAW_BYTES:
        what = f"It has more than {MAX_RAW_BYTES // 1024**3} GiB of pixels, too many to convert it first."
        yield finding(Code.TOO_LARGE, what)
    if selection.source_crs and known_crs(selection.source_crs) is None:
        what = "source_crs is not a known geographic or projected CRS."
        yield finding(Code.UNKNOWN_SOURCE_CRS, what, "source_crs")
    if picked.transform is None and not picked.gcps and dataset.rpcs is not None and selection.rpc_height is None:
        yield rpc_only()
    if picked.is_warped and picked.crs is None and picked.rpcs is None:
        yield finding(Code.NO_CRS, "It does not say in which CRS its control points are.", "CRS")
    if selection.nodata is not None and not can_hold(dataset.dtypes[0], selection.nodata):
        what = f"No pixel of the type {dataset.dtypes[0]} can have the value {selection.nodata:g}."
        yield finding(Code.UNFIT_NODATA, what, "nodata")


# Writing


def _write(picked: Picked, request: ConversionRequest, output: Path, watch: Watch) -> None:
    try:
        if not picked.is_warped:
            _copy(picked, output, watch)
            return
        unwarped = output.with_name(partial_name(uuid4().hex, "raster.tif"))  # swept, should this process be killed
        try:
            _copy(picked, unwarped, watch, request.selection.rpc_height)
            _warp(unwarped, output, request.warping, watch)
        finally:
            unwarped.unlink(missing_ok=True)
    except rasterio.errors.RasterioError as error:
        raise unreadable(request.name, error, Code.CORRUPT, "pixels") from None


def _copy(picked: Picked, output: Path, watch: Watch, rpc_height: float | None = None) -> None:
    """Write the bands that are meant, pixel by pixel the same, with all that is said of them."""
    dataset = picked.dataset
    profile = {"nodata": picked.nodata, **_place(picked)}
    with _create(output, dataset.shape, len(picked.bands), dataset.dtypes[0], **profile) as written:
        if picked.rpcs is not None and picked.is_warped:
            written.rpcs = _raised(picked.rpcs, rpc_height or 0.0)
        _annotate(picked, written)
        for places in _group_bands(picked):
            pixel_size = len(places) * picked.pixel_bytes // len(picked.bands)
            for window in _windows(dataset.shape, pixel_size, _block_size(written)):
                watch()
                written.write(_read(picked, places, window), [place + 1 for place in places], window=window)
        for window in _windows(dataset.shape, 1, _block_size(written)):
            if picked.nodata is None and (mask := _read_mask(picked, window)) is not None:
                watch()
                written.write_mask(mask, window=window)


def _group_bands(picked: Picked) -> list[Sequence[int]]:
    """Return which bands are read together, so that each block of the source is decoded once."""
    places = range(len(picked.bands))
    layout = picked.dataset.tags(ns="IMAGE_STRUCTURE").get("INTERLEAVE")
    is_together = len(places) <= MAX_INTERLEAVED_BANDS or layout in {"PIXEL", "LINE"}
    return [places] if is_together else [[place] for place in places]


def _read_mask(picked: Picked, window: Window) -> NDArray[np.bool_] | None:
    if picked.mask is not None:
        return np.asarray(picked.mask.read(1, window=window) != 0)
    if picked.dataset.mask_flag_enums[0] != [enums.MaskFlags.per_dataset]:
        return None
    return np.asarray(picked.dataset.read_masks(1, window=window) != 0)


def _place(picked: Picked) -> dict[str, Any]:
    if picked.transform is not None:
        return {"crs": picked.crs, "transform": picked.transform}
    if picked.rpcs is not None and not picked.gcps:
        return {"crs": _WGS84}  # that of the polynomials
    return {"crs": picked.crs, "gcps": list(picked.gcps)} if picked.gcps else {"crs": picked.crs}


def _raised(rpcs: RPC, height: float) -> RPC:
    """Shift the polynomials so that their height 0 is the given one: GDAL's virtual warps have no option for it."""
    shifted = RPC(**rpcs.to_dict())
    shifted.height_off = rpcs.height_off - height
    return shifted


def _read(picked: Picked, places: Sequence[int], window: Window) -> NDArray[Any]:
    data: NDArray[Any] = picked.dataset.read([picked.bands[place] for place in places], window=window)
    nodata = picked.nodata
    if nodata is None:
        return data
    for band, place in zip(data, places, strict=True):  # a GeoTIFF has one nodata value for all bands
        own = picked.notes[place].nodata
        if own is not None and can_hold(data.dtype.name, own) and not _is_same(own, nodata):
            band[np.isnan(band) if isnan(own) else band == own] = nodata
    if (mask := _read_mask(picked, window)) is not None:
        data[:, ~mask] = nodata
    return data


def _is_same(one: float, other: float) -> bool:
    return one == other or (isnan(one) and isnan(other))


def _annotate(picked: Picked, written: Any) -> None:
    dataset, first = picked.dataset, picked.bands[0]
    for place, note in enumerate(picked.notes, 1):
        if note.description:
            written.set_band_description(place, note.description)
    written.scales = [note.scale for note in picked.notes]
    written.offsets = [note.offset for note in picked.notes]
    written.units = [note.unit for note in picked.notes]
    written.colorinterp = colours = [dataset.colorinterp[band - 1] for band in picked.bands]
    if colours == [enums.ColorInterp.palette] and dataset.dtypes[0] in {"uint8", "uint16"}:
        written.write_colormap(1, dataset.colormap(first))
    tags = {name: value for name, value in dataset.tags().items() if name in TAGS_TOLD}
    times = {containers.band_time(dataset, band) for band in picked.bands}
    if len(times) == 1 and (time := times.pop()) is not None:
        tags["TIFFTAG_DATETIME"] = time.strftime(_TIFF_DATETIME)
    written.update_tags(**tags)


def _warp(unwarped: Path, output: Path, warping: Warping, watch: Watch) -> None:
    """Bring what is placed by points or polynomials to the grid that gdalwarp would choose, in the output's CRS."""
    target = known_crs(warping.target_crs or DEFAULT_CRS)
    if target is None:
        raise Rejected([finding(Code.UNKNOWN_TARGET_CRS, "The target CRS is not known.", "target_crs")])
    with open_raster(str(unwarped), TIFF) as dataset:
        try:
            with WarpedVRT(dataset, crs=target) as suggested:
                grid = OutputGrid(target, suggested.transform, suggested.width, suggested.height)
        except GDAL_ERRORS:
            what = "The control points or RPCs do not define a valid position."
            raise Rejected([finding(Code.UNUSABLE_GRID, what, "geotransform")]) from None
        check_grid_size(grid, dataset)
        profile = {"nodata": warp.nodata_of(dataset), "crs": target, "transform": grid.transform}
        shape = (grid.height, grid.width)
        with (
            _warped(dataset, grid, _resampling(dataset, warping)) as warped,
            _create(output, shape, dataset.count, dataset.dtypes[0], **profile) as written,
        ):
            source, bands = warp.Warped(warped, dataset), tuple(dataset.indexes)
            notes = tuple(_note(dataset, band, BandNotes()) for band in bands)
            _annotate(Picked(dataset, bands, notes, None, target, grid.transform, (), None), written)
            for window in _windows(shape, pixel_bytes(dataset), _block_size(written)):
                watch()
                pixels = source.read(Box(window.col_off, window.row_off, window.width, window.height))
                written.write(pixels.data, window=window)
                if pixels.valid is not None:
                    written.write_mask(pixels.valid, window=window)


def _warped(dataset: DatasetReader, grid: OutputGrid, resampling: Resampling) -> WarpedVRT:
    """Return the image as GDAL's warper shows it on the grid that it suggests: given one, it forgets the points."""
    return WarpedVRT(
        dataset,
        crs=grid.crs,
        resampling=enums.Resampling[resampling],
        tolerance=warp.EXACT if resampling == "nearest" else warp.SMOOTH,
        nodata=warp.nodata_of(dataset),
        add_alpha=warp.needs_mask(dataset, grid),
        UNIFIED_SRC_NODATA="PARTIAL",
    )


def _resampling(dataset: DatasetReader, warping: Warping) -> Resampling:
    """Return the method; whether the pixels are classes, which are never blended, a thinned-out look tells."""
    shape = (min(dataset.height, LOOK_PIXELS), min(dataset.width, LOOK_PIXELS))
    values = dataset.read(1, out_shape=shape, masked=True).compressed()
    seen = SampledValues(float(values.min()), float(values.max()), len(np.unique(values))) if values.size else None
    found = warping.raster_type or raster_type_of(declared(dataset), seen)
    return resolve_resampling(warping.resampling, warping.output_tier, found)


@contextmanager
def _create(
    output: Path, shape: tuple[int, int], count: int, dtype: str, *, nodata: Number | None, **profile: Any
) -> Iterator[Any]:
    block = block_size_for(count * np.dtype(dtype).itemsize)
    is_wide = dtype in WIDE_INTEGERS and nodata is not None and abs(nodata) > MAX_EXACT_INTEGER
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(
            output,
            "w",
            driver="GTiff",
            width=shape[1],
            height=shape[0],
            count=count,
            dtype=dtype,
            nodata=0 if is_wide else nodata,
            tiled=True,
            blockxsize=block,
            blockysize=block,
            interleave="pixel" if count <= MAX_INTERLEAVED_BANDS else "band",
            compress="deflate",
            zlevel=1,
            bigtiff="IF_SAFER",
            endianness="LITTLE",
            **profile,
        ) as written,
    ):
        yield written
    if is_wide and nodata is not None:
        replace_nodata(output, int(nodata))


def _block_size(written: Any) -> int:
    return int(written.block_shapes[0][0])


def _windows(shape: tuple[int, int], pixel_size: int, block: int) -> Iterator[Window]:
    """Cut at the borders of blocks into parts that fit into memory: whole rows of blocks, if these fit."""
    height, width = shape
    columns = min(max(block, CHUNK_BYTES // (block * pixel_size) // block * block), width)
    rows = max(block, CHUNK_BYTES // (columns * pixel_size) // block * block)
    for row in range(0, height, rows):
        for column in range(0, width, columns):
            yield Window(column, row, min(columns, width - column), min(rows, height - row))
