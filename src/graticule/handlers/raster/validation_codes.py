"""All that `raster.validate` can find, and how to mend it. docs/reference/raster_validation.md shows the same table."""

from enum import StrEnum
from typing import Final

from graticule.core.validation import shortened
from graticule.handlers.findings import Finding, Severity

WHOLE_FILE: Final = "file"


class Code(StrEnum):
    """What was found."""

    NOT_FOUND = "not_found"
    EMPTY_FILE = "empty_file"
    NOT_A_RASTER = "not_a_raster"
    VRT_NOT_ACCEPTED = "vrt_not_accepted"
    ARCHIVE_NOT_ACCEPTED = "archive_not_accepted"
    REFERS_TO_OTHER_FILES = "refers_to_other_files"
    SEVERAL_DATASETS = "several_datasets"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_LARGE = "too_large"
    TOO_MANY_BANDS = "too_many_bands"
    BLOCK_TOO_LARGE = "block_too_large"
    DECOMPRESSION_BOMB = "decompression_bomb"
    COMPLEX_TYPE = "complex_type"
    UNSUPPORTED_TYPE = "unsupported_type"
    NO_CRS = "no_crs"
    UNSUPPORTED_CRS = "unsupported_crs"
    NO_GEOTRANSFORM = "no_geotransform"
    GCPS_ONLY = "gcps_only"
    ABSURD_BOUNDS = "absurd_bounds"
    ALL_NODATA = "all_nodata"
    TYPE_MISMATCH = "type_mismatch"
    UNKNOWN_TARGET_CRS = "unknown_target_crs"
    UNUSABLE_GRID = "unusable_grid"
    SOURCE_CHANGED = "source_changed"
    ROTATED = "rotated"
    FLIPPED = "flipped"
    NOT_TILED = "not_tiled"
    NO_OVERVIEWS = "no_overviews"
    NOT_COG = "not_cog"
    OTHER_CRS = "other_crs"
    UNUSABLE_NODATA = "unusable_nodata"
    NAN_WITHOUT_NODATA = "nan_without_nodata"


_OURS: Final = "Nothing is to be done:"

HOW_TO_FIX: Final[dict[Code, str]] = {
    Code.NOT_FOUND: "Upload the file, or correct its container and name.",
    Code.EMPTY_FILE: "Upload the file again: it has no bytes.",
    Code.NOT_A_RASTER: "Send a GeoTIFF, JPEG 2000, NetCDF or HDF5 file.",
    Code.VRT_NOT_ACCEPTED: "Send the pixels themselves: gdal_translate in.vrt out.tif",
    Code.ARCHIVE_NOT_ACCEPTED: "Unpack it, and send the raster itself.",
    Code.REFERS_TO_OTHER_FILES: "Send one file that holds everything: gdal_translate in out.tif, with no references.",
    Code.SEVERAL_DATASETS: "Send one raster in each file: gdalinfo lists them, gdal_translate takes one out.",
    Code.TRUNCATED: "Upload the file again, and compare its size and checksum with the original's.",
    Code.CORRUPT: "Make the file anew from its origin, or upload it again if the original can be read.",
    Code.TOO_LARGE: "Cut the raster into several files.",
    Code.TOO_MANY_BANDS: "Send its bands in several files: gdal_translate -b 1 -b 2 … in.tif out.tif",
    Code.BLOCK_TOO_LARGE: "Write it with tiles: gdal_translate -co TILED=YES in.tif out.tif",
    Code.DECOMPRESSION_BOMB: "Cut away what holds no data, or send the raster in several files.",
    Code.COMPLEX_TYPE: "Send amplitude, phase or the two parts as bands of a real type.",
    Code.UNSUPPORTED_TYPE: "Convert it: gdal_translate -ot Int32 (or Float64) in.tif out.tif",
    Code.NO_CRS: "Name the CRS in the file itself: gdal_edit.py -a_srs EPSG:<code> in.tif",
    Code.UNSUPPORTED_CRS: "Give it a geographic or projected CRS: gdalwarp -t_srs EPSG:<code> in.tif out.tif",
    Code.NO_GEOTRANSFORM: "Place it on the earth in the file itself: gdal_translate -a_ullr <ulx> <uly> <lrx> <lry> "
    "in.tif out.tif. World files and other files beside it are not read.",
    Code.GCPS_ONLY: "Warp it by its control points: gdalwarp -t_srs EPSG:<code> in.tif out.tif",
    Code.ABSURD_BOUNDS: "Correct the CRS (gdal_edit.py -a_srs) or the position (gdal_edit.py -a_ullr).",
    Code.ALL_NODATA: "Send a raster with data, or correct its nodata value (gdal_edit.py -a_nodata) or mask.",
    Code.TYPE_MISMATCH: "Leave raster_type at auto, or name the type that the bands have.",
    Code.UNKNOWN_TARGET_CRS: "Name a geographic or projected CRS, such as EPSG:4326.",
    Code.UNUSABLE_GRID: "Name a target_crs that fits where the raster lies; across the antimeridian, EPSG:4326 does.",
    Code.SOURCE_CHANGED: "Submit it again when the upload has ended, and leave the file as it is until then.",
    Code.ROTATED: f"{_OURS} it is resampled to a grid that points north.",
    Code.FLIPPED: f"{_OURS} it is resampled to a grid that points north.",
    Code.NOT_TILED: f"{_OURS} it is written with blocks of 512 x 512.",
    Code.NO_OVERVIEWS: f"{_OURS} overviews are made.",
    Code.NOT_COG: f"{_OURS} it is written as a cloud-optimized GeoTIFF.",
    Code.OTHER_CRS: f"{_OURS} it is reprojected.",
    Code.UNUSABLE_NODATA: f"{_OURS} the value is left out, and all pixels count as data.",
    Code.NAN_WITHOUT_NODATA: f"{_OURS} NaN counts as no data.",
}

FIXED: Final = frozenset(code for code, how in HOW_TO_FIX.items() if how.startswith(_OURS))


def severity_of(code: Code) -> Severity:
    """Tell what becomes of a file with this finding."""
    return Severity.FIX if code in FIXED else Severity.REJECT


def finding(code: Code, what: str, where: str = WHOLE_FILE) -> Finding:
    """Tell of something that was found; what a file made too long is cut."""
    return Finding(
        code=code.value,
        severity=severity_of(code),
        what=shortened(what),
        where=shortened(where),
        how_to_fix=HOW_TO_FIX[code],
    )
