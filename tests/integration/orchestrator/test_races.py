"""Everything at once, by chance and by force: loops, workers, cancels and resumes on the same jobs at the same time.

Whatever happens in between, all jobs come to an end, every result is acted on once, and the audit trail is what the
rows say. What chance does follows from a seed, which is the parameter of the test.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from tests.conftest import TestDatabase
from tests.integration.orchestrator.instances import NEVER, ROLE, Instance, until
from tests.integration.services.engine import QUEUE, Bench, flow

from graticule.core import backoff
from graticule.core.channels import queue_channel
from graticule.core.errors import Conflict, StaleVersion, Unavailable
from graticule.core.ids import JobId, WorkerId
from graticule.core.states import JobStatus, ResultStatus
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener, listening
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.steps import JobRow, JobSnapshot, Nodes, StepRepository
from graticule.repositories.tasks import ClaimedTask, Delivery, FinishedTask, RunningTask, TaskRepository
from graticule.services import steps as steps_module
from graticule.services.decided_jobs import DecidedJob
from graticule.services.step_reading import Wake
from graticule.services.step_writing import write_decisions

LOOP_NAME = "graticule-orchestrator-loop"  # as the connections of a loop are called
RETRY = "retry: {max_attempts: 2, initial_delay_seconds: 0.02, backoff: fixed, jitter: false}"
CHAIN = flow(
    f"""
  start: {{type: start, next: a}}
  a: {{handler: echo, params: {{n: 1}}, {RETRY}, next: b}}
  b: {{handler: echo, params: {{n: "{{{{ nodes.a.output.n + 1 }}}}"}}, {RETRY}, next: c}}
  c: {{handler: echo, params: {{n: "{{{{ nodes.b.output.n + 1 }}}}"}}, {RETRY}, next: end}}""",
    workflow_id="chain",
)
STRICT = flow(
    f"""
  start: {{type: start, next: a}}
  a: {{handler: echo, params: {{items: [1, 2, 3, 4, 5, 6, 7]}}, {RETRY}, next: split}}
  split:
    type: fan_out
    source: "{{{{ nodes.a.output['items'] }}}}"
    max_parallel: 3
    task: {{handler: echo, params: {{i: "{{{{ item }}}}"}}, {RETRY}}}
    next: merge
  merge: {{type: fan_in, aggregation: sum, next: last}}
  last: {{handler: echo, params: {{n: "{{{{ nodes.merge.output.total }}}}"}}, {RETRY}, next: end}}""",
    workflow_id="strict",
)
TOLERANT = flow(
    f"""
  start: {{type: start, next: [split, b]}}
  split:
    type: fan_out
    source: "{{{{ range(9) | list }}}}"
    on_child_failure: continue
    task: {{handler: echo, params: {{i: "{{{{ item }}}}"}}, retry: {{max_attempts: 0}}}}
    next: merge
  merge: {{type: fan_in, aggregation: collect, next: c}}
  b: {{handler: echo, params: {{n: 1}}, {RETRY}, next: c}}
  c: {{handler: echo, params: {{n: "{{{{ nodes.merge.output.count }}}}"}}, {RETRY}, next: end}}""",
    workflow_id="tolerant",
)
WORKFLOWS = {"chain": ("a", "b", "c"), "strict": ("a", "split", "last"), "tolerant": ("split", "b", "c")}
RESULTS = {"chain": {"n": 3}, "strict": {"n": 28}}
Hook = Callable[[Bench, list[DecidedJob]], Awaitable[None]]


async def nothing(_: Bench, __: list[DecidedJob]) -> None:
    return


class Orchestrator:
    """A loop and an API, each with its own connections, as one owner: what a process is."""

    def __init__(self, loop_pool: Database, api_pool: Database, url: str, folder: Path, **options: Any) -> None:
        texts, owner = (CHAIN, STRICT, TOLERANT), options["owner"]
        self.loop = Instance(loop_pool, url, folder, *texts, **options)
        self.api = Bench(api_pool, folder, *texts, owner=owner)


@dataclass
class Race:
    """The jobs of a test, and all that happens to them."""

    url: str
    seed: int
    orchestrators: list[Orchestrator]
    jobs: dict[JobId, str] = field(default_factory=dict)
    calm: bool = False  # from then on, no task fails and nobody interferes
    before_write: Hook = nothing
    after_write: Hook = nothing
    submitted: asyncio.Event = field(default_factory=asyncio.Event)  # the first job
    seen: Counter[str] = field(default_factory=Counter)

    def chance(self, of: str) -> random.Random:
        return random.Random(f"{self.seed} {of}")

    @property
    def api(self) -> Bench:
        return self.orchestrators[0].api

    async def rows(self, query: LiteralString, **given: Any) -> list[dict[str, Any]]:
        async with self.api.pool.connection() as connection:
            return await (await connection.execute(query, given)).fetchall()

    # What happens

    async def run(self, *disturbances: Callable[[], Coroutine[Any, Any, None]], count: int = 48) -> None:
        """Submit jobs and disturb them while loops and workers are at them; then let them all end, and look."""
        async with AsyncExitStack() as stack:
            for orchestrator in self.orchestrators:
                await stack.enter_async_context(orchestrator.loop.running())
            for number in range(2):
                await stack.enter_async_context(working(self, WorkerId(f"worker-{number}")))
            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                group.create_task(self.submit(count))
                for disturbance in disturbances:
                    group.create_task(disturbance())
            self.calm = True
            await self.settle()
        await self.check()

    async def submit(self, count: int) -> None:
        chance = self.chance("submit")
        for number in range(count):
            name = [*WORKFLOWS][number % len(WORKFLOWS)]
            job_id = await chance.choice(self.orchestrators).api.submit(name)
            self.jobs[job_id] = name
            self.submitted.set()

    async def meddle(self, of: str, cancels: float = 0.04) -> None:
        """Cancel whatever job, and resume those that failed, wherever, until none is left that could go on."""
        chance = self.chance(of)
        while jobs := await self._unended():
            job_id, status = chance.choice([job for job in jobs if job[1] == "failed"] or jobs)
            at = chance.choice(self.orchestrators).api.jobs
            with suppress(Conflict):
                if chance.random() < cancels:
                    await at.cancel(chance.choice(jobs)[0], of)
                elif status == "failed":
                    node_id = chance.choice([None, None, None, *WORKFLOWS[self.jobs[job_id]]])
                    await at.resume(job_id, node_id, of)
                    self.seen["resumed"] += 1

    async def _unended(self) -> list[tuple[JobId, str]]:
        """Give the jobs that have not ended for good."""
        await self.submitted.wait()
        found = await self.rows("SELECT job_id, status FROM dagapp.dag_jobs ORDER BY job_id")
        return [(row["job_id"], row["status"]) for row in found if row["status"] in ("pending", "running", "failed")]

    async def settle(self) -> None:
        """Let every job complete that was not cancelled: those that failed are resumed."""
        chance = self.chance("settle")

        async def all_ended() -> bool:
            jobs = await self.rows("SELECT job_id, status FROM dagapp.dag_jobs")
            for job in jobs:
                if job["status"] == "failed":
                    await chance.choice(self.orchestrators).api.jobs.resume(job["job_id"])
            return {job["status"] for job in jobs} <= {"completed", "cancelled"}

        async def nothing_left() -> bool:
            (left,) = await self.rows(
                "SELECT (SELECT count(*) FROM dagapp.dag_task_results WHERE processed_at IS NULL) AS results,"
                " (SELECT count(*) FROM dagapp.dag_tasks WHERE status IN ('queued', 'leased')) AS tasks"
            )
            return left == {"results": 0, "tasks": 0}

        try:
            await until(all_ended)
            await until(nothing_left)
        except TimeoutError:
            jobs = await self.rows("SELECT job_id, status, error_message FROM dagapp.dag_jobs")
            pytest.fail(f"seed {self.seed}: not all came to an end: {jobs}, {await self._left()}")

    async def _left(self) -> list[dict[str, Any]]:
        return await self.rows(
            "SELECT job_id, node_id, status, ready_at, children_total, children_done, children_failed FROM"
            " dagapp.dag_nodes WHERE status IN ('ready', 'dispatched', 'running')"
        )

    # What must hold

    async def check(self) -> None:
        told = f"seed {self.seed}"
        assert self.seen["outdated snapshot"] == 0, told
        assert await self._twice() == [], told
        assert await self._unaccounted() == [], told
        assert await self._odd_stories() == [], told
        assert await self._given_up() == [], told
        for job_id, name in self.jobs.items():
            job = await self.api.job(job_id)
            if job.status is JobStatus.COMPLETED and name in RESULTS:
                assert job.result == RESULTS[name], told
        try:
            await self.api.check()
        except AssertionError as error:
            error.add_note(told)
            raise

    async def _twice(self) -> list[dict[str, Any]]:
        """Give the attempts that ended more than once."""
        return await self.rows(
            "SELECT task_id, array_agg(event_type) AS events FROM dagapp.dag_job_events"
            " WHERE event_type IN ('node_completed', 'node_failed') AND task_id IS NOT NULL"
            " GROUP BY task_id HAVING count(*) > 1"
        )

    async def _unaccounted(self) -> list[dict[str, Any]]:
        """Give the tasks whose results are not told of as often as they came: acted on, or ignored."""
        return await self.rows(
            """
            SELECT task_id, result.status, told.events
            FROM (SELECT task_id, array_agg(status) AS status FROM dagapp.dag_task_results GROUP BY task_id) AS result
            FULL JOIN (
                SELECT task_id, array_agg(event_type) AS events FROM dagapp.dag_job_events
                WHERE event_type IN ('node_completed', 'result_ignored', 'node_running') AND task_id IS NOT NULL
                   OR event_type = 'node_failed' AND task_id IS NOT NULL AND NOT data ? 'cancelled'
                GROUP BY task_id
            ) AS told USING (task_id)
            WHERE cardinality(status) IS DISTINCT FROM cardinality(events)
            """
        )

    async def _given_up(self) -> list[dict[str, Any]]:
        """Give the jobs that failed through no fault of a node."""
        return await self.rows(
            "SELECT job_id, data FROM dagapp.dag_job_events WHERE event_type = 'job_failed' AND NOT data ? 'node_id'"
        )

    async def _odd_stories(self) -> list[dict[str, Any]]:
        """Give the jobs that did not end once, or not once more for each time that they were resumed."""
        return await self.rows(
            """
            SELECT job_id, array_agg(event_type ORDER BY event_id) AS events FROM dagapp.dag_job_events
            WHERE event_type::text LIKE 'job_%%' GROUP BY job_id
            HAVING count(*) FILTER (WHERE event_type = 'job_created') <> 1
                OR count(*) FILTER (WHERE event_type IN ('job_completed', 'job_cancelled')) <> 1
                OR count(*) FILTER (WHERE event_type = 'job_failed')
                   <> count(*) FILTER (WHERE event_type = 'job_resumed')
            """
        )


# The workers


@asynccontextmanager
async def working(race: Race, name: WorkerId) -> AsyncIterator[None]:
    """Run a worker that ends tasks in any order, tells of some that they run, and gives some back."""
    async with Database(race.url, ROLE, pool_size=1) as pool:
        task = asyncio.create_task(_work(race, pool, name))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _work(race: Race, pool: Database, name: WorkerId) -> None:
    chance = race.chance(name)
    async with listening(Listener(race.url, ROLE, [queue_channel(QUEUE)])) as heard:
        async for _ in heard:
            async with pool.connection() as connection:
                tasks = TaskRepository(connection)
                while claimed := await tasks.claim(name, QUEUE, chance.randint(1, 9), 60):
                    await _end(race, chance, tasks, name, claimed)


async def _end(
    race: Race, chance: random.Random, tasks: TaskRepository, name: WorkerId, claimed: list[ClaimedTask]
) -> None:
    chance.shuffle(claimed)
    held = [Delivery(task.task_id, task.delivery_count) for task in claimed]
    given_back = held[1:2] if not race.calm and chance.random() < 0.2 else []
    await tasks.abandon(name, given_back, counts=False)
    await tasks.report_running(name, [RunningTask(each) for each in held if chance.random() < 0.1])
    ended = [
        _finished(task, delivery, None if race.calm else chance.random())
        for task, delivery in zip(claimed, held, strict=True)
        if delivery not in given_back
    ]
    middle = chance.randint(0, len(ended))
    for part in (ended[:middle], ended[middle:]):
        await tasks.finish(name, part)


def _finished(task: ClaimedTask, delivery: Delivery, luck: float | None) -> FinishedTask:
    if luck is not None and luck < 0.25:
        return FinishedTask(delivery, ResultStatus.FAILED, error_message="by chance", retryable=luck > 0.05)
    return FinishedTask(delivery, ResultStatus.COMPLETED, output=json.dumps(task.params.get("i", task.params)))


# The fixture


@pytest.fixture
async def new_race(
    database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Race]]:
    """Give races whose loops do not wait long after an error; what is known of jobs is held against their rows."""
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.05)
    url = database.url(ROLE)
    async with AsyncExitStack() as stack:
        apis = await stack.enter_async_context(Database(url, ROLE, pool_size=6))
        pools = [
            await stack.enter_async_context(Database(url, ROLE, pool_size=3, name=LOOP_NAME, by_key=True))
            for _ in range(2)
        ]

        def new(seed: int, orchestrators: int = 1, poll_seconds: float = 0.2) -> Race:
            options = {"orchestrator_poll_interval": poll_seconds}
            made = [
                Orchestrator(pools[n], apis, url, tmp_path, owner=f"owner-{'ab'[n]}", **options)
                for n in range(orchestrators)
            ]
            race = Race(url, seed, made)
            _watch_reading(race, monkeypatch)
            _watch_writing(race, monkeypatch)
            return race

        yield new


def _watch_reading(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read anew what is known already: as long as its version is the same, it must be the same."""
    read = StepRepository.read

    async def checked(
        self: StepRepository, job_ids: Iterable[JobId], known: Mapping[JobId, JobSnapshot], limit: int
    ) -> Any:
        found = await read(self, job_ids, known, limit)
        for job_id, (snapshot, _) in (await read(self, known, {}, 1)).items():
            if _version(snapshot) == _version(known[job_id]):
                race.seen["known snapshot"] += 1
                race.seen["outdated snapshot"] += _rows(snapshot) != _rows(known[job_id])
        return found

    monkeypatch.setattr(StepRepository, "read", checked)


