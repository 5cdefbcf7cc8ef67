"""`graticule`: its help, its choice of a role, and how it tells of errors."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from fastapi import FastAPI
from rich.console import Console
from tests.unit.cli.conftest import assert_told_in_two_lines, run

from graticule import __version__
from graticule.cli import installation, up
from graticule.cli.installation import AdminKey, Installation
from graticule.cli.supervisor import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, PROVEN_AFTER_SECONDS, next_pause
from graticule.core.errors import GraticuleError, Unavailable
from graticule.core.models.engine import Task
from graticule.http.connections import ConnectionPolicy
from graticule.worker.app import DEFAULT_CONCURRENCY, DEFAULT_QUEUES

COMMANDS = [
    *("up", "demo", "doctor", "orchestrator", "gateway", "worker", "config", "schema", "workflow", "prune"),
    *("submit", "jobs", "watch", "events", "cancel", "retry", "dead-letters"),
    *("asset", "platform", "client", "callbacks", "stats", "command"),
]
FURTHER_COMMANDS = {
    "dead-letters": ["list", "requeue", "discard"],
    "asset": [
        *("submit", "status", "list", "show", "history", "approve", "reject", "revoke", "clearance", "url-mode"),
        *("delete-version", "unpublish", "reprocess", "retry"),
    ],
    "platform": ["list", "show", "add", "change", "webhook-secret"],
    "client": ["add", "list", "rotate", "disable", "enable"],
    "callbacks": ["list", "redeliver"],
    "stats": ["today", "stuck", "failed", "durations", "attempts", "load", "dataset"],
    "command": ["list", "run"],
}
SCHEMA_COMMANDS = ["status", "tables", "ddl", "deploy", "migrate", "rebuild"]
SECRET = "Zq7hunterXk9rabbit"

INVALID = [
    ("RUN_MODE", SECRET),
    ("LOG_LEVEL", SECRET),
    ("LOG_FORMAT", SECRET),
    ("POSTGRES_PORT", SECRET),
    ("USE_MANAGED_IDENTITY", SECRET),
    ("ORCHESTRATOR_POLL_INTERVAL", SECRET),
    ("HEARTBEAT_INTERVAL_SEC", SECRET),
    ("ORPHAN_THRESHOLD_SEC", "-120120120"),
    ("ORPHAN_SCAN_INTERVAL_SEC", SECRET),
    ("JOB_QUEUE_NAME", SECRET * 10),
    ("DAG_CALLBACK_URL", SECRET),
    ("GRATICULE_RUN_MODE", SECRET),
    ("GRATICULE_HEARTBEAT_INTERVAL_SECONDS", SECRET),
    ("GRATICULE_DATABASE_URL", SECRET),
    ("GRATICULE_OWNER_DATABASE_URL", SECRET),
    ("GRATICULE_DATABASE_POOL_SIZE", SECRET),
    ("GRATICULE_DATABASE_TIMEOUT_SECONDS", SECRET),
    ("GRATICULE_DEVELOPMENT", SECRET),
]


def test_help_names_every_command() -> None:
    result = run("--help")
    assert result.code == 0
    assert all(command in result.out for command in COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        *([name] for name in COMMANDS),
        *(["schema", name] for name in SCHEMA_COMMANDS),
        *([group, name] for group, names in FURTHER_COMMANDS.items() for name in names),
    ],
    ids=" ".join,
)
def test_each_command_explains_itself(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.code == 0
    assert " ".join(command) in result.out


def helped(*command: str) -> str:
    """Give the words of a help text in one line, as they stand in 80 columns."""
    result = run(*command, "--help", variables={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    return " ".join(result.out.replace("│", " ").split())


def test_the_help_of_a_worker_tells_what_it_does_by_default() -> None:
    told = helped("worker")
    assert f"GRATICULE_WORKER_CONCURRENCY or else {DEFAULT_CONCURRENCY}." in told
    assert f"GRATICULE_WORKER_QUEUE or else {' and '.join(DEFAULT_QUEUES)}." in told
    assert "…" not in told  # no name is cut


def test_the_help_of_dead_letters_tells_what_they_are_and_what_becomes_of_them() -> None:
    assert "A dead letter is a message that nobody tries to deliver any more" in helped("dead-letters")
    assert f"delivered {Task.model_fields['max_deliveries'].default} times" in helped("dead-letters")
    assert "the job goes on with a new attempt" in helped("dead-letters", "requeue")
    assert "it is never delivered. The job of a task stays as it is" in helped("dead-letters", "discard")
    assert "newest first" in helped("dead-letters", "list")


def test_version() -> None:
    assert run("--version").out == f"graticule {__version__}\n"


def test_without_a_command_and_a_role_the_help_is_shown() -> None:
    result = run()
    assert result.code == 0
    assert "Usage: graticule" in result.out


@pytest.mark.parametrize("arguments", [["nonsense"], ["up", "--port", "0"], ["up", "--port", "65535"], ["up", "--x"]])
def test_a_wrong_use_ends_with_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert "Usage: graticule" in result.err


def test_help_answers_at_once_because_nothing_heavy_is_imported_for_it() -> None:
    script = "import sys, graticule.cli.main; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {"fastapi", "uvicorn", "httpx", "starlette", "pypgstac"} & set(found.stdout.split()) == set()


@pytest.mark.parametrize("role", ["gateway", "orchestrator", "worker"])
@pytest.mark.parametrize("name", ["RUN_MODE", "GRATICULE_RUN_MODE"])
def test_the_role_is_chosen_by_a_variable(monkeypatch: pytest.MonkeyPatch, role: str, name: str) -> None:
    served: list[tuple[str, str, int]] = []

    async def serve(app: FastAPI, host: str, port: int, *, policy: ConnectionPolicy) -> None:
        served.append((app.title, host, port))

    monkeypatch.setattr("graticule.http.server.serve", serve)
    monkeypatch.setattr("graticule.logs.configure_logging", lambda *_: None)
    variables = {name: role, "GRATICULE_DATABASE_URL": "postgresql://u@127.0.0.1:1/nowhere"}
    for place in ({}, {"GRATICULE_HOST": "0.0.0.0", "GRATICULE_PORT": "9000"}):
        result = run(variables=variables | place)
        assert result.code == 0, result.err
    default_port = {"gateway": 8000, "orchestrator": 8001, "worker": 8002}[role]
    assert served == [(f"Graticule {role}", "127.0.0.1", default_port), (f"Graticule {role}", "0.0.0.0", 9000)]


@pytest.mark.parametrize("role", ["gateway", "orchestrator", "worker", "serve"])
def test_every_process_serves_within_the_limits_of_its_settings(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    served: list[ConnectionPolicy] = []

    async def serve(app: FastAPI, host: str, port: int, *, policy: ConnectionPolicy) -> None:
        served.append(policy)

    monkeypatch.setattr("graticule.http.server.serve", serve)
    monkeypatch.setattr("graticule.logs.configure_logging", lambda *_: None)
    limits = {
        "GRATICULE_HTTP_MAX_CONNECTIONS": "20",
        "GRATICULE_HTTP_MAX_CONNECTIONS_PER_ADDRESS": "17",
        "GRATICULE_HTTP_HEAD_SECONDS": "3",
        "GRATICULE_HTTP_BODY_SECONDS": "4",
        "GRATICULE_TRUSTED_PROXIES": "10.0.0.0/24",
    }
    result = run(role, variables={"GRATICULE_DATABASE_URL": "postgresql://u@127.0.0.1:1/nowhere"} | limits)
    assert result.code == 0, result.err
    (policy,) = served
    assert policy == ConnectionPolicy(20, 17, head_seconds=3, body_seconds=4, proxies=policy.proxies)
    assert ["10.0.0.9" in policy.proxies, "10.0.1.9" in policy.proxies] == [True, False]


def test_a_command_wins_over_the_role_of_the_variable() -> None:
    assert run("config", variables={"RUN_MODE": "gateway"}).out.startswith("{")


@pytest.mark.parametrize("command", ["orchestrator", "gateway", "worker"])
def test_a_foreseen_error_is_told_in_two_lines(command: str, tmp_path: Path) -> None:
    problem, hint = assert_told_in_two_lines(run(command, variables={"GRATICULE_HOME": str(tmp_path)}))
    assert str(tmp_path) in problem
    assert "GRATICULE_DATABASE_URL" in hint


@pytest.mark.parametrize("name", ["a[b]c", "[/red]", "[red]", r"a\[b]", ":smile:"])
def test_what_is_told_is_printed_to_the_letter(name: str, tmp_path: Path) -> None:
    home = Path(f"{tmp_path}/{name}")
    problem, _ = assert_told_in_two_lines(run("gateway", variables={"GRATICULE_HOME": str(home)}))
    assert str(home) in problem


@pytest.mark.parametrize(("name", "value"), INVALID)
def test_an_invalid_setting_is_named_and_its_value_is_not_shown(name: str, value: str) -> None:
    result = run("config", variables={name: value})
    problem, _ = assert_told_in_two_lines(result)
    assert f" {name}: " in problem
    assert value not in result.out + result.err


def test_every_invalid_setting_is_named_at_once() -> None:
    result = run("config", variables={"LOG_LEVEL": "x", "LOG_FORMAT": "y"})
    problem, _ = assert_told_in_two_lines(result)
    assert "LOG_LEVEL" in problem
    assert "LOG_FORMAT" in problem


def test_a_lease_that_would_run_out_before_it_is_renewed_is_refused_with_both_variables() -> None:
    result = run("config", variables={"GRATICULE_WORKER_LEASE_SECONDS": "5"})
    problem, _ = assert_told_in_two_lines(result)
    assert "GRATICULE_WORKER_RENEW_SECONDS: " in problem
    assert "must be less than GRATICULE_WORKER_LEASE_SECONDS" in problem


def test_an_address_in_pairs_is_as_good_as_one_in_a_line() -> None:
    result = run("config", variables={"GRATICULE_DATABASE_URL": f"host=h dbname=maps password={SECRET}"})
    assert result.code == 0
    assert "maps" in result.out
    assert SECRET not in result.out


LONG_HOME = Path("/srv/a-rather-long-path/that-an-operator/has-chosen-for-the-data/of-this-installation/graticule")


def told(console: Console, *, is_new: bool) -> str:
    key = AdminKey(LONG_HOME / "admin.key", "the-admin-key", is_new=is_new)
    running = Installation(
        gateway="http://127.0.0.1:8000",
        orchestrator="http://127.0.0.1:8001",
        workers=("http://127.0.0.1:8002",),
        serve="http://127.0.0.1:8003",
        database=f"graticule on {LONG_HOME}",
        home=LONG_HOME,
        logs=LONG_HOME / "logs",
        admin_key=key,
    )
    up._tell(running, 1.0)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.fixture(params=[False, True], ids=["to a file", "to a terminal"])
def console(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Console:
    made = Console(file=StringIO(), width=80, force_terminal=request.param, color_system=None, highlight=False)
    monkeypatch.setattr(up, "out", made)
    return made


def test_addresses_and_paths_are_never_broken_in_two(console: Console) -> None:
    lines = told(console, is_new=False).splitlines()
    for text in ("http://127.0.0.1:8000", f"graticule on {LONG_HOME}", str(LONG_HOME / "logs"), f"{LONG_HOME}"):
        assert any(line.rstrip().endswith(text) for line in lines), text


def test_a_new_key_is_shown_to_a_person_only_and_once(console: Console) -> None:
    assert ("the-admin-key" in told(console, is_new=True)) == console.is_terminal
    console.file = StringIO()
    assert "the-admin-key" not in told(console, is_new=False)


def test_the_key_is_not_in_what_is_shown_of_an_installation() -> None:
    assert "secret" not in repr(AdminKey(Path("/x"), "secret", is_new=True))


@pytest.mark.parametrize("raised", [Unavailable("It is away.", hint="Wait."), GraticuleError("It is odd.")])
async def test_an_error_while_processes_are_supervised_stays_the_error_that_it_is(raised: GraticuleError) -> None:
    """The command line tells these in two lines, and would print a traceback for a group of them."""
    with pytest.raises(type(raised)) as found:
        async with installation._supervised([]):
            raise raised
    assert found.value is raised


def test_the_pause_before_a_restart_grows_up_to_a_limit_and_is_short_after_a_good_run() -> None:
    pauses = [FIRST_PAUSE_SECONDS]
    while pauses[-1] < LONGEST_PAUSE_SECONDS:
        pauses.append(next_pause(pauses[-1], ran_seconds=1))
        assert pauses[-1] > pauses[-2]
    assert next_pause(LONGEST_PAUSE_SECONDS, ran_seconds=1) == LONGEST_PAUSE_SECONDS
    assert next_pause(LONGEST_PAUSE_SECONDS, ran_seconds=PROVEN_AFTER_SECONDS) == FIRST_PAUSE_SECONDS
