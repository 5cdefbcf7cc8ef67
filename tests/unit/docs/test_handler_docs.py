"""docs/how-to/handlers.md: its package is written, installed, loaded and run as the page says."""

import importlib
import inspect
import json
import math
import re
import runpy
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import JsonValue
from tests.unit.docs.pages import blocks, code, codes, file_of, page, table, workflows

from graticule.api import callbacks, catalogue
from graticule.config import Settings
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.states import ResultStatus
from graticule.dag.compile import compile_workflow
from graticule.handlers import HandlerContext, HandlerResult, ProcessContext, examples, known_handlers, registry
from graticule.handlers.context import Checkpoint
from graticule.messaging.protocol import TaskMessage
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES
from graticule.storage.local import LocalStorage
from graticule.storage.place import StoragePlace
from graticule.worker import app, leases, outcome, pool, process_output
from graticule.worker import run as worker_run
from graticule.worker.executor import Executor
from graticule.worker.outcome import Outcome, outcome_of
from graticule.worker.pool import ChildSettings, ProcessPool
from graticule.worker.run import Run

PAGE = page("handlers.md")
MODULES = [block for block in blocks(PAGE, "python") if file_of(block) == "acme_handlers.py"]
(SCRIPT,) = [block for block in blocks(PAGE, "python") if file_of(block) == "try_measure.py"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package of the page beside Graticule, for one test."""
    registered = dict(registry.handlers())
    project = tomllib.loads(blocks(PAGE, "toml")[0])["project"]
    information = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    (information / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
            for group, points in project["entry-points"].items()
        )
    )
    (tmp_path / "acme_handlers.py").write_text("\n\n".join(MODULES))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_registered", registered)
    monkeypatch.setattr(registry, "_loaded", [])
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("acme_handlers", None)


class KeptCheckpoints:
    """Checkpoints of all nodes, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Checkpoint] = {}

    async def load(self, message: TaskMessage) -> Checkpoint | None:
        return self.kept.get(message.node_id)

    async def save(self, message: TaskMessage, checkpoint: Checkpoint) -> bool:
        self.kept[message.node_id] = checkpoint
        return True


class Bench:
    """Runs tasks as a worker does, without queue and database."""

    def __init__(self, folder: Path) -> None:
        self.storage = LocalStorage(folder / "storage")
        self.checkpoints = KeptCheckpoints()
        self.pool = ProcessPool(1, ChildSettings(StoragePlace(root=folder / "storage")))
        self.last: Run | None = None

    async def run(self, handler: str, *, shutdown: bool = False, **params: JsonValue) -> Outcome:
        registered = registry.handlers()[handler]
        message = TaskMessage(TaskId("task"), JobId("job"), NodeId("node"), handler, params, registered.queue)
        run = Run(message, registered, in_process=not registered.is_async)
        run.tell(shutdown=shutdown)
        self.last = run
        try:
            return await Executor(self.pool, self.checkpoints, self.storage).execute(run)
        finally:
            run.over()


@pytest.fixture
async def bench(package: Path) -> AsyncIterator[Bench]:
    bench = Bench(package)
    yield bench
    await bench.pool.close()


def output_of(found: Outcome) -> Any:
    assert found.status is ResultStatus.COMPLETED, found.error_message
    return json.loads(found.output or b"null")


# The package of the page


def test_its_handlers_are_found_by_the_entry_point(package: Path) -> None:
    assert {"acme.measure", "acme.render", "echo"} <= set(registry.handlers())
    assert registry.handlers()["acme.render"].queue == "container-tasks"


def test_its_workflow_compiles_where_the_package_is_installed(package: Path) -> None:
    (text,) = workflows(PAGE)
    assert compile_workflow(text, file="page.yaml", handlers=known_handlers()).problems == ()


def test_its_workflow_does_not_compile_elsewhere() -> None:
    (text,) = workflows(PAGE)
    (problem,) = compile_workflow(text, file="page.yaml", handlers=known_handlers()).problems
    assert problem.code == "unknown_handler"
    named = text.replace("handler: acme.measure", "handler: acme.measure, queue: acme")
    (problem,) = compile_workflow(named, file="page.yaml", handlers=known_handlers()).problems
    assert problem.severity == "warning"


async def test_the_async_handler_measures(bench: Bench) -> None:
    await bench.storage.put("bronze/a.tif", b"12345")
    assert output_of(await bench.run("acme.measure", path="bronze/a.tif")) == {"bytes": 5}
    missing = await bench.run("acme.measure", path="bronze/b.tif")
    assert (missing.status, missing.retryable) == (ResultStatus.FAILED, False)


async def test_parameters_that_do_not_fit_are_told_as_shown(bench: Bench) -> None:
    refused = await bench.run("acme.measure")
    assert refused.error_message in codes(PAGE)
    assert not refused.retryable


