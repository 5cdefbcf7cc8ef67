"""`graticule up` ends in order, at whatever moment it is told to, and leaves nothing behind."""

import os
import signal
from pathlib import Path

import pytest
from tests.e2e.conftest import StartUp
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.processes import processes_of

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def assert_nothing_is_left(up: Up) -> None:
    assert processes_of(up.home) == []
    assert not (up.home / "postgres" / "data" / "postmaster.pid").exists()
    assert "Traceback" not in up.errors


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_everything_with_status_0(home: Path, start_up: StartUp, number: signal.Signals) -> None:
    up = start_up(home).until_ready()
    everyone = up.everyone()
    assert set(up.children) == {"gateway", "orchestrator", "worker", "postgres"}
    assert up.end(number) == 0
    assert [process for process in everyone if process.running] == []
    assert_nothing_is_left(up)
    assert "Everything is stopped" in up.errors


def test_what_was_written_before_a_restart_is_there_after_it(home: Path, start_up: StartUp) -> None:
    first = start_up(home).until_ready()
    first.query("UPDATE dagapp.platforms SET display_name = 'Changed' WHERE platform_id = 'ddh'")
    key = first.admin_key
    assert first.end() == 0
    second = start_up(home).until_ready()
    assert second.query("SELECT display_name FROM dagapp.platforms WHERE platform_id = 'ddh'") == [("Changed",)]
    assert second.admin_key == key
    assert second.seconds < 15  # a machine under load; alone it takes two
    assert (home / "logs" / "gateway.log.1").exists()


def test_more_signals_do_not_disturb_the_end(home: Path, start_up: StartUp) -> None:
    up = start_up(home).until_ready()
    up.process.send_signal(signal.SIGTERM)
    eventually(lambda: "Stopping." in up.errors, "the announcement of the end")
    for _ in range(3):
        up.process.send_signal(signal.SIGINT)
    assert up.wait() == 0
    assert_nothing_is_left(up)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_cluster_is_made_leaves_nothing(
    folder: Path, start_up: StartUp, number: signal.Signals
) -> None:
    up = start_up(folder / "home")
    eventually(lambda: "Creating a PostgreSQL" in up.errors, "the beginning of a cluster")
    assert up.end(number) == 0
    assert_nothing_is_left(up)
    assert list((up.home / "postgres").glob("data*")) == []


def test_a_signal_while_the_processes_start_leaves_nothing(home: Path, start_up: StartUp) -> None:
    up = start_up(home)
    eventually((home / "logs" / "orchestrator.log").exists, "the start of a process")
    assert up.end() == 0
    assert_nothing_is_left(up)


def test_the_end_of_the_terminal_ends_everything(home: Path, start_up: StartUp) -> None:
    """A closed terminal sends SIGHUP: no child is left behind then either."""
    up = start_up(home).until_ready()
    everyone = up.everyone()
    os.kill(up.pid, signal.SIGHUP)
    up.wait()
    eventually(lambda: not any(process.running for process in everyone), "the end of every process", 15)
    assert processes_of(home) == []
