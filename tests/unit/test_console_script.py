"""The script that makes the console's types keeps what the console calls, and tells when the types are old."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "console.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("console_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


console = load()


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def answer(name: str) -> dict[str, Any]:
    return {"description": "An answer", "content": {"application/json": {"schema": reference(name)}}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "paths": {
        "/api/things": {
            "post": {
                "operationId": "add",
                "summary": "Add a thing",
                "security": [{"key": []}],
                "parameters": [
                    {"name": "limit", "in": "query", "description": "How many", "schema": {"type": "integer"}},
                    {"name": console.ADDED, "in": "header", "required": True, "schema": {"type": "string"}},
                ],
                "responses": {"200": answer("Thing"), "404": answer("Problem"), "default": answer("Problem")},
            }
        },
        "/metrics": {"get": {"operationId": "metrics", "responses": {"200": answer("Metrics")}}},
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "title": "Thing",
                "description": "A thing",
                "properties": {
                    "description": {"type": "string", "title": "Description", "examples": ["round"]},
                    "parts": {"type": "array", "items": reference("Part")},
                },
            },
            "Part": {"type": "object", "properties": {"of": {"anyOf": [reference("Thing"), {"type": "null"}]}}},
            "Problem": {"type": "object"},
            "Metrics": {"type": "object"},
        }
    },
}


def test_only_what_the_console_calls_is_kept_and_what_that_refers_to() -> None:
    kept = console.essential(DOCUMENT, ("/api/",))
    assert list(kept["paths"]) == ["/api/things"]
    assert set(kept["components"]["schemas"]) == {"Thing", "Part"}
    operation = kept["paths"]["/api/things"]["post"]
    assert operation == {
        "operationId": "add",
        "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
        "responses": {"200": answer("Thing")},
    }


def test_prose_is_left_out_and_fields_that_are_called_like_it_stay() -> None:
    kept = console.essential(DOCUMENT, ("/api/",))
    thing = kept["components"]["schemas"]["Thing"]
    assert thing == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "parts": {"type": "array", "items": reference("Part")},
        },
    }


@pytest.mark.parametrize(("content", "status"), [("new", 0), ("old", 1)])
def test_types_that_are_old_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str, status: int
) -> None:
    monkeypatch.setattr(console, "generated", lambda: {"gateway": "new"})
    monkeypatch.setattr(console, "file_of", lambda name: tmp_path / f"{name}.ts")
    (tmp_path / "gateway.ts").write_text(content)
    assert console.types_agree() == status
    assert ("run `make console-types`" in capsys.readouterr().err) == bool(status)


def test_the_documents_of_both_processes_are_known() -> None:
    found = console.documents()
    assert "/api/session" in found["gateway"]["paths"]
    assert "/api/v1/jobs/{job_id}/cancel" in found["orchestrator"]["paths"]
    assert "/api/v1/callbacks/task-result" not in found["orchestrator"]["paths"]
