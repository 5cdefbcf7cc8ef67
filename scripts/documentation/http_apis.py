"""The pages of the HTTP APIs, made from the OpenAPI documents of the applications."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from scripts.documentation.markdown import anchor_of, code, heading, page, table
from scripts.documentation.schemas import default_of, fields_table, linked, model_anchor, references, type_of

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.gateway.app import create_gateway
from graticule.serve.features.app import create_features
from graticule.serve.parameters import described
from graticule.serve.stac.app import create_stac
from graticule.serve.tiles.app import create_tiles
from graticule.serve.zone import Zone

Document = Mapping[str, Any]
NO_DATABASE: Final = "postgresql://nobody@127.0.0.1:1/none"  # the documents are made without one
METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
ERRORS: Final = "../errors.md"
LAST: Final = ("probes",)  # what every process has


@dataclass(frozen=True)
class Api:
    """One API: what its page says first, and where its paths begin."""

    title: str
    introduction: str
    prefix: str = ""


APIS: Final = {
    "gateway": Api(
        "HTTP: the gateway",
        "What partners, operators and the console talk to. [The gateway](../gateway.md) tells who may do what, with "
        "examples; the document itself is at `/openapi.json`.",
    ),
    "orchestrator": Api(
        "HTTP: the orchestrator",
        "What the gateway forwards to, and what operators, the command line and workers without a database talk to. "
        "[Access](../access.md) tells who may do what; the document itself is at `/openapi.json`.",
    ),
    "tiles": Api(
        "HTTP: raster tiles",
        "What [the services](../serving.md) offer of one raster, below its address. The document itself is at "
        "`/tiles/{asset_id}/openapi.json`.",
        "/tiles/{asset_id}",
    ),
    "features": Api(
        "HTTP: features",
        "What [the services](../serving.md) offer of one table of features, below its address. The document itself is "
        "at `/features/{asset_id}/openapi.json`.",
        "/features/{asset_id}",
    ),
    "stac": Api(
        "HTTP: the STAC catalogue",
        "What [the services](../serving.md) offer of [the catalogue](../catalogue.md). The document itself is at "
        "`/stac/api`.",
        "/stac",
    ),
}


@cache
def documents() -> dict[str, Document]:
    """Give the OpenAPI documents of all applications."""
    settings = Settings(_env_file=None)
    applications = {
        "gateway": create_gateway(settings, NO_DATABASE),
        "orchestrator": create_api(settings, NO_DATABASE),
        "stac": create_stac(Audience.INTERNAL),
    }
    by_asset = {"tiles": create_tiles(Zone.of(settings, Audience.INTERNAL)), "features": create_features()}
    return {
        **{name: application.openapi() for name, application in applications.items()},
        **{name: described(application) for name, application in by_asset.items()},
    }


def pages(made: Mapping[str, Document] | None = None) -> dict[str, str]:
    """Give a page for each API, from documents that somebody has made already, if there are any."""
    told = made or documents()
    return {f"reference/http/{name}.md": api_page(api, told[name]) for name, api in APIS.items()}


def api_page(api: Api, document: Document) -> str:
    """Tell all operations by their tags, and then the models of what is sent and answered."""
    groups: dict[str, list[str]] = {}
    for path, method, operation in operations(document):
        tag = next(iter(operation.get("tags", ())), "")
        groups.setdefault(tag, []).append(_operation(f"{api.prefix}{path}".removesuffix("/") or "/", method, operation))
    groups |= {tag: groups.pop(tag) for tag in LAST if tag in groups}
    parts = [part for tag, told in groups.items() for part in (_section(tag, "Operations"), *told)]
    return page(api.title, api.introduction, *parts, *_models(document))


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Give each operation with its path and its method."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _section(tag: str, otherwise: str) -> str:
    return f"## {tag[:1].upper()}{tag[1:]}" if tag else f"## {otherwise}"


def _operation(path: str, method: str, operation: Document) -> str:
    what = operation.get("description", "")
    parts = (
        heading(3, code(f"{method.upper()} {path}"), anchor_of(method, path)),
        what if what and what != "Endpoint." else f"{operation.get('summary', '')}.",
        _parameters(operation.get("parameters", ())),
        _exchange(operation),
    )
    return "\n\n".join(part for part in parts if part)


def _parameters(parameters: Iterable[Document]) -> str:
    rows = [
        (
            code(each["name"]),
            each["in"],
            type_of(each.get("schema", {})),
            default_of(each.get("schema", {}), required=each.get("required", False)),
            each.get("description", ""),
        )
        for each in parameters
    ]
    return table(("parameter", "in", "type", "default", "what"), rows)


def _exchange(operation: Document) -> str:
    """Say what is sent, what is answered, and which errors there are, a line each."""
    lines = []
    if body := operation.get("requestBody"):
        lines.append(f"- Body: {_content(body['content'])}")
    answers = {status: answer for status, answer in operation["responses"].items() if status[0] in "23"}
    lines += [f"- `{status}`: {_answer(answer)}" for status, answer in sorted(answers.items())]
    if errors := sorted(status for status in operation["responses"] if status[0] in "45"):
        told = ", ".join(f"`{status}` {HTTPStatus(int(status)).phrase}" for status in errors)
        lines.append(f"- [Errors]({ERRORS}): {told}")
    if schemes := [name for each in operation.get("security", ()) for name in each]:
        lines.append(f"- Credentials: {' or '.join(map(code, dict.fromkeys(schemes)))}")
    return "\n".join(lines)


def _answer(answer: Document) -> str:
    told = _content(answer.get("content", {}))
    return told or answer.get("description", "nothing")


def _content(content: Mapping[str, Document]) -> str:
    """Name what is exchanged; JSON is so common that only others are named as what they are."""
    told = []
    for media_type, each in content.items():
        kind = type_of(each["schema"]) if each.get("schema") else "anything"
        told.append(kind if media_type == "application/json" else f"{kind} as {code(media_type)}")
    return ", or ".join(dict.fromkeys(told))


def _models(document: Document) -> list[str]:
    schemas = document.get("components", {}).get("schemas", {})
    used = sorted(_reached(document, schemas), key=str.lower)
    return ["## Models", *(_model(name, schemas[name]) for name in used)] if used else []


def _reached(document: Document, schemas: Document) -> set[str]:
    """Give the models of bodies and answers, and those that these are made of; errors have a page of their own."""
    waiting = {name for _, _, operation in operations(document) for name in references(_without_errors(operation))}
    found: set[str] = set()
    while waiting := waiting - found:
        found |= waiting
        waiting = {each for name in waiting for each in references(schemas[name])}
    return found


def _without_errors(operation: Document) -> list[Any]:
    answers = [answer for status, answer in operation["responses"].items() if status[0] in "23"]
    return [list(operation.get("parameters", ())), operation.get("requestBody"), answers]


def _model(name: str, schema: Document) -> str:
    fields = fields_table(schema, linked)
    parts = (heading(3, code(name), model_anchor(name)), schema.get("description", ""), fields or type_of(schema))
    return "\n\n".join(part for part in parts if part)
