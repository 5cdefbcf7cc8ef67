"""What can be wrong with a file of features, and how each is mended. What rasters have too has the same code."""

from enum import StrEnum
from typing import Final

from graticule.core.validation import shortened
from graticule.handlers.findings import Finding, Rejected, Severity

WHOLE_FILE: Final = "file"


class Code(StrEnum):
    """What was found."""

    NOT_FOUND = "not_found"
    UNUSABLE_NAME = "unusable_name"
    EMPTY_FILE = "empty_file"
    NOT_A_VECTOR = "not_a_vector"
    CORRUPT = "corrupt"
    UNFINISHED = "unfinished"
    LINKED_CRS = "linked_crs"
    UNSAFE_ARCHIVE = "unsafe_archive"
    NESTED_ARCHIVE = "nested_archive"
    DECOMPRESSION_BOMB = "decompression_bomb"
    MISSING_PART = "missing_part"
    UNKNOWN_ENCODING = "unknown_encoding"
    NO_COORDINATES = "no_coordinates"
    TOO_LARGE_FILE = "too_large_file"
    NO_LAYER = "no_layer"
    SEVERAL_LAYERS = "several_layers"
    UNKNOWN_LAYER = "unknown_layer"
    NOT_A_TABLE = "not_a_table"
    NO_GEOMETRY = "no_geometry"
    NO_FEATURES = "no_features"
    NO_CRS = "no_crs"
    UNKNOWN_SOURCE_CRS = "unknown_source_crs"
    ABSURD_BOUNDS = "absurd_bounds"
    UNSUPPORTED_GEOMETRY = "unsupported_geometry"
    TOO_MANY_FIELDS = "too_many_fields"
    TOO_LARGE_FEATURE = "too_large_feature"
    NOT_UTF8 = "not_utf8"
    MISREAD_ESCAPE = "misread_escape"
    UNFIT_VALUE = "unfit_value"
    UNKNOWN_TARGET_CRS = "unknown_target_crs"
    SOURCE_CHANGED = "source_changed"
    # What is mended on the way.
    INVALID_GEOMETRIES = "invalid_geometries"
    EMPTY_GEOMETRIES = "empty_geometries"
    MIXED_GEOMETRIES = "mixed_geometries"
    MIXED_DIMENSIONS = "mixed_dimensions"
    ACROSS_ANTIMERIDIAN = "across_antimeridian"
    SWAPPED_AXES = "swapped_axes"
    OTHER_CRS = "other_crs"
    OTHER_ENCODING = "other_encoding"
    MIXED_ZONES = "mixed_zones"
    RENAMED_COLUMNS = "renamed_columns"


_OURS: Final = "Nothing is to be done:"

