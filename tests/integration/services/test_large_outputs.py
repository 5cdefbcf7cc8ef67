"""Outputs too large for a row stand in the storage, and neither templates nor readers notice."""

import asyncio
import json
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, SENT, Bench, flow

from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.repositories.steps import StoredOutput
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES

CHAIN = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: route}
  route: {type: conditional, condition: "{{ nodes.a.output.n }} == 7", on_true: b, on_false: end}
  b: {handler: echo, params: {n: "{{ nodes.a.output.n }}", size: "{{ nodes.a.output.text | length }}"}, next: end}""")
SPLIT = flow("""
  start: {type: start, next: split}
  split: {type: fan_out, source: [0, 1, 2], task: {handler: echo}, next: merge}
  merge: {type: fan_in, next: last}
  last:
    handler: echo
    params: {count: "{{ nodes.merge.output.count }}", second: "{{ nodes.merge.output.results[1].n }}"}
    next: end""")
ONLY_SPLIT = flow("""
  start: {type: start, next: split}
  split: {type: fan_out, source: [0, 1, 2], task: {handler: echo}, next: merge}
  merge: {type: fan_in, next: end}""")


def large(size: int, n: int = 7) -> dict[str, JsonValue]:
    return {"n": n, "text": "x" * size}


async def stored(bench: Bench, value: JsonValue, name: str) -> str:
    """Write an output as a worker would, and give its reference."""
    path = f"outputs/by-worker/{name}.json"
    await bench.storage.put(path, orjson.dumps(value))
    return path


async def read(bench: Bench, output: JsonValue, output_ref: str | None) -> JsonValue:
    return await bench.steps.outputs.read(StoredOutput(output, output_ref))


async def finish_stored(bench: Bench, job_id: JobId, node_id: str, value: JsonValue) -> str:
    path = await stored(bench, value, node_id)
    await bench.finish(job_id, node_id, output_ref=path)
    return path


async def test_templates_and_conditions_read_an_output_through_its_reference(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    path = await finish_stored(bench, job_id, "a", large(INLINE_BYTES))
    node = await bench.node(job_id, "a")
    assert (node.status, node.output, node.output_ref) == (DONE, None, path)
    assert (await bench.task_of(job_id, "b")).params == {"n": 7, "size": INLINE_BYTES}
    assert await read(bench, node.output, node.output_ref) == large(INLINE_BYTES)


async def test_children_are_gathered_from_rows_storage_and_this_very_step(new_bench: NewBench) -> None:
    bench = new_bench(SPLIT)
    job_id = await bench.submit()
    await finish_stored(bench, job_id, "split__0", large(INLINE_CHILD_BYTES, 0))
    task = await bench.task_of(job_id, "split__1")
    await bench.report(task, output_ref=await stored(bench, large(INLINE_CHILD_BYTES, 1), "split__1"))
    await bench.report(await bench.task_of(job_id, "split__2"), output=large(5, 2))
    await bench.advance(job_id)
    assert (await bench.task_of(job_id, "last")).params == {"count": 3, "second": 1}
    refs = [child.output_ref for child in (await bench.nodes(job_id, "split")).values()]
    assert refs == ["outputs/by-worker/split__0.json", "outputs/by-worker/split__1.json", None]
    merge = await bench.node(job_id, "merge")
    assert await read(bench, merge.output, merge.output_ref) == {
        "results": [large(INLINE_CHILD_BYTES, 0), large(INLINE_CHILD_BYTES, 1), large(5, 2)],
        "count": 3,
    }


async def test_a_fan_in_and_a_result_over_a_mebibyte_go_to_the_storage(new_bench: NewBench, tmp_path: Path) -> None:
    bench = new_bench(ONLY_SPLIT)
    job_id = await bench.submit()
    for index in range(3):
        await bench.report(await bench.task_of(job_id, f"split__{index}"), output=large(400_000, index))
    await bench.advance(job_id)
    merge, job = await bench.node(job_id, "merge"), await bench.job(job_id)
    assert job.status is JobStatus.COMPLETED
    assert (merge.output, job.result) == (None, None)
    assert merge.output_ref is not None
    assert job.result_ref is not None
    gathered = {"results": [large(400_000, index) for index in range(3)], "count": 3}
    assert await read(bench, merge.output, merge.output_ref) == gathered
    assert json.loads((tmp_path / job.result_ref).read_bytes()) == gathered


async def test_the_result_of_a_job_is_read_through_the_reference_of_its_last_node(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", large(1))
    await finish_stored(bench, job_id, "b", large(2_000_000))
    job = await bench.job(job_id)
    assert await read(bench, job.result, job.result_ref) == large(2_000_000)


@pytest.mark.parametrize(("text", "inline"), [("x" * (INLINE_BYTES - 40), True), ("x" * INLINE_BYTES, False)])
async def test_what_fits_stays_in_the_row(new_bench: NewBench, text: str, inline: bool) -> None:
    bench = new_bench(ONLY_SPLIT)
    job_id = await bench.submit()
    for index in range(3):
        await bench.finish(job_id, f"split__{index}", text if index == 0 else "")
    merge = await bench.node(job_id, "merge")
    assert (merge.output_ref is None) is inline
    assert (merge.output is not None) is inline


async def test_the_limit_counts_bytes_and_not_characters(new_bench: NewBench) -> None:
    bench = new_bench(ONLY_SPLIT)
    job_id = await bench.submit()
    for index in range(3):
        await bench.finish(job_id, f"split__{index}", "地" * 200_000)  # 600,000 characters, 1,800,000 bytes
    merge = await bench.node(job_id, "merge")
    assert merge.output_ref is not None


async def test_a_stored_output_that_is_gone_fails_the_job_with_the_reason(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", output_ref="outputs/nowhere.json")
    job = await bench.job(job_id)
    assert job.status is JobStatus.FAILED
    assert "outputs/nowhere.json" in (job.error_message or "")


@pytest.mark.parametrize("reference", ["../../etc/passwd", "/etc/passwd"])
async def test_a_reference_that_leads_out_of_the_storage_reads_nothing(new_bench: NewBench, reference: str) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", output_ref=reference)
    assert await bench.status(job_id) is JobStatus.FAILED
    assert "root:" not in str((await bench.job(job_id)).error_message)


async def test_a_stored_output_that_is_no_json_fails_the_job(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.storage.put("outputs/rubbish.json", b"\xff\x00 rubbish")
    await bench.finish(job_id, "a", output_ref="outputs/rubbish.json")
    assert await bench.status(job_id) is JobStatus.FAILED


async def test_a_stored_null_is_null(new_bench: NewBench) -> None:
    bench = new_bench(
        flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {a: "{{ nodes.a.output }}"}, next: end}""")
    )
    job_id = await bench.submit()
    async with asyncio.timeout(10):
        await finish_stored(bench, job_id, "a", None)
    assert (await bench.task_of(job_id, "b")).params == {"a": None}


