"""A step that cannot be taken changes nothing, and the job that spoils it harms no other."""

import asyncio
from collections.abc import Callable
from typing import Any, LiteralString

import pytest
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, SENT, Bench, flow

from graticule.core.errors import StaleVersion
from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.dag.evaluate import advance
from graticule.repositories.database import Connection
from graticule.repositories.steps import StepRepository
from graticule.services import steps as steps_module
from graticule.services.step_reading import Wake
from graticule.services.step_writing import write_decisions

PLAIN = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: [b, split]}
  b: {handler: echo, next: end}
  split: {type: fan_out, source: [0, 1], task: {handler: echo}, next: merge}
  merge: {type: fan_in, next: end}""")
GROWING = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {n: "{{ PRODUCT }}"}, next: end}""").replace(
    "PRODUCT", " * ".join(["nodes.a.output"] * 17)
)
SUM = flow("""
  start: {type: start, next: split}
  split: {type: fan_out, source: [0, 1], task: {handler: echo}, next: merge}
  merge: {type: fan_in, aggregation: sum, next: end}""")


def meddling(monkeypatch: pytest.MonkeyPatch, change: LiteralString, times: int = 1) -> list[str]:
    """Let rows change between what a step reads and what it writes, and give what became of each attempt to write."""
    attempts: list[str] = []

    async def written(steps: StepRepository, *given: Any) -> None:
        if len(attempts) < times:
            await steps._connection.execute(change)
        attempts.append("stale")
        await write_decisions(steps, *given)
        attempts[-1] = "written"

    monkeypatch.setattr(steps_module, "write_decisions", written)
    return attempts


