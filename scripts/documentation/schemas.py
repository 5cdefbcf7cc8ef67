"""JSON Schema in words: the types of fields, and tables of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson
from scripts.documentation.markdown import anchor_of, code, table

Schema = Mapping[str, Any]
REFERENCE: Final = "/schemas/"
_BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("pattern", "matches `{}`"),
)


def name_of(reference: str) -> str:
    """Give the name of the model that a reference leads to."""
    return reference.rsplit("/", 1)[-1]


def model_anchor(name: str) -> str:
    """Give the anchor under which a page has a model."""
    return anchor_of("model", name)


def linked(name: str) -> str:
    """Name a model of the same page."""
    return f"[`{name}`](#{model_anchor(name)})"


def named(name: str) -> str:
    """Name a model that is told nowhere else."""
    return code(name)


def type_of(schema: Schema, refer: Callable[[str], str] = linked) -> str:
    """Say what a value has to be."""
    return f"{_kind(schema, refer)}{_bounds(schema)}"


def _kind(schema: Schema, refer: Callable[[str], str]) -> str:
    if "$ref" in schema:
        return refer(name_of(schema["$ref"]))
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(type_of(choice, refer) for choice in choices))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(value_of, schema.get("enum", [schema.get("const")])))
    return _plain(schema, refer)


def _plain(schema: Schema, refer: Callable[[str], str]) -> str:
    match schema.get("type"):
        case "array":
            items = schema.get("items") or schema.get("prefixItems", [{}])[0]
            return f"list of {type_of(items, refer)}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {type_of(schema['additionalProperties'], refer)}"
        case str() as kind:
            return f"{kind} ({schema['format']})" if "format" in schema else kind
    return "anything"


def _bounds(schema: Schema) -> str:
    told = [words.format(schema[name]) for name, words in _BOUNDS if name in schema]
    return (
        ", " + ", ".join(told).replace(" 1 characters", " 1 character").replace(" 1 items", " 1 item") if told else ""
    )


def value_of(value: object) -> str:
    """Write a value as JSON does, and a text as it is."""
    return code(orjson.dumps(value).decode()) if not isinstance(value, str) else code(value or '""')


def default_of(schema: Schema, *, required: bool) -> str:
    """Say what holds when nothing is given."""
    if required:
        return "required"
    return "" if schema.get("default") is None else value_of(schema["default"])


def fields_table(schema: Schema, refer: Callable[[str], str] = linked) -> str:
    """Give the fields of an object as a table."""
    return table(("field", "type", "default", "what"), _fields(schema, refer))


def _fields(schema: Schema, refer: Callable[[str], str]) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        default = default_of(each, required=name in required)
        yield code(name), type_of(each, refer), default, each.get("description", "")


def references(part: object) -> Iterator[str]:
    """Give the names of all models that something refers to."""
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str) and REFERENCE in part["$ref"]:
            yield name_of(part["$ref"])
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)
