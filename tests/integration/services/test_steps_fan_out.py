"""Fan-out and fan-in on real rows: children, counters, release, aggregation, failure."""

from typing import Any

import pytest
from pydantic import JsonValue
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, PENDING, READY, RUNNING, SENT, Bench, flow

from graticule.core.ids import JobId
from graticule.core.states import JobStatus, MessageStatus, ResultStatus
from graticule.dag.state import Policy
from graticule.repositories import step_parts
from graticule.services import step_reading

INPUTS = "{items: {type: array, default: []}, mapping: {type: object, default: {}}, any: {type: string, default: ''}}"


def split(
    *, source: str = "inputs.items", more: str = "", aggregation: str = "collect", retry: str = "{max_attempts: 0}"
) -> str:
    return flow(
        f"""
  start: {{type: start, next: split}}
  split:
    type: fan_out
    source: "{{{{ {source} }}}}"
    {more}
    task: {{handler: echo, params: {{item: "{{{{ item }}}}", index: "{{{{ index }}}}"}}, retry: {retry}}}
    next: merge
  merge: {{type: fan_in, aggregation: {aggregation}, next: last}}
  last: {{handler: echo, params: {{merged: "{{{{ nodes.merge.output }}}}"}}, next: end}}""",
        inputs=INPUTS,
    )


async def report_children(bench: Bench, job_id: JobId, outputs: dict[int, JsonValue]) -> None:
    """Report that children completed, in the given order, and take no step."""
    tasks = {str(task.node_id): task for task in await bench.tasks(job_id, None)}
    for index, output in outputs.items():
        await bench.report(tasks[f"split__{index}"], output=output)


async def merged(bench: Bench, job_id: JobId) -> Any:
    return (await bench.task_of(job_id, "last")).params["merged"]


async def test_each_item_becomes_a_child_with_parameters_of_its_own(new_bench: NewBench) -> None:
    bench = new_bench(split(more='key: "tile {{ item.id }}"'))
    items: list[JsonValue] = [{"id": "x"}, {"id": "y"}, {"id": 3}]
    job_id = await bench.submit(items=items)
    parent, children = await bench.node(job_id, "split"), await bench.nodes(job_id, "split")
    assert (parent.status, parent.children_total, parent.children_started) == (RUNNING, 3, 3)
    assert list(children) == ["split__0", "split__1", "split__2"]
    for index, child in enumerate(children.values()):
        assert (child.status, child.fan_out_index, child.parent_node_id) == (SENT, index, "split")
        assert child.input_params == {"item": items[index], "index": index}
        assert (child.handler, child.queue, child.task_id) == (
            "echo",
            "functionapp-tasks",
            f"{job_id}_split__{index}_0",
        )
    assert [child.fan_out_key for child in children.values()] == ["tile x", "tile y", "tile 3"]
    assert [task.params for task in await bench.tasks(job_id)] == [each.input_params for each in children.values()]
    told = [event for event in await bench.events(job_id) if event.data.get("fan_out")]
    assert [(event.event_type, event.data["children"]) for event in told] == [("node_ready", 3), ("node_dispatched", 3)]


async def test_an_empty_list_completes_at_once(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[])
    assert await merged(bench, job_id) == {"results": [], "count": 0}
    assert await bench.nodes(job_id, "split") == {}
    statuses = await bench.statuses(job_id)
    assert (statuses["split"], statuses["merge"]) == (DONE, DONE)


async def test_a_single_item(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=["only"])
    await bench.finish(job_id, "split__0", "done")
    assert await merged(bench, job_id) == {"results": ["done"], "count": 1}


async def test_a_mapping_becomes_keys_and_values(new_bench: NewBench) -> None:
    bench = new_bench(split(source="inputs.mapping"))
    job_id = await bench.submit(mapping={"b": 1, "a": [2]})
    params = [task.params["item"] for task in await bench.tasks(job_id)]
    assert sorted(params, key=str) == [{"key": "a", "value": [2]}, {"key": "b", "value": 1}]


