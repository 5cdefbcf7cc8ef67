"""The OpenAPI documents of both processes: valid, complete, and honest about errors."""

import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.integration.api.documents import APPLICATIONS, application

from graticule.http.problems import MEDIA_TYPE

WITHOUT_CONTENT = {"204", "303"}
PROBES_THAT_FAIL = {"/readyz", "/health", "/api/readyz", "/api/gateway/health"}


@pytest.fixture(params=APPLICATIONS)
def app(request: pytest.FixtureRequest) -> FastAPI:
    return application(request.param)


async def document_of(app: FastAPI) -> dict[str, Any]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://process") as client:
        answer = await client.get("/openapi.json")
    assert answer.status_code == 200
    document: dict[str, Any] = json.loads(answer.content)
    return document


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(path, method): operation for path, item in document["paths"].items() for method, operation in item.items()}


def references(value: object) -> set[str]:
    match value:
        case dict():
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        case list():
            return set().union(*map(references, value))
    return set()


async def test_the_document_is_whole(app: FastAPI) -> None:
    document = await document_of(app)
    assert document["openapi"].startswith("3.")
    assert document["info"]["title"] == app.title
    schemas = {f"#/components/schemas/{name}" for name in document.get("components", {}).get("schemas", {})}
    assert references(document) <= schemas
    identifiers = [operation["operationId"] for operation in operations(document).values()]
    assert len(identifiers) == len(set(identifiers))
    assert all(operation.get("summary") for operation in operations(document).values())


async def test_every_operation_documents_its_answer_and_its_errors(app: FastAPI) -> None:
    for where, operation in operations(await document_of(app)).items():
        responses: dict[str, Any] = operation["responses"]
        answers = [status for status in responses if status.startswith("2") and responses[status].get("content")]
        assert answers or WITHOUT_CONTENT & set(responses), where
        assert "default" in responses or any(status >= "400" for status in responses), where


async def test_every_body_that_is_sent_has_an_example(app: FastAPI) -> None:
    document = await document_of(app)
    bodies = {key: each["requestBody"] for key, each in operations(document).items() if "requestBody" in each}
    assert [key for key, body in bodies.items() if not has_example(body, document)] == []


def has_example(value: object, document: dict[str, Any], passed: frozenset[str] = frozenset()) -> bool:
    """Tell whether there is an example in a part of a document, or in what it refers to."""
    match value:
        case {"example": _} | {"examples": _}:
            return True
        case {"$ref": str(target)} if target not in passed:
            schema = document["components"]["schemas"][target.rpartition("/")[2]]
            return has_example(schema, document, passed | {target})
        case dict():
            return any(has_example(part, document, passed) for part in value.values())
        case list():
            return any(has_example(part, document, passed) for part in value)
    return False


async def test_the_gateway_takes_no_field_that_it_does_not_declare() -> None:
    """A submission has the fields that the partner's platform declares, and a job the inputs of its workflow."""
    document = await document_of(application("gateway"))
    schemas = document["components"]["schemas"]
    bodies = [each["requestBody"] for each in operations(document).values() if "requestBody" in each]
    named = {name.rpartition("/")[2] for body in bodies for name in references(body)}
    assert len(named) > 10
    assert {name for name in named if schemas[name].get("additionalProperties") is not False} == {
        "SubmissionForm",
        "JsonValue",
    }


async def test_no_page_of_a_list_has_more_than_500_items(app: FastAPI) -> None:
    parameters = [each for op in operations(await document_of(app)).values() for each in op.get("parameters", [])]
    limits = [each["schema"]["maximum"] for each in parameters if each["name"] == "limit"]
    assert len(limits) > 5
    assert max(limits) == 500


async def test_every_error_is_documented_as_the_problem_document_that_it_is(app: FastAPI) -> None:
    for (path, _), operation in operations(await document_of(app)).items():
        for status, response in operation["responses"].items():
            if status.startswith(("2", "3")) or (path in PROBES_THAT_FAIL and status == "503"):
                continue
            assert list(response["content"]) == [MEDIA_TYPE], (path, status)
            assert {"code", "detail", "status", "title"} <= set(response["content"][MEDIA_TYPE]["schema"]["required"])


async def test_the_bootstrap_endpoints_document_the_key_and_each_refusal() -> None:
    document = await document_of(application("orchestrator"))
    bootstrap = {where: each for where, each in operations(document).items() if "/bootstrap/" in where[0]}
    assert len(bootstrap) == 6
    schemes = document["components"]["securitySchemes"]
    key, token = schemes["ApiKeyHeader"], schemes["OpenIdToken"]
    assert (key["type"], key["in"], key["name"]) == ("apiKey", "header", "X-API-Key")
    assert (token["type"], token["scheme"]) == ("http", "bearer")
    for where, operation in bootstrap.items():
        assert operation["security"] == [{"ApiKeyHeader": []}, {"OpenIdToken": []}], where
        assert {"401", "403", "503"} <= set(operation["responses"]), where
    assert "409" in bootstrap["/api/v1/bootstrap/rebuild", "post"]["responses"]
