"""`graticule up` ends in order, at whatever moment it is told to, leaves nothing behind, and can be started again."""

import json
import re
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.conftest import WORKFLOWS, StartUp
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.processes import processes_of


def assert_nothing_is_left(up: Up) -> None:
    assert processes_of(up.home) == []
    assert not (up.home / "postgres" / "data" / "postmaster.pid").exists()
    assert not (up.home / "installation.json").exists()
    assert "Traceback" not in up.errors


def test_starts_and_ends_of_a_data_folder_follow_each_other(home: Path, start_up: StartUp) -> None:
    start = partial(start_up, home, GRATICULE_WORKFLOWS=str(WORKFLOWS))
    waiting, key = _without_workers_a_job_waits(start("--workers", "0").until_ready())
    interrupted = _two_workers_do_it_and_are_interrupted(start("--workers", "2").until_ready(), waiting, key)
    _the_next_start_finishes_and_more_signals_do_not_disturb_its_end(start().until_ready(), interrupted)


def _without_workers_a_job_waits(up: Up) -> tuple[str, str]:
    """Give the job and the admin key; something else is written, too."""
    up.query("UPDATE dagapp.platforms SET display_name = 'Changed' WHERE platform_id = 'ddh'")
    job_id = Engine(up).submit("echo_test")
    assert set(up.children) == {"gateway", "orchestrator", "postgres"}
    assert Engine(up).job(job_id)["status"] == "running"
    assert re.search(r"workers +none", up.output)
    key = up.admin_key
    _a_signal_ends_everything_with_status_0(up, signal.SIGINT)
    return job_id, key


def _two_workers_do_it_and_are_interrupted(up: Up, waiting: str, key: str) -> str:
    """All that was there before is there again. Give a job whose task the workers hand back."""
    assert up.seconds < 15  # a machine under load; alone it takes two
    assert up.query("SELECT display_name FROM dagapp.platforms WHERE platform_id = 'ddh'") == [("Changed",)]
    assert up.admin_key == key
    assert (up.home / "logs" / "gateway.log.1").exists()
    _the_note_tells_where_everything_is(up)
    assert Engine(up).run("watch", waiting).returncode == 0
    job_id = Engine(up).submit("slow", "-p", "seconds=3")
    Engine(up).until_running(job_id, "rest")
    _a_signal_ends_everything_with_status_0(up, signal.SIGTERM)
    assert "is killed" not in up.errors
    return job_id


def _the_note_tells_where_everything_is(up: Up) -> None:
    text = (up.home / "installation.json").read_text()
    note = json.loads(text)
    assert note["orchestrator"] == f"http://127.0.0.1:{up.port + 1}"
    assert note["workers"] == [f"http://127.0.0.1:{up.port + 2}", f"http://127.0.0.1:{up.port + 3}"]
    assert note["process_id"] == up.pid
    assert up.admin_key not in text
    assert up.status("/readyz", up.port + 3) == 200


def _the_next_start_finishes_and_more_signals_do_not_disturb_its_end(up: Up, interrupted: str) -> None:
    assert set(up.children) == {"gateway", "orchestrator", "worker", "postgres"}
    assert Engine(up).run("watch", interrupted).returncode == 0
    assert "node_retry" not in Engine(up).ok("events", interrupted)
    up.process.send_signal(signal.SIGTERM)
    eventually(lambda: "Stopping." in up.errors, "the announcement of the end")
    for _ in range(3):
        up.process.send_signal(signal.SIGINT)
    assert up.wait() == 0
    assert_nothing_is_left(up)


def _a_signal_ends_everything_with_status_0(up: Up, number: signal.Signals) -> None:
    everyone = up.everyone()
    assert up.end(number) == 0
    assert [process for process in everyone if process.running] == []
    assert_nothing_is_left(up)
    assert "Everything is stopped" in up.errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
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
