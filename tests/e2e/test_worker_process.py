"""`graticule worker` as a process of its own: it works, it hands back, it ends, and it leaves nothing behind."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.conftest import TestDatabase
from tests.e2e.carrier import Carrier, brokered
from tests.e2e.conftest import StartProcess
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program
from tests.e2e.processes import all_processes, find_process, graticule_command

from graticule.config import Transport
from graticule.core.ids import OwnerId
from graticule.core.table import DatabaseRole

QUEUE = "container-tasks"
OWNER = "owner"  # of the job
StartWorker = Callable[..., Program]


class Board:
    """Gives tasks out and sees what comes back."""

    def __init__(self, database: TestDatabase, carrier: Carrier, folder: Path) -> None:
        self._url = database.url()
        self._carrier = carrier
        self._folder = folder
        self.ask(
            "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)"
            " VALUES (repeat('ab', 32), 'flow', '1', 'Flow', '{}')"
        )
        self.ask(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, owner_id)"
            " VALUES ('job', 'flow', '1', repeat('ab', 32), %s)",
            OWNER,
        )

    def ask(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self._url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def give(self, task_id: str, handler: str, **params: Any) -> None:
        self.ask(
            "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params)"
            " VALUES (%s, 'job', 'node', %s, %s, %s)",
            task_id,
            QUEUE,
            handler,
            json.dumps(params),
        )
        self.ask("SELECT pg_notify('graticule_queue_' || md5(%s), '')", QUEUE)
        self._carrier.announce()

    def result(self, task_id: str) -> dict[str, Any]:
        """Wait for the end of a task."""
        query = "SELECT * FROM dagapp.dag_task_results WHERE task_id = %s AND status <> 'running'"
        return eventually(lambda: self.ask(query, task_id), lambda: f"a result of {task_id}; {self._seen(task_id)}")[0]

    def _seen(self, task_id: str) -> str:
        """Tell where a task is, and what the processes have told of it."""
        said = [file.read_text() for file in sorted(self._folder.glob("*.err"))]
        return "\n".join([str(self.task(task_id)), *said])

    def give_again(self, task_id: str) -> None:
        """Do what an orchestrator does when a lease has run out."""
        self.ask(
            "UPDATE dagapp.dag_tasks SET status = 'queued', leased_by = NULL, lease_expires_at = NULL, sent_at = NULL"
            " WHERE task_id = %s",
            task_id,
        )
        self._carrier.announce()

    def task(self, task_id: str) -> dict[str, Any]:
        return self.ask("SELECT * FROM dagapp.dag_tasks WHERE task_id = %s", task_id)[0]

    def phase(self) -> str | None:
        found = self.ask("SELECT phase FROM dagapp.dag_checkpoints")
        return found[0]["phase"] if found else None


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
def transport() -> Transport:
    """Name the transport; `on_both_transports` runs a test on each."""
    return Transport.POSTGRES


on_both_transports = pytest.mark.parametrize(
    "transport", [Transport.POSTGRES, pytest.param(Transport.SERVICEBUS, marks=pytest.mark.thorough)]
)


@pytest.fixture
def carrier(transport: Transport, database: TestDatabase, folder: Path) -> Iterator[Carrier]:
    """Give the transport: for a broker, that and the part of an orchestrator that sends tasks to it."""
    if transport is Transport.POSTGRES:
        yield Carrier()
        return
    with brokered(database.url(DatabaseRole.ORCHESTRATOR), folder, OwnerId(OWNER), QUEUE) as carrier:
        yield carrier


@pytest.fixture
def board(database: TestDatabase, carrier: Carrier, folder: Path) -> Board:
    return Board(database, carrier, folder)


@pytest.fixture
def start_worker(database: TestDatabase, carrier: Carrier, start_process: StartProcess, folder: Path) -> StartWorker:
    def start(program: str = FORKED, **environment: str) -> Program:
        return start_process(
            "worker",
            program,
            GRATICULE_DATABASE_URL=database.url("graticule_worker"),
            GRATICULE_HOME=str(folder / "home"),
            **{"WORKER_QUEUE": QUEUE, **carrier.environment, **environment},
        )

    return start


def children_of(program: Program) -> list[int]:
    return [process.pid for process in all_processes() if process.parent == program.pid]


def test_it_works_tells_how_it_is_and_ends_with_status_0(board: Board, start_worker: StartWorker) -> None:
    worker = start_worker(graticule_command())
    worker.until_status("/readyz", 200)
    assert worker.get("/health").json()["checks"]["database"]["detail"]["role"] == "graticule_worker"
    board.give("t", "echo", a=1)
    result = board.result("t")
    assert result["output"] == {"echoed_params": {"a": 1}}
    (row,) = board.ask("SELECT * FROM dagapp.dag_workers")
    assert (row["worker_id"], row["queues"], row["stopped_at"]) == (result["worker_id"], [QUEUE], None)
    assert row["process_id"] == worker.pid
    metrics = worker.get("/metrics").text
    assert 'graticule_worker_tasks_total{handler="echo",outcome="completed"} 1.0' in metrics
    assert worker.end() == 0
    assert board.ask("SELECT stopped_at FROM dagapp.dag_workers")[0]["stopped_at"] is not None
    assert "Traceback" not in worker.errors


@on_both_transports
def test_a_worker_that_is_told_to_end_hands_back_and_the_next_one_resumes(
    board: Board, start_worker: StartWorker
) -> None:
    first = start_worker()
    board.give("t", "multi_phase", phases=8, seconds_per_phase=0.4)
    eventually(board.phase, "a checkpoint")
    assert first.end() == 0
    task = board.task("t")
    assert (task["status"], task["leased_by"], task["delivery_count"]) == ("queued", None, 0)
    saved = board.phase()
    second = start_worker()
    result = board.result("t")
    assert (result["status"], result["output"]) == ("completed", {"phases": 8, "resumed_from": saved})
    assert result["worker_id"] != task["leased_by"]
    assert second.end() == 0


@on_both_transports
def test_the_second_signal_ends_it_at_once(board: Board, start_worker: StartWorker) -> None:
    worker = start_worker()
    board.give("t", "multi_phase", phases=2, seconds_per_phase=100)
    eventually(lambda: len(children_of(worker)) > 0, "a child process")
    eventually(lambda: board.task("t")["status"] == "leased", "the task under way")
    os.kill(worker.pid, signal.SIGTERM)
    eventually(lambda: "waiting for handlers" in worker.errors, "the worker to wait")
    began = time.monotonic()
    os.kill(worker.pid, signal.SIGTERM)
    worker.wait()
    assert time.monotonic() - began < 15, "it waits 30 s for a handler unless it is hurried"
    task = board.task("t")
    assert (task["status"], task["delivery_count"]) == ("queued", 0)


@on_both_transports
def test_a_worker_that_is_killed_takes_its_child_processes_along_and_its_task_goes_to_another(
    board: Board, start_worker: StartWorker
) -> None:
    worker = start_worker()
    board.give("t", "multi_phase", phases=8, seconds_per_phase=0.4)
    eventually(board.phase, "a checkpoint")
    children = [process for pid in children_of(worker) if (process := find_process(pid))]
    assert children
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: not any(child.running for child in children), "the end of the children", 5)
    worker.wait()  # its children end with its main thread; with the last one its links, on which tasks are sent to it
    saved = board.phase()
    board.give_again("t")
    start_worker()
    assert board.result("t")["output"] == {"phases": 8, "resumed_from": saved}
    assert board.task("t")["delivery_count"] == 2


@on_both_transports
def test_a_worker_can_report_to_an_orchestrator_by_http(
    database: TestDatabase, board: Board, start_worker: StartWorker, start_process: StartProcess, folder: Path
) -> None:
    board.ask("UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now()")  # the orchestrator is to leave it
    shared = {"GRATICULE_WORKER_TOKEN": "a-token-of-some-length", "GRATICULE_STORAGE_ROOT": str(folder / "storage")}
    orchestrator = start_process(
        "orchestrator", GRATICULE_DATABASE_URL=database.url("graticule_orchestrator"), **shared
    )
    orchestrator.until_status("/readyz", 200)
    worker = start_worker(DAG_CALLBACK_URL=f"http://127.0.0.1:{orchestrator.port}", **shared)
    board.give("quick", "echo", a=1)
    assert board.result("quick")["output"] == {"echoed_params": {"a": 1}}
    board.give("phases", "multi_phase", phases=4, seconds_per_phase=0.5)
    assert board.result("phases")["output"] == {"phases": 4, "resumed_from": None}
    assert board.phase() == "phase_4"
    board.give("again", "multi_phase", phases=5, seconds_per_phase=0)
    assert board.result("again")["output"] == {"phases": 5, "resumed_from": "phase_4"}
    board.give("fails", "fail", message="no", retryable=False)
    failed = board.result("fails")
    assert (failed["status"], failed["error_message"], failed["retryable"]) == ("failed", "no", False)
    assert {board.task(name)["status"] for name in ("quick", "phases", "again", "fails")} == {"done"}
    assert worker.end() == 0
    assert "Traceback" not in worker.errors
