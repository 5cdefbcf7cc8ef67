"""However much the children of a fan-out are given or give: a clear failure of their job, never more memory."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import JsonValue
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, Bench, flow

from graticule.core.ids import JobId
from graticule.core.states import JobStatus, ResultStatus
from graticule.dag.evaluate import advance
from graticule.dag.state import Policy
from graticule.repositories.steps import StepRepository
from graticule.services import outputs as outputs_module
from graticule.services import step_reading
from graticule.services import steps as steps_module
from graticule.storage.local import LocalStorage

LIMIT = 1000
BOUND = Policy(max_gathered_bytes=LIMIT)
MANY = 7


def split(items: int, aggregation: str = "collect", more: str = "") -> str:
    task = "{handler: echo, retry: {max_attempts: 0}}"
    return flow(f"""
  start: {{type: start, next: split}}
  split: {{type: fan_out, source: {[*range(items)]}, task: {task}, {more} next: merge}}
  merge: {{type: fan_in, aggregation: {aggregation}, next: end}}""")


async def report(bench: Bench, job_id: JobId, outputs: dict[int, JsonValue]) -> None:
    for index, output in outputs.items():
        await bench.report(await bench.task_of(job_id, f"split__{index}"), output=output)


async def report_stored(bench: Bench, job_id: JobId, index: int, data: bytes) -> None:
    path = f"outputs/by-worker/split__{index}.json"
    await bench.storage.put(path, data)
    await bench.report(await bench.task_of(job_id, f"split__{index}"), output_ref=path)


async def assert_too_large(bench: Bench, job_id: JobId, *told: str) -> None:
    merge, job = await bench.node(job_id, "merge"), await bench.job(job_id)
    assert (merge.status, job.status) == (FAILED, JobStatus.FAILED)
    assert (await bench.node(job_id, "split")).status is DONE
    for text in (*told, f"at most {LIMIT:,} are gathered", "write what is large to the storage"):
        assert text in (merge.error_message or "")
    assert job.error_message == f"node 'merge' failed: {merge.error_message}"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every look at outputs: of rows, and of files."""
    noted: list[str] = []

    def spy(owner: type, name: str) -> None:
        original = getattr(owner, name)

        async def noting(self: Any, *given: Any) -> Any:
            noted.append(name)
            return await original(self, *given)

        monkeypatch.setattr(owner, name, noting)

    spy(StepRepository, "child_outputs")
    spy(LocalStorage, "get")
    spy(LocalStorage, "stat")
    return noted


@pytest.mark.parametrize("in_rows", [0, 2, 4])
async def test_outputs_too_large_together_fail_the_fan_in_and_are_not_read(
    new_bench: NewBench, reads: list[str], in_rows: int
) -> None:
    """Some stand in the children's rows by then, and the others in results of the very step."""
    bench = new_bench(split(5), policy=BOUND)
    job_id = await bench.submit()
    for indexes in (range(in_rows), range(in_rows, 5)):
        await report(bench, job_id, dict.fromkeys(indexes, "x" * 198))
        await bench.advance(job_id)
    await assert_too_large(bench, job_id, "What 5 of the 5 children of fan-out 'split' gave has 1,069 bytes")
    assert reads == []
    assert [child.output for child in (await bench.nodes(job_id, "split")).values()] == ["x" * 198] * 5


@pytest.mark.parametrize(("size", "status"), [(184, JobStatus.COMPLETED), (185, JobStatus.FAILED)])
async def test_the_bound_counts_bytes_and_all_that_is_around_the_outputs(
    new_bench: NewBench, size: int, status: JobStatus
) -> None:
    bench = new_bench(split(5), policy=BOUND)
    job_id = await bench.submit()
    output = "é" * 40 + "x" * (size - 80)  # two quotes and a comma with each, and 64 bytes around them
    await report(bench, job_id, dict.fromkeys(range(5), output))
    await bench.advance(job_id)
    assert await bench.status(job_id) is status


