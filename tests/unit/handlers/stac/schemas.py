"""The rules of the STAC extensions that our items use, and a validator that asks nobody for schemas.

The core's schemas come with pystac. No package carries those of the extensions, so their rules are stated here, as far
as our items are concerned. With STAC_EXTENSION_SCHEMAS, a folder of `projection.json`, `raster.json`, `table.json`,
`file.json` and `processing.json` as their authors publish them, the same tests run against those.
"""

import json
import os
from pathlib import Path
from typing import Any

from pystac.validation.stac_validator import JsonSchemaSTACValidator

VERSIONS = {
    "projection": "v2.0.0",
    "raster": "v1.1.0",
    "table": "v1.2.0",
    "file": "v2.1.0",
    "processing": "v1.2.0",
}
DRAFT = "http://json-schema.org/draft-07/schema#"
NUMBER = {"type": "number"}
TYPES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 cint16 cint32 cfloat32 cfloat64 other"
)


def only(prefix: str, **fields: Any) -> dict[str, Any]:
    """State which fields with a prefix there are; those of others are not our business."""
    return {
        "type": "object",
        "properties": {f"{prefix}:{name}": rule for name, rule in fields.items()},
        "patternProperties": {f"^(?!{prefix}:)": True},
        "additionalProperties": False,
    }


def numbers(*lengths: int, kind: str = "number") -> dict[str, Any]:
    """State a list of numbers."""
    sizes = [{"minItems": length, "maxItems": length} for length in lengths]
    return {"type": "array", "items": {"type": kind}, "oneOf": sizes}


TEXT_OR_NULL = {"type": ["string", "null"]}
PROJECTION = only(
    "proj",
    code=TEXT_OR_NULL,
    wkt2=TEXT_OR_NULL,
    geometry={"$ref": "https://geojson.org/schema/Geometry.json"},
    bbox=numbers(4, 6),
    shape=numbers(2, kind="integer"),
    transform=numbers(6, 9),
)
FILE = only(
    "file",
    checksum={"type": "string", "pattern": "^[a-f0-9]+$"},
    size={"type": "integer", "minimum": 0},
)
RASTER_BAND = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        "data_type": {"enum": TYPES.split()},
        "unit": {"type": "string"},
        "nodata": {"anyOf": [NUMBER, {"enum": ["nan", "inf", "-inf"]}]},
        "scale": NUMBER,
        "offset": NUMBER,
        "statistics": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": dict.fromkeys(("mean", "minimum", "maximum", "stddev", "valid_percent"), NUMBER),
        },
    },
}
RASTER = only("raster", bands={"type": "array", "minItems": 1, "items": RASTER_BAND})
COLUMN = {
    "type": "object",
    "required": ["name"],
    "properties": {name: {"type": "string"} for name in ("name", "description", "type")},
    "additionalProperties": False,
}
TABLE = only(
    "table",
    columns={"type": "array", "items": COLUMN},
    primary_geometry={"type": "string"},
    row_count={"type": "integer", "minimum": 0},
)
PROCESSING = only(
    "processing",
    lineage={"type": "string"},
    software={"type": "object", "additionalProperties": {"type": "string"}},
)
A_PROCESSING_FIELD = {"anyOf": [{"required": [f"processing:{name}"]} for name in ("lineage", "software")]}
RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # of properties, and of each asset
    "projection": (PROJECTION, PROJECTION),
    "raster": ({}, RASTER),
    "table": (TABLE, {}),
    "file": ({}, FILE),
    "processing": ({"allOf": [PROCESSING, A_PROCESSING_FIELD]}, PROCESSING),
}


def uri(extension: str) -> str:
    """Give the id of an extension."""
    return f"https://stac-extensions.github.io/{extension}/{VERSIONS[extension]}/schema.json"


def schema(extension: str) -> dict[str, Any]:
    """Give the schema of an extension: its authors', if there is a folder of them, or else ours."""
    if folder := os.environ.get("STAC_EXTENSION_SCHEMAS"):
        published: dict[str, Any] = json.loads((Path(folder) / f"{extension}.json").read_text())
        return published
    properties, asset = RULES[extension]
    return {
        "$schema": DRAFT,
        "$id": uri(extension),
        "type": "object",
        "required": ["stac_extensions", "type", "properties", "assets"],
        "properties": {
            "stac_extensions": {"contains": {"const": uri(extension)}},
            "type": {"const": "Feature"},
            "properties": properties,
            "assets": {"additionalProperties": asset},
        },
    }


def validator() -> JsonSchemaSTACValidator:
    """Give pystac's validator, with all schemas at hand."""
    made = JsonSchemaSTACValidator()
    published = {"https://proj.org/schemas/v0.7/projjson.schema.json": {"$schema": DRAFT}}  # of a field we do not use
    made.schema_cache |= {**published, **{uri(extension): schema(extension) for extension in VERSIONS}}
    return made
