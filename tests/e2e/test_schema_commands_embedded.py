"""`graticule schema …` and `graticule demo` on a data folder: the database is started for the while."""

import json
import signal
import sys
from pathlib import Path

import pytest
from tests.e2e.conftest import KEPT
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program, Up
from tests.e2e.processes import end_all, graticule_command, processes_of

from graticule.core.models import TABLES

# `status` that waits where the database is up, so that something can happen meanwhile.
SLOW_STATUS = """
import asyncio
from graticule.cli.main import main
from graticule.services.bootstrap import BootstrapService

async def status(self):
    print("waiting", flush=True)
    await asyncio.Event().wait()

BootstrapService.status = status
main()
"""


@pytest.fixture
def stopped(home: Path) -> Path:
    """Give a data folder in which nothing runs, and end what a failed test leaves in it."""
    assert processes_of(home) == []
    return home


def run_on(home: Path, *arguments: str) -> Program:
    """Run a command on a data folder to its end."""
    program = Program(home.parent, FORKED, *arguments, GRATICULE_HOME=str(home))
    try:
        program.wait(60)
    finally:
        program.close()
    return program


def test_the_database_of_a_stopped_folder_is_started_for_the_while(stopped: Path) -> None:
    status = run_on(stopped, "schema", "status", "--json")
    assert status.process.returncode == 0, status.errors
    assert json.loads(status.output)["current"] is True
    assert processes_of(stopped) == []
    tables = run_on(stopped, "schema", "tables", "--json")
    rows = {table["name"]: table["rows"] for table in json.loads(tables.output)}
    assert len(rows) == len(TABLES)
    assert rows["dagapp.platforms"] == 4  # three seeds, and the one that was kept
    assert processes_of(stopped) == []


def test_the_database_of_a_running_folder_is_used_as_it_is(installation: Up) -> None:
    before = installation.children
    status = run_on(installation.home, "schema", "status", "--json")
    assert status.process.returncode == 0, status.errors
    assert json.loads(status.output)["database"] == "graticule"
    migrate = run_on(installation.home, "schema", "migrate", "--json")
    assert json.loads(migrate.output)["applied"] == []
    assert installation.children == before
    assert installation.is_ready()
    assert installation.query(f"SELECT count(*) FROM dagapp.platforms WHERE platform_id = '{KEPT}'") == [(1,)]


def test_a_running_folder_is_not_rebuilt_by_accident(installation: Up) -> None:
    refused = run_on(installation.home, "schema", "rebuild", "--confirm", "graticule")
    assert refused.process.returncode == 1
    assert len(refused.errors.splitlines()) == 2
    assert installation.query(f"SELECT count(*) FROM dagapp.platforms WHERE platform_id = '{KEPT}'") == [(1,)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_database_running(stopped: Path, number: signal.Signals) -> None:
    program = Program(
        stopped.parent, *(sys.executable, "-c", SLOW_STATUS, "schema", "status"), GRATICULE_HOME=str(stopped)
    )
    try:
        eventually(lambda: "waiting" in program.output or not program.running, lambda: f"begun; {program.errors}")
        assert processes_of(stopped)
        assert program.end(number) != 0
        eventually(lambda: not processes_of(stopped), "the end of the database", 15)
        assert "Traceback" not in program.errors
    finally:
        program.close()
        end_all(stopped)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_and_shows_no_traceback(stopped: Path, number: signal.Signals) -> None:
    demo = Program(stopped.parent, graticule_command(), "demo", GRATICULE_HOME=str(stopped))
    try:
        eventually((stopped / "logs" / "gateway.log").exists, lambda: f"begun; {demo.errors}")
        assert demo.end(number) == 130
        assert processes_of(stopped) == []
        assert "Traceback" not in demo.errors
    finally:
        demo.close()
        end_all(stopped)
