"""What can be wrong with a file of features, and how each is mended. What rasters have too has the same code."""

from collections.abc import Iterator
from contextlib import contextmanager
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
    UNSUPPORTED_VERSION = "unsupported_version"
    CORRUPT = "corrupt"
    UNFINISHED = "unfinished"
    LINKED_CRS = "linked_crs"
    UNSAFE_ARCHIVE = "unsafe_archive"
    NESTED_ARCHIVE = "nested_archive"
    DECOMPRESSION_BOMB = "decompression_bomb"
    MISSING_PART = "missing_part"
    UNKNOWN_ENCODING = "unknown_encoding"
    NO_COORDINATES = "no_coordinates"
    UNREADABLE_ROW = "unreadable_row"
    TOO_LARGE_FILE = "too_large_file"
    NO_LAYER = "no_layer"
    SEVERAL_LAYERS = "several_layers"
    UNKNOWN_LAYER = "unknown_layer"
    TOO_MANY_LAYERS = "too_many_layers"
    NOT_A_TABLE = "not_a_table"
    NO_GEOMETRY = "no_geometry"
    NO_FEATURES = "no_features"
    NO_CRS = "no_crs"
    UNKNOWN_SOURCE_CRS = "unknown_source_crs"
    ABSURD_BOUNDS = "absurd_bounds"
    OTHER_BODY = "other_body"
    UNSUPPORTED_GEOMETRY = "unsupported_geometry"
    TOO_MANY_FIELDS = "too_many_fields"
    TOO_LARGE_FEATURE = "too_large_feature"
    GEOMETRY_TOO_COMPLEX = "geometry_too_complex"
    NOT_UTF8 = "not_utf8"
    MISREAD_ESCAPE = "misread_escape"
    UNFIT_VALUE = "unfit_value"
    UNKNOWN_TARGET_CRS = "unknown_target_crs"
    SOURCE_CHANGED = "source_changed"
    # What is mended on the way.
    INVALID_GEOMETRIES = "invalid_geometries"
    CURVED_GEOMETRIES = "curved_geometries"
    CURVED_EDGES = "curved_edges"
    UNCLOSED_RINGS = "unclosed_rings"
    SHORT_RINGS = "short_rings"
    FLAT_GEOMETRIES = "flat_geometries"
    EMPTY_GEOMETRIES = "empty_geometries"
    MIXED_GEOMETRIES = "mixed_geometries"
    MIXED_DIMENSIONS = "mixed_dimensions"
    ACROSS_ANTIMERIDIAN = "across_antimeridian"
    SWAPPED_AXES = "swapped_axes"
    OUTSIDE_AREA_OF_USE = "outside_area_of_use"
    OTHER_CRS = "other_crs"
    OTHER_ENCODING = "other_encoding"
    MIXED_ZONES = "mixed_zones"
    RENAMED_COLUMNS = "renamed_columns"
    MERGED_LAYERS = "merged_layers"
    MIXED_TYPES = "mixed_types"


_OURS: Final = "No action needed:"