async def test_results_are_gathered_in_index_order_over_many_steps(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[*range(6)])
    await report_children(bench, job_id, {5: "f", 2: "c"})
    await bench.advance(job_id)
    parent = await bench.node(job_id, "split")
    assert (parent.status, parent.children_done) == (RUNNING, 2)
    assert (await bench.node(job_id, "merge")).status is PENDING
    await report_children(bench, job_id, {0: "a"})
    await bench.advance(job_id)
    await report_children(bench, job_id, {4: "e", 1: "b", 3: "d"})
    await bench.advance(job_id)
    assert await merged(bench, job_id) == {"results": ["a", "b", "c", "d", "e", "f"], "count": 6}
    children = [f"split__{index}" for index in range(6)]
    expected = {"count": 6, "failed": 0, "fan_out_count": 6, "child_node_ids": children}
    assert (await bench.node(job_id, "split")).output == expected
    assert (await bench.node(job_id, "split__5")).output == "f"
    await bench.finish(job_id, "last", "end")
    assert await bench.status(job_id) is JobStatus.COMPLETED


async def test_results_that_all_arrive_in_the_step_that_completes_the_fan_out(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[*range(4)])
    await report_children(bench, job_id, {3: [3], 1: {"x": 1}, 0: None, 2: False})
    await bench.advance(job_id)
    assert await merged(bench, job_id) == {"results": [None, {"x": 1}, False, [3]], "count": 4}
    children = await bench.nodes(job_id, "split")
    assert [child.output for child in children.values()] == [None, {"x": 1}, False, [3]]
    assert {child.worker_id for child in children.values()} == {"worker-1"}


@pytest.mark.parametrize(
    ("aggregation", "outputs", "expected"),
    [
        ("collect", [1, {"a": 2}], {"results": [1, {"a": 2}], "count": 2}),
        ("concat", [[1, [2]], [], [3]], {"results": [1, [2], 3], "count": 3}),
        ("sum", [1, {"a": 2.5, "b": "x", "c": True}, None], {"total": 3.5, "count": 3}),
        ("first", ["a", "b", "c"], {"result": "a", "count": 3}),
        ("last", ["a", "b", "c"], {"result": "c", "count": 3}),
    ],
)
async def test_aggregations(
    new_bench: NewBench, aggregation: str, outputs: list[JsonValue], expected: dict[str, JsonValue]
) -> None:
    bench = new_bench(split(aggregation=aggregation))
    job_id = await bench.submit(items=[*range(len(outputs))])
    first, *others = enumerate(outputs)
    await report_children(bench, job_id, dict(reversed(others)))
    await bench.advance(job_id)  # the last ones stand in rows by then, the first one comes with its step
    await report_children(bench, job_id, dict([first]))
    await bench.advance(job_id)
    assert await merged(bench, job_id) == expected


async def test_a_concat_of_something_that_is_no_list_fails_the_fan_in_with_the_reason(new_bench: NewBench) -> None:
    bench = new_bench(split(aggregation="concat"))
    job_id = await bench.submit(items=[1])
    await bench.finish(job_id, "split__0", "text")
    assert (await bench.job(job_id)).error_message == (
        "node 'merge' failed: concat: the output of child split__0 is neither a list nor an object."
    )


async def test_a_fan_out_larger_than_one_batch_of_results_is_complete(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 7)
    monkeypatch.setattr(step_parts, "CHUNK", 5)
    bench = new_bench(split())
    job_id = await bench.submit(items=[*range(25)])
    assert len(await bench.tasks(job_id)) == 25
    await report_children(bench, job_id, {index: index for index in reversed(range(25))})
    taken = 0
    while (await bench.advance(job_id)).unfinished:
        taken += 1
    assert taken == 3
    assert await merged(bench, job_id) == {"results": [*range(25)], "count": 25}


