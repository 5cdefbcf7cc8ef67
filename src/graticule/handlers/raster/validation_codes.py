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
    HDF4_NOT_ACCEPTED = "hdf4_not_accepted"
    UNSAFE_ARCHIVE = "unsafe_archive"
    NESTED_ARCHIVE = "nested_archive"
    REFERS_TO_OTHER_FILES = "refers_to_other_files"
    SEVERAL_DATASETS = "several_datasets"
    UNKNOWN_VARIABLE = "unknown_variable"
    UNKNOWN_TIME = "unknown_time"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_LARGE = "too_large"
    TOO_MANY_PIXELS = "too_many_pixels"
    TOO_MANY_BANDS = "too_many_bands"
    BLOCK_TOO_LARGE = "block_too_large"
    DECOMPRESSION_BOMB = "decompression_bomb"
    COMPLEX_TYPE = "complex_type"
    UNSUPPORTED_TYPE = "unsupported_type"
    NO_CRS = "no_crs"
    UNSUPPORTED_CRS = "unsupported_crs"
    OTHER_BODY = "other_body"
    NO_GEOTRANSFORM = "no_geotransform"
    RPC_ONLY = "rpc_only"
    ABSURD_BOUNDS = "absurd_bounds"
    ALL_NODATA = "all_nodata"
    TYPE_MISMATCH = "type_mismatch"
    UNKNOWN_SOURCE_CRS = "unknown_source_crs"
    UNFIT_NODATA = "unfit_nodata"
    UNKNOWN_TARGET_CRS = "unknown_target_crs"
    UNUSABLE_GRID = "unusable_grid"
    SOURCE_CHANGED = "source_changed"
    OUTSIDE_AREA_OF_USE = "outside_area_of_use"
    GCPS_ONLY = "gcps_only"
    WARPED_BY_RPCS = "warped_by_rpcs"
    ROTATED = "rotated"
    FLIPPED = "flipped"
    NOT_TILED = "not_tiled"
    NO_OVERVIEWS = "no_overviews"
    NOT_COG = "not_cog"
    OTHER_CRS = "other_crs"
    UNUSABLE_NODATA = "unusable_nodata"
    NAN_WITHOUT_NODATA = "nan_without_nodata"


_NO_ACTION: Final = "No action needed: Graticule"

