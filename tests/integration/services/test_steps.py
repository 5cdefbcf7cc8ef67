"""A step on real rows: what the evaluator decides is what the database holds."""

from datetime import timedelta

import pytest
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, PENDING, RUNNING, SENT, SKIPPED, flow

from graticule.core.states import JobStatus, ResultStatus
from graticule.services import step_reading

ECHO = """
workflow_id: echo_test
name: Echo
version: 1
inputs: {message: {type: string, default: hello}}
nodes:
  start: {type: start, next: echo_handler}
  echo_handler: {handler: echo, params: {message: "{{ inputs.message }}"}, next: end}
  end: {type: end}
"""
CHAIN = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, params: {all: "{{ nodes.a.output }}", text: "n = {{ nodes.a.output.n }}"}, next: c}
  c: {handler: echo, params: {b: "{{ nodes.b.output.n }}", a: "{{ nodes.a.status }}"}, next: end}""")
FIELD = flow(
    """
  start: {type: start, next: size}
  size: {handler: echo, next: route}
  route:
    type: conditional
    condition_field: "{{ nodes.size.output.mb }}"
    branches:
      - {condition: "< 10", next: light}
      - {condition: "< 100", next: middle}
      - {default: true, next: heavy}
  light: {handler: echo, next: polish}
  polish: {handler: echo, next: join}
  middle: {handler: echo, next: join}
  heavy: {handler: echo, next: join}
  join: {handler: echo, depends_on: {any_of: [polish, middle, heavy]}, next: end}"""
)
EXPRESSION = flow("""
  start: {type: start, next: size}
  size: {handler: echo, next: route}
  route:
    type: conditional
    condition: "{{ nodes.size.output.mb }} > 100"
    on_true: heavy
    on_false: light
  heavy: {handler: echo, next: end}
  light: {handler: echo, next: end}""")
JOINS = flow("""
  start: {type: start, next: [a, b]}
  a: {handler: echo, next: [every, either]}
  b: {handler: echo, next: [every, either]}
  every: {handler: echo, next: end}
  either: {handler: echo, depends_on: {any_of: [a, b]}, next: end}""")
ONLY_CONTROL = flow("""
  start: {type: start, next: route}
  route: {type: conditional, condition: "{{ inputs.n }} > 1", on_true: end, on_false: other}
  other: {type: end}""", inputs="{n: {type: integer, required: true}}")  # fmt: skip


async def test_the_echo_trace_is_exact(new_bench: NewBench) -> None:
    bench = new_bench(ECHO)
    job_id = await bench.submit("echo_test", message="hi")
    (task,) = await bench.tasks(job_id)
    assert (task.task_id, task.params, task.handler) == (f"{job_id}_echo_handler_0", {"message": "hi"}, "echo")
    assert (task.queue, task.timeout_seconds, task.retry_count) == ("functionapp-tasks", 600, 0)
    assert await bench.statuses(job_id) == {"start": DONE, "echo_handler": SENT, "end": PENDING}
    await bench.report(task, output={"echoed_params": task.params})
    await bench.advance(job_id)
    assert await bench.trace(job_id) == [
        "job_created",
        "node_ready",
        "node_dispatched",
        "job_started",
        "node_completed",
        "job_completed",
    ]
    assert await bench.statuses(job_id) == dict.fromkeys(("start", "echo_handler", "end"), DONE)
    ended = await bench.job(job_id)
    assert ended.status is JobStatus.COMPLETED
    assert ended.result == {"echoed_params": {"message": "hi"}}
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.created_at <= ended.started_at <= ended.ended_at == ended.updated_at


async def test_a_node_gets_its_times_and_its_worker_as_it_moves(new_bench: NewBench) -> None:
    bench = new_bench(ECHO)
    job_id = await bench.submit("echo_test")
    sent = await bench.node(job_id, "echo_handler")
    assert (sent.status, sent.handler, sent.queue) == (SENT, "echo", "functionapp-tasks")
    assert sent.dispatched_at is not None
    assert sent.deadline_at == sent.dispatched_at + timedelta(hours=1)
    assert (sent.started_at, sent.ended_at, sent.worker_id, sent.ready_at) == (None, None, None, None)
    task = await bench.task_of(job_id, "echo_handler")
    await bench.report(task, ResultStatus.RUNNING, progress={"done": 1, "total": 4}, worker_id="worker-7")
    await bench.advance(job_id)
    running = await bench.node(job_id, "echo_handler")
    assert (running.status, running.worker_id, running.progress) == (RUNNING, "worker-7", {"done": 1, "total": 4})
    assert running.started_at is not None
    assert running.deadline_at == running.started_at + timedelta(seconds=600 + 60)
    await bench.report(task, ResultStatus.RUNNING, checkpoint="half", worker_id="worker-7")
    await bench.report(task, output=1, worker_id="worker-7", metrics={"seconds": 2})
    await bench.advance(job_id)
    done = await bench.node(job_id, "echo_handler")
    assert (done.status, done.output, done.worker_id, done.deadline_at) == (DONE, 1, "worker-7", None)
    assert done.started_at == running.started_at
    assert await bench.trace(job_id, "echo_handler") == [
        "node_ready",
        "node_dispatched",
        "node_running",
        "node_progress",
        "checkpoint_saved",
        "node_completed",
    ]
    assert (await bench.event(job_id, "node_completed")).data["metrics"] == {"seconds": 2}


async def test_a_chain_hands_values_on_with_their_types(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    assert await bench.queued(job_id) == ["a"]
    await bench.finish(job_id, "a", {"n": "38272", "list": [1, None, {"items": []}]})
    assert (await bench.task_of(job_id, "b")).params == {
        "all": {"n": "38272", "list": [1, None, {"items": []}]},
        "text": "n = 38272",
    }
    await bench.finish(job_id, "b", {"n": None})
    assert (await bench.task_of(job_id, "c")).params == {"b": None, "a": "completed"}
    assert (await bench.node(job_id, "c")).input_params == {"b": None, "a": "completed"}
    await bench.finish(job_id, "c", False)
    ended = await bench.job(job_id)
    assert (ended.status, ended.result) == (JobStatus.COMPLETED, False)


@pytest.mark.parametrize(("mb", "chosen"), [(9.5, "light"), (10, "middle"), (100, "heavy")])
async def test_a_field_chooses_its_branch_and_the_others_are_skipped(
    new_bench: NewBench, mb: float, chosen: str
) -> None:
    bench = new_bench(FIELD)
    job_id = await bench.submit()
    await bench.finish(job_id, "size", {"mb": mb})
    assert await bench.queued(job_id) == sorted({chosen, "size"})
    statuses = await bench.statuses(job_id)
    assert statuses["route"] is DONE
    assert (await bench.node(job_id, "route")).output == {
        "branch": ["light", "middle", "heavy"].index(chosen),
        "next": [chosen],
    }
    skipped = {"light", "polish", "middle", "heavy"} - ({"light", "polish"} if chosen == "light" else {chosen})
    assert {node_id for node_id, status in statuses.items() if status is SKIPPED} == skipped
    assert statuses["join"] is PENDING
    for node_id in ("light", "polish") if chosen == "light" else (chosen,):
        await bench.finish(job_id, node_id)
    assert "join" in await bench.queued(job_id)
    await bench.finish(job_id, "join", "joined")
    assert (await bench.job(job_id)).result == "joined"


@pytest.mark.parametrize(("mb", "chosen", "other"), [(101, "heavy", "light"), (100, "light", "heavy")])
async def test_an_expression_chooses_its_branch(new_bench: NewBench, mb: int, chosen: str, other: str) -> None:
    bench = new_bench(EXPRESSION)
    job_id = await bench.submit()
    await bench.finish(job_id, "size", {"mb": mb})
    assert await bench.statuses(job_id) == {
        "start": DONE,
        "size": DONE,
        "route": DONE,
        chosen: SENT,
        other: SKIPPED,
        "end": PENDING,
    }
    await bench.finish(job_id, chosen, "chosen")
    assert (await bench.job(job_id)).result == "chosen"


async def test_a_comparison_of_unlike_types_fails_the_node_and_the_job_with_the_reason(new_bench: NewBench) -> None:
    bench = new_bench(EXPRESSION)
    job_id = await bench.submit()
    await bench.finish(job_id, "size", {"mb": "many"})
    job, route = await bench.job(job_id), await bench.node(job_id, "route")
    assert (job.status, route.status) == (JobStatus.FAILED, "failed")
    assert route.error_message is not None
    assert job.error_message == f"node 'route' failed: {route.error_message}"
    assert "mb" in route.error_message


async def test_all_of_waits_for_every_edge_and_any_of_for_the_first(new_bench: NewBench) -> None:
    bench = new_bench(JOINS)
    job_id = await bench.submit()
    assert await bench.queued(job_id) == ["a", "b"]
    await bench.finish(job_id, "b")
    assert await bench.queued(job_id) == ["a", "b", "either"]
    await bench.finish(job_id, "a")
    assert await bench.queued(job_id) == ["a", "b", "either", "every"]
    await bench.finish(job_id, "either", 1)
    assert await bench.status(job_id) is JobStatus.RUNNING
    await bench.finish(job_id, "every", 2)
    assert (await bench.job(job_id)).result == {"either": 1, "every": 2}
    assert [str(task.node_id) for task in await bench.tasks(job_id, None)].count("either") == 1


@pytest.mark.parametrize(("n", "chosen", "other"), [(2, "end", "other"), (1, "other", "end")])
async def test_a_job_of_control_nodes_alone_runs_in_its_submission(
    new_bench: NewBench, n: int, chosen: str, other: str
) -> None:
    bench = new_bench(ONLY_CONTROL)
    job_id = await bench.submit(n=n)
    assert await bench.statuses(job_id) == {"start": DONE, "route": DONE, chosen: DONE, other: SKIPPED}
    job = await bench.job(job_id)
    assert (job.status, job.result) == (JobStatus.COMPLETED, None)
    assert job.started_at is not None
    assert [each for each in await bench.trace(job_id) if each.startswith("job_")] == [
        "job_created",
        "job_started",
        "job_completed",
    ]


# Results that come late, twice or from elsewhere


async def test_a_result_is_processed_once(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", {"n": 1})
    before = await bench.snapshot()
    assert await bench.waiting_results(job_id) == 0
    await bench.advance(job_id)
    assert await bench.snapshot() == before


async def test_a_duplicate_result_is_recorded_and_changes_nothing(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", {"n": 1})
    await bench.finish(job_id, "a", {"n": 2})
    assert (await bench.node(job_id, "a")).output == {"n": 1}
    assert await bench.waiting_results(job_id) == 0
    assert (await bench.event(job_id, "result_ignored")).data == {
        "task_id": f"{job_id}_a_0",
        "status": "completed",
        "reason": "the node is completed",
    }
    assert len([task for task in await bench.tasks(job_id, None) if task.node_id == "b"]) == 1


async def test_of_two_ends_of_one_task_in_one_step_the_first_counts(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    task = await bench.task_of(job_id, "a")
    await bench.report(task, output={"n": "first"})
    await bench.report(task, output={"n": "second"})
    await bench.advance(job_id)
    assert (await bench.task_of(job_id, "b")).params["text"] == "n = first"
    assert (await bench.node(job_id, "a")).output == {"n": "first"}
    assert (await bench.event(job_id, "result_ignored")).task_id == task.task_id


async def test_a_result_of_an_older_attempt_is_recorded_and_ignored(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    first = await bench.task_of(job_id, "a")
    await bench.fail(job_id, "a", retryable=True)
    await bench.let_pass(100)
    await bench.look_around()
    await bench.report(first, output={"n": "late"})
    await bench.advance(job_id)
    assert (await bench.node(job_id, "a")).status is SENT
    ignored = await bench.event(job_id, "result_ignored")
    assert (ignored.node_id, ignored.task_id) == ("a", first.task_id)
    assert ignored.data["reason"] == f"the node's attempt is {job_id}_a_1"


async def test_a_late_result_of_an_ended_job_is_recorded_and_changes_nothing(new_bench: NewBench) -> None:
    bench = new_bench(JOINS)
    job_id = await bench.submit()
    await bench.fail(job_id, "a")
    assert await bench.status(job_id) is JobStatus.FAILED
    nodes = await bench.nodes(job_id)
    await bench.report(await bench.task_of(job_id, "b"), output=1)
    await bench.look_around()
    assert (await bench.event(job_id, "result_ignored")).data["reason"] == "the job is failed"
    assert await bench.nodes(job_id) == nodes
    assert await bench.waiting_results(job_id) == 0


async def test_a_result_of_an_unknown_node_is_recorded_and_ignored(new_bench: NewBench) -> None:
    bench = new_bench(CHAIN)
    job_id = await bench.submit()
    task = await bench.task_of(job_id, "a")
    for node_id in ("nowhere", "a__7"):
        await bench.report(task.model_copy(update={"node_id": node_id}), output=1)
    await bench.advance(job_id)
    assert (await bench.trace(job_id)).count("result_ignored") == 2
    assert (await bench.node(job_id, "a")).status is SENT


async def test_results_beyond_one_step_are_left_for_the_next(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 2)
    bench = new_bench(JOINS)
    job_id = await bench.submit()
    task = await bench.task_of(job_id, "a")
    for done in range(3):
        await bench.report(task, ResultStatus.RUNNING, progress={"done": done})
    await bench.report(task, output=1)
    outcome = await bench.advance(job_id)
    assert (outcome.unfinished, await bench.waiting_results(job_id)) == ({job_id}, 2)
    assert (await bench.node(job_id, "a")).status is RUNNING
    await bench.advance(job_id)
    assert (await bench.node(job_id, "a")).status is DONE
    assert (await bench.advance(job_id)).unfinished == set()
