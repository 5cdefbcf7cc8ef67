"""Real orchestrators and workers on one database, the way to give them work, and what came of it."""

import asyncio
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from tests.chaos.handlers import LEDGER_VARIABLE
from tests.chaos.history import History, SubmittedJob, read_history
from tests.chaos.ledger import Ledger
from tests.chaos.member import Fault, Member, Orders
from tests.chaos.rules import Violation, violations
from tests.e2e.eventually import eventually
from tests.e2e.processes import free_ports
from tests.faults import handlers
from tests.faults.carriers import JOBS, TASKS, Carrier, as_orchestrator
from tests.sources import put_source

from graticule.config import Transport
from graticule.core.table import DatabaseRole
from graticule.embedded.credentials import ADMIN
from graticule.repositories.tasks import TaskRepository

ADMIN_KEY = "an-admin-key-of-some-length"
SHORT_TIMES = {
    "GRATICULE_ORCHESTRATOR_POLL_INTERVAL": "0.5",
    "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": "0.5",
    "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": "0.3",
    "GRATICULE_ORPHAN_THRESHOLD_SECONDS": "2",
    "GRATICULE_UNKNOWN_WORKFLOW_SECONDS": "0",
    "GRATICULE_WORKER_LEASE_SECONDS": "1",
    "GRATICULE_WORKER_RENEW_SECONDS": "0.3",
}
TRANSACTIONS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
      AND backend_type = 'client backend'
"""
IS_QUIET = """
    SELECT NOT EXISTS (SELECT FROM dagapp.dag_jobs WHERE ended_at IS NULL)
       AND NOT EXISTS (SELECT FROM dagapp.dag_job_messages WHERE status IN ('queued', 'leased'))
       AND NOT EXISTS (SELECT FROM dagapp.dag_task_results WHERE processed_at IS NULL) AS is_quiet
"""
LEFT = """
    SELECT 'job' AS what, job_id AS id, status::text, owner_id AS who FROM dagapp.dag_jobs WHERE ended_at IS NULL
    UNION ALL SELECT 'message', message_id, status::text, leased_by FROM dagapp.dag_job_messages
        WHERE status IN ('queued', 'leased')
    UNION ALL SELECT 'task', task_id, status::text, leased_by FROM dagapp.dag_tasks WHERE status IN ('queued', 'leased')
    UNION ALL SELECT 'result', task_id, status::text, worker_id FROM dagapp.dag_task_results WHERE processed_at IS NULL
