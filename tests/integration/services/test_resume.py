"""A failed job goes on: what completed is kept, no task id is used twice, and the budget is fresh."""

import asyncio

import pytest
from tests.integration.repositories.rows import NOW
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, PENDING, READY, RUNNING, SENT, Bench, flow

from graticule.core.errors import Conflict, NotFound
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.models import Checkpoint, Job
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.services.step_reading import Wake

RETRY = "{max_attempts: 1, initial_delay_seconds: 10, jitter: false}"
CHAIN = flow(f"""
  start: {{type: start, next: [a, side]}}
  a: {{handler: echo, next: b}}
  b: {{handler: echo, retry: {RETRY}, params: {{a: "{{{{ nodes.a.output }}}}"}}, next: c}}
  c: {{handler: echo, params: {{b: "{{{{ nodes.b.output }}}}"}}, next: end}}
  side: {{handler: echo, next: end}}""")
ROUTE = flow("""
  start: {type: start, next: size}
  size: {handler: echo, next: route}
  route: {type: conditional, condition: "{{ nodes.size.output }} > 10", on_true: heavy, on_false: light}
  heavy: {handler: echo, next: join}
  light: {handler: echo, next: join}
  join: {handler: echo, retry: {max_attempts: 0}, next: end}""")


def split(more: str = "", source: str = "[0, 1, 2, 3]", side: str = "") -> str:
    first = "[list, side]" if side else "list"
    return flow(f"""
  start: {{type: start, next: {first}}}
  list: {{handler: echo, next: split}}
  split:
    type: fan_out
    source: "{{{{ nodes.list.output }}}}"
    {more}
    task: {{handler: echo, params: {{i: "{{{{ item }}}}"}}, retry: {{max_attempts: 0}}}}
    next: merge
  merge: {{type: fan_in, next: last}}
  last: {{handler: echo, params: {{m: "{{{{ nodes.merge.output }}}}"}}, retry: {{max_attempts: 0}}, next: end}}
  {side}""")


SIDE = "side: {handler: echo, retry: {max_attempts: 0}, next: end}"


async def failed_fan_out(bench: Bench, *failing: int, count: int = 4) -> JobId:
    """Submit, complete all children but those named, and fail these in one step."""
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [*range(count)])
    for index in range(count):
        if index not in failing:
            await bench.report(await bench.task_of(job_id, f"split__{index}"), output=f"old {index}")
    await bench.advance(job_id)
    for index in failing:
        await bench.fail(job_id, f"split__{index}", f"bad {index}")
    assert await bench.status(job_id) is JobStatus.FAILED
    return job_id


async def task_ids(bench: Bench, job_id: JobId) -> list[str]:
    """Give the tasks that a job ever had; that each is there once is the primary key's word."""
    return [task.task_id.removeprefix(f"{job_id}_") for task in await bench.tasks(job_id, None)]


