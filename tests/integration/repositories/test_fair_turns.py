"""Tasks of partners take turns: nobody waits for all that another has sent."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.repositories.rows import OWNER

from graticule.core.ids import JobId, WorkerId
from graticule.core.states import JobStatus
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository
from graticule.repositories.queries import load_queries
from graticule.repositories.step_parts import Part
from graticule.repositories.steps import JobRow, StepRepository
from graticule.repositories.tasks import ClaimedTask, Delivery, TaskRepository
from graticule.repositories.workflows import WorkflowRepository

JOB = JobId("job")
ME = WorkerId("me")


class Line:
    """A queue as orchestrators write it and a worker reads it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tasks = TaskRepository(connection)
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._count = 0

    async def open(self) -> None:
        await WorkflowRepository(self.connection).insert(rows.workflow())
        job = await JobRepository(self.connection).insert(rows.job(JOB, owner_id=OWNER, owner_epoch=1))
        self._now = job.updated_at

    async def send(self, *groups: tuple[str, int], priority: int = 0) -> None:
        """Queue so many tasks of each share in one step."""
        added: list[dict[str, Any]] = []
        for share, count in groups:
            for _ in range(count):
                self._count += 1
                added.append(_new_task(f"{share or 'hand'}:{self._count:06}", share, priority))
        await self._write(added)

    async def claim(self, limit: int = 1, passed_over: Iterable[str] = ()) -> list[ClaimedTask]:
        return await self.tasks.claim(ME, "q", limit, 60, passed_over=passed_over)

    async def drain(self, limit: int = 1) -> list[str]:
        """Claim until nothing waits, and name whose each task was."""
        order: list[str] = []
        while claimed := await self.claim(limit):
            order += [_share_of(task) for task in claimed]
        return order

    async def _write(self, added: list[dict[str, Any]]) -> None:
        read = JobRow(JOB, 1, self._now, rows.HASH, JobStatus.PENDING)
        await StepRepository(self.connection, OWNER).write([read], {Part.NEW_TASKS: added}, self._now)


def _new_task(task_id: str, share: str, priority: int) -> dict[str, Any]:
    line = {"queue": "q", "share": share, "priority": priority}
    what = {"job_id": JOB, "task_id": task_id, "node_id": "n", "handler": "echo", "params": {}}
    return {**what, **line, "retry_count": 0, "timeout_seconds": 60}


def _share_of(task: ClaimedTask) -> str:
    return task.task_id.split(":")[0]


@pytest.fixture
async def line(connection: Connection) -> Line:
    opened = Line(connection)
    await opened.open()
    return opened


async def test_a_few_tasks_wait_for_one_task_of_another_partner_each(line: Line) -> None:
    await line.send(("pa", 10_000))
    assert [_share_of(task) for task in await line.claim(100)] == ["pa"] * 100
    await line.send(("pb", 3))
    order = [_share_of(task) for task in await line.claim(8)]
    assert order == ["pa", "pb", "pa", "pb", "pa", "pb", "pa", "pa"]


async def test_with_one_partner_the_longest_waiting_is_first(line: Line) -> None:
    await line.send(("pa", 20))
    await line.send(("pa", 20))
    claimed = [task.task_id for task in await line.claim(40)]
    assert claimed == sorted(claimed)


async def test_one_who_sends_bit_by_bit_does_not_pass_one_who_waits(line: Line) -> None:
    await line.send(("pa", 50))
    order = []
    for _ in range(20):
        await line.send(("pb", 1))
        order += [_share_of(task) for task in await line.claim(2)]
    counted = Counter(order)
    assert counted["pa"] >= 19


async def test_a_partner_that_uses_all_priorities_has_no_more_turns_than_another(line: Line) -> None:
    for _ in range(20):
        for level in range(6):
            await line.send((f"pa/{level}" if level else "pa", 1))
    await line.send(("pb", 20))
    order = (await line.drain())[:60]
    assert order.count("pb") == 20


async def test_a_partner_that_fills_one_priority_after_the_other_leaves_others_their_turns(line: Line) -> None:
    for level in range(6):
        await line.send((f"pa/{level}" if level else "pa", 60))
    await line.send(("pb", 20))
    order = (await line.drain())[:80]
    assert order.count("pb") == 20


async def test_a_partners_urgent_task_goes_before_what_it_sent_earlier(line: Line) -> None:
    await line.send(("pa", 100))
    await line.send(("pa/5", 1))
    assert "pa/5" in (await line.drain())[:3]


async def test_a_partner_that_is_passed_over_keeps_its_turn(line: Line) -> None:
    await line.send(("pa", 20), ("pa/5", 20))
    assert await line.claim(passed_over=["pa"]) == []
    await line.send(("pb", 2), ("", 1))
    assert Counter(_share_of(task) for task in await line.claim(10, passed_over=["pa"])) == {"pb": 2, "hand": 1}
    assert Counter((await line.drain())[:4]) == {"pa": 2, "pa/5": 2}


