"""What the engine counts is what has committed."""

import pytest
from prometheus_client import CollectorRegistry
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import Bench, flow

from graticule.core.fault_points import Commit
from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.jobs import PreparedJob, Submission

FAN_OUT = flow(
    """
  start: {next: split}
  split: {type: fan_out, source: [1, 2, 3], task: {handler: echo, retry: {max_attempts: 0}}, next: merge}
  merge: {type: fan_in, next: end}
"""
)


class Counting:
    """A bench whose metrics are read."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._registry = CollectorRegistry()
        bench.steps.metrics = EngineMetrics(self._registry)

    def count(self, name: str, **labels: str) -> float:
        return self._registry.get_sample_value(f"graticule_{name}", labels) or 0


@pytest.fixture
def counting(new_bench: NewBench) -> Counting:
    return Counting(new_bench(FAN_OUT))


async def submit(bench: Bench, prepared: PreparedJob, error: Exception | None = None) -> None:
    async with bench.pool.transaction(Commit.SUBMIT) as connection:
        await bench.jobs.add_within(connection, [prepared])
        if error is not None:
            raise error


async def test_what_is_rolled_back_is_not_counted(counting: Counting) -> None:
    prepared = counting.bench.jobs.prepare(Submission(workflow_id="flow"))
    with pytest.raises(LookupError):
        await submit(counting.bench, prepared, LookupError())
    assert counting.count("jobs_submitted_total", workflow="flow") == 0
    await submit(counting.bench, prepared)
    assert counting.count("jobs_submitted_total", workflow="flow") == 1
    assert counting.count("tasks_dispatched_total", queue="functionapp-tasks") == 3


async def test_what_cannot_be_counted_is_done_all_the_same(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(counting.bench.steps.metrics, "decided", fail)
    job_id = await counting.bench.submit()
    for child, number in enumerate((1, 2, 3)):
        await counting.bench.finish(job_id, f"split__{child}", number)
    assert (await counting.bench.job(job_id)).status is JobStatus.COMPLETED


async def test_children_are_counted_with_the_handler_of_their_fan_out(counting: Counting) -> None:
    bench = counting.bench
    job_id: JobId = await bench.submit()
    await bench.finish(job_id, "split__0", 1)
    await bench.fail(job_id, "split__1")
    assert counting.count("nodes_ended_total", handler="echo", status="completed") == 1
    assert counting.count("nodes_ended_total", handler="echo", status="failed") == 1
    assert counting.count("jobs_ended_total", workflow="flow", status="failed") == 1
    assert counting.count("step_results_sum") == counting.count("result_delay_seconds_count") == 2
    await bench.jobs.resume(job_id)
    assert counting.count("jobs_resumed_total", workflow="flow") == 1
