"""Jobs on a real installation: submitted, watched, cancelled, retried and removed by the commands that people type."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import FirstStart, StartUp, copy_home, open_folder
from tests.e2e.eventually import eventually
from tests.e2e.installation import Program, Up
from tests.e2e.processes import clean_environment, graticule_command, processes_of

from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole

WORKFLOWS = {
    "slow": """
workflow_id: slow
name: Slow
version: 1
inputs:
  seconds: {type: number, default: 600}
  label: {type: string, default: none}
nodes:
  start: {type: start, next: rest}
  rest: {handler: sleep, params: {seconds: "{{ inputs.seconds }}"}, next: tell}
  tell: {handler: echo, params: {label: "{{ inputs.label }}"}, next: end}
  end: {type: end}
""",
    "doomed": """
workflow_id: doomed
name: Doomed
version: 1
inputs:
  reason: {type: string, default: "it [red]had[/red] to be"}
nodes:
  start: {type: start, next: fine}
  fine: {handler: echo, next: break}
  break: {handler: fail, params: {message: "{{ inputs.reason }}", retryable: false}, next: end}
  end: {type: end}
""",
}


@dataclass(frozen=True)
class Engine:
    """An installation with workflows of its own, and the command line beside it."""

    up: Up

    def run(self, *arguments: str, seconds: float = 60, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [graticule_command(), *arguments],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=clean_environment(GRATICULE_HOME=str(self.up.home), **environment),
        )

    def ok(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def submit(self, *arguments: str) -> str:
        return self.ok("submit", *arguments).strip()

    def job(self, job_id: str) -> dict[str, Any]:
        headers = {"X-API-Key": self.up.admin_key}
        found: dict[str, Any] = self.up.get(
            f"/api/v1/jobs/{job_id}", self.up.ports["orchestrator"], headers=headers
        ).json()
        return found

    def moments(self, job_id: str) -> dict[str, datetime]:
        """Tell when events of each kind came last."""
        events = map(json.loads, self.ok("events", job_id, "--json").splitlines())
        return {event["event_type"]: datetime.fromisoformat(event["created_at"]) for event in events}

    def until_running(self, job_id: str, node: str) -> None:
        eventually(lambda: node in self.job(job_id)["progress"]["current"], f"{node} under way")


def write_workflows(folder: Path) -> Path:
    folder.mkdir()
    for name, text in WORKFLOWS.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def engine(first_start: FirstStart) -> Iterator[Engine]:
    with open_folder() as made:
        workflows = write_workflows(made / "workflows")
        up = Up(
            copy_home(first_start.home, made / "home"),
            GRATICULE_WORKFLOWS=str(workflows),
            GRATICULE_WORKER_LEASE_SECONDS="4",  # what a killed worker held is given to another one soon
            GRATICULE_WORKER_RENEW_SECONDS="1",
        )
        try:
            yield Engine(up.until_ready())
        finally:
            up.close()


def test_the_demonstration_is_submitted_watched_and_completes(engine: Engine) -> None:
    result = engine.run("submit", "demo", "-p", "chunks=6", "-p", "failure_rate=0.3", "--watch")
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"is_large +completed +→ split", result.stdout)
    assert re.search(r"split +completed +━{12} +6/6", result.stdout)
    assert re.search(r"process_whole +skipped", result.stdout)
    assert "job_completed" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("workflow_id", "retries"),
    [
        ("hello_world", 0),
        ("echo_test", 0),
        ("fan_out_test", 0),
        ("conditional_test", 0),
        ("retry_test", 2),  # half of the attempts fail; with this seed the first two
        ("retry_fan_out_test", 11),  # three of ten fail
    ],
)
def test_the_small_workflows_complete_and_what_fails_by_chance_is_tried_again(
    engine: Engine, workflow_id: str, retries: int
) -> None:
    seed = ("-p", "seed=graticule") if retries else ()
    result = engine.run("submit", workflow_id, *seed, "--watch", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    job = json.loads(result.stdout)
    assert (job["workflow_id"], job["status"]) == (workflow_id, "completed")
    events = [json.loads(line) for line in engine.ok("events", job["job_id"], "--json").splitlines()]
    assert [event["event_type"] for event in events].count("node_retry") == retries


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


def test_a_job_is_cancelled_while_its_task_runs_and_the_watcher_hears_of_it(engine: Engine) -> None:
    job_id = engine.submit("slow")
    watcher = Program(engine.up.home.parent, graticule_command(), "watch", job_id, GRATICULE_HOME=str(engine.up.home))
    try:
        engine.until_running(job_id, "rest")
        engine.ok("cancel", job_id)
        assert watcher.wait() == 1
        assert "cancelled" in watcher.output
    finally:
        watcher.close()
    assert engine.job(job_id)["status"] == "cancelled"
    eventually(lambda: "result_ignored" in engine.moments(job_id), "the handler's end")
    moments = engine.moments(job_id)
    assert moments["result_ignored"] - moments["job_cancelled"] < timedelta(seconds=2)


def test_an_interrupted_watcher_says_that_the_job_goes_on(engine: Engine) -> None:
    job_id = engine.submit("slow")
    watcher = Program(engine.up.home.parent, graticule_command(), "watch", job_id, GRATICULE_HOME=str(engine.up.home))
    try:
        eventually(lambda: "node_dispatched" in watcher.output, lambda: f"an event; {watcher.errors}")
        assert watcher.end(signal.SIGINT) == 130
        assert "The job goes on" in watcher.errors
        assert "Traceback" not in watcher.errors
    finally:
        watcher.close()
    assert engine.job(job_id)["status"] == "running"
    engine.ok("cancel", job_id)


def test_a_failed_job_is_retried_and_what_completed_is_kept(engine: Engine) -> None:
    job_id = json.loads(engine.run("submit", "doomed", "--watch", "--json").stdout)["job_id"]
    engine.ok("retry", job_id)
    assert engine.run("watch", job_id).returncode == 1
    events = [json.loads(line) for line in engine.ok("events", job_id, "--json").splitlines()]
    completed = [event["node_id"] for event in events if event["event_type"] == "node_completed"]
    assert completed.count("fine") == 1
    assert [event["event_type"] for event in events].count("job_resumed") == 1
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
    assert [sorted(worker["queues"]) for worker in workers] == [["container-tasks", "functionapp-tasks"]]


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
    assert [job["job_id"] for job in json.loads(engine.ok("jobs", "--json"))] == [active]
    engine.ok("cancel", active)
    assert engine.run("watch", ended).returncode == 1


def test_a_job_survives_the_death_of_its_worker_at_any_moment(engine: Engine) -> None:
    job_id = engine.submit("demo", "-p", "chunks=30", "-p", "failure_rate=0.2")
    killed = engine.up.child("worker")
    killed.kill()
    assert engine.run("watch", job_id, seconds=150).returncode == 0
    eventually(engine.up.is_ready, "a new worker")


def test_a_worker_started_alone_serves_the_queues_that_it_is_told(engine: Engine, folder: Path) -> None:
    port = engine.up.port + 3
    command = (graticule_command(), "worker", "--queues", "other-tasks", "--port", str(port))
    worker = Program(folder, *command, port=port, GRATICULE_HOME=str(engine.up.home))
    try:
        worker.until_status("/readyz", 200)
        health = worker.get("/health").json()
        assert health["process"] == "worker"
        assert health["checks"]["database"]["detail"]["role"] == DatabaseRole.WORKER
        assert worker.end() == 0
    finally:
        worker.close()


def test_the_note_tells_where_everything_is_and_goes_with_the_installation(home: Path, start_up: StartUp) -> None:
    up = start_up(home, "--workers", "2").until_ready()
    note = json.loads((home / "installation.json").read_text())
    assert note["orchestrator"] == f"http://127.0.0.1:{up.port + 1}"
    assert note["workers"] == [f"http://127.0.0.1:{up.port + 2}", f"http://127.0.0.1:{up.port + 3}"]
    assert note["process_id"] == up.pid
    assert up.admin_key not in (home / "installation.json").read_text()
    assert up.status("/readyz", up.port + 3) == 200
    assert up.end() == 0
    assert not (home / "installation.json").exists()
    assert processes_of(home) == []


def test_without_workers_a_job_waits(home: Path, start_up: StartUp) -> None:
    up = start_up(home, "--workers", "0").until_ready()
    engine = Engine(up)
    job_id = engine.submit("echo_test")
    assert set(up.children) == {"gateway", "orchestrator", "postgres"}
    assert engine.job(job_id)["status"] == "running"
    assert re.search(r"workers +none", up.output)


def test_a_stop_hands_the_tasks_back_and_the_next_start_finishes_the_job(
    home: Path, folder: Path, start_up: StartUp
) -> None:
    workflows = str(write_workflows(folder / "workflows"))
    up = start_up(home, GRATICULE_WORKFLOWS=workflows).until_ready()
    job_id = Engine(up).submit("slow", "-p", "seconds=3")
    Engine(up).until_running(job_id, "rest")
    assert up.end() == 0
    assert "is killed" not in up.errors
    after = Engine(start_up(home, GRATICULE_WORKFLOWS=workflows).until_ready())
    assert after.run("watch", job_id).returncode == 0
    retries = [event for event in after.ok("events", job_id).splitlines() if "node_retry" in event]
    assert retries == []


def test_nothing_running_is_told_with_the_way_to_start_it(folder: Path) -> None:
    result = subprocess.run(
        [graticule_command(), "jobs", "--server", "http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(GRATICULE_HOME=str(folder / "none")),
    )
    assert result.returncode == 1
    problem, hint = result.stderr.splitlines()
    assert problem.startswith("✗ Nothing answers")
    assert "graticule up" in hint


def test_the_demo_shows_data_on_their_way_from_a_partner_to_the_approval(home: Path) -> None:
    """Also from a folder of strangers' files: none of them is taken for a module."""
    (home.parent / "typer.py").write_text("raise SystemExit('imported from the current folder')")
    demo = Program(home.parent, graticule_command(), "demo", GRATICULE_HOME=str(home))
    try:
        assert demo.wait(90) == 0, demo.errors
    finally:
        demo.close()
    assert re.findall(r"^ (\w+) +http://127\.0\.0\.1:\d+ +healthy", demo.output, re.MULTILINE) == [
        *("gateway", "orchestrator", "worker"),
    ]
    assert f"{len(TABLES)} tables" in demo.output
    assert re.findall(r"^✓ (\w+) [0-9a-f]{32} +completed", demo.output, re.MULTILINE) == [
        *("raster_ingest", "vector_ingest"),
    ]
    assert "✓ A reviewer approved both" in demo.errors
    cog = re.search(r"COG +(silver/\S+\.tif)$", demo.output, re.MULTILINE)
    assert cog is not None
    assert (home / "storage" / cog[1]).is_file()
    assert re.search(r"STAC item +island-relief-1-\w+-v0 of collection island-survey-island-relief", demo.output)
    assert re.findall(r"^ +(red|green|blue)(?: +[\d.]+){4}", demo.output, re.MULTILINE) == ["red", "green", "blue"]
    assert re.search(r"table +geo\.island_parcels_1_\w+_v0$", demo.output, re.MULTILINE)
    assert re.search(r"\d+ rows of geometry\(MultiPolygon, 4326\)$", demo.output, re.MULTILINE)
    addresses = re.findall(r"^   (\w+) +http://127\.0\.0\.1:\d+/(\w+)/[0-9a-f]{32}$", demo.output, re.MULTILINE)
    assert addresses == [(name, name) for name in ("tiles", "stac", "features", "stac")]
    assert re.search(r"! demo/dry_season.tif was sent back: .*\(not_a_raster\)\n· .*how to mend it: \w", demo.errors)
    assert re.search(r"graticule up ", demo.output)
    assert "Traceback" not in demo.errors
    assert "\x1b" not in demo.output
    assert (home / "admin.key").read_text().strip() not in demo.output + demo.errors
    assert "gtc_" not in demo.output + demo.errors  # how the keys of clients begin
    assert processes_of(home) == []
    assert not (home / "installation.json").exists()


def test_prune_works_on_an_installation_that_is_stopped_and_leaves_it_so(home: Path, folder: Path) -> None:
    prune = Program(folder, graticule_command(), "prune", "--older-than", "90d", GRATICULE_HOME=str(home))
    try:
        assert prune.wait() == 0, prune.errors
    finally:
        prune.close()
    assert "Removed 0 jobs" in prune.errors
    assert processes_of(home) == []