HOW_TO_FIX: Final[dict[Code, str]] = {
    Code.NOT_FOUND: "Upload the file, or correct the container and file name of the submission.",
    Code.UNUSABLE_NAME: "Rename the file: only letters, digits, '-', '_' and '.', and .zip only for a zip archive.",
    Code.EMPTY_FILE: "Upload the file again: it contains no bytes.",
    Code.NOT_A_VECTOR: "Convert it to a supported format, for example a GeoPackage: ogr2ogr out.gpkg in",
    Code.UNSUPPORTED_VERSION: "Convert it with a current version of the program that wrote it: ogr2ogr out.gpkg in",
    Code.CORRUPT: "Check the original with `ogrinfo`. If it opens, upload it again; otherwise export it again.",
    Code.UNFINISHED: "Close the program that has the file open, delete its journal files, and upload it again.",
    Code.LINKED_CRS: "Write the coordinates in EPSG:4326 and remove the crs member, as in RFC 7946.",
    Code.UNSAFE_ARCHIVE: "Create a plain zip archive: relative paths, no links, no password, deflate compression.",
    Code.NESTED_ARCHIVE: "Extract the inner archives and zip their files directly.",
    Code.DECOMPRESSION_BOMB: "Put less data into one file, or upload the file without an archive.",
    Code.MISSING_PART: "Zip all files of the dataset together. A Shapefile needs .shp, .shx, .dbf and .prj.",
    Code.UNKNOWN_ENCODING: "Set processing_options.encoding to the encoding of the text, such as CP1252 or UTF-8.",
    Code.NO_COORDINATES: "Set processing_options.x_column and y_column, or wkt_column.",
    Code.UNREADABLE_ROW: (
        "Correct the row: as many values as the header has, quotation marks around values that contain the delimiter. "
        "If another column has the coordinates, set processing_options.x_column and y_column, or wkt_column."
    ),
    Code.TOO_LARGE_FILE: "Convert it to a GeoPackage or FlatGeobuf: ogr2ogr out.gpkg in",
    Code.NO_LAYER: "Send a file with a vector layer. Send rasters with data_type raster.",
    Code.SEVERAL_LAYERS: "Set processing_options.layer to one of them, or processing_options.layers to `all`.",
    Code.UNKNOWN_LAYER: "Correct processing_options.layer, or set processing_options.layers to `all`.",
    Code.TOO_MANY_LAYERS: "Set processing_options.layer to one of them, or split the file.",
    Code.NOT_A_TABLE: "Export the view as a table: ogr2ogr out.gpkg in.gpkg <layer>",
    Code.NO_GEOMETRY: "Send a layer whose features have geometries.",
    Code.NO_FEATURES: "Send at least one feature that has a geometry.",
    Code.NO_CRS: "Set processing_options.source_crs, such as EPSG:4326, or add the CRS to the file: ogr2ogr -a_srs",
    Code.ABSURD_BOUNDS: "Set processing_options.source_crs to the CRS that the coordinates are really in.",
    Code.OTHER_BODY: "Send data of the Earth. If it is, set processing_options.source_crs to its CRS.",
    Code.UNKNOWN_SOURCE_CRS: "Set processing_options.source_crs to the EPSG code of a geographic or projected CRS.",
    Code.UNSUPPORTED_GEOMETRY: "Convert surfaces to polygons: ogr2ogr -nlt MULTIPOLYGON out.gpkg in.gpkg",
    Code.TOO_MANY_FIELDS: "Keep only the fields you need: ogr2ogr -select <fields> out.gpkg in.gpkg",
    Code.TOO_LARGE_FEATURE: "Split the feature: ogr2ogr -explodecollections out.gpkg in.gpkg",
    Code.GEOMETRY_TOO_COMPLEX: (
        "Repair the feature before you send it (ST_MakeValid, or Fix geometries in QGIS), simplify it, or split it "
        "into several features."
    ),
    Code.NOT_UTF8: "Export the file with UTF-8 text.",
    Code.MISREAD_ESCAPE: (
        "Write characters directly instead of as \\u escapes, in Python with json.dumps(…, ensure_ascii=False), "
        "and remove U+0000 and unpaired surrogates."
    ),
    Code.UNFIT_VALUE: (
        "Correct the value in the file: dates must be in the years 1 to 9999, decimals below 10^20, "
        "texts up to 10,000,000 characters."
    ),
    Code.UNKNOWN_TARGET_CRS: "Set target_crs to the EPSG code of a geographic or projected CRS, such as EPSG:4326.",
    Code.SOURCE_CHANGED: "Submit the file again after the upload is complete, and do not change it until then.",
    Code.INVALID_GEOMETRIES: f"{_OURS} Graticule repairs them. Inspect them with ST_IsValidReason or in QGIS.",
    Code.CURVED_GEOMETRIES: f"{_OURS} Graticule replaces arcs by line segments of about 4 degrees, as GDAL does.",
    Code.CURVED_EDGES: "Add vertices to long edges if their course matters: Graticule draws edges as straight lines.",
    Code.UNCLOSED_RINGS: f"{_OURS} Graticule closes the rings.",
    Code.SHORT_RINGS: f"{_OURS} Graticule leaves out these rings and lines, and keeps the features.",
    Code.FLAT_GEOMETRIES: (
        "Correct the features if they are mistakes, and submit the file again. "
        "Graticule keeps a geometry that is flat as a whole, and leaves out the flat parts of others."
    ),
    Code.EMPTY_GEOMETRIES: f"{_OURS} Graticule keeps the features without a geometry. Remove them if unwanted.",
    Code.MIXED_GEOMETRIES: f"{_OURS} the table accepts all types. One layer per type is easier to style.",
    Code.MIXED_DIMENSIONS: f"{_OURS} Graticule sets missing heights to 0. Send heights for all features or none.",
    Code.ACROSS_ANTIMERIDIAN: f"{_OURS} Graticule splits them at the antimeridian, as in RFC 7946.",
    Code.SWAPPED_AXES: f"{_OURS} Graticule swaps the axes. Write x (east) before y (north) in the file.",
    Code.OUTSIDE_AREA_OF_USE: (
        "Check the position on the map: Graticule publishes the layer where its CRS puts it. "
        "If that is wrong, set processing_options.source_crs to the CRS that the coordinates are really in."
    ),
    Code.OTHER_CRS: f"{_OURS} Graticule reprojects it.",
    Code.OTHER_ENCODING: f"{_OURS} Graticule converts the text. If it looks wrong, set processing_options.encoding.",
    Code.MIXED_ZONES: f"{_OURS} Graticule keeps them as text. Write all values of a field with a zone, or none.",
    Code.RENAMED_COLUMNS: f"{_OURS} the original names are kept as column comments.",
    Code.MERGED_LAYERS: f"{_OURS} a column names the layer of each row. To load one, set processing_options.layer.",
    Code.MIXED_TYPES: f"{_OURS} Graticule stores the values as text. Use one type for a field in all layers.",
}

