"""docs/explanation/engine.md says what the tables, the evaluator and the settings say."""

import json
import re
from collections import defaultdict

import pytest
from scripts.documentation.vocabulary import state_diagram
from tests.unit.dag.jobs import (
    BEGINNING,
    PlayedJob,
    conditional,
    end,
    fan_in,
    fan_out,
    graph,
    split_graph,
    start,
    task,
)
from tests.unit.docs.pages import blocks, code, codes, page, table

from graticule.api.app import ROUTERS
from graticule.config import Settings
from graticule.core.models.engine import Task
from graticule.core.states import JOB, NODE, NODE_RESUME, JobStatus, ResultStatus
from graticule.dag.evaluate import advance
from graticule.dag.state import CancelRequested, JobState, NewEvent, NodeState, StartedOver
from graticule.handlers import known_handlers
from graticule.messaging.postgres import without_waiting_for_disk
from graticule.messaging.protocol import LARGEST_CLAIM
from graticule.orchestrator import loop
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.unserved_queues import UnservedQueueRepository
from graticule.services import step_reading
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES
from graticule.services.workflow_library import compile_file, shipped_folder
from graticule.worker import app

PAGE = page("engine.md")
PAGES = ("engine.md", "handlers.md", "workflows.md")
API_PATHS = {getattr(route, "path", "").removeprefix("/api/v1") for router in ROUTERS for route in router.routes}


# States


def test_the_diagrams_are_drawn_from_the_transition_tables() -> None:
    drawn = [block for block in blocks(PAGE, "mermaid") if block.startswith("stateDiagram")]
    assert drawn == [state_diagram(JOB), state_diagram(NODE), state_diagram(NODE_RESUME, whole=False)]


# Events


def test_the_story_of_an_echo_is_told_to_the_letter() -> None:
    compiled = compile_file(shipped_folder() / "echo_test.yaml", known_handlers())
    assert compiled.graph is not None
    job = PlayedJob(compiled.graph, inputs={"message": "Hello"})
    job.submit()
    job.complete("echo_handler", output={})
    (shown,) = blocks(PAGE, "json")
    assert [json.loads(line) for line in shown.splitlines()] == [
        {"event_type": event.event_type, "node_id": event.node_id, "data": event.data} for event in job.store.events
    ]


def cancelled_job() -> PlayedJob:
    job = PlayedJob(split_graph([1, 2]))
    job.submit()
    job.happen(CancelRequested("operator"))
    return job


def failed_and_resumed_job() -> PlayedJob:
    """Led through everything else that can happen to a node."""
    drawn = graph(
        start("choose"),
        conditional("choose", ("inputs.n == 1", "split"), (None, "other")),
        task("other", "end"),
        fan_out("split", "merge", source=[1, 2]),
        fan_in("merge", "last"),
        task("last", "end"),
        end(),
    )
    job = PlayedJob(drawn, inputs={"n": 1})
    job.submit()
    job.happen(job.report("split__0", metrics={"seconds": 1}))
    job.fail("split__1", retryable=False)
    job.resume()
    job.complete("split__1")
    job.run("last", progress={"done": 1, "total": 2, "message": "half"}, checkpoint="first")
    job.fail("last", retryable=True)
    job.happen(job.report("last", ResultStatus.COMPLETED, task_id="an older one"))
    job.wait(60)
    job.happen()
    job.fail("last")
    job.resume("split")
    job.complete("split__0", "split__1")
    job.complete("last")
    assert job.status == "completed"
    return job


def started_over() -> list[NewEvent]:
    """Give the events of an ended job that starts over with another definition."""
    drawn = graph(start("a"), task("a", "end"), end())
    nodes = {node_id: NodeState(node_id, node.type) for node_id, node in drawn.nodes.items()}
    state = JobState("job", JobStatus.FAILED, {}, nodes=nodes)
    return advance(drawn, state, [StartedOver()], BEGINNING).events


def test_every_event_of_the_evaluator_is_told_with_all_that_its_data_holds() -> None:
    told = {code(row[0]): set(codes(row[2])) for row in table(PAGE, "| event | when |")}
    reclaimed, waiting = told.pop("job_reclaimed"), told.pop("node_waiting_for_worker")
    events: list[NewEvent] = [*cancelled_job().store.events, *failed_and_resumed_job().store.events]
    events += started_over()
    found: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        found[event.event_type] |= event.data.keys()
    assert dict(found) == told
    assert all(f"'{key}'" in OwnershipRepository.queries["take_orphans"] for key in reclaimed)
    assert all(f"'{key}'" in UnservedQueueRepository.queries["note_waiting_nodes"] for key in waiting)


# Numbers and settings


def test_the_numbers_are_those_of_the_code() -> None:
    kibibyte, mebibyte = 1024, 1024 * 1024
    for said in (
        f"up to {loop.JOBS_PER_STEP} jobs and {step_reading.RESULTS_PER_STEP:,} results",
        f"queued again within {loop.REAP_EVERY_SECONDS:g} s",
        f"up to {LARGEST_CLAIM} at a time",
        f"After {Task.model_fields['max_deliveries'].default} deliveries",
        f"over {INLINE_BYTES // mebibyte} MiB, of a child over {INLINE_CHILD_BYTES // kibibyte} KiB",
        f"for {default('worker_lease_seconds')} s, by the database's clock",
        f"every {default('worker_renew_seconds')} s in\none statement",
        f"older than {default('orphan_threshold_seconds')} s",
        f"look every {default('orphan_scan_interval_seconds')} s",
        f"A poll ({default('orchestrator_poll_interval')} s)",
        f"the dispatch timeout, {default('dispatch_timeout_seconds')} s",
    ):
        assert said in PAGE, said


def default(name: str) -> str:
    return f"{Settings.model_fields[name].default:g}"


def test_the_settings_and_their_defaults() -> None:
    for variable, told, _ in table(PAGE, "| setting | default |"):
        name = code(variable).removeprefix("GRATICULE_").lower()
        expected = str(app.DEFAULT_CONCURRENCY) if name == "worker_concurrency" else default(name)
        assert told == expected, variable


def test_claims_do_not_wait_for_the_disk() -> None:
    (setting,) = re.findall(r"`(synchronous_commit=\w+)`", PAGE)
    assert setting in without_waiting_for_disk("postgresql:///graticule")


# All pages


@pytest.mark.parametrize("name", PAGES)
def test_settings_that_are_named_exist(name: str) -> None:
    known = {f"GRATICULE_{field.upper()}" for field in Settings.model_fields}
    assert set(re.findall(r"GRATICULE_[A-Z_]+", page(name))) <= known


@pytest.mark.parametrize("name", PAGES)
def test_paths_of_the_api_exist(name: str) -> None:
    named = set(re.findall(r"(?:/api/v1|`)(/(?:jobs|events|workflows|dead-letters|callbacks)[\w/{}-]*)", page(name)))
    known = {path.replace("{job_id}", "{id}") for path in API_PATHS} | {"/callbacks"}
    assert named <= known, named - known
