"""Jobs on a real installation: submitted, watched, cancelled, retried and removed by the commands that people type."""

import json
import re
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.conftest import on_both_installations
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program, Up
from tests.e2e.processes import graticule_command, processes_of

from graticule.core.table import DatabaseRole


@pytest.fixture
def engine(up: Up) -> Engine:
    return Engine(up)


def test_the_demonstration_is_submitted_watched_and_completes(engine: Engine) -> None:
    result = engine.run("submit", "demo", "-p", "chunks=6", "-p", "failure_rate=0.3", "--watch")
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"is_large +completed +→ split", result.stdout)
    assert re.search(r"split +completed +━{12} +6/6", result.stdout)
    assert re.search(r"process_whole +skipped", result.stdout)
    assert "job_completed" in result.stdout
    assert "\x1b" not in result.stdout


@on_both_installations
def test_the_small_workflows_complete_and_what_fails_by_chance_is_tried_again(engine: Engine) -> None:
    retries = {
        "hello_world": 0,
        "echo_test": 0,
        "fan_out_test": 0,
        "conditional_test": 0,
        "retry_test": 2,  # half of the attempts fail; with this seed the first two
        "retry_fan_out_test": 11,  # three of ten fail
    }
    jobs = {name: engine.begun(name, **({"seed": "graticule"} if count else {})) for name, count in retries.items()}
    for job_id in jobs.values():
        assert engine.ended(job_id)["status"] == "completed"
    seen = {name: engine.events(job_id, "node_retry") for name, job_id in jobs.items()}
    assert {name: len(events) for name, events in seen.items()} == retries


def test_inputs_take_the_types_that_the_workflow_declares(engine: Engine) -> None:
    job_id = engine.submit("slow", "-p", "seconds=0", "-p", "label=007")
    engine.ok("watch", job_id)
    assert engine.job(job_id)["input_params"] == {"seconds": 0, "label": "007"}
    assert engine.job(job_id)["result"]["echoed_params"] == {"label": "007"}


def test_a_job_that_fails_is_shown_with_the_reason_and_ends_the_command_with_1(engine: Engine) -> None:
    result = engine.run("submit", "doomed", "--watch")
    assert result.returncode == 1
    assert "it [red]had[/red] to be" in result.stdout
    assert "Traceback" not in result.stderr


