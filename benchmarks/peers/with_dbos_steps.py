# mypy: disable-error-code="import-not-found,untyped-decorator"
"""DBOS with steps: what it does best, decisions and steps in one process, with no hop to another.

The coordinating process is a `DBOSClient`: it enqueues workflows and awaits their results. The worker process
runs them, as in DBOS's own "queue worker" example: a chain is a workflow of that many steps, each recorded in
PostgreSQL before the next; the fan-out is a workflow that enqueues a child workflow per item, for the same
process, and awaits them all; the jobs are workflows of five steps, enqueued in one transaction. Queue and results
are polled every 10 ms instead of every second, for the default would be all that is measured.
"""

import threading
import time
from contextlib import suppress
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benchmarks.peers import protocol
from benchmarks.workloads import Size, Workload

POLL_SECONDS = 0.01
CONCURRENCY = 50
NAME, VERSION, MAIN, CHILDREN = "bench", "1", "main", "children"


@DBOS.step()
def echo(params: dict[str, Any]) -> dict[str, Any]:
    """Do nothing."""
    return {"echoed_params": params}


@DBOS.workflow()
def chain(length: int) -> int:
    """Run step after step."""
    params: dict[str, Any] = {"index": 0}
    for _ in range(length):
        params = echo(params)["echoed_params"]
    return length


@DBOS.workflow()
def child(index: int) -> dict[str, Any]:
    """Be one item of the fan-out: a workflow without steps, whose output is recorded all the same."""
    return {"echoed_params": {"index": index}}


@DBOS.workflow()
def fan_out(width: int) -> int:
    """Enqueue every item and await them all."""
    queue = DBOS.retrieve_queue(CHILDREN)
    handles = [queue.enqueue(child, index) for index in range(width)]
    return len([handle.get_result(polling_interval_sec=POLL_SECONDS) for handle in handles])


def work() -> None:
    """Be the worker process."""
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": protocol.url(),
        "application_version": VERSION,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    for queue in (MAIN, CHILDREN):
        DBOS.register_queue(
            queue, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_SECONDS, on_conflict="always_update"
        )
    threading.Event().wait()


def seconds(client: DBOSClient, engine: sqlalchemy.Engine, workload: Workload, size: Size) -> float:
    """Run a workload once."""
    name, argument, count = {
        Workload.CHAIN: ("chain", size.chain, 1),
        Workload.FAN_OUT: ("fan_out", size.fan_out, 1),
        Workload.JOBS: ("chain", size.tasks_per_job, size.jobs),
    }[workload]
    options: EnqueueOptions = {"workflow_name": name, "queue_name": MAIN, "app_version": VERSION}
    began = time.perf_counter()
    with engine.begin() as transaction:
        handles = [client.enqueue_in_transaction(transaction, options, argument) for _ in range(count)]
    for handle in handles:
        handle.get_result(polling_interval_sec=POLL_SECONDS)
    return time.perf_counter() - began


def coordinate() -> None:
    """Be the coordinating process."""
    with protocol.worker_process(__spec__.name):
        client = connected()
        engine = sqlalchemy.create_engine(protocol.url().replace("postgresql://", "postgresql+psycopg://", 1))
        for number, size in enumerate(protocol.sizes()):
            taken = seconds(client, engine, protocol.workload(), size)
            if number:
                protocol.tell(taken)
        client.destroy()


def connected() -> DBOSClient:
    """Wait until the worker has made its tables."""
    client = DBOSClient(system_database_url=protocol.url(), application_name=NAME, lazy=True)
    for _ in range(150):
        with suppress(Exception):
            if client.list_queues():
                return client
        time.sleep(0.2)
    raise RuntimeError("The worker of DBOS did not start.")


if __name__ == "__main__":
    work() if protocol.is_worker() else coordinate()
