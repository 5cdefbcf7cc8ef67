"""Orchestrators and workers of both releases on one database."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, LiteralString

import httpx
import psycopg
from tests.chaos.history import SubmittedJob
from tests.chaos.member import Member, Orders
from tests.conftest import TestDatabase
from tests.e2e.eventually import eventually
from tests.e2e.installation import Program
from tests.e2e.processes import free_ports
from tests.upgrade.previous_release import PreviousRelease

from graticule.core.models import JobMessage
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository

ADMIN_KEY: Final = "the-key-of-the-upgrade"
SESSIONS = 10  # that an orchestrator may have with the database, by default
QUEUE: Final = "orchestrator-jobs"
TIMINGS: Final = {
    "GRATICULE_WORKER_LEASE_SECONDS": "2",
    "GRATICULE_WORKER_RENEW_SECONDS": "0.5",
    "GRATICULE_WORKER_GRACE_SECONDS": "2",
    "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": "0.5",
    "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": "0.3",
    "GRATICULE_ORPHAN_THRESHOLD_SECONDS": "10",
    "GRATICULE_ORCHESTRATOR_POLL_INTERVAL": "0.5",
}
SEND_MANY: LiteralString = """
    WITH sent AS (
        INSERT INTO dagapp.dag_job_messages (message_id, queue, body)
        SELECT 'many-' || number, %s,
               jsonb_build_object('workflow_id', %s::text, 'input_params', jsonb_build_object('number', number))
        FROM generate_series(1, %s) AS number
        RETURNING queue
    )
    SELECT pg_notify('graticule_queue_' || md5(queue), '') FROM (SELECT DISTINCT queue FROM sent) AS of_queue