async def test_stored_outputs_are_measured_and_not_read_once_it_is_too_much(
    new_bench: NewBench, reads: list[str]
) -> None:
    bench = new_bench(split(50), policy=BOUND)
    job_id = await bench.submit()
    for index in range(50):
        await report_stored(bench, job_id, index, b'"%s"' % (b"x" * 298))
    await bench.advance(job_id)
    await assert_too_large(bench, job_id, "What 3 of the 50 children of fan-out 'split' gave has 1,014 bytes")
    assert reads == ["stat"] * 3


async def test_stored_outputs_count_with_those_of_rows(new_bench: NewBench) -> None:
    bench = new_bench(split(3), policy=BOUND)
    job_id = await bench.submit()
    await report(bench, job_id, {0: "x" * 400})
    await report_stored(bench, job_id, 1, b'"%s"' % (b"y" * 400))
    await bench.advance(job_id)
    await report(bench, job_id, {2: "z" * 200})
    await bench.advance(job_id)
    await assert_too_large(bench, job_id, "What 3 of the 3 children", "1,073 bytes")


@pytest.mark.parametrize(("aggregation", "index"), [("first", 1), ("last", 3)])
async def test_first_and_last_read_no_other_output(new_bench: NewBench, aggregation: str, index: int) -> None:
    bench = new_bench(split(5, aggregation, "on_child_failure: continue,"), policy=BOUND)
    job_id = await bench.submit()
    await bench.fail(job_id, "split__0")
    await bench.fail(job_id, "split__4")
    for other in {1, 2, 3} - {index}:
        await bench.report(await bench.task_of(job_id, f"split__{other}"), output_ref="outputs/nowhere.json")
    await bench.advance(job_id)
    await report_stored(bench, job_id, index, b'{"this": "one"}')
    await bench.advance(job_id)
    job = await bench.job(job_id)
    assert isinstance(job.result, dict)
    assert (job.result["result"], job.result["count"]) == ({"this": "one"}, 3)


async def test_more_children_than_one_portion_are_gathered_in_order(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "CHILDREN_AT_ONCE", 3)
    bench = new_bench(split(11, more="on_child_failure: continue,"))
    job_id = await bench.submit()
    await report(bench, job_id, {index: index for index in (10, 3, 0, 5)})
    await report_stored(bench, job_id, 7, b"[7]")
    await bench.report(await bench.task_of(job_id, "split__1"), ResultStatus.FAILED, retryable=False)
    await bench.advance(job_id)
    await report(bench, job_id, {2: None, 9: {"n": 9}, 4: 4, 8: 8})
    await report_stored(bench, job_id, 6, b"null")
    await bench.advance(job_id)
    assert (await bench.job(job_id)).result == {
        "results": [0, None, 3, 4, 5, None, [7], 8, {"n": 9}, 10],
        "count": 10,
        "failed": [{"index": 1, "key": None, "node_id": "split__1", "error": "it failed"}],
    }


async def test_a_job_that_failed_of_its_outputs_is_mended_from_its_fan_out(new_bench: NewBench) -> None:
    bench = new_bench(split(2), policy=BOUND)
    job_id = await bench.submit()
    await report(bench, job_id, dict.fromkeys(range(2), "x" * 600))
    await bench.advance(job_id)
    await bench.jobs.resume(job_id)
    await assert_too_large(bench, job_id, "1,270 bytes")  # nothing has changed, and it is told again
    await bench.jobs.resume(job_id, "split")
    await report(bench, job_id, dict.fromkeys(range(2), "a/path"))
    await bench.advance(job_id)
    assert (await bench.job(job_id)).result == {"results": ["a/path"] * 2, "count": 2}


async def test_a_job_whose_outputs_are_too_large_harms_no_other(new_bench: NewBench) -> None:
    bench = new_bench(split(2), policy=BOUND)
    jobs = [await bench.submit() for _ in range(3)]
    for job_id, size in zip(jobs, (5, 600, 5), strict=True):
        await report(bench, job_id, dict.fromkeys(range(2), "x" * size))
    await bench.advance(*jobs)
    assert [await bench.status(job_id) for job_id in jobs] == ["completed", "failed", "completed"]


