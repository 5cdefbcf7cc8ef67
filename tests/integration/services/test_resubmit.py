"""A job that ended without a result runs again when it is submitted again with `resubmit`."""

import asyncio
from typing import Any

import pytest
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, PENDING, SENT, Bench, flow

from graticule.core.errors import Conflict
from graticule.core.ids import JobId
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.services.jobs import Submission

INPUTS = "{n: {type: integer, default: 1}}"
TWO = """
  start: {type: start, next: a}
  a: {handler: echo, params: {n: "{{ inputs.n }}"}, next: b}
  b: {handler: echo, params: {of: first}, next: end}"""


def staged(nodes: str = TWO) -> str:
    return flow(nodes, inputs=INPUTS, more="job_id: params")


async def submitted(bench: Bench, *, resubmit: bool = True, **more: Any) -> tuple[JobId, JobStatus]:
    found = await bench.jobs.submit(Submission(workflow_id="flow", **more), resubmit=resubmit, actor="ann")
    return JobId(found.job.job_id), found.job.status


async def test_a_cancelled_job_goes_on_where_it_was(new_bench: NewBench) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.finish(job_id, "a", "kept")
    late = await bench.task_of(job_id, "b")
    await bench.jobs.cancel(job_id)
    assert await submitted(bench, resubmit=False) == (job_id, JobStatus.CANCELLED)
    assert await submitted(bench) == (job_id, JobStatus.RUNNING)
    job = await bench.job(job_id)
    assert (job.cancel_requested_at, job.ended_at, job.error_message) == (None, None, None)
    assert await bench.statuses(job_id) == {"start": DONE, "a": DONE, "b": SENT, "end": PENDING}
    await bench.report(late, output="of the attempt that was cancelled")
    await bench.advance(job_id)
    assert await bench.status(job_id) is JobStatus.RUNNING
    await bench.finish(job_id, "b", "at last")
    assert (await bench.job(job_id)).result == "at last"
    assert (await bench.event(job_id, "job_resumed")).actor == "ann"


async def test_a_job_that_was_cancelled_before_it_did_anything_runs(new_bench: NewBench) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.jobs.cancel(job_id)
    assert await submitted(bench) == (job_id, JobStatus.RUNNING)
    await bench.jobs.cancel(job_id)
    assert await submitted(bench) == (job_id, JobStatus.RUNNING)
    await bench.finish(job_id, "a", 1)
    await bench.finish(job_id, "b", 2)
    assert (await bench.status(job_id), (await bench.job(job_id)).result) == (JobStatus.COMPLETED, 2)


FANNED = """
  start: {type: start, next: split}
  split: {type: fan_out, source: "{{ range(inputs.n) | list }}", task: {handler: echo}, next: all}
  all: {type: fan_in, aggregation: collect, next: end}"""


async def test_the_children_that_a_cancel_ended_run_again(new_bench: NewBench) -> None:
    bench = new_bench(staged(FANNED))
    job_id = await bench.submit(n=3)
    await bench.finish(job_id, "split__1", "one")
    await bench.jobs.cancel(job_id)
    assert await submitted(bench, input_params={"n": 3}) == (job_id, JobStatus.RUNNING)
    assert await bench.statuses(job_id, "split") == {"split__0": SENT, "split__1": DONE, "split__2": SENT}
    for child in ("split__0", "split__2"):
        await bench.finish(job_id, child, child)
    assert (await bench.job(job_id)).result == {"count": 3, "results": ["split__0", "one", "split__2"]}


async def test_a_cancelled_job_of_a_key_goes_on_too(new_bench: NewBench) -> None:
    bench = new_bench(flow(TWO, inputs=INPUTS))
    job_id, _ = await submitted(bench, idempotency_key="k")
    await bench.jobs.cancel(job_id)
    assert await submitted(bench, idempotency_key="k") == (job_id, JobStatus.RUNNING)


async def test_a_retry_names_the_way_on_for_a_cancelled_job(new_bench: NewBench) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.jobs.cancel(job_id)
    with pytest.raises(Conflict, match="only a failed job can be retried") as refused:
        await bench.jobs.resume(job_id)
    assert "with resubmit" in str(refused.value.hint)
    assert await bench.status(job_id) is JobStatus.CANCELLED


CORRECTED = (
    TWO.replace("of: first", "of: second") + "\n  c: {type: fan_out, source: [1, 2], task: {handler: echo}, next: end}"
)
CORRECTED = CORRECTED.replace("next: end}\n  c:", "next: c}\n  c:")


