"""The requests that pages make with curl, held against the OpenAPI documents."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from scripts.documentation.http_apis import APIS
from tests.openapi import documents

PROCESSES = {8000: ("gateway",), 8001: ("orchestrator",), 8003: ("tiles", "features", "stac")}
EVERYWHERE = {"/livez", "/readyz", "/health", "/metrics", "/openapi.json"}
_WITH_VALUE = {
    "-X",
    "-H",
    "-d",
    "-o",
    "-w",
    "-u",
    "--data-urlencode",
    "--data-binary",
    "--max-time",
    "--retry",
    "-b",
    "-c",
}


@dataclass
class Request:
    """What curl is asked for."""

    url: str = ""
    method: str = ""
    body: str | None = None
    query: list[tuple[str, str]] = field(default_factory=list)


def request_of(words: Sequence[str]) -> Request:
    """Read the arguments of curl."""
    request, rest, asks = Request(), list(words[1:]), False
    while rest:
        word = rest.pop(0)
        value = rest.pop(0) if word in _WITH_VALUE else ""
        match word:
            case "-X":
                request.method = value
            case "-d" | "--data-binary":
                request.body = value
            case "--data-urlencode":
                request.query += [(value.partition("=")[0], value.partition("=")[2])]
            case "-G":
                asks = True
            case _ if "://" in word or word.startswith("$"):
                request.url = word
    request.method = request.method or ("POST" if request.body is not None and not asks else "GET")
    return request


def check_request(words: Sequence[str]) -> None:
    """See that there is such an operation, that it has these parameters, and that it takes this body."""
    request = request_of(words)
    url = urlsplit(request.url)
    if (url.hostname or "") not in ("127.0.0.1", "localhost", ""):
        return  # it is not ours
    path, names = _forwarded(url.path, PROCESSES.get(url.port or 8000, tuple(APIS)))
    if path in EVERYWHERE:
        return
    found = [each for name in names if (each := _operation(name, request.method.lower(), path))]
    assert found, f"there is no {request.method} {path}"
    document, operation = found[0]
    known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    given = {name for name, _ in (*parse_qsl(url.query), *request.query)}
    assert given <= known, f"{request.method} {path} does not know {given - known}"
    _check_body(document, operation, request.body)


def _forwarded(path: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """See through the gateway to whom it forwards."""
    if path.startswith("/api/proxy/orchestrator/"):
        return path.removeprefix("/api/proxy/orchestrator"), ("orchestrator",)
    if path.startswith("/api/view/stac"):
        return path.removeprefix("/api/view"), ("stac",)
    return path, names


def _operation(name: str, method: str, path: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Find the operation of a path; the more of it is spelt out, the sooner it is meant."""
    document = documents()[name]
    for template in sorted(document["paths"], key=lambda each: each.count("{")):
        pattern = re.sub(r"\\\{(\w+)\\\}", _any_value, re.escape(f"{APIS[name].prefix}{template}".rstrip("/")))
        if method in document["paths"][template] and re.fullmatch(pattern, path.rstrip("/")):
            return document, document["paths"][template][method]
    return None


def _any_value(parameter: re.Match[str]) -> str:
    return ".+" if parameter[1] == "path" else "[^/]+"


def _check_body(document: dict[str, Any], operation: dict[str, Any], body: str | None) -> None:
    content = operation.get("requestBody", {}).get("content", {})
    assert (body is not None) <= bool(content), "it takes no body"
    if body is None or body.startswith("@"):
        return
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    Draft202012Validator(schema).validate(json.loads(body))
