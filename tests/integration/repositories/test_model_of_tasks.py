"""Whatever happens to tasks and jobs, in whatever order, the rows are what a small model says."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, LiteralString, TypeVar

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from psycopg.rows import tuple_row
from tests.conftest import TestDatabase
from tests.integration.repositories.arena import EMPTIED
from tests.integration.repositories.tasks_model import MAX_DELIVERIES, Lease, Model
from tests.integration.services.engine import QUEUE, Bench, flow

from graticule.core.errors import Conflict, StaleVersion
from graticule.core.ids import JobId, OwnerId, TaskId, WorkerId
from graticule.core.states import ResultStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.step_parts import Part
from graticule.repositories.steps import JobRow, StepRepository
from graticule.repositories.tasks import Delivery, FinishedTask, RunningTask, TaskRepository

T = TypeVar("T")
FLOW: Final = flow("""
  start: {type: start, next: a}
  a: {handler: echo, retry: {max_attempts: 0}, next: end}""")
OWNERS: Final = ("owner-a", "owner-b", "owner-c")
WORKERS: Final = ("worker-1", "worker-2", "worker-3")
SETTINGS: Final = hypothesis.settings(
    max_examples=25, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Picture:
    """A job as an owner has read it, some time ago."""

    owner: str
    row: JobRow
    version: int


class Desk:
    """The installation of a test: one database, several owners."""

    def __init__(self, runner: asyncio.Runner, pool: Database, folder: Path) -> None:
        self._runner = runner
        self._connections = pool.connection()
        self.benches = {owner: Bench(pool, folder, FLOW, owner=owner) for owner in OWNERS}
        self.connection: Connection = self.run(self._connections.__aenter__())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def rows(self, query: LiteralString) -> list[tuple[Any, ...]]:
        async def fetched() -> list[tuple[Any, ...]]:
            async with self.connection.cursor(row_factory=tuple_row) as cursor:
                return await (await cursor.execute(query)).fetchall()

        return self.run(fetched())

    def execute(self, statement: LiteralString) -> None:
        self.run(self.connection.execute(statement))

    @property
    def tasks(self) -> TaskRepository:
        return TaskRepository(self.connection)

    @property
    def ownership(self) -> OwnershipRepository:
        return OwnershipRepository(self.connection)

    def close(self) -> None:
        self.run(self._connections.__aexit__(None, None, None))


class TasksAndOwners(RuleBasedStateMachine):
    """Runs the repositories and the model side by side."""

    jobs: Bundle[str] = Bundle("jobs")
    leases: Bundle[Lease] = Bundle("leases")
    pictures: Bundle[Picture] = Bundle("pictures")

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.run = desk.run
        self.model = Model()
        self.highest_epochs: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()  # results that were accepted, by task
        desk.execute(EMPTIED)

    # Jobs

    @precondition(lambda self: len(self.model.jobs) < 4)
    @rule(target=jobs, owner=st.sampled_from(OWNERS))
    def submit(self, owner: str) -> str:
        job_id = self.run(self.desk.benches[owner].submit())
        self._limit_deliveries()
        self.model.submit(job_id, owner)
        return job_id

    def _limit_deliveries(self) -> None:
        """Let tasks die early: ten deliveries are more than an example has."""
        self.desk.execute(f"UPDATE dagapp.dag_tasks SET max_deliveries = {MAX_DELIVERIES}")

    @rule(job_id=jobs, by=st.sampled_from(OWNERS))
    def cancel(self, job_id: str, by: str) -> None:
        self.run(self.desk.benches[by].jobs.cancel(JobId(job_id), "someone"))
        self.model.cancel(job_id, by)

    @rule(job_id=jobs, by=st.sampled_from(OWNERS))
    def resume(self, job_id: str, by: str) -> None:
        try:
            self.run(self.desk.benches[by].jobs.resume(JobId(job_id)))
            is_resumed = True
        except Conflict:
            is_resumed = False
        self._limit_deliveries()
        assert is_resumed == self.model.resume(job_id, by)

    # Owners

    @rule(job_id=jobs, by=st.sampled_from(OWNERS))
    def step(self, job_id: str, by: str) -> None:
        """Whoever is not the owner, or is it no longer, moves nothing."""
        self.run(self.desk.benches[by].advance(JobId(job_id)))
        self.model.step(job_id, by)

    @rule(target=pictures, job_id=jobs)
    def look(self, job_id: str) -> Any:
        job = self.model.jobs[job_id]
        if job.owner is None:
            return multiple()
        steps = StepRepository(self.desk.connection, OwnerId(job.owner))
        ((snapshot, _),) = self.run(steps.read([JobId(job_id)], {}, 1)).values()
        return Picture(job.owner, snapshot.job, job.version)

    @rule(picture=pictures)
    def write_what_was_decided_upon(self, picture: Picture) -> None:
        """A step is written only upon the picture that is still true."""
        job = self.model.jobs[picture.row.job_id]
        steps = StepRepository(self.desk.connection, OwnerId(picture.owner))
        try:
            self.run(steps.write([picture.row], {Part.OTHER_JOBS: [{"job_id": job.job_id}]}, _now()))
            is_written = True
        except StaleVersion:
            is_written = False
        assert is_written == (picture.version == job.version)
        job.version += is_written

    @rule(dead=st.sampled_from(OWNERS), by=st.sampled_from(OWNERS))
    def take_over(self, dead: str, by: str) -> None:
        if dead != by:
            taken = self.run(self.desk.ownership.take_orphans(OwnerId(by), [OwnerId(dead)], _now(), 10))
            assert set(taken) == self.model.change_hands(dead, by)

    @rule(owner=st.sampled_from(OWNERS))
    def hand_over(self, owner: str) -> None:
        given = self.run(self.desk.ownership.hand_over(OwnerId(owner), _now()))
        assert given == len(self.model.change_hands(owner, None))

    @rule()
    def expire(self) -> None:
        reaped = self.run(self.desk.tasks.reap_expired(_now() + timedelta(hours=1)))
        assert {each.task_id: each.status for each in reaped} == self.model.expire()

    # Workers

    @rule(target=leases, worker=st.sampled_from(WORKERS), limit=st.integers(1, 3))
    def claim(self, worker: str, limit: int) -> Any:
        queued = self.model.queued()
        claimed = self.run(self.desk.tasks.claim(WorkerId(worker), QUEUE, limit, 60))
        assert {each.task_id for each in claimed} <= queued
        assert len(claimed) == min(limit, len(queued))
        given = [self.model.claim(worker, each.task_id) for each in claimed]
        assert [lease.delivery for lease in given] == [each.delivery_count for each in claimed]
        return multiple(*given)

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        renewed = self.run(self.desk.tasks.renew(WorkerId(lease.worker), [_delivery(lease)], 60))
        assert renewed == {lease.task_id: self.model.renew(lease)}

    @rule(lease=leases, status=st.sampled_from(["completed", "failed"]))
    def finish(self, lease: Lease, status: str) -> None:
        ended = FinishedTask(_delivery(lease), ResultStatus(status), error_message="why")
        accepted = self.run(self.desk.tasks.finish(WorkerId(lease.worker), [ended]))
        assert bool(accepted) == self.model.finish(lease, status)
        self.finished.update(accepted)

    @rule(lease=leases, by=st.sampled_from(WORKERS), later=st.integers(-1, 1))
    def finish_what_is_not_ones_own(self, lease: Lease, by: str, later: int) -> None:
        """Neither another worker nor another delivery counts."""
        self.finish(replace(lease, worker=by, delivery=lease.delivery + later), "completed")

    @rule(lease=leases)
    def tell(self, lease: Lease) -> None:
        told = self.run(self.desk.tasks.report_running(WorkerId(lease.worker), [RunningTask(_delivery(lease))]))
        assert bool(told) == self.model.tell(lease)

    @rule(lease=leases)
    def save(self, lease: Lease) -> None:
        checkpoints = CheckpointRepository(self.desk.connection)
        saving = checkpoints.save_under_lease(WorkerId(lease.worker), _delivery(lease), "phase", {}, [])
        assert self.run(saving) == self.model.tell(lease)

    @rule(lease=leases, counts=st.booleans())
    def abandon(self, lease: Lease, counts: bool) -> None:
        given = self.run(self.desk.tasks.abandon(WorkerId(lease.worker), [_delivery(lease)], counts=counts))
        assert bool(given) == self.model.abandon(lease, counts=counts)

    @rule(lease=leases)
    def set_aside(self, lease: Lease) -> None:
        is_dead = self.run(self.desk.tasks.dead_letter(WorkerId(lease.worker), _delivery(lease), "broken"))
        assert bool(is_dead) == self.model.set_aside(lease)

    # Dead letters

    @rule(lease=leases)
    def requeue(self, lease: Lease) -> None:
        assert self.run(self.desk.tasks.requeue(TaskId(lease.task_id))) == self.model.requeue(lease.task_id)

    @rule(lease=leases)
    def discard(self, lease: Lease) -> None:
        assert self.run(self.desk.tasks.discard(TaskId(lease.task_id))) == self.model.discard(lease.task_id)

    # What must hold

    @invariant()
    def tasks_are_as_the_model_says(self) -> None:
        found = self.desk.rows(
            "SELECT task_id, status::text, leased_by, delivery_count, lease_expires_at IS NOT NULL,"
            " dead_reason IS NOT NULL OR status <> 'dead' FROM dagapp.dag_tasks ORDER BY task_id"
        )
        tasks = sorted(self.model.tasks.values(), key=lambda task: task.task_id)
        assert found == [
            (task.task_id, task.status, task.holder, task.delivery, task.status == "leased", True) for task in tasks
        ]

    @invariant()
    def results_are_as_the_model_says(self) -> None:
        found = self.desk.rows(
            "SELECT task_id, status::text, processed_at IS NOT NULL FROM dagapp.dag_task_results ORDER BY result_id"
        )
        # Those of one reap have no order.
        assert Counter(found) == Counter((each.task_id, each.status, each.is_processed) for each in self.model.results)
        assert all(count == 1 for count in self.finished.values())

    @invariant()
    def jobs_are_as_the_model_says(self) -> None:
        found = self.desk.rows(
            "SELECT job_id, owner_id, owner_epoch, job.status::text, cancel_requested_at IS NOT NULL,"
            " node.status::text, node.task_id"
            " FROM dagapp.dag_jobs AS job JOIN dagapp.dag_nodes AS node USING (job_id)"
            " WHERE node_id = 'a' ORDER BY job_id"
        )
        jobs = sorted(self.model.jobs.values(), key=lambda job: job.job_id)
        assert found == [
            (job.job_id, job.owner, job.epoch, job.status, job.is_to_cancel, job.node, job.task_id) for job in jobs
        ]

    @invariant()
    def terms_only_rise(self) -> None:
        epochs = Counter(dict(self.desk.rows("SELECT job_id, owner_epoch FROM dagapp.dag_jobs")))
        assert all(epochs[job_id] >= epoch for job_id, epoch in self.highest_epochs.items())
        self.highest_epochs = epochs

    def teardown(self) -> None:
        """Hold the audit trail against the rows."""
        self.run(self.desk.benches[OWNERS[0]].check())


def _now() -> datetime:
    return datetime.now(UTC)


def _delivery(lease: Lease) -> Delivery:
    return Delivery(TaskId(lease.task_id), lease.delivery)


@pytest.mark.timeout(600)  # when it fails, the story is made shorter for up to 5 minutes
def test_rows_are_what_the_model_says(database: TestDatabase, tmp_path: Path) -> None:
    role = DatabaseRole.ORCHESTRATOR
    with asyncio.Runner() as runner:
        pool = Database(database.url(role), role, pool_size=2)
        runner.run(pool.open())
        desk = Desk(runner, pool, tmp_path)
        try:
            run_machine(lambda: TasksAndOwners(desk), settings=SETTINGS)  # type: ignore[arg-type]
        finally:
            desk.close()
            runner.run(pool.close())
