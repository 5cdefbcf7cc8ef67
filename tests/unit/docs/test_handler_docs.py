"""docs/how-to/handlers.md: the example package is installed, loaded and run as the page says."""

import importlib
import inspect
import json
import math
import re
import runpy
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import JsonValue
from tests.unit.docs.pages import DOCS, blocks, code, codes, file_of, page, table, workflows

from graticule.api import callbacks, catalogue
from graticule.config import Settings
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.states import ResultStatus
from graticule.dag.compile import compile_workflow
from graticule.handlers import HandlerContext, HandlerResult, ProcessContext, examples, known_handlers, registry
from graticule.handlers.context import Checkpoint
from graticule.handlers.trial import Trial
from graticule.messaging.protocol import TaskMessage
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES
from graticule.services.workflow_library import load, shipped_folder
from graticule.services.workflow_packages import installed_packages
from graticule.storage.local import LocalStorage
from graticule.storage.place import StoragePlace
from graticule.worker import app, leases, outcome, pool, process_output
from graticule.worker import run as worker_run
from graticule.worker.executor import Executor
from graticule.worker.outcome import Outcome, outcome_of
from graticule.worker.pool import ChildSettings, ProcessPool
from graticule.worker.run import Run

PAGE = page("handlers.md")
EXAMPLE = DOCS.parent / "examples" / "tides"
HANDLERS = EXAMPLE / "src" / "tides" / "handlers.py"
(SCRIPT,) = [block for block in blocks(PAGE, "python") if file_of(block) == "try_tides.py"]
(LOADING,) = [block for block in blocks(PAGE, "python") if file_of(block) == "loading.py"]
EXAMPLE_TESTS = runpy.run_path(str(EXAMPLE / "tests" / "test_tides.py"))
trial = EXAMPLE_TESTS["trial"]  # the fixture of these tests
READINGS = b"gauge,time,level\nharbour,2026-03-01T00:00Z,1\nharbour,2026-03-02T00:00Z,2\nlagoon,2026-03-01T00:00Z,3\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example package beside Graticule, for one test."""
    registered = dict(registry.handlers())
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    information = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    (information / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
            for group, points in project["entry-points"].items()
        )
    )
    for place in (HANDLERS.parents[1], tmp_path):
        monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr(registry, "_registered", registered)
    monkeypatch.setattr(registry, "_loaded", [])
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == project["name"]]:
        del sys.modules[name]


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


def test_what_the_page_shows_of_the_package_is_in_it() -> None:
    shown = tomllib.loads(blocks(PAGE, "toml")[0])["project"]
    assert shown.items() <= tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"].items()
    code_of = [block.partition("\n")[2] for block in blocks(PAGE, "python") if file_of(block) == HANDLERS.name]
    assert len(code_of) == 2
    assert [block for block in code_of if block not in HANDLERS.read_text()] == []
    assert workflows(PAGE) == [(HANDLERS.parent / "workflows" / "tide_summary.yaml").read_text()]


def test_its_handlers_are_found_by_the_entry_point(package: Path) -> None:
    assert {"tides.gauges", "tides.summarize", "echo"} <= set(registry.handlers())
    assert registry.handlers()["tides.summarize"].queue == "container-tasks"


@pytest.mark.parametrize("name", [name for name in EXAMPLE_TESTS if name.startswith("test_")])
def test_it_passes_its_own_tests(package: Path, name: str, request: pytest.FixtureRequest) -> None:
    test = EXAMPLE_TESTS[name]
    test(**{each: request.getfixturevalue(each) for each in inspect.signature(test).parameters})


def test_its_workflow_compiles_where_the_package_is_installed(package: Path) -> None:
    (text,) = workflows(PAGE)
    assert compile_workflow(text, file="page.yaml", handlers=known_handlers()).problems == ()


def test_its_workflow_is_found_by_the_entry_point(package: Path) -> None:
    library = load([shipped_folder()], known_handlers(), installed_packages.__wrapped__())
    assert library.files["tide_summary"].parent == HANDLERS.parent / "workflows"


def test_its_workflow_does_not_compile_elsewhere() -> None:
    (text,) = workflows(PAGE)
    problems = compile_workflow(text, file="page.yaml", handlers=known_handlers()).problems
    assert {problem.code for problem in problems} == {"unknown_handler"}
    named = re.sub(r"( *)handler: .*", r"\g<0>\n\1queue: tides", text)
    problems = compile_workflow(named, file="page.yaml", handlers=known_handlers()).problems
    assert [problem.severity for problem in problems] == ["warning"] * 2


async def test_the_async_handler_names_the_gauges(bench: Bench) -> None:
    await bench.storage.put("bronze/march.csv", READINGS)
    assert output_of(await bench.run("tides.gauges", path="bronze/march.csv")) == {"gauges": ["harbour", "lagoon"]}
    missing = await bench.run("tides.gauges", path="bronze/april.csv")
    assert (missing.status, missing.retryable) == (ResultStatus.FAILED, False)


async def test_parameters_that_do_not_fit_are_told_as_shown(bench: Bench) -> None:
    refused = await bench.run("tides.gauges")
    assert refused.error_message in codes(PAGE)
    assert not refused.retryable


async def test_the_process_handler_goes_on_after_its_checkpoint(bench: Bench) -> None:
    await bench.storage.put("bronze/march.csv", READINGS)
    first = output_of(await bench.run("tides.summarize", path="bronze/march.csv", gauge="harbour"))
    assert (first["days"], first["highest"], first["resumed_at"]) == (2, "2026-03-02", 0)
    assert json.loads(await bench.storage.get(first["path"])) == {"2026-03-01": 1, "2026-03-02": 2}
    assert bench.last is not None
    assert bench.last.progress is not None
    assert {"done": 2, "total": 2, "percent": 100, "message": "2026-03-02"}.items() <= bench.last.progress.items()
    again = output_of(await bench.run("tides.summarize", path="bronze/march.csv", gauge="harbour"))
    assert again["resumed_at"] == 2
    bench.checkpoints.kept.clear()
    assert (await bench.run("tides.summarize", shutdown=True, path="bronze/march.csv", gauge="harbour")).is_interrupted


def test_the_try_without_a_worker(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    script = package / "try_tides.py"
    script.write_text(SCRIPT)
    runpy.run_path(str(script), run_name="__main__")
    told = {code(row[0]).split("(")[0] for row in table(PAGE, "| of a `Trial` |")}
    assert told == {name for name in {*vars(Trial(package)), *vars(Trial)} if not name.startswith("_")}


class KeptChunks:
    """A staging table in memory."""

    def __init__(self) -> None:
        self.results: dict[int, dict[str, JsonValue]] = {}

    def loaded(self, index: int) -> dict[str, JsonValue] | None:
        return self.results.get(index)

    @contextmanager
    def chunk(self, index: int, columns: list[str]) -> Iterator[Any]:
        rows = SimpleNamespace(written=[], result={})
        rows.write = rows.written.append
        yield rows
        self.results[index] = rows.result


def test_a_chunk_is_loaded_once() -> None:
    names: dict[str, Any] = {}
    exec(LOADING, names)
    staging = KeptChunks()
    for _ in range(2):
        result = names["loaded"](SimpleNamespace(staging=staging), 0, [b"a", b"b"])
        assert result.output == {"streams": 2}
    staging.results[0] = {"streams": 7}
    assert names["loaded"](SimpleNamespace(staging=staging), 0, [b"a"]).output == {"streams": 7}


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
    for context, without in ((HandlerContext, {"staging"}), (ProcessContext, {"database", "catalogue", "pool"})):
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
