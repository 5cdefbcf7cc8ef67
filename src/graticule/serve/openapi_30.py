"""OpenAPI 3.1 documents in the form of 3.0, for clients that know no other: GDAL, QGIS, OWSLib.

A keyword that 3.0 lacks is written in its words where it has some, and left out where it has none: the result may allow
more than the original, never less.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Schema = dict[str, Any]

VERSION: Final = "3.0.3"
NULL: Final[Schema] = {"type": "string", "nullable": True, "enum": [None]}  # null, and nothing else
_NOTHING: Final[Schema] = {"not": {}}
_KEYWORDS: Final = frozenset(
    {"$ref", "title", "description", "type", "format", "nullable", "enum", "default", "example", "deprecated"}
    | {"allOf", "anyOf", "oneOf", "not", "discriminator", "properties", "additionalProperties", "required"}
    | {"minProperties", "maxProperties", "items", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength"}
    | {"pattern", "multipleOf", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "readOnly", "writeOnly"}
    | {"xml", "externalDocs"}
)
_LISTS_OF_SCHEMAS: Final = ("allOf", "anyOf", "oneOf")
_OPAQUE: Final = frozenset({"example", "examples"})  # values, whatever they look like


def to_openapi_30(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of OpenAPI 3.1 as one of 3.0."""
    kept = {key: value for key, value in document.items() if key not in {"openapi", "webhooks", "jsonSchemaDialect"}}
    return {"openapi": VERSION, **_convert(kept)}


def _convert(value: Any) -> Any:
    """Convert the schemas in a part of a document that is no schema itself."""
    if isinstance(value, list):
        return [_convert(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _convert_member(key, each) for key, each in value.items()}


def _convert_member(key: str, value: Any) -> Any:
    if key in _OPAQUE or key.startswith("x-"):
        return value
    if key == "schema":
        return _schema(value)
    if key == "schemas":
        return {name: _schema(each) for name, each in value.items()}
    return _convert(value)


def _schema(schema: Any) -> Schema:
    if isinstance(schema, bool):
        return {} if schema else _NOTHING
    made = dict(schema)
    if "patternProperties" in made and made.get("additionalProperties") is False:
        del made["additionalProperties"]
    for step in _STEPS:
        made = step(made)
    return {key: value for key, value in made.items() if key in _KEYWORDS or key.startswith("x-")}


def _with_inner_schemas(schema: Schema) -> Schema:
    made = dict(schema)
    for key in _LISTS_OF_SCHEMAS:
        if key in made:
            made[key] = [_schema(each) for each in made[key]]
    if "properties" in made:
        made["properties"] = {name: _schema(each) for name, each in made["properties"].items()}
    if "not" in made:
        made["not"] = _schema(made["not"])
    if isinstance(made.get("additionalProperties"), dict):
        made["additionalProperties"] = _schema(made["additionalProperties"])
    return made


def _with_one_type(schema: Schema) -> Schema:
    """Write `null` among the types as `nullable`, and several types as alternatives."""
    types = schema.get("type")
    if types == "null":
        return {**schema, **NULL}
    if not isinstance(types, list):
        return schema
    kept = [each for each in types if each != "null"]
    rest = {key: value for key, value in schema.items() if key != "type"}
    nullable = {"nullable": True} if "null" in types else {}
    if len(kept) == 1:
        return {**rest, "type": kept[0], **nullable}
    if not kept:
        return {**rest, **NULL}
    # With `anyOf` of its own, both have to hold.
    alternatives = {"anyOf": [{"type": each, **nullable} for each in kept]}
    return {**rest, "allOf": [*rest.get("allOf", ()), alternatives]} if "anyOf" in rest else {**rest, **alternatives}


def _with_nullable_alternative(schema: Schema) -> Schema:
    """Write "this or null" as one nullable schema, if it has a type: beside a reference `nullable` means nothing."""
    for key in ("anyOf", "oneOf"):
        alternatives = schema.get(key, [])
        others = [each for each in alternatives if each != NULL]
        if len(others) == 1 < len(alternatives) and "type" in others[0]:
            rest = {name: value for name, value in schema.items() if name != key}
            return {**others[0], **rest, "nullable": True}
    return schema


def _with_enum(schema: Schema) -> Schema:
    """Write `const` as an enumeration of one; what is nullable has null among its values."""
    made = {key: value for key, value in schema.items() if key != "const"}
    if "const" in schema:
        made["enum"] = [schema["const"]]
    if made.get("nullable") and "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made


def _with_inclusive_bounds(schema: Schema) -> Schema:
    """Write an exclusive bound as a bound, and a flag that it is exclusive."""
    made = dict(schema)
    stricter: dict[str, Callable[..., Any]] = {"minimum": max, "maximum": min}
    for bound, strictest in stricter.items():
        flag = f"exclusive{bound.capitalize()}"
        limit = made.get(flag)
        if limit is None or isinstance(limit, bool):  # a flag already, as of an alternative that was taken over
            continue
        made[bound] = strictest(limit, made.get(bound, limit))
        made[flag] = made[bound] == limit
    return made


def _with_items(schema: Schema) -> Schema:
    """Write a tuple as a list of what its places allow; a list says in any case of what it is."""
    made = {key: value for key, value in schema.items() if key != "prefixItems"}
    places = [_schema(each) for each in schema.get("prefixItems", ())]
    more = made.get("items")
    if places and more is False:
        made["maxItems"] = min(len(places), made.get("maxItems", len(places)))
    kinds = [*places, _schema(more)] if more not in (None, False) else places
    distinct = [kind for place, kind in enumerate(kinds) if kind not in kinds[:place]]
    if places and more is None and made.get("maxItems", len(places) + 1) > len(places):
        distinct = []  # what follows the places can be anything
    if made.get("type") == "array" or "items" in made or places:
        made["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct} if distinct else {}
    return made


def _with_example(schema: Schema) -> Schema:
    made = {key: value for key, value in schema.items() if key != "examples"}
    if isinstance(examples := schema.get("examples"), list) and examples:
        made.setdefault("example", examples[0])
    return made


def _with_format(schema: Schema) -> Schema:
    """Write an encoding of text as a format."""
    made = {key: value for key, value in schema.items() if key not in {"contentEncoding", "contentMediaType"}}
    if schema.get("contentEncoding") in {"base64", "base64url"}:
        made.setdefault("format", "byte")
    elif "contentMediaType" in schema:
        made.setdefault("format", "binary")
    return made


def _with_reference_alone(schema: Schema) -> Schema:
    """Set a reference apart from what stands beside it, which 3.0 ignores."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return {**rest, "allOf": [{"$ref": schema["$ref"]}, *rest.get("allOf", ())]}


_STEPS: Final[tuple[Callable[[Schema], Schema], ...]] = (
    _with_inner_schemas,
    _with_one_type,
    _with_nullable_alternative,
    _with_enum,
    _with_inclusive_bounds,
    _with_items,
    _with_example,
    _with_format,
    _with_reference_alone,
)