def test_the_same_key_gives_the_same_job(engine: Engine) -> None:
    first = engine.submit("echo_test", "--key", "once")
    second = engine.run("submit", "echo_test", "--key", "once")
    assert second.stdout.strip() == first
    assert "already" in second.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("submit", "no_such_workflow"), "no_such_workflow"),
        (("submit", "echo_test", "-p", "mesage=x"), "mesage"),
        (("submit", "demo", "-p", "chunks=0"), "chunks"),
        (("submit", "demo", "-p", "chunks=many"), "chunks"),
        (("watch", "no-such-job"), "no-such-job"),
        (("events", "no-such-job", "--follow"), "no-such-job"),
        (("cancel", "no-such-job"), "no-such-job"),
        (("retry", "no-such-job"), "no-such-job"),
        (("dead-letters", "requeue", "no-such-letter"), "no-such-letter"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_done_is_told_without_a_traceback(engine: Engine, arguments: tuple[str, ...], told: str) -> None:
    result = engine.run(*arguments)
    assert result.returncode == 1
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 2


@on_both_installations
def test_a_job_is_cancelled_while_its_task_runs_and_the_watcher_hears_of_it(engine: Engine) -> None:
    job_id = engine.submit("slow")
    watcher = engine.begin("watch", job_id)
    try:
        engine.until_running(job_id, "rest")
        engine.ok("cancel", job_id)
        assert watcher.wait() == 1
        assert "cancelled" in watcher.output
    finally:
        watcher.close()
    assert engine.job(job_id)["status"] == "cancelled"
    (ignored,) = eventually(lambda: engine.events(job_id, "result_ignored"), "the handler's end")
    (cancelled,) = engine.events(job_id, "job_cancelled")
    assert ignored.at - cancelled.at < timedelta(seconds=2)


def test_an_interrupted_watcher_says_that_the_job_goes_on(engine: Engine) -> None:
    job_id = engine.submit("slow")
    watcher = engine.up.beside(graticule_command(), "watch", job_id)
    try:
        eventually(lambda: "node_dispatched" in watcher.output, lambda: f"an event; {watcher.errors}")
        assert watcher.end(signal.SIGINT) == 130
        assert "The job goes on" in watcher.errors
        assert "Traceback" not in watcher.errors
        assert engine.job(job_id)["status"] == "running"
    finally:
        watcher.close()
        engine.ok("cancel", job_id)


@on_both_installations
def test_a_failed_job_is_retried_and_what_completed_is_kept(engine: Engine) -> None:
    job_id = json.loads(engine.run("submit", "doomed", "--watch", "--json").stdout)["job_id"]
    engine.ok("retry", job_id)
    assert engine.run("watch", job_id).returncode == 1
    assert [event.node_id for event in engine.events(job_id, "node_completed")].count("fine") == 1
    assert len(engine.events(job_id, "job_resumed")) == 1
    assert engine.run("retry", job_id, "--node", "no_such_node").returncode == 1


def test_jobs_are_listed_by_status_and_workflow(engine: Engine) -> None:
    job_id = json.loads(engine.run("submit", "doomed", "--watch", "--json").stdout)["job_id"]
    listed = engine.ok("jobs", "--status", "failed", "--workflow", "doomed")
    assert job_id in listed
    assert {job["status"] for job in json.loads(engine.ok("jobs", "--status", "failed", "--json"))} == {"failed"}


def test_events_are_the_trace_of_the_job(engine: Engine) -> None:
    job_id = json.loads(engine.run("submit", "echo_test", "--watch", "--json").stdout)["job_id"]
    followed = engine.ok("events", job_id, "--follow")
    assert followed == engine.ok("events", job_id)
    assert [line.split()[2] for line in followed.splitlines()] == [
        *("job_created", "node_ready", "node_dispatched", "job_started", "node_completed", "job_completed"),
    ]


def test_dead_letters_are_none(engine: Engine) -> None:
    assert json.loads(engine.ok("dead-letters", "list", "--json")) == []


def test_the_worker_is_listed_with_its_queues(engine: Engine) -> None:
    headers = {"X-API-Key": engine.up.admin_key}
    workers = engine.up.get("/api/v1/workers", engine.up.ports["orchestrator"], headers=headers).json()["items"]
    queues = {worker["process_id"]: sorted(worker["queues"]) for worker in workers}
    assert queues[engine.up.child("worker").pid] == ["container-tasks", "functionapp-tasks"]


def test_prune_removes_what_has_ended_and_keeps_what_is_active(engine: Engine) -> None:
    active = engine.submit("slow")
    ended = json.loads(engine.run("submit", "echo_test", "--watch", "--json").stdout)["job_id"]
    engine.until_running(active, "rest")
    counted = engine.run("prune", "--older-than", "0d", "--yes", "--dry-run")
    assert re.search(r"[1-9]\d* jobs", counted.stderr)
    assert engine.run("prune", "--older-than", "90d").returncode == 0
    assert engine.job(ended)["status"] == "completed"
    pruned = engine.run("prune", "--older-than", "0d", "--yes", "--batch", "1")
    assert pruned.returncode == 0, pruned.stderr
    of_versions = {job for (job,) in engine.up.query("SELECT current_job_id FROM dagapp.asset_versions")}
    assert {job["job_id"] for job in json.loads(engine.ok("jobs", "--json"))} == {active, *of_versions}
    engine.ok("cancel", active)
    assert engine.run("watch", ended).returncode == 1


@on_both_installations
def test_a_job_survives_the_death_of_its_worker_at_any_moment(engine: Engine) -> None:
    job_id = engine.submit("demo", "-p", "chunks=30", "-p", "failure_rate=0.2")
    killed = engine.up.child("worker")
    killed.kill()
    assert engine.run("watch", job_id, seconds=150).returncode == 0
    eventually(engine.up.is_ready, "a new worker")


@on_both_installations
def test_a_worker_started_alone_serves_the_queues_that_it_is_told(engine: Engine) -> None:
    job_id = engine.begun("elsewhere")  # which nobody serves so far
    port = engine.up.port + 3
    worker = engine.up.beside(FORKED, "worker", "--queues", "other-tasks", "--port", str(port), port=port)
    try:
        worker.until_status("/readyz", 200)
        health = worker.get("/health").json()
        assert health["process"] == "worker"
        assert health["checks"]["database"]["detail"]["role"] == DatabaseRole.WORKER
        assert engine.ended(job_id)["status"] == "completed"
        assert worker.end() == 0
    finally:
        worker.close()


def test_nothing_running_is_told_with_the_way_to_start_it(folder: Path) -> None:
    jobs = Program(folder, FORKED, "jobs", "--server", "http://127.0.0.1:9", GRATICULE_HOME=str(folder / "none"))
    assert jobs.wait() == 1
    problem, hint = jobs.errors.splitlines()
    assert problem.startswith("✗ Nothing answers")
    assert "graticule up" in hint


def test_prune_works_on_an_installation_that_is_stopped_and_leaves_it_so(home: Path, folder: Path) -> None:
    prune = Program(folder, FORKED, "prune", "--older-than", "90d", GRATICULE_HOME=str(home))
    try:
        assert prune.wait() == 0, prune.errors
    finally:
        prune.close()
    assert "Removed 0 jobs" in prune.errors
    assert processes_of(home) == []