async def test_of_two_ends_of_one_child_in_one_step_the_first_counts(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[0, 1])
    await report_children(bench, job_id, {0: "first"})
    await report_children(bench, job_id, {0: "second", 1: "b"})
    await bench.advance(job_id)
    assert await merged(bench, job_id) == {"results": ["first", "b"], "count": 2}
    assert (await bench.node(job_id, "split__0")).output == "first"
    assert (await bench.node(job_id, "split")).children_done == 2


async def test_a_child_that_reports_running_and_completes_keeps_both(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[0, 1])
    task = await bench.task_of(job_id, "split__0")
    await bench.report(task, ResultStatus.RUNNING, progress={"done": 1}, worker_id="worker-9")
    await bench.report(task, output="o", worker_id="worker-9")
    await bench.advance(job_id)
    child = await bench.node(job_id, "split__0")
    assert (child.status, child.output, child.progress, child.worker_id) == (DONE, "o", {"done": 1}, "worker-9")
    assert child.started_at is not None


# At most so many at once


async def test_max_parallel_releases_children_in_order_as_others_end(new_bench: NewBench) -> None:
    bench = new_bench(split(more="max_parallel: 2"))
    job_id = await bench.submit(items=[*"abcde"])
    assert await bench.queued(job_id) == ["split__0", "split__1"]
    assert (await bench.node(job_id, "split")).children_started == 2
    await bench.finish(job_id, "split__1", "B")
    assert set((await bench.statuses(job_id, "split")).values()) == {SENT, DONE, PENDING}
    assert (await bench.statuses(job_id, "split"))["split__2"] is SENT
    assert (await bench.statuses(job_id, "split"))["split__3"] is PENDING
    await report_children(bench, job_id, {0: "A", 2: "C"})
    await bench.advance(job_id)
    assert (await bench.node(job_id, "split")).children_started == 5
    assert (await bench.task_of(job_id, "split__4")).params == {"item": "e", "index": 4}
    await report_children(bench, job_id, {4: "E", 3: "D"})
    await bench.advance(job_id)
    assert await merged(bench, job_id) == {"results": [*"ABCDE"], "count": 5}


async def test_a_retry_keeps_its_place_in_max_parallel(new_bench: NewBench) -> None:
    bench = new_bench(split(more="max_parallel: 1", retry="{max_attempts: 1, initial_delay_seconds: 50}"))
    job_id = await bench.submit(items=[*"ab"])
    await bench.fail(job_id, "split__0", retryable=True)
    assert await bench.statuses(job_id, "split") == {"split__0": READY, "split__1": PENDING}
    await bench.let_pass(100)
    await bench.look_around()
    assert await bench.statuses(job_id, "split") == {"split__0": SENT, "split__1": PENDING}
    await bench.finish(job_id, "split__0")
    assert await bench.statuses(job_id, "split") == {"split__0": DONE, "split__1": SENT}


async def test_max_parallel_goes_on_after_children_that_failed(new_bench: NewBench) -> None:
    bench = new_bench(split(more="max_parallel: 1\n    on_child_failure: continue"))
    job_id = await bench.submit(items=[*"abc"])
    for index in range(3):
        await bench.fail(job_id, f"split__{index}", f"bad {index}")
    assert await merged(bench, job_id) == {
        "results": [],
        "count": 0,
        "failed": [
            {"index": index, "key": None, "node_id": f"split__{index}", "error": f"bad {index}"} for index in range(3)
        ],
    }


# What a child that failed does


async def test_a_failed_child_fails_the_fan_out_the_fan_in_and_the_job_at_once(new_bench: NewBench) -> None:
    bench = new_bench(split(more="max_parallel: 3"))
    job_id = await bench.submit(items=[*range(5)])
    await bench.claim(limit=2)
    await bench.report(await bench.task_of(job_id, "split__0"), output="kept")
    await bench.fail(job_id, "split__1", "disk full")
    assert await bench.statuses(job_id, "split") == {
        "split__0": DONE,
        "split__1": FAILED,
        "split__2": FAILED,
        "split__3": PENDING,
        "split__4": PENDING,
    }
    children = await bench.nodes(job_id, "split")
    assert children["split__1"].error_message == "disk full"
    assert children["split__2"].error_message == "cancelled: the job failed"
    statuses = await bench.statuses(job_id)
    assert (statuses["split"], statuses["merge"], statuses["last"]) == (FAILED, FAILED, PENDING)
    assert (await bench.job(job_id)).error_message == "node 'split' failed: child split__1 failed: disk full"
    assert {task.status for task in await bench.tasks(job_id, None)} == {MessageStatus.WITHDRAWN}