async def test_children_that_are_removed_while_they_are_read_let_the_step_be_taken_anew(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = new_bench(split(3))
    job_id = await bench.submit()
    await report(bench, job_id, {0: 0, 1: 1})
    await bench.advance(job_id)
    await report(bench, job_id, {2: 2})
    original, found = StepRepository.child_outputs, []

    async def missing_one_at_first(self: StepRepository, *given: Any) -> Any:
        found.append(await original(self, *given))
        return found[0][1:] if len(found) == 1 else found[-1]

    monkeypatch.setattr(StepRepository, "child_outputs", missing_one_at_first)
    async with asyncio.timeout(10):
        await bench.advance(job_id)
    assert len(found) == 2
    assert (await bench.job(job_id)).result == {"results": [0, 1, 2], "count": 3}


# Beside the loop


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of every decision whether it was taken in the loop's own thread."""
    noted: list[bool] = []

    def noting(*given: Any) -> Any:
        noted.append(threading.current_thread() is threading.main_thread())
        return advance(*given)

    monkeypatch.setattr(steps_module, "advance", noting)
    return noted


@pytest.mark.parametrize(("children", "in_the_loop"), [(MANY, True), (MANY + 1, False)])
async def test_many_children_are_gathered_beside_the_loop(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch, threads: list[bool], children: int, in_the_loop: bool
) -> None:
    monkeypatch.setattr(step_reading, "CHILDREN_AT_ONCE", MANY)
    bench = new_bench(split(children))
    job_id = await bench.submit()
    await report(bench, job_id, dict.fromkeys(range(children), 1))
    threads.clear()
    await bench.advance(job_id)
    assert await bench.status(job_id) is JobStatus.COMPLETED
    assert threads == [True, in_the_loop, in_the_loop]  # asked for the children, for their outputs, and decided


@pytest.mark.parametrize(("size", "in_the_loop"), [(40, True), (60, False)])
async def test_large_outputs_are_parsed_and_gathered_beside_the_loop(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch, threads: list[bool], size: int, in_the_loop: bool
) -> None:
    for module in (step_reading, outputs_module):
        monkeypatch.setattr(module, "MUCH_BYTES", 100)
    bench = new_bench(split(2))
    job_id = await bench.submit()
    await report(bench, job_id, dict.fromkeys(range(2), "x" * size))
    threads.clear()
    await bench.advance(job_id)
    assert (await bench.job(job_id)).result == {"results": ["x" * size] * 2, "count": 2}
    assert threads == [True, True, in_the_loop]


async def test_a_template_that_refers_to_a_stored_output_is_rendered_beside_the_loop(
    new_bench: NewBench, threads: list[bool]
) -> None:
    bench = new_bench(
        flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {a: "{{ nodes.a.output }}"}, next: end}""")
    )
    job_id = await bench.submit()
    await bench.storage.put("outputs/large.json", b"[1, 2]")
    threads.clear()
    await bench.finish(job_id, "a", output_ref="outputs/large.json")
    assert (await bench.task_of(job_id, "b")).params == {"a": [1, 2]}
    assert threads == [True, False]


# What the children are given


async def test_parameters_too_large_together_fail_the_fan_out(new_bench: NewBench) -> None:
    workflow = flow(
        """
  start: {type: start, next: split}
  split: {type: fan_out, source: [0, 1, 2], task: {handler: echo, params: {text: "{{ inputs.text }}"}}, next: merge}
  merge: {type: fan_in, next: end}""",
        inputs="{text: {type: string, required: true}}",
    )
    bench = new_bench(workflow, policy=Policy(max_children_params_bytes=300))
    fits, too_much = await bench.submit(text="x" * 89), await bench.submit(text="x" * 90)
    assert len(await bench.tasks(fits)) == 3
    node, job = await bench.node(too_much, "split"), await bench.job(too_much)
    assert (node.status, job.status) == (FAILED, JobStatus.FAILED)
    assert node.error_message == (
        "The parameters of 3 of the 3 children of fan-out 'split' have 303 bytes of JSON together; at most 300 are "
        "allowed. Hand the children references to what is large, such as a path in the storage."
    )
    assert await bench.tasks(too_much, None) == []
    assert await bench.nodes(too_much, "split") == {}