async def test_two_workers_that_pass_a_partner_over_at_once_have_a_task_each(line: Line, pool: Database) -> None:
    """A notification wakes all of them; one that came back without a task would not look again for seconds."""
    await line.send(("pa", 3), ("pb", 2))
    async with pool.connection() as other, asyncio.timeout(10), line.connection.transaction():
        (first,) = await line.claim(passed_over=["pa"])
        others = TaskRepository(other)
        (second,) = await others.claim(WorkerId("other"), "q", 1, 60, passed_over=["pa"])
        (third,) = await others.claim(WorkerId("other"), "q", 1, 60)
    claimed = [task.task_id for task in (first, second, third)]
    assert claimed == ["pb:000004", "pb:000005", "pa:000001"], "nobody holds what is passed over"
    assert await line.claim(passed_over=["pa"]) == []


async def test_a_higher_priority_goes_before_all_turns(line: Line) -> None:
    await line.send(("pa", 5))
    await line.send(("", 2), priority=6)
    assert await line.drain() == ["hand", "hand", *["pa"] * 5]


async def test_jobs_of_no_partner_take_turns_together(line: Line) -> None:
    await line.send(("", 4), ("pa", 4))
    assert Counter((await line.drain())[:4]) == {"hand": 2, "pa": 2}


async def test_a_task_that_is_given_back_is_next_and_lets_nobody_else_pass(line: Line) -> None:
    await line.send(("pa", 100))
    (first,) = await line.claim()
    await line.claim(50)
    await line.tasks.abandon(ME, [Delivery(first.task_id, first.delivery_count)])
    await line.send(("pb", 20))
    order = [task.task_id for task in await line.claim(21)]
    assert order[0] == first.task_id
    assert Counter(task_id.split(":")[0] for task_id in order[1:]) == {"pa": 10, "pb": 10}


async def test_more_tasks_than_one_statement_carries_have_each_their_turn(line: Line) -> None:
    await line.send(("pa", 2))
    await line.send(("pb", 3), ("pa", 3))
    cursor = await line.connection.execute("SELECT share, turn FROM dagapp.dag_tasks ORDER BY share, turn")
    assert [(row["share"], row["turn"]) for row in await cursor.fetchall()] == [
        *(("pa", turn) for turn in range(5)),
        *(("pb", turn) for turn in range(3)),
    ]


Sent = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12), st.integers(0, 10)), min_size=1, max_size=8)


@given(sent=Sent)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_nobody_is_overtaken_by_more_than_one_turn_of_each_other(line: Line, sent: list[Any]) -> None:
    """Whatever was sent and claimed before: while two wait, neither is served twice more than the other."""
    await line.connection.execute("DELETE FROM dagapp.dag_tasks")
    waiting: Counter[str] = Counter()
    served: list[tuple[str, frozenset[str]]] = []
    for share, count, claims in sent:
        await line.send((share, count))
        waiting[share] += count
        for task in await line.claim(claims):
            served.append((_share_of(task), frozenset(+waiting)))
            waiting[_share_of(task)] -= 1
    for task in await line.claim(500):
        served.append((_share_of(task), frozenset(+waiting)))
        waiting[_share_of(task)] -= 1
    assert not +waiting
    for one in "abc":
        for other in set("abc") - {one}:
            assert _longest_lead(served, one, other) <= 2


def _longest_lead(served: Iterable[tuple[str, frozenset[str]]], one: str, other: str) -> int:
    """Count how much more often `one` was served than `other`, at most, while both waited."""
    lead = longest = 0
    for share, waiting in served:
        if not {one, other} <= waiting:
            lead = 0
        elif share == one:
            lead += 1
        elif share == other:
            lead = max(0, lead - 1)
        longest = max(longest, lead)
    return longest


FILL = """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, share, turn)
    SELECT share || n, 'job', 'n', 'q', 'echo', share, n
    FROM (VALUES ('pa', 20000), ('pb', 3)) AS sent (share, most), generate_series(1, most) AS n
"""


@pytest.mark.parametrize(("passed_over", "claimed", "pages"), [([], 5, 30), (["pa"], 3, 150), (["pa", "pb"], 0, 150)])
def test_a_claim_reads_a_handful_of_pages_however_many_wait(
    own_database: TestDatabase, passed_over: list[str], claimed: int, pages: int
) -> None:
    given = {"queue": "q", "worker_id": ME, "lease_seconds": 60, "limit": 5, "without": [], "passed_over": passed_over}
    with psycopg.connect(own_database.url(), row_factory=dict_row) as connection:
        connection.execute(
            "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)"
            " VALUES (%s, 'flow', '1', 'Flow', '{}')",
            [rows.HASH],
        )
        connection.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash)"
            " VALUES ('job', 'flow', '1', %s)",
            [rows.HASH],
        )
        connection.execute(FILL)
        connection.commit()
        connection.execute("ANALYZE dagapp.dag_tasks")
        claim = load_queries("tasks.sql")["claim_tasks"]
        row = connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + claim.encode(), given).fetchone()
        assert row is not None
        plan = row["QUERY PLAN"][0]["Plan"]
        assert connection.execute("SELECT FROM dagapp.dag_tasks WHERE status = 'leased'").rowcount == claimed
        searches = [
            part for part in plan["Plans"] if "InitPlan" in part.get("Subplan Name", "") and part["Actual Loops"]
        ]
        assert 0 < sum(part["Shared Hit Blocks"] + part["Shared Read Blocks"] for part in searches) <= pages
        connection.rollback()