"""


@dataclass(frozen=True)
class Service:
    """A member that listens on a port."""

    member: Member
    port: int

    def ask(self, method: str, path: str, key: str | None = None, **options: Any) -> httpx.Response | None:
        """Give the answer; None when none came, for the process has ended or ends meanwhile."""
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"X-API-Key": ADMIN_KEY, **({} if key is None else {"Idempotency-Key": key})}
        try:
            # Without certificates, which nobody needs here: to load them takes 20 times as long as to ask.
            return httpx.request(method, url, headers=headers, timeout=20, verify=False, **options)
        except httpx.TransportError:
            return None

    def get(self, path: str) -> Any:
        """Give what an answer says that must come."""
        answer = self.ask("GET", path)
        assert answer is not None, self.member.output
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until_ready(self) -> "Service":
        """Wait until it can do its work."""
        eventually(self._is_ready, lambda: f"{self.member.orders.command} ready; {self.member.output}")
        return self

    def _is_ready(self) -> bool:
        assert self.member.running, self.member.output
        answer = self.ask("GET", "/readyz")
        return answer is not None and answer.status_code == 200


class Installation:
    """Processes that share a database, a transport and a folder."""

    def __init__(self, url: Callable[[str], str], folder: Path, carrier: Carrier) -> None:
        self.carrier = carrier
        self.submitted: dict[str, SubmittedJob] = {}  # by key
        self.ledger = Ledger(folder / "ledger")
        self._url = url
        self._folder = folder
        self._started: list[Member] = []
        self._removed: set[str] = set()
        self._told: set[Violation] = set()
        put_source(folder / "home" / "storage", "bronze/geonode/dem.tif")
        self._connection: psycopg.Connection[DictRow] | None = None

    @property
    def transport(self) -> Transport:
        return Transport(self.carrier.settings["transport"])

    # Processes

    def start(self, role: DatabaseRole, *command: str, faults: Sequence[Fault] = (), **environment: str) -> Member:
        """Start a process; what is not said otherwise goes by short times."""
        shared = {
            "GRATICULE_DATABASE_URL": self._url(role),
            "GRATICULE_OWNER_DATABASE_URL": self._url(DatabaseRole.OWNER),
            "GRATICULE_HOME": str(self._folder / "home"),
            "GRATICULE_WORKFLOWS": str(Path(__file__).with_name("workflows")),
            "GRATICULE_WORKER_QUEUE": TASKS,
            "GRATICULE_ADMIN_KEY": ADMIN_KEY,
            LEDGER_VARIABLE: str(self.ledger.path),
        }
        log = self._folder / f"{len(self._started)}-{command[0]}.log"
        carried = {f"GRATICULE_{name.upper()}": value for name, value in self.carrier.settings.items()}
        settings = {**shared, **SHORT_TIMES, **carried, **environment}
        member = Member(Orders(command, log, settings, further_faults=(*faults,), handlers=(handlers.__name__,)))
        self._started.append(member)
        return member

    def orchestrator(self, *faults: Fault, **environment: str) -> Service:
        return self._service(DatabaseRole.ORCHESTRATOR, "orchestrator", faults, environment)

    def worker(self, *faults: Fault, **environment: str) -> Service:
        return self._service(DatabaseRole.WORKER, "worker", faults, environment)

    def _service(
        self, role: DatabaseRole, command: str, faults: Sequence[Fault], environment: Mapping[str, str]
    ) -> Service:
        settings = {"GRATICULE_PORT": str(free_ports()), **environment}
        return Service(self.start(role, command, faults=faults, **settings), int(settings["GRATICULE_PORT"]))

    def owner_id(self, orchestrator: Service) -> str:
        """Wait until an orchestrator has its row, and give its name."""
        query = "SELECT owner_id FROM dagapp.dag_orchestrators WHERE process_id = %s AND stopped_at IS NULL"
        return str(eventually(lambda: self.query(query, orchestrator.member.pid), "an instance")[0]["owner_id"])

    def worker_id(self, worker: Service) -> str:
        """Wait until a worker has its row, and give its name."""
        query = "SELECT worker_id FROM dagapp.dag_workers WHERE process_id = %s AND stopped_at IS NULL"
        return str(eventually(lambda: self.query(query, worker.member.pid), "a worker")[0]["worker_id"])

    @contextmanager
    def visitors(self) -> Iterator[None]:
        """End what is started inside at the end."""
        before = len(self._started)
        try:
            yield
        finally:
            for member in self._started[before:]:
                if member.running:
                    member.kill()

    def close(self) -> None:
        """Close the test's own connection."""
        if self._connection is not None:
            self._connection.close()

    # Work

    def submit(self, to: Service, workflow_id: str = "faults_chain", *, may_fail: bool = False, **inputs: Any) -> str:
        """Submit a job by HTTP, again when it is not known what came of it, and give its id."""
        key = self.expect(workflow_id, may_fail=may_fail)

        def accepted() -> httpx.Response | None:
            answer = self.ask_for(to, workflow_id, key, inputs)
            return answer if answer is not None and answer.is_success else None

        job_id = str(eventually(accepted, self.left).json()["job_id"])
        self.submitted[key] = replace(self.submitted[key], job_id=job_id)
        return job_id

    def ask_for(self, to: Service, workflow_id: str, key: str, inputs: dict[str, Any]) -> httpx.Response | None:
        """Ask for a job by HTTP."""
        return to.ask("POST", "/api/v1/jobs", json=_wanted(workflow_id, key, inputs))

    def send(self, workflow_id: str = "faults_chain", *, is_bad: bool = False, **inputs: Any) -> str:
        """Ask for a job by message, and give its key."""
        key = self.expect(workflow_id, is_bad=is_bad)
        self.carrier.send({key: _wanted(workflow_id, key, inputs)})
        return key

    def leave(self, row: str) -> str:
        """Ask for a job by a row of a message, as an orchestrator has left it, and give its key."""
        key = self.expect("faults_chain")
        self.query(row, key, JOBS, Jsonb(_wanted("faults_chain", key, {})))
        return key

    def send_many(self, count: int) -> None:
        """Ask for many jobs by message."""
        keys = [self.expect("faults_chain") for _ in range(count)]
        self.carrier.send({key: _wanted("faults_chain", key, {}) for key in keys})

    def submit_many(self, to: Service, count: int) -> None:
        """Submit many jobs by HTTP, to one orchestrator."""
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: self.submit(to), range(count)))

    def expect(self, workflow_id: str, *, may_fail: bool = False, is_bad: bool = False) -> str:
        """Note that a job will be asked for, and give its key."""
        key = uuid4().hex
        self.submitted[key] = SubmittedJob(key, workflow_id, may_fail=may_fail, is_bad=is_bad)
        return key

    def forget(self, job_ids: Collection[str]) -> None:
        """Expect nothing more of jobs that were removed."""
        self._removed |= {*job_ids}
        self.submitted = {key: asked for key, asked in self.submitted.items() if asked.job_id not in self._removed}

    def clear(self) -> None:
        """Remove what a failed test has left to do: the next one is not to wait for it."""
        removed = self.query("DELETE FROM dagapp.dag_jobs WHERE ended_at IS NULL RETURNING job_id")
        self.query("DELETE FROM dagapp.dag_job_messages WHERE status IN ('queued', 'leased')")
        self.forget([row["job_id"] for row in removed])

    # What came of it

    def url(self, role: str = ADMIN) -> str:
        """Give the address of the database for a role."""
        return self._url(role)

    def query(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Ask the database as its administrator, on another connection when the server has closed the one before."""
        try:
            return self._asked(statement, values)
        except psycopg.OperationalError:
            if self._connection is not None and not self._connection.closed:
                raise
            return self._asked(statement, values)

    def _asked(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url(ADMIN), autocommit=True, row_factory=dict_row)
        cursor = self._connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def job(self, job_id: str) -> dict[str, Any]:
        return self.query("SELECT * FROM dagapp.dag_jobs WHERE job_id = %s", job_id)[0]

    def tasks(self, job_id: str) -> list[dict[str, Any]]:
        return self.query("SELECT * FROM dagapp.dag_tasks WHERE job_id = %s ORDER BY created_at, task_id", job_id)

    def events(self, job_id: str) -> list[str]:
        """Give the types of a job's events, in order."""
        query = "SELECT event_type::text FROM dagapp.dag_job_events WHERE job_id = %s ORDER BY event_id"
        return [row["event_type"] for row in self.query(query, job_id)]

    def until_leased(self, job_id: str, deliveries: int = 1) -> dict[str, Any]:
        """Wait until a worker has a task of the job, and give the task."""
        query = "SELECT * FROM dagapp.dag_tasks WHERE job_id = %s AND status = 'leased' AND delivery_count >= %s"
        return eventually(lambda: self.query(query, job_id, deliveries), self.left)[0]

    def until_ended(self, job_id: str, seconds: float = 30) -> str:
        """Wait for the end of a job, and give its status."""
        eventually(lambda: self.job(job_id)["ended_at"], self.left, seconds)
        return str(self.job(job_id)["status"])

    def until_quiet(self, seconds: float = 30) -> None:
        """Wait until nothing is left to do."""
        eventually(self.is_quiet, self.left, seconds)

    def is_quiet(self) -> bool:
        return self.carrier.is_empty() and bool(self.query(IS_QUIET)[0]["is_quiet"])

    def left(self) -> str:
        """Tell what is left to do, and what the processes have said at last."""
        said = [f"{member.orders.log.name}: {member.output[-1500:]}" for member in self._started[-3:]]
        return "\n".join([*(str(row) for row in self.query(LEFT)), *said])

    def violations(self) -> Sequence[Violation]:
        """Hold rows, events and ledger against each other, and give what was not told before."""
        history = self._history()
        while any(result.processed_at is None for result in history.results):
            self.until_quiet()  # a worker was told to stop, and said so after all was quiet
            history = self._history()
        history.ledger = [entry for entry in history.ledger if entry.job_id not in self._removed]
        found = [each for each in violations(history) if each not in self._told]
        self._told |= {*found}
        return found

    def _history(self) -> History:
        return asyncio.run(read_history(self._url(ADMIN), self.ledger, [*self.submitted.values()]))

    def lapse_leases(self) -> None:
        """Let the leases of all tasks run out now, and not in a while; the reaper of any orchestrator does the rest."""
        self.query("UPDATE dagapp.dag_tasks SET lease_expires_at = now() - interval '1 s' WHERE status = 'leased'")
        as_orchestrator(self._url, lambda connection: TaskRepository(connection).reap_expired())
        self.carrier.end_locks()

    def pause_between_transactions(self, service: Service) -> None:
        """Stop a process where it holds no lock that others would wait for."""
        eventually(lambda: self._is_paused(service), "a moment between transactions")

    def _is_paused(self, service: Service) -> bool:
        pause(service)
        if self.query(TRANSACTIONS):
            go_on(service)
            return False
        return True


def _wanted(workflow_id: str, key: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {"workflow_id": workflow_id, "input_params": inputs, "idempotency_key": key}


def pause(*services: Service) -> None:
    for service in services:
        service.member.send(signal.SIGSTOP)


def go_on(*services: Service) -> None:
    for service in services:
        service.member.send(signal.SIGCONT)