def _version(snapshot: JobSnapshot) -> tuple[int, datetime]:
    return snapshot.job.owner_epoch, snapshot.job.updated_at


def _rows(snapshot: JobSnapshot) -> tuple[JobRow, Nodes]:
    return snapshot.job, snapshot.nodes


def _watch_writing(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test come between what a loop has read and what it writes."""

    async def watched(steps: StepRepository, outputs: Any, decided: list[DecidedJob], now: datetime) -> None:
        of_loop = steps._connection.info.transaction_status is TransactionStatus.IDLE
        if not of_loop or race.calm or not decided:
            await write_decisions(steps, outputs, decided, now)
            return
        (owner,) = [each for each in race.orchestrators if each.api.owner_id == steps.owner_id]
        await race.before_write(owner.api, decided)
        try:
            await write_decisions(steps, outputs, decided, now)
        except StaleVersion:
            race.seen["stale"] += 1
            raise
        await race.after_write(owner.api, decided)

    monkeypatch.setattr(steps_module, "write_decisions", watched)


NewRace = Callable[..., Race]


# The tests


@pytest.mark.parametrize("seed", [1, 2])
async def test_cancels_and_resumes_at_random_from_two_orchestrators(new_race: NewRace, seed: int) -> None:
    race = new_race(seed, orchestrators=2)
    await race.run(*(partial(race.meddle, of) for of in ("ann", "bob", "cyd")))
    assert race.seen["resumed"] > 0


@pytest.mark.parametrize("seed", [3])
async def test_jobs_are_cancelled_and_change_hands_between_reading_and_writing(new_race: NewRace, seed: int) -> None:
    race = new_race(seed, orchestrators=2)
    chance = race.chance("between")

    async def interfere(owner: Bench, decided: list[DecidedJob]) -> None:
        (other,) = [each.api for each in race.orchestrators if each.api is not owner]
        what = chance.random()
        if what < 0.05:
            sending = [job for job in decided if job.decision.tasks]
            await chance.choice([owner, other]).jobs.cancel(chance.choice(sending or decided).job_id, "between")
        elif what < 0.25:
            async with other.pool.connection() as connection:
                ownership = OwnershipRepository(connection)
                await ownership.take_orphans(other.owner_id, [owner.owner_id], datetime.now(UTC), 3)

    race.before_write = interfere
    await race.run(partial(race.meddle, "ann", cancels=0))
    assert race.seen["stale"] > 5, f"seed {seed}"


async def test_a_retry_that_is_due_is_not_sent_when_its_job_is_cancelled_meanwhile(new_race: NewRace) -> None:
    """No row that the step writes has changed: only the job's version tells."""
    race = new_race(0)
    owner = race.orchestrators[0]

    async def cancel(api: Bench, decided: list[DecidedJob]) -> None:
        if decided[0].decision.tasks:
            await api.jobs.cancel(decided[0].job_id)

    job_id = await owner.api.submit("chain")
    await owner.api.fail(job_id, "a", retryable=True)
    await owner.api.let_pass(1)
    race.before_write = cancel
    await owner.loop.advance(job_id, wake=Wake(due={"a"}))
    assert race.seen["stale"] == 1
    assert await owner.api.status(job_id) is JobStatus.CANCELLED
    assert await owner.api.queued(job_id) == []
    await owner.api.check()


@pytest.mark.parametrize("seed", [4])
async def test_answers_of_the_database_are_lost_after_the_write_or_before(new_race: NewRace, seed: int) -> None:
    race = new_race(seed)
    chance = race.chance("lost")

    async def lose(_: Bench, __: list[DecidedJob]) -> None:
        if chance.random() < 0.15:
            race.seen["lost"] += 1
            raise Unavailable("the connection was lost")

    race.before_write = race.after_write = lose
    await race.run(partial(race.meddle, "ann"))
    assert race.seen["lost"] > 5, f"seed {seed}"


async def test_a_step_that_failed_with_its_connection_is_taken_again_without_a_poll(new_race: NewRace) -> None:
    race = new_race(0, poll_seconds=NEVER)
    owner = race.orchestrators[0]

    async def lose_once(_: Bench, __: list[DecidedJob]) -> None:
        race.before_write = nothing
        raise Unavailable("the connection was lost")

    race.before_write = lose_once
    async with owner.loop.running():
        job_id = await owner.api.submit("chain")
        async with working(race, WorkerId("worker-0")):
            await owner.loop.ended(job_id)
    assert race.before_write is nothing


@pytest.mark.parametrize("seed", [5])
async def test_connections_of_the_loop_are_terminated_at_random(
    new_race: NewRace, seed: int, admin: psycopg.AsyncConnection
) -> None:
    race = new_race(seed)
    chance = race.chance("terminate")

    async def terminate() -> None:
        """End a connection, one that works if there is one, whenever a little more has happened."""
        for _ in range(25):
            await _more_events(race, chance.randint(1, 12))
            cursor = await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = %s"
                " ORDER BY state = 'active' DESC, random() LIMIT 1",
                [LOOP_NAME],
            )
            race.seen["terminated"] += cursor.rowcount

    await race.run(terminate, partial(race.meddle, "ann"))
    assert race.seen["terminated"] >= 3, f"seed {seed}"


async def _more_events(race: Race, count: int) -> None:
    """Wait until so many more events were written, or until there is nothing more to come."""

    async def events() -> int:
        (row,) = await race.rows(
            "SELECT (SELECT count(*) FROM dagapp.dag_job_events) AS events,"
            " EXISTS (SELECT FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')) AS active"
        )
        return int(row["events"]) if row["active"] or not race.jobs else 1_000_000

    wanted = await events() + count

    async def enough() -> bool:
        return await events() >= min(wanted, 1_000_000)

    await until(enough)
