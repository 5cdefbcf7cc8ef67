"""What can be wrong with a file of features, and how each is mended. What rasters have too has the same code."""

from enum import StrEnum
from typing import Final

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
    NO_LAYER = "no_layer"
    SEVERAL_LAYERS = "several_layers"
    UNKNOWN_LAYER = "unknown_layer"
    NOT_A_TABLE = "not_a_table"
    NO_GEOMETRY = "no_geometry"
    NO_FEATURES = "no_features"
    NO_CRS = "no_crs"
    ABSURD_BOUNDS = "absurd_bounds"
    TOO_MANY_FIELDS = "too_many_fields"
    TOO_LARGE_FEATURE = "too_large_feature"
    NOT_UTF8 = "not_utf8"
    UNFIT_VALUE = "unfit_value"
    UNKNOWN_TARGET_CRS = "unknown_target_crs"
    SOURCE_CHANGED = "source_changed"


HOW_TO_FIX: Final[dict[Code, str]] = {
    Code.NOT_FOUND: "Upload the file, or correct its container and name.",
    Code.UNUSABLE_NAME: "Unpack an archive, and name the file with letters, digits, '-', '_' and '.' alone.",
    Code.EMPTY_FILE: "Upload the file again: it has no bytes.",
    Code.NOT_A_VECTOR: "Send a GeoPackage, FlatGeobuf or GeoJSON file.",
    Code.CORRUPT: "Make the file anew from its origin, or upload it again if `ogrinfo` can read the original.",
    Code.UNFINISHED: "Close the program that has the file open, delete what it left beside it, and upload it again.",
    Code.LINKED_CRS: "Write the coordinates in degrees (EPSG:4326) and leave the crs out, as RFC 7946 has it.",
    Code.NO_LAYER: "Send a file with a layer of features.",
    Code.SEVERAL_LAYERS: "Name one of them in processing_options.layer, or send one file for each.",
    Code.UNKNOWN_LAYER: "Correct processing_options.layer; `ogrinfo` lists the layers.",
    Code.NOT_A_TABLE: "Write the rows of the view into a table: ogr2ogr out.gpkg in.gpkg <layer>",
    Code.NO_GEOMETRY: "Send features that have a geometry.",
    Code.NO_FEATURES: "Send at least one feature that has a geometry.",
    Code.NO_CRS: "Name the CRS in the file itself: ogr2ogr -a_srs EPSG:<code> out.gpkg in.gpkg",
    Code.ABSURD_BOUNDS: "Name the CRS that the coordinates have: ogr2ogr -a_srs EPSG:<code> out.gpkg in.gpkg",
    Code.TOO_MANY_FIELDS: "Leave out what is not needed: ogr2ogr -select <fields> out.gpkg in.gpkg",
    Code.TOO_LARGE_FEATURE: "Divide it: ogr2ogr -explodecollections out.gpkg in.gpkg",
    Code.NOT_UTF8: "Write all texts in UTF-8.",
    Code.UNFIT_VALUE: "Correct the value in the file; dates are between the years 1 and 9999.",
    Code.UNKNOWN_TARGET_CRS: "Name a geographic or projected CRS by its code, such as EPSG:4326.",
    Code.SOURCE_CHANGED: "Submit it again when the upload has ended, and leave the file as it is until then.",
}


def rejected(code: Code, what: str, where: str = WHOLE_FILE) -> Rejected:
    """Give the rejection of a file because of one thing."""
    told = Finding(
        code=code.value, severity=Severity.REJECT, what=what[:500], where=where[:500], how_to_fix=HOW_TO_FIX[code]
    )
    return Rejected([told])