@pytest.mark.parametrize("ending", ["fail", "cancel"])
async def test_a_corrected_workflow_is_what_the_job_runs(new_bench: NewBench, ending: str) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.finish(job_id, "a", "of the old definition")
    late = await bench.task_of(job_id, "b")
    await (bench.fail(job_id, "b", "wrong") if ending == "fail" else bench.jobs.cancel(job_id))
    corrected = new_bench(staged(CORRECTED))
    assert await submitted(corrected) == (job_id, JobStatus.RUNNING)
    job = await corrected.job(job_id)
    graph = corrected.jobs._workflows.library.get("flow")
    assert (job.workflow_hash, job.error_message, job.ended_at) == (graph.content_hash, None, None)
    assert job.cancel_requested_at is None
    pending = dict.fromkeys(("b", "c", "end"), PENDING)
    assert await corrected.statuses(job_id) == {"start": DONE, "a": SENT, **pending}
    # A result of the old attempts counts for nothing, and no new attempt has the id of an old one.
    assert (await corrected.task_of(job_id, "a")).task_id == f"{job_id}_a_1"
    await corrected.report(late, output="too late")
    await corrected.advance(job_id)
    assert await corrected.status(job_id) is JobStatus.RUNNING
    await corrected.finish(job_id, "a", 1)
    assert (await corrected.task_of(job_id, "b")).params == {"of": "second"}
    await corrected.finish(job_id, "b", 2)
    for child in ("c__0", "c__1"):
        assert (await corrected.task_of(job_id, child)).retry_count == 1
        await corrected.finish(job_id, child, child)
    assert await corrected.status(job_id) is JobStatus.COMPLETED
    resumed = await corrected.event(job_id, "job_resumed")
    assert (resumed.actor, resumed.data["workflow_hash"]) == ("ann", graph.content_hash)


async def test_a_definition_may_change_more_than_once(new_bench: NewBench) -> None:
    """A node that was left out for a while has no attempt of the same id as before."""
    first, second = new_bench(staged(FANNED)), new_bench(staged())
    job_id = await first.submit()
    await first.fail(job_id, "split__0")
    assert await submitted(second) == (job_id, JobStatus.RUNNING)
    await second.fail(job_id, "a")
    assert await submitted(first) == (job_id, JobStatus.RUNNING)
    ids = [task.task_id for task in await first.tasks(job_id, None)]
    assert sorted(ids) == [f"{job_id}_a_1", f"{job_id}_split__0_0", f"{job_id}_split__0_2"]


async def test_a_corrected_workflow_that_fails_at_once_says_why(new_bench: NewBench) -> None:
    broken = TWO.replace("inputs.n", "inputs.n.missing")
    first, third = new_bench(staged(broken)), new_bench(staged())
    job_id = await first.submit()
    assert await first.status(job_id) is JobStatus.FAILED
    still = new_bench(staged(broken.replace("first", "another")))
    assert await submitted(still) == (job_id, JobStatus.FAILED)
    assert "missing" in str((await still.job(job_id)).error_message)
    assert await submitted(third) == (job_id, JobStatus.RUNNING)
    assert (await third.statuses(job_id))["a"] is SENT


async def test_a_job_of_a_key_keeps_its_definition(new_bench: NewBench) -> None:
    """Its inputs are those of the first submission, which the new definition may not know."""
    first, second = new_bench(flow(TWO, inputs=INPUTS)), new_bench(flow(CORRECTED, inputs=INPUTS))
    job_id, _ = await submitted(first, idempotency_key="k")
    before = await first.job(job_id)
    await first.fail(job_id, "a")
    assert await submitted(second, idempotency_key="k") == (job_id, JobStatus.RUNNING)
    assert (await second.job(job_id)).workflow_hash == before.workflow_hash


async def test_what_was_done_is_kept_where_the_definition_is_the_same(new_bench: NewBench) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.finish(job_id, "a", "kept")
    await bench.fail(job_id, "b")
    assert await submitted(bench) == (job_id, JobStatus.RUNNING)
    assert (await bench.node(job_id, "a")).status is NodeStatus.COMPLETED
    task = await bench.task_of(job_id, "b")
    await bench.report(task, ResultStatus.COMPLETED, "done")
    await bench.advance(job_id)
    assert await bench.status(job_id) is JobStatus.COMPLETED


@pytest.mark.parametrize("definition", [TWO, CORRECTED], ids=["goes on", "starts over"])
async def test_parallel_submissions_all_get_the_job_that_one_of_them_runs_again(
    new_bench: NewBench, definition: str
) -> None:
    first = new_bench(staged())
    job_id = await first.submit()
    await first.fail(job_id, "a")
    bench = new_bench(staged(definition))
    assert await asyncio.gather(*(submitted(bench) for _ in range(3))) == [(job_id, JobStatus.RUNNING)] * 3
    assert (await bench.trace(job_id)).count("job_resumed") == 1


async def test_a_second_retry_at_the_same_time_is_refused_with_the_status_that_the_first_led_to(
    new_bench: NewBench,
) -> None:
    bench = new_bench(staged())
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    retries = await asyncio.gather(*(bench.jobs.resume(job_id) for _ in range(3)), return_exceptions=True)
    refused = [str(each) for each in retries if isinstance(each, Conflict)]
    assert len(refused) == 2
    for message in refused:
        assert f"Job {job_id} is running; only a failed job can be retried." in message
