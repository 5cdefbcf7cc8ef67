"""Steps that are taken twice: because someone changed the job, or because the answer to the first never came."""

import asyncio
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.locks import waiting_for_a_lock
from tests.integration.orchestrator.conftest import NewInstance
from tests.integration.orchestrator.instances import working
from tests.integration.orchestrator.test_loop import ECHO, RETRY, WIDE
from tests.integration.orchestrator.test_membership import CHAIN
from tests.integration.services.engine import DONE

from graticule.core.errors import Unavailable
from graticule.core.states import JobStatus
from graticule.repositories.tasks import ClaimedTask
from graticule.services import step_reading
from graticule.services import steps as steps_module
from graticule.services.step_reading import Wake
from graticule.services.step_writing import write_decisions


async def test_a_job_that_is_cancelled_again_and_again_is_cancelled(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = new_instance(ECHO), new_instance(ECHO)
    asked: list[object] = []

    async def asked_again(steps: Any, outputs: Any, decided: Any, now: Any) -> None:
        if len(asked) < 5 and decided:  # as often as a step is tried
            asked.append(await second.jobs.cancel(decided[0].job_id, "ann"))
        await write_decisions(steps, outputs, decided, now)

    async with first.running():
        job_id = await first.submit()
        monkeypatch.setattr(steps_module, "write_decisions", asked_again)
        await second.jobs.cancel(job_id, "ann")
        assert await first.ended(job_id) == [JobStatus.CANCELLED], (await first.job(job_id)).error_message


async def test_the_reason_of_a_write_that_can_never_succeed_helps(new_instance: NewInstance) -> None:
    instance = new_instance(CHAIN)
    job_id = await instance.submit()
    await instance.execute(
        "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, status)"
        " VALUES (%(task_id)s, %(job_id)s, 'b', 'q', 'echo', 'withdrawn')",
        task_id=f"{job_id}_b_0",
        job_id=job_id,
    )
    await instance.report(await instance.task_of(job_id, "a"), output=1)
    async with instance.running():
        await instance.ended(job_id)
    assert "a row is there already (dag_tasks_pkey)" in ((await instance.job(job_id)).error_message or "")


async def test_a_write_whose_client_is_gone_and_its_repetition_lose_no_count(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 2)
    instance = new_instance(WIDE)
    job_id = await instance.submit(n=6)
    tasks = sorted(await instance.tasks(job_id), key=lambda task: task.node_id)
    pool = instance.pool
    async with pool.connection() as late, pool.connection() as gone, pool.connection() as watching:
        await late.execute("BEGIN")  # a worker's report with the lower ids, whose commit takes a while
        for task in tasks[:2]:
            await late.execute(
                "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, output)"
                " VALUES (%s, %s, %s, 'completed', '1')",
                [task.task_id, task.job_id, task.node_id],
            )
        for task in tasks[2:4]:
            await instance.report(task, output=1)
        await gone.execute("BEGIN")
        await instance.steps.advance_within(gone, {job_id: Wake()})  # written; its commit takes a while, too
        await late.execute("COMMIT")
        again = asyncio.create_task(instance.steps.advance({job_id: Wake()}))
        await waiting_for_a_lock(watching)
        await gone.execute("COMMIT")
        await again
    children = await instance.nodes(job_id, "split")
    split = await instance.node(job_id, "split")
    assert split.children_done == sum(child.status is DONE for child in children.values())


async def test_a_retry_fires_although_the_answer_to_its_step_was_lost(
    new_instance: NewInstance, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []

    async def lose(*given: Any) -> None:
        await write_decisions(*given)
        if not lost:
            lost.append(1)
            raise Unavailable("gone")

    def flaky(task: ClaimedTask) -> Any:
        if task.retry_count < 1:
            raise LookupError("flaky")
        return 1

    instance = new_instance(RETRY)  # no poll
    job_id = await instance.submit()
    monkeypatch.setattr(steps_module, "write_decisions", lose)
    async with asyncio.timeout(5), instance.running(), working(database, flaky):
        await instance.ended(job_id)