async def test_with_continue_the_fan_in_lists_the_failed(new_bench: NewBench) -> None:
    bench = new_bench(split(more='on_child_failure: continue\n    key: "k{{ item }}"'))
    job_id = await bench.submit(items=[*"abc"])
    await bench.fail(job_id, "split__1", "disk full")
    assert await bench.status(job_id) is JobStatus.RUNNING
    task = await bench.task_of(job_id, "split__2")
    await bench.report(task, ResultStatus.FAILED, error_message="late", retryable=False)
    await report_children(bench, job_id, {0: "A"})
    await bench.advance(job_id)
    assert await merged(bench, job_id) == {
        "results": ["A"],
        "count": 1,
        "failed": [
            {"index": 1, "key": "kb", "node_id": "split__1", "error": "disk full"},
            {"index": 2, "key": "kc", "node_id": "split__2", "error": "late"},
        ],
    }
    assert (await bench.node(job_id, "split")).output == {
        "count": 3,
        "failed": 2,
        "fan_out_count": 3,
        "child_node_ids": ["split__0", "split__1", "split__2"],
    }
    await bench.finish(job_id, "last")
    assert await bench.status(job_id) is JobStatus.COMPLETED


# What cannot be expanded


@pytest.mark.parametrize(
    ("source", "inputs", "reason"),
    [
        ("inputs.any", {"any": "abc"}, "The source of fan-out 'split' is a string; it must be a list or a mapping."),
        ("inputs.items | length", {"items": []}, "is a number; it must be a list or a mapping."),
        ("inputs.items", {"items": [*range(6)]}, "has 6 items; at most 5 are allowed."),
        ("inputs.mapping.missing", {}, "missing"),
    ],
)
async def test_a_source_that_makes_no_sense_fails_the_node_with_the_reason(
    new_bench: NewBench, source: str, inputs: dict[str, Any], reason: str
) -> None:
    bench = new_bench(split(source=source), policy=Policy(max_children=5))
    job_id = await bench.submit(**inputs)
    job, node = await bench.job(job_id), await bench.node(job_id, "split")
    assert (job.status, node.status) == (JobStatus.FAILED, FAILED)
    assert reason in (node.error_message or "")
    assert reason in (job.error_message or "")
    assert await bench.tasks(job_id, None) == []
    assert await bench.nodes(job_id, "split") == {}


async def test_a_hundred_thousand_and_one_items_are_too_many(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit(items=[0] * 100_001)
    assert (await bench.node(job_id, "split")).error_message == (
        "The source of fan-out 'split' has 100001 items; at most 100000 are allowed."
    )
    assert await bench.status(job_id) is JobStatus.FAILED


async def test_two_fan_outs_of_one_job_do_not_mix(new_bench: NewBench) -> None:
    two = flow(
        """
  start: {type: start, next: [one, one_more]}
  one: {type: fan_out, source: [1, 2], task: {handler: echo, params: {i: "{{ item }}"}}, next: first}
  one_more: {type: fan_out, source: [3], task: {handler: echo, params: {i: "{{ item }}"}}, next: second}
  first: {type: fan_in, next: end}
  second: {type: fan_in, next: end}"""
    )
    bench = new_bench(two)
    job_id = await bench.submit()
    for node_id, output in (("one__1", "b"), ("one_more__0", "c"), ("one__0", "a")):
        await bench.report(await bench.task_of(job_id, node_id), output=output)
    await bench.advance(job_id)
    assert (await bench.job(job_id)).result == {
        "first": {"results": ["a", "b"], "count": 2},
        "second": {"results": ["c"], "count": 1},
    }
