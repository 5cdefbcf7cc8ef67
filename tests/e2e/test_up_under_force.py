"""`graticule up` when its parts are killed: what dies is started again, and nothing outlives it."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.conftest import KEPT, StartUp
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.processes import processes_of

from graticule.core.table import DatabaseRole
from graticule.embedded.server_user import ServerUser

FAILED_ATTEMPT = "It is tried again"
COUNT_KEPT = f"SELECT count(*) FROM dagapp.platforms WHERE platform_id = '{KEPT}'"


def until_replaced(up: Up, name: str) -> None:
    """Kill a child, and wait until another one is in its place and everything is ready."""
    killed = up.child(name)
    killed.kill()
    eventually(lambda: not killed.running, f"the end of the {name}")
    eventually(
        lambda: up.children.get(name) not in {None, killed} and up.is_ready(), lambda: f"a new {name}; {up.errors}"
    )


@contextmanager
def database_down(up: Up) -> Iterator[None]:
    """Kill the database, and keep it from starting for the while."""
    configuration = up.home / "postgres" / "data" / "postgresql.conf"
    sound = configuration.read_text()
    configuration.write_text(sound + "\nthis is no setting\n")
    failed = up.errors.count(FAILED_ATTEMPT)
    up.child("postgres").kill()
    eventually(lambda: up.errors.count(FAILED_ATTEMPT) > failed, "an attempt that fails")
    yield
    configuration.write_text(sound)


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """Give another program of the server's user: PostgreSQL takes such a one for a server of its own."""
    program = subprocess.Popen(["sleep", "600"], **ServerUser.choose().process_options())
    yield program
    program.kill()
    program.wait()


def test_whatever_is_killed_under_a_running_up_is_started_again(
    home: Path, start_up: StartUp, stranger: "subprocess.Popen[bytes]"
) -> None:
    data = home / "postgres" / "data"
    (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n1700000000\n54329\n{data.parent}\n*\n  1 2\nready\n")
    up = start_up(home).until_ready()
    _a_pid_file_with_the_number_of_another_program_kept_nothing_from_starting(up, stranger)
    _a_killed_process_is_started_again_beside_the_others(up)
    _sessions_that_the_server_ends_are_replaced_under_the_same_processes(up)
    _a_killed_database_is_started_again_under_the_same_processes(up)
    _a_database_that_does_not_come_back_at_once_and_loses_its_port_is_still_reached(up)
    assert up.end() == 0
    assert "Traceback" not in up.errors
    assert processes_of(home) == []


def _a_pid_file_with_the_number_of_another_program_kept_nothing_from_starting(
    up: Up, stranger: "subprocess.Popen[bytes]"
) -> None:
    assert up.child("postgres").pid != stranger.pid
    assert up.query(COUNT_KEPT) == [(1,)]
    assert stranger.poll() is None


def _a_killed_process_is_started_again_beside_the_others(up: Up) -> None:
    for name, told in (("gateway", "gateway"), ("orchestrator", "orchestrator"), ("worker", "worker-1")):
        before = up.children
        until_replaced(up, name)
        assert {**up.children, name: None} == {**before, name: None}
        assert f"The {told} ended with signal SIGKILL; it is started again." in up.errors
        assert up.get("/health", up.ports[name]).json()["process"] == name


def _sessions_that_the_server_ends_are_replaced_under_the_same_processes(up: Up) -> None:
    before = up.children
    names = f"'{DatabaseRole.GATEWAY}', '{DatabaseRole.ORCHESTRATOR}', '{DatabaseRole.WORKER}'"
    up.query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ({names})")
    eventually(up.is_ready, "ready again")
    assert up.children == before


def _a_killed_database_is_started_again_under_the_same_processes(up: Up) -> None:
    before = up.children
    until_replaced(up, "postgres")
    assert up.children["gateway"] == before["gateway"]
    assert up.children["orchestrator"] == before["orchestrator"]
    assert up.query(COUNT_KEPT) == [(1,)]


def _a_database_that_does_not_come_back_at_once_and_loses_its_port_is_still_reached(up: Up) -> None:
    port = int((up.home / "postgres.port").read_text())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with database_down(up):
            other.bind(("127.0.0.1", port))
            other.listen()
            assert not up.is_ready()
        eventually(up.is_ready, lambda: f"ready again; {up.errors}")
    assert up.query(COUNT_KEPT) == [(1,)]


def test_nothing_outlives_an_up_that_dies_and_the_next_one_has_the_data(home: Path, start_up: StartUp) -> None:
    killed = start_up(home).until_ready()
    _nothing_outlives(killed, signal.SIGKILL)
    again = start_up(home, port=killed.port).until_ready()
    assert again.query(COUNT_KEPT) == [(1,)]
    assert again.is_ready()
    for process in again.everyone():  # all at once: nothing has time to tidy up
        process.kill()
    again.wait()
    after_the_remains = start_up(home).until_ready()
    assert after_the_remains.query(COUNT_KEPT) == [(1,)]
    _nothing_outlives(after_the_remains, signal.SIGHUP)  # which a closed terminal sends


def _nothing_outlives(up: Up, number: signal.Signals) -> None:
    everyone = up.everyone()
    assert len(everyone) > 8
    up.process.send_signal(number)
    up.wait()
    eventually(lambda: not any(process.running for process in everyone), "the end of every process", 15)
    assert processes_of(up.home) == []