async def test_a_stored_null_of_a_child_is_null(new_bench: NewBench) -> None:
    bench = new_bench(ONLY_SPLIT)
    job_id = await bench.submit()
    async with asyncio.timeout(10):
        for index in range(3):
            await finish_stored(bench, job_id, f"split__{index}", None)
    assert (await bench.job(job_id)).result == {"results": [None, None, None], "count": 3}


async def test_an_output_survives_a_step_that_does_not_touch_it(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    path = await finish_stored(bench, job_id, "a", large(INLINE_BYTES))
    await bench.fail(job_id, "b")
    await bench.jobs.resume(job_id)
    node = await bench.node(job_id, "a")
    assert (node.output_ref, node.status) == (path, DONE)
    assert (await bench.node(job_id, "b")).status is SENT


async def test_a_missing_output_of_a_child_fails_the_job(new_bench: NewBench) -> None:
    bench = new_bench(ONLY_SPLIT)
    job_id = await bench.submit()
    for index in range(2):
        await bench.finish(job_id, f"split__{index}", index)
    await bench.finish(job_id, "split__2", output_ref="outputs/gone.json")
    assert await bench.status(job_id) is JobStatus.FAILED
    assert FAILED in (await bench.statuses(job_id)).values() or "gone" in str((await bench.job(job_id)).error_message)