# The severity of each code that does not reject the file and is not a repair of its content.
WARNINGS: Final = frozenset({Code.OUTSIDE_AREA_OF_USE, Code.FLAT_GEOMETRIES, Code.CURVED_EDGES})
INFORMATION: Final = frozenset(
    {
        Code.OTHER_CRS,
        Code.OTHER_ENCODING,
        Code.MERGED_LAYERS,
        Code.MIXED_GEOMETRIES,
        Code.MIXED_TYPES,
        Code.RENAMED_COLUMNS,
    }
)


def severity_of(code: Code) -> Severity:
    """Return what a finding with this code means for the file."""
    if code in WARNINGS:
        return Severity.WARNING
    if code in INFORMATION:
        return Severity.INFO
    return Severity.FIX if HOW_TO_FIX[code].startswith(_OURS) else Severity.REJECT


def finding(code: Code, what: str, where: str = WHOLE_FILE) -> Finding:
    """Return a finding; its code says how serious it is."""
    return Finding(
        code=code.value,
        severity=severity_of(code),
        what=shortened(what),
        where=shortened(where),
        how_to_fix=HOW_TO_FIX[code],
    )


def rejected(code: Code, what: str, where: str = WHOLE_FILE) -> Rejected:
    """Give the rejection of a file because of one thing."""
    return Rejected([finding(code, what, where)])


@contextmanager
def naming_layer(name: str) -> Iterator[None]:
    """Let a rejection tell in which of several layers something was found."""
    try:
        yield
    except Rejected as told:
        layer = f"layer {name}"
        named = [
            each if layer in each.where else each.model_copy(update={"where": _within(layer, each.where)})
            for each in told.findings
        ]
        raise Rejected(named, told.facts) from told


def _within(layer: str, where: str) -> str:
    return layer if where == WHOLE_FILE else shortened(f"{layer}, {where}")