async def test_the_failed_nodes_go_on_and_the_completed_ones_are_kept(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", "kept")
    await bench.fail(job_id, "b", "disk full")
    kept = await bench.node(job_id, "a")
    job = await bench.jobs.resume(job_id, actor="ann")
    assert (job.status, job.error_message, job.ended_at) == (JobStatus.RUNNING, None, None)
    assert (job.owner_id, job.owner_epoch) == ("owner-a", 2)
    assert await bench.statuses(job_id) == {
        "start": DONE,
        "a": DONE,
        "b": SENT,
        "c": PENDING,
        "side": SENT,
        "end": PENDING,
    }
    assert await bench.node(job_id, "a") == kept
    node = await bench.node(job_id, "b")
    assert (node.retry_count, node.retry_base, node.error_message, node.ended_at) == (1, 1, None, None)
    assert (await bench.task_of(job_id, "b")).params == {"a": "kept"}
    assert await task_ids(bench, job_id) == ["a_0", "side_0", "b_0", "b_1", "side_1"]
    assert (await bench.event(job_id, "job_resumed")).actor == "ann"
    await bench.finish(job_id, "side", 1)
    await bench.finish(job_id, "b", "new")
    await bench.finish(job_id, "c", 2)
    assert (await bench.job(job_id)).result == {"c": 2, "side": 1}
    assert [str(each.node_id) for each in await bench.tasks(job_id, None)].count("a") == 1


async def test_the_budget_is_fresh(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a")
    for _ in range(2):
        for retryable_end in (READY, FAILED):
            await bench.fail(job_id, "b", retryable=True)
            assert (await bench.node(job_id, "b")).status is retryable_end
            await bench.let_pass(100)
            await bench.look_around()
        await bench.jobs.resume(job_id)
    assert [each for each in await task_ids(bench, job_id) if each.startswith("b")] == [f"b_{n}" for n in range(5)]
    delays = [event.data["delay_seconds"] for event in await bench.events(job_id) if event.event_type == "node_retry"]
    assert delays == [10, 10]


async def test_results_of_attempts_before_the_resume_are_ignored(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    old = await bench.task_of(job_id, "side")
    await bench.fail(job_id, "a")
    await bench.jobs.resume(job_id)
    await bench.report(old, output="old")
    await bench.advance(job_id)
    assert (await bench.node(job_id, "side")).status is SENT
    assert (await bench.event(job_id, "result_ignored")).task_id == old.task_id


async def test_a_result_that_waits_when_the_job_is_resumed_is_ignored(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    await bench.report(await bench.task_of(job_id, "side"), output="late")
    await bench.jobs.resume(job_id)
    assert (await bench.node(job_id, "side")).task_id == f"{job_id}_side_1"
    assert (await bench.event(job_id, "result_ignored")).data["reason"] == "the job is failed"


async def test_a_named_node_runs_again_with_all_that_is_downstream(new_bench: NewBench) -> None:
    bench = new_bench(ROUTE)
    job_id = await bench.submit()
    await bench.finish(job_id, "size", 5)
    await bench.finish(job_id, "light", "l")
    await bench.fail(job_id, "join")
    await bench.jobs.resume(job_id, "size")
    assert await bench.statuses(job_id) == {
        "start": DONE,
        "size": SENT,
        "route": PENDING,
        "heavy": PENDING,
        "light": PENDING,
        "join": PENDING,
        "end": PENDING,
    }
    assert (await bench.node(job_id, "route")).output is None
    await bench.finish(job_id, "size", 50)
    assert (await bench.statuses(job_id))["light"] is NodeStatus.SKIPPED
    await bench.finish(job_id, "heavy", "h")
    await bench.finish(job_id, "join", "j")
    assert (await bench.job(job_id)).result == "j"
    assert sorted(await task_ids(bench, job_id)) == ["heavy_1", "join_0", "join_1", "light_0", "size_0", "size_1"]


async def test_naming_a_node_keeps_what_is_upstream_and_beside_it(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", "kept")
    await bench.finish(job_id, "side", "kept")
    await bench.finish(job_id, "b", "old")
    await bench.fail(job_id, "c")
    await bench.jobs.resume(job_id, "b")
    assert (await bench.node(job_id, "a")).output == "kept"
    assert (await bench.node(job_id, "side")).output == "kept"
    await bench.finish(job_id, "b", "new")
    assert (await bench.task_of(job_id, "c")).params == {"b": "new"}


# Fan-outs


async def test_the_failed_children_of_a_fan_out_are_tried_again(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await failed_fan_out(bench, 2)
    assert (await bench.node(job_id, "merge")).status is FAILED
    await bench.jobs.resume(job_id)
    statuses = await bench.statuses(job_id, "split")
    assert statuses == {"split__0": DONE, "split__1": DONE, "split__2": SENT, "split__3": DONE}
    parent = await bench.node(job_id, "split")
    assert (parent.status, parent.children_done, parent.children_failed) == (RUNNING, 3, 0)
    assert (await bench.task_of(job_id, "split__2")).task_id == f"{job_id}_split__2_1"
    await bench.finish(job_id, "split__2", "new 2")
    assert (await bench.task_of(job_id, "last")).params == {
        "m": {"results": ["old 0", "old 1", "new 2", "old 3"], "count": 4}
    }
    assert (await task_ids(bench, job_id)).count("split__0_0") == 1


async def test_children_that_were_under_way_are_tried_again_too(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [0, 1, 2])
    await bench.finish(job_id, "split__0", "kept")
    await bench.fail(job_id, "split__1")
    await bench.jobs.resume(job_id)
    assert await bench.statuses(job_id, "split") == {"split__0": DONE, "split__1": SENT, "split__2": SENT}
    for index in (1, 2):
        await bench.finish(job_id, f"split__{index}", f"new {index}")
    assert (await bench.node(job_id, "merge")).output == {"results": ["kept", "new 1", "new 2"], "count": 3}


async def test_a_fan_out_is_resumed_again_and_again(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await failed_fan_out(bench, 1)
    for attempt in (1, 2, 3):
        await bench.jobs.resume(job_id)
        assert (await bench.node(job_id, "split__1")).task_id == f"{job_id}_split__1_{attempt}"
        await bench.fail(job_id, "split__1")
    await bench.jobs.resume(job_id)
    await bench.finish(job_id, "split__1", "new")
    assert (await bench.node(job_id, "merge")).status is DONE


async def test_a_reset_fan_out_is_expanded_anew_and_uses_no_task_id_twice(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await failed_fan_out(bench, 1)
    await bench.jobs.resume(job_id)
    await bench.fail(job_id, "split__1")  # its count is 1 by now, and the others' 0
    await bench.jobs.resume(job_id, "list")
    assert await bench.nodes(job_id, "split") == {}
    await bench.finish(job_id, "list", ["a", "b"])
    assert [node.task_id for node in (await bench.nodes(job_id, "split")).values()] == [
        f"{job_id}_split__0_2",
        f"{job_id}_split__1_2",
    ]
    await bench.finish(job_id, "split__1", "B")
    await bench.finish(job_id, "split__0", "A")
    await bench.fail(job_id, "last")
    await bench.jobs.resume(job_id, "list")
    await bench.finish(job_id, "list", ["c"])
    assert (await bench.node(job_id, "split__0")).task_id == f"{job_id}_split__0_3"
    await bench.finish(job_id, "split__0", "C")
    assert (await bench.task_of(job_id, "last")).params == {"m": {"results": ["C"], "count": 1}}


async def test_a_named_fan_out_is_expanded_anew(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await failed_fan_out(bench, 0, count=2)
    await bench.jobs.resume(job_id, "split")
    assert await bench.statuses(job_id, "split") == {"split__0": SENT, "split__1": SENT}
    assert (await bench.node(job_id, "split")).children_done == 0


async def checkpointed(bench: Bench, job_id: JobId) -> set[str]:
    """Tell which nodes have a checkpoint."""
    async with bench.pool.connection() as connection:
        found = await connection.execute("SELECT node_id FROM dagapp.dag_checkpoints WHERE job_id = %s", [job_id])
        return {row["node_id"] for row in await found.fetchall()}


async def save_checkpoints(bench: Bench, job_id: JobId, *node_ids: str) -> None:
    async with bench.pool.connection() as connection:
        for node_id in node_ids:
            row = Checkpoint(job_id=job_id, node_id=NodeId(node_id), task_id=TaskId("t"), phase="p", saved_at=NOW)
            await CheckpointRepository(connection).insert(row)


async def test_what_goes_on_keeps_its_checkpoint_and_what_starts_over_loses_it(new_bench: NewBench) -> None:
    bench = new_bench(split())
    job_id = await failed_fan_out(bench, 1)
    await save_checkpoints(bench, job_id, "list", "split__1", "split__2")
    await bench.jobs.resume(job_id)
    assert await checkpointed(bench, job_id) == {"list", "split__1", "split__2"}
    await bench.fail(job_id, "split__1", "bad again")
    await bench.jobs.resume(job_id, "split")
    assert await checkpointed(bench, job_id) == {"list"}


async def test_tolerated_failures_stay_when_the_job_is_resumed(new_bench: NewBench) -> None:
    bench = new_bench(split("on_child_failure: continue"))
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [0, 1])
    await bench.fail(job_id, "split__0", "tolerated")
    await bench.finish(job_id, "split__1", "ok")
    await bench.fail(job_id, "last")
    await bench.jobs.resume(job_id)
    assert (await bench.node(job_id, "split__0")).error_message == "tolerated"
    assert (await bench.task_of(job_id, "last")).retry_count == 1
    assert len(await bench.nodes(job_id, "split")) == 2


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_fan_out_with_free_places_goes_on_with_the_children_that_were_held_back(
    new_bench: NewBench, parallel: int
) -> None:
    """Its children under way completed in the very step in which another branch failed the job."""
    bench = new_bench(split(f"max_parallel: {parallel}", side=SIDE))
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [*range(4)])
    for index in range(parallel):
        await bench.report(await bench.task_of(job_id, f"split__{index}"), output=index)
    await bench.fail(job_id, "side")
    assert await bench.statuses(job_id, "split") == {f"split__{n}": DONE if n < parallel else PENDING for n in range(4)}
    await bench.jobs.resume(job_id)
    expected = {f"split__{n}" for n in range(parallel, 2 * parallel)}
    under_way = {node_id for node_id, status in (await bench.statuses(job_id, "split")).items() if status is SENT}
    assert under_way == expected


async def test_a_resumed_fan_out_uses_all_its_places(new_bench: NewBench) -> None:
    bench = new_bench(split("max_parallel: 2"))
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [*range(4)])
    await bench.report(await bench.task_of(job_id, "split__0"), output=0)
    await bench.fail(job_id, "split__1")
    await bench.jobs.resume(job_id)
    assert await bench.statuses(job_id, "split") == {
        "split__0": DONE,
        "split__1": SENT,
        "split__2": SENT,
        "split__3": PENDING,
    }


async def test_a_child_that_waited_for_its_backoff_goes_on_after_the_resume(new_bench: NewBench) -> None:
    bench = new_bench(
        split(side=SIDE).replace("retry: {max_attempts: 0}}\n    next: merge", f"retry: {RETRY}}}\n    next: merge")
    )
    job_id = await bench.submit()
    await bench.finish(job_id, "list", [0])
    await bench.fail(job_id, "split__0", retryable=True)
    await bench.fail(job_id, "side")
    assert (await bench.node(job_id, "split__0")).status is READY
    await bench.jobs.resume(job_id)
    await bench.let_pass(100)
    await bench.look_around()
    await bench.finish(job_id, "split__0", "ok")
    await bench.finish(job_id, "side")
    await bench.finish(job_id, "last")
    assert await bench.status(job_id) is JobStatus.COMPLETED


# Who may, and what may not


async def test_another_instance_takes_the_job_that_it_resumes(new_bench: NewBench) -> None:
    bench, other = new_bench(CHAIN), new_bench(CHAIN, owner="owner-b")
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    assert (await other.jobs.resume(job_id)).owner_id == "owner-b"
    await bench.report(await bench.task_of(job_id, "a"), output=1)
    before = await bench.snapshot()
    await bench.advance(job_id, wake=Wake(expired={"a": False}))
    await bench.look_around()
    assert await bench.snapshot() == before
    await other.look_around()
    assert (await bench.node(job_id, "a")).status is DONE


async def test_of_resumes_at_once_one_is_done(new_bench: NewBench) -> None:
    benches = [new_bench(CHAIN), new_bench(CHAIN, owner="owner-b")]
    job_id = await benches[0].submit()
    await benches[0].fail(job_id, "a")
    asked = [benches[number % 2].jobs.resume(job_id) for number in range(6)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(each, Conflict) for each in outcomes].count(True) == 5
    assert [isinstance(each, Job) for each in outcomes].count(True) == 1
    assert (await benches[0].trace(job_id)).count("job_resumed") == 1


async def test_only_a_failed_job_can_be_resumed(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    running, cancelled = await bench.submit(), await bench.submit()
    await bench.jobs.cancel(cancelled)
    before = await bench.snapshot()
    for job_id, status in ((running, "running"), (cancelled, "cancelled")):
        with pytest.raises(Conflict, match=f"is {status}"):
            await bench.jobs.resume(job_id)
    with pytest.raises(NotFound):
        await bench.jobs.resume(JobId("nowhere"))
    assert await bench.snapshot() == before


@pytest.mark.parametrize(
    ("node_id", "error"), [("nowhere", NotFound), ("c", Conflict), ("a__0", Conflict), ("end", Conflict)]
)
async def test_a_node_that_cannot_be_the_first_is_refused_and_changes_nothing(
    new_bench: NewBench, node_id: str, error: type[Exception]
) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    before = await bench.snapshot()
    with pytest.raises(error):
        await bench.jobs.resume(job_id, node_id)
    assert await bench.snapshot() == before


async def test_a_cancel_that_came_too_late_does_not_cancel_the_resumed_job(new_bench: NewBench) -> None:
    bench, other = new_bench(CHAIN), new_bench(CHAIN, owner="owner-b")
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), ResultStatus.FAILED, retryable=False)
    await other.jobs.cancel(job_id)
    await bench.advance(job_id)
    assert await bench.status(job_id) is JobStatus.FAILED
    await bench.jobs.resume(job_id)
    await bench.look_around()
    assert await bench.status(job_id) is JobStatus.RUNNING
    assert (await bench.job(job_id)).cancel_requested_at is None


async def test_a_template_that_failed_is_rendered_again(new_bench: NewBench) -> None:
    bench = new_bench(
        flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {x: "{{ nodes.a.output.x }}"}, next: end}""")
    )
    job_id = await bench.submit()
    await bench.finish(job_id, "a", {})
    assert await bench.status(job_id) is JobStatus.FAILED
    await bench.jobs.resume(job_id)
    assert await bench.status(job_id) is JobStatus.FAILED
    await bench.jobs.resume(job_id, "a")
    await bench.finish(job_id, "a", {"x": 1})
    assert (await bench.task_of(job_id, "b")).params == {"x": 1}
