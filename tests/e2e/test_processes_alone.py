"""`graticule orchestrator`, `gateway` and `worker` as processes of their own, beside a database of someone else's."""

import contextlib
import json
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from tests.conftest import TestDatabase
from tests.e2e.conftest import StartProcess
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program, Up
from tests.e2e.processes import SEES_WORKERS, free_ports, graticule_command, listening_addresses

PROCESSES = ("gateway", "orchestrator", "worker")
each_process = pytest.mark.parametrize("process", PROCESSES)

StartOn = Callable[..., Program]


@pytest.fixture
def start_on(start_process: StartProcess) -> StartOn:
    """Start a process with its own login on a database."""

    def start(process: str, database: TestDatabase, **options: str) -> Program:
        return start_process(process, GRATICULE_DATABASE_URL=database.url(f"graticule_{process}"), **options)

    return start


def reasons(program: Program) -> dict[str, str]:
    """Wait until the process says that it is not ready, and give its reasons."""
    answer = program.until_status("/readyz", 503)
    assert answer.json()["status"] == "not_ready"
    found: dict[str, str] = answer.json()["reasons"]
    return found


@each_process
def test_a_process_gets_ready_and_ends_with_status_0(database: TestDatabase, start_on: StartOn, process: str) -> None:
    program = start_on(process, database, program=graticule_command())
    program.until_status("/readyz", 200)
    if process != "worker" or SEES_WORKERS:
        assert listening_addresses(program.pid) == {("127.0.0.1", program.port)}
    if process != "gateway":  # which tells strangers no details
        assert program.get("/health").json()["checks"]["database"]["detail"]["role"] == f"graticule_{process}"
    assert program.end() == 0
    assert "Traceback" not in program.errors


@each_process
def test_a_process_whose_database_is_away_is_alive_and_tells_why_it_is_not_ready(
    start_process: StartProcess, process: str
) -> None:
    away = f"postgresql://someone:hunter2@127.0.0.1:{free_ports()}/nowhere"
    program = start_process(process, GRATICULE_DATABASE_URL=away, GRATICULE_DATABASE_TIMEOUT_SECONDS="0.5")
    program.until_status("/livez", 200)
    told = reasons(program)
    assert "database" in told
    health = program.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "unhealthy")
    assert program.status("/livez") == 200
    assert program.end() == 0
    shown = program.output + program.errors + health.text + str(told)
    assert "hunter2" not in shown
    assert "Traceback" not in shown


@pytest.fixture
def mend(database: TestDatabase) -> Callable[[], object]:
    """Make the schema of a database outdated, and give what mends it."""

    def set_fingerprint(new: str) -> str:
        with psycopg.connect(database.url(), autocommit=True) as connection:
            ((old,),) = connection.execute("SELECT fingerprint FROM dagapp.schema_deployments").fetchall()
            connection.execute("UPDATE dagapp.schema_deployments SET fingerprint = %s", [new])
        return str(old)

    current = set_fingerprint("0" * 64)
    return partial(set_fingerprint, current)


@pytest.fixture
def bring_back(database: TestDatabase, mend: object) -> Iterator[Callable[[], None]]:
    """Take a database with an outdated schema away, and give what brings it back."""
    away = f"{database.name}_away"

    def rename(old: str, new: str) -> None:
        url = database.url().replace(database.name, "postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            names = map(sql.Identifier, (old, new))
            connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))

    rename(database.name, away)
    yield lambda: rename(away, database.name)
    with contextlib.suppress(psycopg.errors.InvalidCatalogName):  # it is back already
        rename(away, database.name)


@each_process
def test_a_process_gets_ready_when_its_database_appears_and_its_outdated_schema_is_mended(
    database: TestDatabase, bring_back: Callable[[], None], mend: Callable[[], object], start_on: StartOn, process: str
) -> None:
    program = start_on(process, database)
    assert "database" in reasons(program)
    bring_back()
    eventually(lambda: set(reasons(program)) == {"schema"}, "the schema as the only reason")
    assert "`graticule schema migrate`" in reasons(program)["schema"]
    mend()
    program.until_status("/readyz", 200)
    assert program.get("/health").json()["status"] == "healthy"