CHANGES: dict[str, tuple[LiteralString, bool]] = {
    "status": ("UPDATE dagapp.dag_nodes SET status = 'running' WHERE node_id = 'a'", True),
    "version": ("UPDATE dagapp.dag_jobs SET updated_at = now()", True),
    "epoch": ("UPDATE dagapp.dag_jobs SET owner_epoch = owner_epoch + 1", True),
    "owner": ("UPDATE dagapp.dag_jobs SET owner_id = 'owner-b'", False),
    "processed": ("UPDATE dagapp.dag_task_results SET processed_at = now()", False),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("what", CHANGES)
async def test_a_step_whose_rows_are_changed_meanwhile_is_taken_anew(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch, what: str, is_known: bool
) -> None:
    change, goes_on = CHANGES[what]
    bench = new_bench(PLAIN)
    job_id, other = await bench.submit(), await bench.submit()
    if is_known:
        await bench.advance(job_id, other)
    for each in (job_id, other):
        await bench.report(await bench.task_of(each, "a"), output=1)
    attempts = meddling(monkeypatch, change)
    await bench.advance(job_id, other)
    assert attempts == ["stale", "written"]
    for each in (job_id, other):
        assert ((await bench.node(each, "a")).status is DONE) is goes_on
        assert len(await bench.tasks(each, None)) == (4 if goes_on else 1)


async def test_a_step_is_taken_anew_as_often_as_its_job_is_changed(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    attempts = meddling(monkeypatch, "UPDATE dagapp.dag_jobs SET updated_at = clock_timestamp()", times=20)
    await bench.advance(job_id)
    assert attempts == ["stale"] * 20 + ["written"]
    assert (await bench.node(job_id, "a")).status is DONE


async def test_a_step_that_cannot_be_written_although_nobody_changed_the_job_is_given_up_and_leaves_nothing(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    change: LiteralString = (
        "UPDATE dagapp.dag_nodes SET status = (CASE status WHEN 'running' THEN 'dispatched' ELSE 'running' END)"
        "::dagapp.node_status WHERE node_id = 'a'"
    )
    with monkeypatch.context() as patched:
        attempts = meddling(patched, change, times=100)
        with pytest.raises(StaleVersion, match="not as it was read"):
            await bench.advance(job_id)
    assert attempts == ["stale", "stale"]
    assert (await bench.node(job_id, "a")).status is SENT
    await bench.advance(job_id)
    assert (await bench.node(job_id, "a")).status is DONE


async def test_a_step_that_needs_what_is_not_there_is_taken_anew_and_then_given_up(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a resume removes rows while they are read."""
    bench = new_bench(
        flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, next: c}
  c: {handler: echo, params: {n: "{{ nodes.a.output }}"}, next: end}""")
    )
    job_id = await bench.submit()
    await bench.finish(job_id, "a", 1)
    asked: list[Any] = []

    async def gone(_: StepRepository, *given: Any) -> dict[str, Any]:
        asked.append(given)
        return {}

    await bench.report(await bench.task_of(job_id, "b"), output=2)
    with monkeypatch.context() as patched:
        patched.setattr(StepRepository, "outputs", gone)
        with pytest.raises(StaleVersion, match="is not there"):
            await asyncio.wait_for(bench.steps.advance({job_id: Wake()}), 20)
    assert len(asked) == 2  # once in each of two attempts
    await bench.advance(job_id)
    assert (await bench.node(job_id, "c")).input_params == {"n": 1}


async def test_a_job_that_is_not_ours_is_passed_over(new_bench: NewBench) -> None:
    bench, other = new_bench(PLAIN), new_bench(PLAIN, owner="owner-b")
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    before = await bench.snapshot()
    await other.advance(job_id, wake=Wake(due={"a"}, expired={"a": False}))
    await other.advance(JobId("nowhere"))
    assert await bench.snapshot() == before


async def test_a_batch_of_own_and_foreign_jobs_advances_the_own_ones(new_bench: NewBench) -> None:
    bench, other = new_bench(PLAIN), new_bench(PLAIN, owner="owner-b")
    mine, foreign = await bench.submit(), await other.submit()
    for job_id in (mine, foreign):
        await bench.report(await bench.task_of(job_id, "a"), output=1)
    await bench.advance(foreign, mine)
    assert (await bench.node(mine, "a")).status is DONE
    assert (await bench.node(foreign, "a")).status is SENT
    assert await bench.waiting_results(foreign) == 1


async def test_steps_of_one_job_at_once_follow_each_other(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    await asyncio.gather(*(bench.advance(job_id) for _ in range(4)))
    assert (await bench.trace(job_id, "a")).count("node_completed") == 1
    assert len(await bench.tasks(job_id, None)) == 4


def raising_for(job_id: JobId, error: Exception) -> Callable[..., Any]:
    def decide(graph: Any, state: Any, *given: Any) -> Any:
        if state.job_id == job_id:
            raise error
        return advance(graph, state, *given)

    return decide


async def test_an_evaluator_that_breaks_fails_its_job_alone(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(PLAIN)
    jobs = [await bench.submit() for _ in range(5)]
    for job_id in jobs:
        await bench.report(await bench.task_of(job_id, "a"), output=1)
    await bench.claim(limit=2)
    monkeypatch.setattr(steps_module, "advance", raising_for(jobs[2], ZeroDivisionError("secret detail")))
    await bench.advance(*jobs)
    broken = await bench.job(jobs[2])
    assert broken.status is JobStatus.FAILED
    assert "ZeroDivisionError" in (broken.error_message or "")
    assert "secret" not in (broken.error_message or "")
    assert await bench.queued(jobs[2]) == []
    assert await bench.waiting_results(jobs[2]) == 0
    for job_id in jobs[:2] + jobs[3:]:
        assert (await bench.node(job_id, "a")).status is DONE


async def test_an_evaluator_that_breaks_over_a_late_result_does_not_change_an_ended_job(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(flow("\n  start: {type: start, next: a}\n  a: {handler: echo, next: end}"))
    job_id = await bench.submit()
    task = await bench.task_of(job_id, "a")
    await bench.finish(job_id, "a", "done")
    await bench.report(task, output="late")
    monkeypatch.setattr(steps_module, "advance", raising_for(job_id, ZeroDivisionError()))
    await bench.advance(job_id)
    job = await bench.job(job_id)
    assert (job.status, job.result) == (JobStatus.COMPLETED, "done")
    assert (await bench.trace(job_id))[-1] != "job_failed"


async def test_a_job_that_was_given_up_can_be_resumed_and_completes(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = flow("""
  start: {type: start, next: [a, b]}
  a: {handler: echo, next: end}
  b: {handler: echo, next: end}""")
    bench = new_bench(two)
    job_id = await bench.submit()
    with monkeypatch.context() as patched:
        patched.setattr(steps_module, "advance", raising_for(job_id, ZeroDivisionError()))
        await bench.finish(job_id, "a", 1)
    assert await bench.status(job_id) is JobStatus.FAILED
    await bench.jobs.resume(job_id)
    for _ in range(5):
        for task in await bench.tasks(job_id):
            await bench.report(task, output=2)
        await bench.look_around()
    assert await bench.status(job_id) is JobStatus.COMPLETED


async def test_an_error_while_a_job_is_resumed_is_told_and_changes_nothing(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    before = await bench.snapshot()
    with monkeypatch.context() as patched:
        patched.setattr(steps_module, "advance", raising_for(job_id, ZeroDivisionError()))
        with pytest.raises(ZeroDivisionError):
            await bench.jobs.resume(job_id)
    assert await bench.snapshot() == before


async def test_a_submission_whose_first_step_breaks_makes_no_job(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(PLAIN)

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(steps_module, "advance", broken)
    with pytest.raises(ZeroDivisionError):
        await bench.submit()
    assert not any((await bench.snapshot()).values())


@pytest.mark.parametrize("workflow", [GROWING, SUM], ids=["template", "sum"])
async def test_a_decision_that_no_row_can_hold_fails_its_job_alone(new_bench: NewBench, workflow: str) -> None:
    """A number beyond all floats, or a sum beyond 64 bits, is refused: the job must not hang, nor hold up the other."""
    bench = new_bench(workflow, PLAIN.replace("workflow_id: flow", "workflow_id: plain"))
    job_id, other = await bench.submit(), await bench.submit("plain")
    for task in await bench.tasks(job_id):
        await bench.report(task, output=2**63)
    await bench.report(await bench.task_of(other, "a"), output=1)
    await advanced_as_by_the_loop(bench, job_id, other)
    assert (await bench.node(other, "a")).status is DONE
    job = await bench.job(job_id)
    assert job.status is JobStatus.FAILED
    assert job.error_message


async def advanced_as_by_the_loop(bench: Bench, *job_ids: JobId) -> None:
    """Take a step of all, and when it fails, of each alone; one that cannot be taken alone is given up."""
    try:
        await bench.advance(*job_ids)
    except Exception as error:
        if len(job_ids) == 1:
            await bench.steps.give_up(job_ids[0], error)
        else:
            for job_id in job_ids:
                await advanced_as_by_the_loop(bench, job_id)


async def test_a_step_inside_a_transaction_that_is_rolled_back_leaves_nothing(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    before = await bench.snapshot()

    async def take_and_fail(connection: Connection) -> None:
        await bench.steps.advance_within(connection, {job_id: Wake()})
        raise LookupError

    with pytest.raises(LookupError):
        async with bench.pool.connection() as connection, connection.transaction():
            await take_and_fail(connection)
    assert await bench.snapshot() == before