async def test_the_process_handler_goes_on_after_its_checkpoint(bench: Bench) -> None:
    first = output_of(await bench.run("acme.render", source="a", zooms=[1, 2]))
    assert first["resumed_at"] == 0
    assert await bench.storage.get(first["paths"][1]) == b"a at 2"
    assert bench.last is not None
    assert bench.last.progress is not None
    assert {"done": 2, "total": 2, "percent": 100, "message": "zoom 2"}.items() <= bench.last.progress.items()
    assert output_of(await bench.run("acme.render", source="a", zooms=[1, 2, 3]))["resumed_at"] == 2
    assert output_of(await bench.run("acme.render", source="b", zooms=[1, 2]))["resumed_at"] == 0
    await bench.storage.delete(first["paths"][0])
    assert output_of(await bench.run("acme.render", source="b", zooms=[1, 2]))["resumed_at"] == 0
    assert (await bench.run("acme.render", source="c", zooms=[1], shutdown=True)).is_interrupted


def test_the_try_without_a_worker(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    script = package / "try_measure.py"
    script.write_text(SCRIPT)
    runpy.run_path(str(script), run_name="__main__")
    assert (package / "try-storage" / "bronze/a.tif").read_bytes() == b"12345"


# Tables and numbers


def test_the_options_of_register_handler() -> None:
    given = inspect.signature(registry.register_handler).parameters
    told = {code(row[0]): row[1] for row in table(PAGE, "| `register_handler` | default |") if "`" in row[0]}
    assert told == {
        "queue": f"`{given['queue'].default}`",
        "timeout_seconds": str(given["timeout_seconds"].default),
        "params": "none",
        "memory_limit_mb": "none",
        "needs_database": str(given["needs_database"].default).lower(),
    }
    assert set(told) == set(given) - {"name"}


def test_every_callback_of_a_worker_without_a_database_is_told() -> None:
    routes = [route for router in (callbacks.router, catalogue.router) for route in router.routes]
    posts = {str(route.path) for route in routes if isinstance(route, APIRoute) and "POST" in (route.methods or ())}
    told = {name for row in table(PAGE, "| `POST` below `/api/v1/callbacks` |") for name in codes(row[0])}
    assert {f"/api/v1/callbacks/{name}" for name in told} == posts - {"/api/v1/callbacks/task-result"}


def test_the_handlers_that_need_the_database_are_told() -> None:
    section = PAGE[PAGE.index("## Workers without a database") :]
    needing = {name for name, each in registry.handlers().items() if each.needs_database}
    assert {name for name in needing if f"`{name}`" not in section} == {
        name for name in needing if name.startswith("publish.")
    }
    assert "`publish.*`" in section


def test_all_that_a_context_has_is_told() -> None:
    told = {name.split("(")[0] for row in table(PAGE, "| `ctx.` |") for name in codes(row[0])}
    internal = {"signals", "report_progress", "pace"}
    for context, without in ((HandlerContext, {"staging"}), (ProcessContext, {"database", "catalogue"})):
        assert told - without == {name for name in dir(context) if not name.startswith("_")} - internal


def test_every_example_handler_is_told_with_its_parameters() -> None:
    rows = {code(row[0]): row for row in table(PAGE, "| handler | parameters |")}
    ours = {name: each for name, each in registry.handlers().items() if each.module == examples.__name__}
    assert set(rows) == set(ours)
    for name, handler in ours.items():
        fields = {} if handler.params is None else handler.params.model_fields
        assert set(fields) <= set(codes(rows[name][1])), name
        for field, default in re.findall(r"`(\w+)` \(([^)]+)\)", rows[name][1]):
            if field in fields:
                assert fields[field].default == json.loads(default), (name, field)


@pytest.mark.parametrize("value", [datetime.now(UTC), math.nan, "a\0b", Checkpoint("phase")])
def test_an_output_that_is_not_json_fails_for_good(value: Any) -> None:
    found = outcome_of(HandlerResult.success({"value": value}))
    assert (found.status, found.retryable) == (ResultStatus.FAILED, False)


def test_a_plain_value_is_a_success() -> None:
    assert outcome_of({"a": 1}) == outcome_of(HandlerResult.success({"a": 1}))


def test_the_numbers_are_those_of_the_code() -> None:
    kibibyte, mebibyte = 1024, 1024 * 1024
    for said in (
        f"by default {app.DEFAULT_CONCURRENCY}",
        f"replaced after {pool.TASKS_PER_CHILD} of them",
        f"up to {process_output.MAX_BYTES_PER_TASK // kibibyte} KiB for each task",
        f"over {INLINE_BYTES // mebibyte} MiB ({INLINE_CHILD_BYTES // kibibyte} KiB of a child)",
        f"{outcome.MAX_OUTPUT_BYTES // mebibyte} MiB\nis the most",
        f"`cancelled`; after {leases.CANCEL_GRACE_SECONDS:g} s it is cancelled or killed",
        f"left alone after {worker_run.STUBBORN_SECONDS:g} s",
        f"after {Settings.model_fields['worker_grace_seconds'].default:g} s (`GRATICULE_WORKER_GRACE_SECONDS`)",
    ):
        assert said in PAGE, said
    assert set(app.DEFAULT_QUEUES) <= set(codes(PAGE))