@each_process
def test_a_missing_schema_is_told_with_the_way_to_make_it(
    empty_databases: list[TestDatabase], start_on: StartOn, process: str
) -> None:
    program = start_on(process, empty_databases[0])
    assert set(found := reasons(program)) == {"schema"}
    assert "graticule schema" in found["schema"]


@each_process
def test_run_mode_chooses_the_process_when_no_command_is_given_and_an_interrupt_ends_it_with_status_0(
    folder: Path, database: TestDatabase, process: str
) -> None:
    port = free_ports()
    environment = {"RUN_MODE": process, "GRATICULE_DATABASE_URL": database.url(f"graticule_{process}")}
    program = Program(folder, FORKED, port=port, GRATICULE_PORT=str(port), **environment)
    try:
        program.until_status("/readyz", 200)
        assert program.get("/health").json()["process"] == process
        assert program.end(signal.SIGINT) == 0
        assert "Traceback" not in program.errors
    finally:
        program.close()


def test_json_logs_are_json_to_the_last_line_and_carry_the_request_id(
    database: TestDatabase, start_on: Callable[..., Program]
) -> None:
    program = start_on("gateway", database, LOG_FORMAT="json")
    program.until_status("/readyz", 200)
    given = program.get("/").headers["x-request-id"]
    assert program.get("/", headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert program.end() == 0
    lines = [json.loads(line) for line in program.errors.splitlines()]
    requests = {line["request_id"]: line for line in lines if line["event"] == "request"}
    assert requests.keys() == {given, "mine-1"}
    assert requests["mine-1"]["path"] == "/"
    assert {line["process"] for line in lines} == {"gateway"}
    assert program.output == ""


def test_json_logs_stay_json_when_libraries_complain(start_process: StartProcess) -> None:
    away = f"postgresql://someone:hunter2@127.0.0.1:{free_ports()}/nowhere"
    program = start_process("orchestrator", GRATICULE_DATABASE_URL=away, LOG_FORMAT="json", LOG_LEVEL="debug")
    assert reasons(program)
    eventually(lambda: "psycopg" in program.errors, "a complaint of the connection pool")
    assert program.end() == 0
    assert all(json.loads(line)["level"] for line in program.errors.splitlines())
    assert "hunter2" not in program.errors


@each_process
def test_a_taken_port_is_told_in_two_lines(database: TestDatabase, folder: Path, process: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        program = Program(
            folder,
            *(FORKED, process, "--port", str(port)),
            GRATICULE_DATABASE_URL=database.url(f"graticule_{process}"),
        )
        assert program.wait() == 1
    problem, hint = program.errors.splitlines()
    assert f"Port {port}" in problem
    assert "--port" in hint
    assert "Traceback" not in program.errors


@each_process
def test_a_process_without_any_database_says_what_to_set(start_process: StartProcess, process: str) -> None:
    program = start_process(process)
    assert program.wait() == 1
    assert len(program.errors.splitlines()) == 2
    assert "GRATICULE_DATABASE_URL" in program.errors
    assert "graticule up" in program.errors


@each_process
def test_a_malformed_address_is_refused_without_showing_it(start_process: StartProcess, process: str) -> None:
    program = start_process(process, GRATICULE_DATABASE_URL="postgresql://u:hunter2@h:not-a-port/db?nonsense=1")
    assert program.wait() == 1
    assert "DATABASE_URL" in program.errors
    assert "Traceback" not in program.errors
    assert "hunter2" not in program.errors


def test_a_further_gateway_finds_the_database_of_a_running_installation(
    installation: Up, start_process: StartProcess
) -> None:
    program = start_process("gateway", GRATICULE_HOME=str(installation.home))
    program.until_status("/readyz", 200)
    password = str(conninfo_to_dict(installation.database_url("graticule_gateway"))["password"])
    assert program.end() == 0
    assert password not in program.errors