HOW_TO_FIX: Final[dict[Code, str]] = {
    Code.NOT_FOUND: "Upload the file, or correct its container and name.",
    Code.UNUSABLE_NAME: "Unpack an archive, and name the file with letters, digits, '-', '_' and '.' alone.",
    Code.EMPTY_FILE: "Upload the file again: it has no bytes.",
    Code.NOT_A_VECTOR: "Send a GeoPackage, zipped Shapefile, GeoJSON, FlatGeobuf, GeoParquet, KML or CSV file.",
    Code.CORRUPT: "Make the file anew from its origin, or upload it again if `ogrinfo` can read the original.",
    Code.UNFINISHED: "Close the program that has the file open, delete what it left beside it, and upload it again.",
    Code.LINKED_CRS: "Write the coordinates in degrees (EPSG:4326) and leave the crs out, as RFC 7946 has it.",
    Code.UNSAFE_ARCHIVE: "Pack the files themselves, without folders above, links or passwords.",
    Code.NESTED_ARCHIVE: "Unpack the archives that are in it, and pack their files.",
    Code.DECOMPRESSION_BOMB: "Send less in an archive, or the file itself.",
    Code.MISSING_PART: "Put all files of the Shapefile into the archive: .shp, .shx, .dbf and .prj, of one name.",
    Code.UNKNOWN_ENCODING: "Name the encoding of the texts in processing_options.encoding, such as CP1252 or UTF-8.",
    Code.NO_COORDINATES: "Name the columns in processing_options: x_column and y_column, or wkt_column.",
    Code.TOO_LARGE_FILE: "Send it as a GeoPackage or FlatGeobuf: ogr2ogr out.gpkg in",
    Code.NO_LAYER: "Send a file with a layer of features.",
    Code.SEVERAL_LAYERS: "Name one of them in processing_options.layer, or send one file for each.",
    Code.UNKNOWN_LAYER: "Correct processing_options.layer; `ogrinfo` lists the layers.",
    Code.NOT_A_TABLE: "Write the rows of the view into a table: ogr2ogr out.gpkg in.gpkg <layer>",
    Code.NO_GEOMETRY: "Send features that have a geometry.",
    Code.NO_FEATURES: "Send at least one feature that has a geometry.",
    Code.NO_CRS: "Name it in processing_options.source_crs, such as EPSG:4326, or in the file itself: ogr2ogr -a_srs",
    Code.ABSURD_BOUNDS: "Name the CRS that the coordinates have: ogr2ogr -a_srs EPSG:<code> out.gpkg in.gpkg",
    Code.UNKNOWN_SOURCE_CRS: "Name a CRS for maps by its code: processing_options.source_crs or ogr2ogr -a_srs EPSG:…",
    Code.UNSUPPORTED_GEOMETRY: "Make lines of curves: ogr2ogr -nlt CONVERT_TO_LINEAR out.gpkg in.gpkg",
    Code.TOO_MANY_FIELDS: "Leave out what is not needed: ogr2ogr -select <fields> out.gpkg in.gpkg",
    Code.TOO_LARGE_FEATURE: "Divide it: ogr2ogr -explodecollections out.gpkg in.gpkg",
    Code.NOT_UTF8: "Write all texts in UTF-8.",
    Code.MISREAD_ESCAPE: (
        "Write characters as they are and not as \\u escapes, in Python by json.dumps(…, ensure_ascii=False), "
        "and leave out U+0000 and halves of characters."
    ),
    Code.UNFIT_VALUE: "Correct the value in the file: dates are of the years 1 to 9999, and decimals below 10^20.",
    Code.UNKNOWN_TARGET_CRS: "Name a geographic or projected CRS by its code, such as EPSG:4326.",
    Code.SOURCE_CHANGED: "Submit it again when the upload has ended, and leave the file as it is until then.",
    Code.INVALID_GEOMETRIES: f"{_OURS} they are repaired. See them with ST_IsValidReason or QGIS's topology checker.",
    Code.EMPTY_GEOMETRIES: f"{_OURS} they are kept without a place. Leave out the features if they are mistakes.",
    Code.MIXED_GEOMETRIES: f"{_OURS} the column takes all types. Maps style one type better: send a layer for each.",
    Code.MIXED_DIMENSIONS: f"{_OURS} what has no height gets 0. Send all features with heights, or none.",
    Code.ACROSS_ANTIMERIDIAN: f"{_OURS} they are cut at the antimeridian, as RFC 7946 has it.",
    Code.SWAPPED_AXES: f"{_OURS} the axes are swapped. Write east before north in the file.",
    Code.OTHER_CRS: f"{_OURS} it is reprojected.",
    Code.OTHER_ENCODING: f"{_OURS} the texts become UTF-8. If they look wrong, name processing_options.encoding.",
    Code.MIXED_ZONES: f"{_OURS} they are kept as texts. Write all of a field with a zone, such as Z, or none.",
    Code.RENAMED_COLUMNS: f"{_OURS} the names that the source has are kept as comments of the columns.",
}


def fixed(code: Code, what: str, where: str = WHOLE_FILE) -> Finding:
    """Give a finding that is mended on the way."""
    return _finding(code, Severity.FIX, what, where)


def rejected(code: Code, what: str, where: str = WHOLE_FILE) -> Rejected:
    """Give the rejection of a file because of one thing."""
    return Rejected([_finding(code, Severity.REJECT, what, where)])


def _finding(code: Code, severity: Severity, what: str, where: str) -> Finding:
    return Finding(
        code=code.value,
        severity=severity,
        what=shortened(what),
        where=shortened(where),
        how_to_fix=HOW_TO_FIX[code],
    )
