"""`graticule workflow …`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.api import FakeApi
from tests.unit.cli.conftest import run

from graticule.services.workflow_library import shipped_folder

SOUND = "workflow_id: sound\nnodes: {start: {next: a}, a: {handler: echo, next: end}}\n"
BAD = "workflow_id: bad\nnodes:\n  start: {next: a}\n  a: {handler: ecko, next: nowhere}\n"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.yaml"
    path.write_text(SOUND)
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    return path


def test_a_sound_file_ends_with_0(sound: Path) -> None:
    result = run("workflow", "validate", str(sound))
    assert result.code == 0
    assert result.out == ""
    assert "workflow sound with 3 nodes" in result.err


def test_every_problem_of_every_file_is_a_line(sound: Path, bad: Path) -> None:
    result = run("workflow", "validate", str(bad), str(sound))
    assert result.code == 1
    lines = result.out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{bad}:2: There is no end node.")
    assert all(line.startswith(f"{bad}:4: node 'a': ") for line in lines[1:])
    assert f"{bad}: 3 errors." in result.err
    assert "workflow sound" in result.err


def test_the_problems_as_json(sound: Path, bad: Path) -> None:
    result = run("workflow", "validate", "--json", str(sound), str(bad))
    assert result.code == 1
    first, second = json.loads(result.out)
    assert first == {"file": str(sound), "workflow_id": "sound", "valid": True, "problems": []}
    assert (second["workflow_id"], second["valid"]) == ("bad", False)
    assert {(problem["code"], problem["node"], problem["line"]) for problem in second["problems"]} == {
        ("no_end", None, 2),
        ("unknown_handler", "a", 4),
        ("unknown_node", "a", 4),
    }


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = run("workflow", "validate", str(tmp_path / "none.yaml"))
    assert result.code == 1
    assert "cannot be read" in result.out
    assert "Traceback" not in result.err


def test_the_shipped_workflows_are_valid() -> None:
    result = run("workflow", "validate", *map(str, sorted(shipped_folder().glob("*.yaml"))))
    assert result.code == 0, result.out
    assert all("lives only on the workers" in line for line in result.out.splitlines())


def test_a_workflow_is_drawn(sound: Path) -> None:
    result = run("workflow", "graph", str(sound))
    assert result.code == 0
    assert result.out.splitlines()[:3] == ["flowchart TD", '    n0(["start"])', '    n1["a<br/>echo"]']
    assert result.err == ""


def test_a_bad_workflow_is_not_drawn(bad: Path) -> None:
    result = run("workflow", "graph", str(bad))
    assert result.code == 1
    assert "flowchart" not in result.out
    assert "node 'a'" in result.out


def test_queues_that_no_worker_of_the_server_serves_are_named(sound: Path) -> None:
    queue = {"queued": 0, "delayed": 0, "leased": 0, "dead": 0, "unserved": 0, "oldest_seconds": None}
    for workers, is_named in ((0, True), (1, False)):
        answer = {"items": [{**queue, "queue": "functionapp-tasks", "workers": workers}], "next": None}
        with FakeApi({"GET /api/v1/queues": answer}).served():
            result = run("workflow", "validate", str(sound))
        assert result.code == 0
        assert ("graticule worker --queues functionapp-tasks" in result.err) is is_named


@pytest.mark.parametrize(
    ("command", "call"), [("list", "GET /api/v1/workflows"), ("reload", "POST /api/v1/workflows/reload")]
)
def test_the_workflows_in_use_are_listed_with_the_problems_of_all(command: str, call: str) -> None:
    item: dict[str, Any] = {
        "workflow_id": "tides",
        "name": "Tides",
        "version": "3",
        "description": "",
        "inputs": {},
        "workflow_hash": "ab" * 32,
        "file": None,
        "source": "database",
        "announced_by": "orchestrator-1",
        "announced_at": "2026-03-14T15:09:26Z",
        "reloaded_by": None,
    }
    other = {"owner_id": "orchestrator-1", "hostname": "host-1", "problems": ["bad.yaml:2: There is no end node."]}
    answer = {"items": [item], "next": None, "problems": [], "other_problems": [other]}
    with FakeApi({call: answer}).served():
        result = run("workflow", command)
    assert result.code == 0, result.err
    assert all(text in result.out for text in ("tides", "database", "orchestrator-1"))
    assert "On host-1: bad.yaml:2: There is no end node." in result.err