HOW_TO_FIX: Final[dict[Code, str]] = {
    Code.NOT_FOUND: "Upload the file, or correct its container and name.",
    Code.EMPTY_FILE: "Upload the file again: it has no bytes.",
    Code.NOT_A_RASTER: "Send a GeoTIFF, JPEG 2000, NetCDF, HDF5, GRIB, Erdas Imagine, ASCII grid or GeoPackage file, "
    "or one with its .hdr, world file or .prj in a zip archive.",
    Code.VRT_NOT_ACCEPTED: "Send the pixels themselves: gdal_translate in.vrt out.tif",
    Code.ARCHIVE_NOT_ACCEPTED: "Unpack it, and send the raster itself, or a zip archive of it.",
    Code.HDF4_NOT_ACCEPTED: "Graticule cannot read HDF4. Convert one of its rasters with a GDAL that can: "
    "gdal_translate HDF4_EOS:… out.tif",
    Code.UNSAFE_ARCHIVE: "Pack the files themselves, without folders above, links or passwords.",
    Code.NESTED_ARCHIVE: "Unpack the archives inside it, and pack their files.",
    Code.REFERS_TO_OTHER_FILES: "Send one file that contains everything: gdal_translate in out.tif",
    Code.SEVERAL_DATASETS: "Choose one with processing_options.variable.",
    Code.UNKNOWN_VARIABLE: "Correct processing_options.variable, or leave it out if the file holds one raster.",
    Code.UNKNOWN_TIME: "Correct processing_options.time, or leave it out to keep all steps as bands.",
    Code.TRUNCATED: "Upload the file again, and compare its size and checksum with those of the original.",
    Code.CORRUPT: "Export the file again from its source, or upload it again if the original can be read.",
    Code.TOO_LARGE: "Split the raster into several files.",
    Code.TOO_MANY_PIXELS: "Crop the parts without data, split the raster into several files, or choose a target_crs in "
    "which it does not lie askew.",
    Code.TOO_MANY_BANDS: "Choose one variable or time step with processing_options.variable or "
    "processing_options.time, or split the bands across several files: gdal_translate -b 1 -b 2 … in.tif out.tif",
    Code.BLOCK_TOO_LARGE: "Write it with tiles: gdal_translate -co TILED=YES in.tif out.tif",
    Code.DECOMPRESSION_BOMB: "Crop the parts without data, or split the raster into several files.",
    Code.COMPLEX_TYPE: "Send amplitude and phase, or the real and imaginary parts, as separate bands of a real type.",
    Code.UNSUPPORTED_TYPE: "Convert all bands to one type: gdal_translate -ot Int32 (or Float64) in.tif out.tif",
    Code.NO_CRS: "Set processing_options.source_crs, such as EPSG:4326, or the CRS in the file itself: "
    "gdal_edit.py -a_srs EPSG:<code> in.tif",
    Code.UNSUPPORTED_CRS: "Use a geographic or projected CRS: gdalwarp -t_srs EPSG:<code> in.tif out.tif",
    Code.OTHER_BODY: "Send data of the Earth. If this is the Earth, correct the CRS: gdal_edit.py -a_srs EPSG:<code>",
    Code.NO_GEOTRANSFORM: "Georeference the file itself: gdal_translate -a_ullr <ulx> <uly> <lrx> <lry> "
    "in.tif out.tif, or send it in a zip archive with its world file.",
    Code.RPC_ONLY: "Set processing_options.rpc_height to the height of the terrain in metres, or orthorectify it: "
    "gdalwarp -rpc -to RPC_DEM=dem.tif in.tif out.tif",
    Code.ABSURD_BOUNDS: "Correct the CRS (gdal_edit.py -a_srs) or the position (gdal_edit.py -a_ullr).",
    Code.ALL_NODATA: "Send a raster with data, or correct its nodata value (gdal_edit.py -a_nodata) or mask.",
    Code.TYPE_MISMATCH: "Leave raster_type at auto, or choose the type that matches the bands.",
    Code.UNKNOWN_SOURCE_CRS: "Set processing_options.source_crs to a geographic or projected CRS, such as EPSG:4326.",
    Code.UNFIT_NODATA: "Set processing_options.nodata to a value that the pixels can have, or leave it out.",
    Code.UNKNOWN_TARGET_CRS: "Choose a geographic or projected CRS, such as EPSG:4326.",
    Code.UNUSABLE_GRID: "Choose a target_crs that suits the location; EPSG:4326 works across the antimeridian.",
    Code.SOURCE_CHANGED: "Submit it again once the upload is complete, and leave the file unchanged until then.",
    Code.OUTSIDE_AREA_OF_USE: "Check that the raster is in the right place on the map. If not, correct its CRS.",
    Code.UNUSABLE_NODATA: f"{_NO_ACTION} drops the value and treats all pixels as data.",
    Code.NAN_WITHOUT_NODATA: f"{_NO_ACTION} treats NaN as nodata.",
    Code.GCPS_ONLY: f"{_NO_ACTION} warps the image by its control points.",
    Code.WARPED_BY_RPCS: f"{_NO_ACTION} orthorectifies it for that height.",
    Code.ROTATED: f"{_NO_ACTION} resamples it to a north-up grid.",
    Code.FLIPPED: f"{_NO_ACTION} writes it north-up.",
    Code.NOT_TILED: f"{_NO_ACTION} writes blocks of 512 x 512 pixels.",
    Code.NO_OVERVIEWS: f"{_NO_ACTION} builds overviews.",
    Code.NOT_COG: f"{_NO_ACTION} writes a cloud-optimized GeoTIFF.",
    Code.OTHER_CRS: f"{_NO_ACTION} reprojects it. The option resampling selects another method.",
}

WARNINGS: Final = frozenset({Code.OUTSIDE_AREA_OF_USE})
FIXES: Final = frozenset({Code.UNUSABLE_NODATA, Code.NAN_WITHOUT_NODATA})
INFORMATION: Final = frozenset(
    {
        Code.GCPS_ONLY,
        Code.WARPED_BY_RPCS,
        Code.ROTATED,
        Code.FLIPPED,
        Code.NOT_TILED,
        Code.NO_OVERVIEWS,
        Code.NOT_COG,
        Code.OTHER_CRS,
    }
)


def severity_of(code: Code) -> Severity:
    """Return what a finding with this code means for the file."""
    severities = ((WARNINGS, Severity.WARNING), (FIXES, Severity.FIX), (INFORMATION, Severity.INFO))
    return next((severity for codes, severity in severities if code in codes), Severity.REJECT)


def finding(code: Code, what: str, where: str = WHOLE_FILE) -> Finding:
    """Tell of something that was found; what a file made too long is cut."""
    return Finding(
        code=code.value,
        severity=severity_of(code),
        what=shortened(what),
        where=shortened(where),
        how_to_fix=HOW_TO_FIX[code],
    )
