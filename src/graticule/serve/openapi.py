"""How an API is described: in OpenAPI 3.1, in 3.0 for clients that know no other, and as a page for people."""

import base64
import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment

from graticule.core import json_codec
from graticule.serve.links import HTML, OPENAPI_30, OPENAPI_31, Addresses, Link
from graticule.serve.openapi_30 import to_openapi_30

Document = dict[str, Any]
Complete = Callable[[Request, Document], Awaitable[Document]]

OPENAPI_PATH: Final = "/openapi.json"
OPENAPI_30_PATH: Final = "/openapi-3.0.json"
API_PAGE_PATH: Final = "/api.html"

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h2 { border-top: 1px solid #ccc; font: 600 1rem/1.5 ui-monospace, monospace; margin-top: 2rem; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
td:first-child, td:nth-child(2) { font-family: ui-monospace, monospace; }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_BOUNDS: Final = {"minimum": "min", "maximum": "max", "maxLength": "max length", "default": "default"}


def add_description(
    app: FastAPI, describe: Callable[[], Document], complete: Complete, *, path: str = OPENAPI_PATH
) -> None:
    """Add the addresses at which an API is described; `complete` adds what depends on the request."""

    @cache
    def describe_30() -> Document:
        return to_openapi_30(describe())

    async def openapi(request: Request) -> Response:
        """Describe the API in the version of OpenAPI that the client accepts."""
        if prefers_openapi_30(request.headers.get("accept", "")):
            return await openapi_30(request)
        return _json(await complete(request, describe()), OPENAPI_31)

    async def openapi_30(request: Request) -> Response:
        """Describe the API in OpenAPI 3.0."""
        return _json(await complete(request, describe_30()), OPENAPI_30)

    async def api_page(request: Request) -> HTMLResponse:
        """Describe the API for people."""
        return _page(await complete(request, describe_30()))

    for at, endpoint in ((path, openapi), (OPENAPI_30_PATH, openapi_30), (API_PAGE_PATH, api_page)):
        app.add_api_route(at, endpoint, include_in_schema=False, response_class=Response)


def description_links(to: Addresses, path: str = OPENAPI_PATH) -> list[Link]:
    """Return the links to the descriptions; 3.0 comes first: many clients read the first and no other."""
    return [
        to.link("service-desc", OPENAPI_30_PATH, OPENAPI_30, "API definition (OpenAPI 3.0)"),
        to.link("service-desc", path, OPENAPI_31, "API definition (OpenAPI 3.1)"),
        to.link("service-doc", API_PAGE_PATH, HTML, "API documentation (HTML)"),
    ]


async def with_server(request: Request, document: Document) -> Document:
    """Name the address that the paths of a document are below."""
    return {**document, "servers": [{"url": Addresses(request).root}]}


def prefers_openapi_30(accept: str) -> bool:
    """Return whether a client asks for OpenAPI 3.0 rather than 3.1; who names neither is given 3.1."""
    versions = [version for each in accept.lower().split(",") if (version := _openapi_version(each))]
    return versions[:1] == ["3.0"]


def _openapi_version(media_range: str) -> str | None:
    kind, *parameters = (part.strip() for part in media_range.split(";"))
    if kind not in {"application/vnd.oai.openapi+json", "application/openapi+json"} or "q=0" in parameters:
        return None
    return next((each.removeprefix("version=")[:3] for each in parameters if each.startswith("version=")), None)


def _json(document: Document, media_type: str) -> Response:
    return Response(json_codec.encode(document), media_type=media_type)


def _page(document: Document) -> HTMLResponse:
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    content = _template().render(document=document, operations=operations, style=_STYLE)
    return HTMLResponse(content, headers={"Content-Security-Policy": _CONTENT_SECURITY_POLICY})


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["values"] = describe_values
    return environment.from_string((Path(__file__).parent / "api_page.html").read_text(encoding="utf-8"))


def describe_values(schema: Document) -> str:
    """Say in a few words which values a parameter takes."""
    kind = " or ".join(dict.fromkeys(each.get("type", "any") for each in schema.get("anyOf", [schema])))
    if "enum" in schema:
        kind = " | ".join(str(each) for each in schema["enum"] if each is not None)
    bounds = [f"{name} {schema[key]}" for key, name in _BOUNDS.items() if schema.get(key) is not None]
    return ", ".join([kind, *bounds])
