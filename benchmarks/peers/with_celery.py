# mypy: disable-error-code="import-not-found,untyped-decorator"
"""Celery with Redis as broker and result backend: its canvas does the deciding.

A chain is `chain`, the fan-out is `chord` (a `group` and the task that takes all its results), and the jobs are
chains sent one after the other through one connection. There is no coordinating process in Celery: each worker
task sends what follows; the process that submits awaits the results by Redis' notifications. The worker runs one
task at a time in its own process (`--pool solo`, the fastest for tasks that do nothing) and prefetches a hundred.
Redis is private to the run and as durable as PostgreSQL is here: every write is on disk before it is answered
(`appendfsync always`), and a task is acknowledged when it is done (`acks_late`).
"""

import time
from typing import Any

from celery import Celery, chain, chord, group

from benchmarks.peers import protocol
from benchmarks.workloads import Size, Workload

app = Celery("bench", broker=protocol.url(), backend=protocol.url())
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=100,
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
)


@app.task(name="echo")
def echo(params: dict[str, Any]) -> dict[str, Any]:
    """Do nothing."""
    return {"echoed_params": params}


@app.task(name="follow")
def follow(output: dict[str, Any]) -> dict[str, Any]:
    """Do nothing, after another task."""
    return {"echoed_params": output["echoed_params"]}


@app.task(name="collect")
def collect(results: list[dict[str, Any]]) -> int:
    """Be the fan-in."""
    return len(results)


def seconds(workload: Workload, size: Size) -> float:
    """Run a workload once."""
    began = time.perf_counter()
    if workload is Workload.FAN_OUT:
        children = group(echo.s({"index": index}) for index in range(size.fan_out))
        chord(children)(collect.s()).get()
    elif workload is Workload.CHAIN:
        steps(size.chain).apply_async().get()
    else:
        results = [steps(size.tasks_per_job).apply_async() for _ in range(size.jobs)]
        for result in results:
            result.get()
    return time.perf_counter() - began


def steps(length: int) -> Any:
    """Give a chain of so many tasks."""
    return chain(echo.s({"index": 0}), *(follow.s() for _ in range(length - 1)))


def coordinate() -> None:
    """Be the process that submits."""
    with protocol.worker_process(__spec__.name):
        for number, size in enumerate(protocol.sizes()):
            taken = seconds(protocol.workload(), size)
            if number:
                protocol.tell(taken)


def work() -> None:
    """Be the worker process."""
    app.worker_main(
        [
            "worker",
            "--pool",
            "solo",
            "--concurrency",
            "1",
            "--loglevel",
            "ERROR",
            "--without-gossip",
            "--without-mingle",
        ]
    )


if __name__ == "__main__":
    work() if protocol.is_worker() else coordinate()
