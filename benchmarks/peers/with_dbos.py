# mypy: disable-error-code="import-not-found,untyped-decorator"
"""DBOS with a worker: a durable workflow decides in one process, and its tasks run in another.

That is DBOS's way to let something else than the workflow's own process do the work: the coordinating process runs
the workflows and enqueues a child workflow for each task; the worker process listens to that queue
(`DBOS.listen_queues`), fifty at once; results come back through PostgreSQL. Queue and results are polled every
10 ms instead of every second, for the default would be all that is measured.
"""

import threading
import time
from typing import Any

from dbos import DBOS, DBOSConfig

from benchmarks.peers import protocol
from benchmarks.workloads import Size, Workload

POLL_SECONDS = 0.01
CONCURRENCY = 50
TASKS = "tasks"


@DBOS.workflow()
def echo(params: dict[str, Any]) -> dict[str, Any]:
    """Be a task that does nothing: a workflow without steps, whose output is recorded all the same."""
    return {"echoed_params": params}


@DBOS.workflow()
def chain(length: int) -> int:
    """Run task after task."""
    queue, params = DBOS.retrieve_queue(TASKS), {"index": 0}
    for _ in range(length):
        params = queue.enqueue(echo, params).get_result(polling_interval_sec=POLL_SECONDS)["echoed_params"]
    return length


@DBOS.workflow()
def fan_out(width: int) -> int:
    """Enqueue every item and await them all."""
    queue = DBOS.retrieve_queue(TASKS)
    handles = [queue.enqueue(echo, {"index": index}) for index in range(width)]
    return len([handle.get_result(polling_interval_sec=POLL_SECONDS) for handle in handles])


def launch(name: str, *queues: str) -> None:
    """Start DBOS in this process, listening to these queues only."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": protocol.url(),
        "application_version": "1",
        "executor_id": name,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.listen_queues(queues)
    DBOS.launch()


def seconds(workload: Workload, size: Size) -> float:
    """Run a workload once."""
    began = time.perf_counter()
    if workload is Workload.FAN_OUT:
        handles = [DBOS.start_workflow(fan_out, size.fan_out)]
    elif workload is Workload.CHAIN:
        handles = [DBOS.start_workflow(chain, size.chain)]
    else:
        handles = [DBOS.start_workflow(chain, size.tasks_per_job) for _ in range(size.jobs)]
    for handle in handles:
        handle.get_result()
    return time.perf_counter() - began


def coordinate() -> None:
    """Be the coordinating process."""
    launch("coordinator")
    DBOS.register_queue(
        TASKS, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_SECONDS, on_conflict="always_update"
    )
    with protocol.worker_process(__spec__.name):
        for number, size in enumerate(protocol.sizes()):
            taken = seconds(protocol.workload(), size)
            if number:
                protocol.tell(taken)
    DBOS.destroy()


def work() -> None:
    """Be the worker process."""
    launch(protocol.WORKER, TASKS)
    threading.Event().wait()


if __name__ == "__main__":
    work() if protocol.is_worker() else coordinate()
