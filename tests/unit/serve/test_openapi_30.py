"""OpenAPI 3.1 becomes 3.0 that allows the same values, and that a validator of 3.0 accepts."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

from graticule.serve.openapi import prefers_openapi_30
from graticule.serve.openapi_30 import NULL, to_openapi_30

POINT = {"$ref": "#/components/schemas/Point"}


def document(schema: Any) -> dict[str, Any]:
    """Give a document with a schema in every place that has some."""
    answer = {"description": "Fine", "content": {"application/json": {"schema": schema}}}
    parameter = {"name": "p", "in": "query", "schema": schema, "examples": {"const": {"value": {"const": 1}}}}
    operation = {"parameters": [parameter], "responses": {"200": answer, "default": answer}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "webhooks": {"w": {"get": operation}},
        "paths": {"/": {"get": {**operation, "x-const": {"const": 1}}}},
        "components": {"schemas": {"Point": {"type": "object"}, "Other": schema}},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"type": ["string", "integer", "null"]},
            {"anyOf": [{"type": "string", "nullable": True}, {"type": "integer", "nullable": True}]},
        ),
        (
            {"type": ["string", "integer"], "anyOf": [{"minLength": 1}]},
            {"anyOf": [{"minLength": 1}], "allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}]},
        ),
        ({"type": "null"}, NULL),
        ({"type": ["null"]}, NULL),
        (
            {"anyOf": [{"type": "integer", "title": "A"}, {"type": "null"}], "title": "B", "default": 1},
            {"type": "integer", "title": "B", "default": 1, "nullable": True},
        ),
        ({"anyOf": [POINT, {"type": "null"}]}, {"anyOf": [POINT, NULL]}),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            {"oneOf": [{"type": "integer"}, {"type": "string"}, NULL]},
        ),
        ({"type": "string", "const": "a"}, {"type": "string", "enum": ["a"]}),
        (
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
            {"type": "string", "nullable": True, "enum": ["a", None]},
        ),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        (
            {"anyOf": [{"type": "number", "exclusiveMaximum": 9}, {"type": "null"}]},
            {"type": "number", "maximum": 9, "exclusiveMaximum": True, "nullable": True},
        ),
        (
            {"type": "number", "minimum": 5, "exclusiveMinimum": 0},
            {"type": "number", "minimum": 5, "exclusiveMinimum": False},
        ),
        ({"type": "integer", "examples": [1, 2]}, {"type": "integer", "example": 1}),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2},
            {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": False},
            {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "maxItems": 2},
        ),
        ({"type": "array", "prefixItems": [{"type": "number"}]}, {"type": "array", "items": {}}),
        (
            {"type": "array", "prefixItems": [{"type": "number"}], "items": {"const": 1}},
            {"type": "array", "items": {"anyOf": [{"type": "number"}, {"enum": [1]}]}},
        ),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"$ref": POINT["$ref"], "description": "D"}, {"description": "D", "allOf": [POINT]}),
        ({"type": "string", "contentEncoding": "base64"}, {"type": "string", "format": "byte"}),
        ({"type": "string", "contentMediaType": "image/png"}, {"type": "string", "format": "binary"}),
        (
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False, "propertyNames": {}},
            {"type": "object"},
        ),
        # What looks like a keyword can be the name of a property, or a value.
        (
            {"type": "object", "properties": {"const": {"const": 1}, "examples": {"type": ["string", "null"]}}},
            {
                "type": "object",
                "properties": {"const": {"enum": [1]}, "examples": {"type": "string", "nullable": True}},
            },
        ),
        ({"type": "object", "default": {"const": 1}, "exemples": []}, {"type": "object", "default": {"const": 1}}),
        (
            {"type": "object", "additionalProperties": {"const": 1}, "not": {"const": 2}},
            {"type": "object", "additionalProperties": {"enum": [1]}, "not": {"enum": [2]}},
        ),
        (True, {}),
        (False, {"not": {}}),
    ],
)
def test_a_schema_of_3_1_means_the_same_in_3_0(schema: Any, expected: Any) -> None:
    given = document(schema)
    OpenAPIV31SpecValidator(given).validate()
    made = to_openapi_30(given)
    OpenAPIV30SpecValidator(made).validate()
    operation = made["paths"]["/"]["get"]
    places = [operation["parameters"][0]["schema"], made["components"]["schemas"]["Other"]]
    places += [each["content"]["application/json"]["schema"] for each in operation["responses"].values()]
    assert places == [expected] * 4
    assert operation["parameters"][0]["examples"] == {"const": {"value": {"const": 1}}}
    assert operation["x-const"] == {"const": 1}
    assert made["openapi"] == "3.0.3"
    assert given == document(schema), "the original stays as it is"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/vnd.oai.openapi+json;version=3.0", True),
        ("application/vnd.oai.openapi+json; version=3.0", True),
        ("application/vnd.oai.openapi+json;version=3.0.3;q=0.5", True),
        ("application/openapi+json;version=3.0", True),
        ("application/vnd.oai.openapi+json;version=3.1", False),
        ("application/vnd.oai.openapi+json", False),
        ("application/vnd.oai.openapi+json;version=3.0;q=0", False),
        ("application/vnd.oai.openapi+json;version=3.1, application/vnd.oai.openapi+json;version=3.0", False),
        # As GDAL asks.
        ("application/vnd.oai.openapi+json;version=3.0, application/openapi+json;version=3.0, application/json", True),
    ],
)
def test_the_version_is_the_one_that_is_accepted(accept: str, expected: bool) -> None:
    assert prefers_openapi_30(accept) is expected