"""
WITH_STATUS: LiteralString = "SELECT count(*) FROM dagapp.dag_jobs WHERE status::text = %s AND job_id = ANY (%s)"
OWNER: LiteralString = "SELECT owner_id FROM dagapp.dag_orchestrators WHERE process_id = %s"
ROLES: Final = {"orchestrator": DatabaseRole.ORCHESTRATOR, "worker": DatabaseRole.WORKER}


@dataclass(frozen=True)
class Instance:
    """An orchestrator or a worker, of either release."""

    process: Program | Member
    port: int

    @property
    def told(self) -> str:
        """Give what it has printed."""
        process = self.process
        return process.output if isinstance(process, Member) else process.output + process.errors

    def ask(self, method: str, path: str, content: object = None) -> httpx.Response:
        """Ask it something as an operator."""
        address = f"http://127.0.0.1:{self.port}{path}"
        headers = {"X-API-Key": ADMIN_KEY}
        # Without certificates, which nobody needs here: to load them takes 20 times as long as to ask.
        return httpx.request(method, address, json=content, headers=headers, timeout=10, verify=False)

    def until_ready(self) -> "Instance":
        """Wait until it is ready."""
        eventually(lambda: self._readiness().status_code == 200, lambda: f"ready: {self.told}")
        return self

    def until_not_ready(self, because: str) -> None:
        """Wait until it says that it is not ready, for such a reason."""
        eventually(lambda: self._says_not_ready(because), lambda: f"not ready: {self.told}")

    def _says_not_ready(self, because: str) -> bool:
        readiness = self._readiness()
        return readiness.status_code == 503 and because in readiness.text

    def _readiness(self) -> httpx.Response:
        """Ask whether it is ready; one that does not listen yet is without an answer."""
        assert self.process.running, self.told
        try:
            return self.ask("GET", "/readyz")
        except httpx.TransportError:
            return httpx.Response(0)

    def stop(self) -> None:
        """Stop it, as an operator does, and wait for its end."""
        os.kill(self.process.pid, signal.SIGTERM)
        assert self.process.wait(15) == 0, self.told

    def kill(self) -> None:
        """End it, whatever state it is in."""
        if self.process.running:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Installation:
    """A database, and who works on it."""

    folder: Path
    database: TestDatabase
    previous: PreviousRelease
    instances: list[Instance] = field(default_factory=list)
    submitted: list[SubmittedJob] = field(default_factory=list)

    # Processes

    def start_old(self, command: str, *arguments: str, **environment: str) -> Instance:
        """Start an orchestrator or a worker of the previous release."""
        port = free_ports()
        program = Program(
            self.folder,
            *self.previous.command(command, "--port", str(port), *arguments),
            port=port,
            **self._environment(command) | self.previous.environment | environment,
        )
        return self._started(Instance(program, port))

    def start_new(self, command: str, *arguments: str, **environment: str) -> Instance:
        """Start an orchestrator or a worker of the present tree."""
        port = free_ports()
        log = self.folder / f"new-{len(self.instances)}.log"
        orders = Orders((command, "--port", str(port), *arguments), log, self._environment(command) | environment)
        return self._started(Instance(Member(orders), port))

    def migrate(self) -> None:
        """Migrate with the command of the present tree."""
        orders = Orders(
            ("schema", "migrate"), self.folder / "migrate.log", {"GRATICULE_DATABASE_URL": self.database.url()}
        )
        migration = Member(orders)
        assert migration.wait() == 0, migration.output

    def close(self) -> None:
        """End everyone who is left."""
        for instance in self.instances:
            instance.kill()

    def _started(self, instance: Instance) -> Instance:
        self.instances.append(instance)
        return instance

    def _environment(self, command: str) -> dict[str, str]:
        return {
            "GRATICULE_HOME": str(self.folder),
            "GRATICULE_WORKFLOWS": str(Path(__file__).with_name("workflows")),
            "GRATICULE_DATABASE_URL": self.database.url(ROLES[command]),
            "GRATICULE_ADMIN_KEY": ADMIN_KEY,
            **TIMINGS,
        }

    # Jobs

    def submit(self, to: Instance, workflow_id: str, *, may_fail: bool = False, **inputs: Any) -> str:
        """Submit a job by HTTP, and give its id."""
        key = self._new_key()
        content = {"workflow_id": workflow_id, "input_params": inputs, "idempotency_key": key}
        answers = (to.ask("POST", "/api/v1/jobs", content) for _ in range(SESSIONS + 1))
        # Each of its sessions may meet the migration once, in a statement that it had prepared before.
        answer = next(each for each in answers if each.status_code != 503)
        assert answer.status_code == 201, answer.text
        job_id = str(answer.json()["job_id"])
        self.submitted.append(SubmittedJob(key, workflow_id, job_id, may_fail=may_fail))
        return job_id

    def send(self, workflow_id: str) -> None:
        """Ask for a job by message."""
        key = self._new_key()
        body = {"workflow_id": workflow_id, "idempotency_key": key}
        now = datetime.now(UTC)
        asyncio.run(self._send(JobMessage(message_id=key, queue=QUEUE, body=body, available_at=now, created_at=now)))
        self.submitted.append(SubmittedJob(key, workflow_id))

    def send_many(self, count: int, workflow_id: str) -> None:
        """Ask for many jobs by message, each with a number of its own."""
        self.query(SEND_MANY, QUEUE, workflow_id, count)

    async def _send(self, message: JobMessage) -> None:
        role = DatabaseRole.ORCHESTRATOR
        async with Database(self.database.url(role), role) as database, database.connection() as connection:
            assert await MessageRepository(connection).send(message)

    def _new_key(self) -> str:
        return f"asked-{len(self.submitted)}"

    # Rows

    def query(self, statement: LiteralString, *given: Any) -> list[tuple[Any, ...]]:
        """Ask the database as its administrator."""
        with psycopg.connect(self.database.url(), autocommit=True) as connection:
            return connection.execute(statement, given).fetchall()

    def until(self, wanted: Any, statement: LiteralString, *given: Any) -> None:
        """Wait until a statement gives this row, or this one value."""
        self.until_so(lambda found: found == wanted, statement, *given)

    def until_so(self, is_so: Callable[[Any], bool], statement: LiteralString, *given: Any) -> None:
        """Wait until a statement gives such a row, or such a value."""

        def found() -> Any:
            (row,) = self.query(statement, *given)
            return row if len(row) > 1 else row[0]

        eventually(lambda: is_so(found()), lambda: f"{statement} {given} gives {found()}; {self.logs}", 20)

    def until_status(self, status: str, jobs: Sequence[str]) -> None:
        """Wait until all these jobs have a status."""
        self.until(len(jobs), WITH_STATUS, status, [*jobs])

    def owner_id(self, instance: Instance) -> str:
        """Give the name under which an orchestrator owns jobs, or owned them; one that has just begun joins first."""
        row = eventually(lambda: self.query(OWNER, instance.process.pid), lambda: f"its row; {instance.told}")
        return str(row[0][0])

    @property
    def logs(self) -> str:
        """Give what all have printed."""
        return "\n".join(instance.told for instance in self.instances)
