"""Submissions: one job for one wish, and nothing at all for a wish that cannot be met."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, SENT, Bench, compiled, flow

from graticule.core.errors import GraticuleError, InvalidInput, NotFound
from graticule.core.states import JobStatus
from graticule.core.trace_context import continued, parse_traceparent
from graticule.dag.inputs import deterministic_job_id
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.jobs import Submission

NODES = """
  start: {type: start, next: a}
  a: {handler: echo, params: {n: "{{ inputs.n }}", s: "{{ inputs.s }}"}, next: end}"""
INPUTS = "{n: {type: integer, required: true}, s: {type: string, default: x}, d: {type: object, default: {}}}"
PLAIN = flow(NODES, inputs=INPUTS)
BY_PARAMS = flow(NODES, inputs=INPUTS, workflow_id="by_params", more="job_id: params")


def submission(workflow_id: str = "flow", **changes: Any) -> Submission:
    return Submission(**{"workflow_id": workflow_id, "input_params": {"n": 1}, **changes})


TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


async def rows_of(bench: Bench) -> dict[str, int]:
    return {table: len(rows) for table, rows in (await bench.snapshot()).items()}


async def test_a_submission_keeps_all_that_it_says_and_belongs_to_its_owner(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    given: dict[str, Any] = {
        "correlation_id": "c",
        "submitted_by": "ann",
        "callback_url": "https://example.org/x",
        "idempotency_key": "key",
        "priority": 7,
        "traceparent": TRACE,
    }
    made = await bench.jobs.submit(submission(**given), actor="client-1")
    assert made.created
    job = await bench.job(made.job.job_id)
    assert made.job == job
    assert {name: getattr(job, name) for name in given} == given
    assert (job.owner_id, job.owner_epoch, job.status) == ("owner-a", 1, JobStatus.RUNNING)
    assert job.input_params == {"n": 1, "s": "x", "d": {}}
    (task,) = await bench.tasks(job.job_id)
    assert (task.priority, task.traceparent) == (7, TRACE)
    assert (await bench.event(job.job_id, "job_created")).actor == "client-1"


@pytest.mark.parametrize("given", [None, "00-abc", "a\0b"])
async def test_a_job_belongs_to_the_trace_of_its_request_unless_it_names_one(
    new_bench: NewBench, given: str | None
) -> None:
    bench = new_bench(PLAIN)
    with continued(parse_traceparent(TRACE)):
        made = await bench.jobs.submit(submission(traceparent=given))
    alone = await bench.jobs.submit(submission(input_params={"n": 2}, traceparent=given))
    (task,) = await bench.tasks(made.job.job_id)
    assert (made.job.traceparent, task.traceparent, alone.job.traceparent) == (TRACE, TRACE, None)


async def test_a_job_pins_the_workflow_that_it_was_made_with(new_bench: NewBench) -> None:
    first = new_bench(PLAIN)
    job_id = await first.submit(n=1)
    second = new_bench(flow(NODES.replace("next: end", "next: b") + "\n  b: {handler: echo, next: end}", inputs=INPUTS))
    other = await second.submit(n=1)
    await second.finish(job_id, "a", "old")
    assert (await first.job(job_id)).result == "old"
    await first.finish(other, "a", "new")
    assert (await first.statuses(other))["b"] is SENT
    async with first.pool.connection() as connection:
        row = await WorkflowRepository(connection).get(workflow_hash=(await first.job(job_id)).workflow_hash)
    assert row.definition == compiled(PLAIN).model_dump(mode="json")


# One job for one wish


async def test_an_idempotency_key_finds_the_first_job(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    first = await bench.jobs.submit(submission(idempotency_key="k"))
    before = await bench.snapshot()
    again = await bench.jobs.submit(submission(idempotency_key="k", input_params={"n": 2}))
    assert (again.created, again.job.job_id, again.job.input_params["n"]) == (False, first.job.job_id, 1)
    assert await bench.snapshot() == before
    assert (await bench.jobs.submit(submission(idempotency_key="other"))).created


async def test_twenty_submissions_at_once_with_one_key_make_one_job(new_bench: NewBench) -> None:
    benches = [new_bench(PLAIN), new_bench(PLAIN, owner="owner-b")]
    asked = [benches[number % 2].jobs.submit(submission(idempotency_key="k")) for number in range(20)]
    found = await asyncio.gather(*asked)
    assert Counter(each.created for each in found) == {True: 1, False: 19}
    assert len({each.job.job_id for each in found}) == 1
    counted = await rows_of(benches[0])
    assert (counted["dag_jobs"], counted["dag_nodes"], counted["dag_tasks"]) == (1, 3, 1)
    owner = next(number % 2 for number, each in enumerate(found) if each.created)
    assert found[0].job.owner_id == benches[owner].owner_id


async def test_submissions_at_once_share_a_transaction_and_each_keeps_its_actor(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    made = await asyncio.gather(
        *(bench.jobs.submit(submission(submitted_by=f"s{n}"), actor=f"client-{n}") for n in range(30))
    )
    actors = [(await bench.event(each.job.job_id, "job_created")).actor for each in made]
    assert actors == [f"client-{n}" for n in range(30)]
    assert [each.job.submitted_by for each in made] == [f"s{n}" for n in range(30)]
    async with bench.pool.connection() as connection:
        found = await connection.execute("SELECT count(DISTINCT xmin::text) AS transactions FROM dagapp.dag_jobs")
        row = await found.fetchone() or {}
    assert row["transactions"] == 1


async def test_equal_inputs_are_one_job_where_the_workflow_says_so(new_bench: NewBench) -> None:
    bench = new_bench(BY_PARAMS, PLAIN)
    first = await bench.jobs.submit(submission("by_params"))
    inputs: dict[str, Any] = {"n": 1, "s": "x", "d": {}}
    assert first.job.job_id == deterministic_job_id(compiled(BY_PARAMS), inputs)
    again = await bench.jobs.submit(submission("by_params", input_params={"s": "x", "n": 1}))
    assert (again.created, again.job.job_id) == (False, first.job.job_id)
    other = await bench.jobs.submit(submission("by_params", input_params={"n": 2}))
    assert other.created
    assert (await rows_of(bench))["dag_jobs"] == 2
    assert len({await bench.submit(n=1), await bench.submit(n=1)}) == 2


async def test_twenty_submissions_at_once_with_equal_inputs_make_one_job(new_bench: NewBench) -> None:
    bench = new_bench(BY_PARAMS)
    found = await asyncio.gather(*(bench.jobs.submit(submission("by_params")) for _ in range(20)))
    assert Counter(each.created for each in found) == {True: 1, False: 19}
    assert (await rows_of(bench))["dag_tasks"] == 1


@pytest.mark.parametrize("same", [{"workflow_id": "by_params"}, {"idempotency_key": "k"}])
async def test_one_batch_may_ask_for_the_same_job_twice(new_bench: NewBench, same: dict[str, Any]) -> None:
    bench = new_bench(BY_PARAMS, PLAIN)
    found = await bench.jobs.submit_many([submission(**same), submission(), submission(**same)])
    assert [each.created for each in found] == [True, True, False]
    assert found[0].job.job_id == found[2].job.job_id != found[1].job.job_id
    counted = await rows_of(bench)
    assert (counted["dag_jobs"], counted["dag_nodes"], counted["dag_tasks"]) == (2, 6, 2)


async def test_batches_with_the_same_keys_in_another_order_do_not_block_each_other(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    await bench.jobs.submit(submission())  # the workflow is there: its row no longer makes them wait for each other
    keys = [submission(idempotency_key=f"k{number}") for number in range(300)]

    async def submitted(batch: list[Submission]) -> set[str]:
        return {each.job.job_id for each in await bench.jobs.submit_many(batch)}

    found = await asyncio.gather(*(submitted(keys if turn % 2 else keys[::-1]) for turn in range(4)))
    assert len(set.union(*found)) == 300


async def test_a_failed_job_of_the_same_inputs_is_resumed_by_resubmit(new_bench: NewBench) -> None:
    bench = new_bench(BY_PARAMS)
    first = await bench.jobs.submit(submission("by_params"))
    job_id = first.job.job_id
    running = await bench.jobs.submit(submission("by_params"), resubmit=True)
    assert (running.created, running.job.status, running.job.owner_epoch) == (False, JobStatus.RUNNING, 1)
    await bench.fail(job_id, "a")
    found = await bench.jobs.submit(submission("by_params"))
    assert (found.created, found.job.status) == (False, JobStatus.FAILED)
    resumed = await bench.jobs.submit(submission("by_params"), resubmit=True, actor="ann")
    assert (resumed.created, resumed.job.job_id, resumed.job.status) == (False, job_id, JobStatus.RUNNING)
    assert (await bench.event(job_id, "job_resumed")).actor == "ann"
    await bench.finish(job_id, "a", "at last")
    done = await bench.jobs.submit(submission("by_params"), resubmit=True)
    assert (done.job.status, done.job.result) == (JobStatus.COMPLETED, "at last")


# Nothing at all


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"workflow_id": "nowhere"}, NotFound, "There is no workflow 'nowhere'"),
        ({"input_params": {}}, InvalidInput, "'n' is required"),
        ({"input_params": {"n": "1"}}, InvalidInput, "'n' must be an integer, and is a string"),
        ({"input_params": {"n": 1, "other": 2}}, InvalidInput, "'other' is not an input"),
        ({"input_params": {"n": 1, "s": "a\0b"}}, InvalidInput, "NUL"),
        ({"input_params": {"n": 1, "d": {"deep": [{"a\0": 1}]}}}, InvalidInput, "NUL"),
        ({"input_params": {"n": 1, "s": "\ud800"}}, InvalidInput, "JSON"),
        ({"input_params": {"n": 1, "s": "x" * 5_000_000}}, InvalidInput, "bytes"),
    ],
)
async def test_what_cannot_be_a_job_is_refused_and_changes_nothing(
    new_bench: NewBench, changes: dict[str, Any], error: type[GraticuleError], said: str
) -> None:
    bench = new_bench(PLAIN)
    with pytest.raises(error) as refused:
        await bench.jobs.submit_many([submission(), submission(**changes)])
    assert said in refused.value.message
    assert len(refused.value.message) < 500
    assert set((await rows_of(bench)).values()) == {0}


async def test_a_backslash_before_u0000_is_text_like_any_other(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    job_id = await bench.submit(n=1, s="\\u0000 \\\\u0000")
    assert (await bench.task_of(job_id, "a")).params["s"] == "\\u0000 \\\\u0000"


@pytest.mark.parametrize(
    "values",
    [
        {"workflow_id": ""},
        {"workflow_id": "x" * 65},
        {"idempotency_key": "x" * 65},
        {"correlation_id": ""},
        {"submitted_by": "x" * 65},
        {"callback_url": "https://" + "x" * 512},
        {"priority": 11},
        {"priority": -1},
        {"unknown": 1},
        {"input_params": []},
    ],
)
def test_fields_have_limits(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        submission(**values)


@pytest.mark.parametrize("name", ["idempotency_key", "correlation_id", "submitted_by"])
async def test_a_nul_in_a_field_is_refused_and_changes_nothing(new_bench: NewBench, name: str) -> None:
    bench = new_bench(PLAIN)
    with pytest.raises((InvalidInput, ValidationError)):
        await bench.jobs.submit(submission(**{name: "a\0b"}))
    assert set((await rows_of(bench)).values()) == {0}


async def test_a_first_step_that_cannot_be_written_makes_no_job(new_bench: NewBench) -> None:
    """The template makes what no row can hold: the wish is refused, or its node fails; it does not hang."""
    unwritable = """
  start: {type: start, next: a}
  a: {handler: echo, params: {n: "{{ '\\\\x00' if inputs.n > 1 else 'a' }}"}, next: end}"""
    bench = new_bench(flow(unwritable, inputs="{n: {type: integer}}"))
    try:
        job_id = await bench.submit(n=2)
    except InvalidInput:
        assert set((await rows_of(bench)).values()) == {0}
    else:
        assert await bench.status(job_id) is JobStatus.FAILED


async def test_a_thousand_jobs_are_made_in_one_transaction(new_bench: NewBench) -> None:
    bench = new_bench(PLAIN)
    made = await bench.jobs.submit_many([submission(input_params={"n": number}) for number in range(1000)])
    assert [each.job.input_params["n"] for each in made] == [*range(1000)]
    assert all(each.created and each.job.status is JobStatus.RUNNING for each in made)
    counted = await rows_of(bench)
    assert (counted["dag_jobs"], counted["dag_tasks"]) == (1000, 1000)
    await bench.execute("DELETE FROM dagapp.dag_jobs WHERE (input_params ->> 'n')::int > 20")  # the check reads each


async def test_a_job_without_work_ends_in_its_submission(new_bench: NewBench) -> None:
    bench = new_bench(flow("\n  start: {type: start, next: end}"))
    made = await bench.jobs.submit(Submission(workflow_id="flow"))
    assert made.job.status is JobStatus.COMPLETED
    assert await bench.statuses(made.job.job_id) == {"start": DONE, "end": DONE}
