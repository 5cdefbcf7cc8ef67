# mypy: disable-error-code="import-not-found,untyped-decorator"
"""procrastinate: a task queue in PostgreSQL; what decides is a task of its own, on a queue of its own.

One worker process serves the queue `tasks`: each task defers a `result` task that carries its output. The
coordinating process serves the queue `results` with a second worker of procrastinate, counts, and defers what
follows; so every hop is as durable as ours. Bulk sends use `batch_defer_async`; both workers run asynchronous
tasks with LISTEN/NOTIFY, twenty at once (one at once for the chain, which has no more), and keep ended tasks, as
is the default. They poll twenty times a second besides, for a notification that comes while a worker fetches is
lost, and the default of 5 s would then be all that is measured.
"""

import asyncio
import sys
import time
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.peers import protocol
from benchmarks.workloads import Size, Workload

CONCURRENCY = 20
POLL_SECONDS = 0.05
app = App(connector=PsycopgConnector(conninfo=protocol.url(), min_size=4, max_size=CONCURRENCY + 5))


class Run:
    """What the coordinating process knows of the workload under way."""

    def __init__(self) -> None:
        self.steps = 1
        self.left = 0
        self.outputs: list[Any] = []
        self.ended = asyncio.Event()

    def begin(self, jobs: int, steps: int) -> None:
        """Expect so many jobs of so many steps."""
        self.steps, self.left, self.outputs, self.ended = steps, jobs, [], asyncio.Event()

    def end_one(self, output: Any) -> None:
        """Note that a job, or a child of the fan-out, is done."""
        self.outputs.append(output)
        self.left -= 1
        if self.left == 0:
            self.ended.set()


run = Run()


@app.task(name="echo", queue="tasks")
async def echo(step: int, params: dict[str, Any]) -> None:
    """Do nothing, and hand the output to the coordinating process."""
    await result.defer_async(step=step, output={"echoed_params": params})


@app.task(name="result", queue="results")
async def result(step: int, output: dict[str, Any]) -> None:
    """Take a result, and send what follows."""
    if step < run.steps:
        await echo.defer_async(step=step + 1, params=output["echoed_params"])
    else:
        run.end_one(output)


async def seconds(workload: Workload, size: Size) -> float:
    """Run a workload once."""
    jobs, steps = {
        Workload.CHAIN: (1, size.chain),
        Workload.FAN_OUT: (size.fan_out, 1),
        Workload.JOBS: (size.jobs, size.tasks_per_job),
    }[workload]
    run.begin(jobs, steps)
    began = time.perf_counter()
    await echo.batch_defer_async(*({"step": 1, "params": {"index": index}} for index in range(jobs)))
    await run.ended.wait()
    return time.perf_counter() - began


async def serve(queue: str, workload: Workload) -> None:
    """Run a worker of procrastinate on one queue."""
    concurrency = 1 if workload is Workload.CHAIN else CONCURRENCY
    await app.run_worker_async(
        queues=[queue],
        concurrency=concurrency,
        fetch_job_polling_interval=POLL_SECONDS,
        install_signal_handlers=False,
    )


async def coordinate(workload: Workload) -> None:
    """Be the coordinating process."""
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        serving = asyncio.create_task(serve("results", workload))
        with protocol.worker_process(__spec__.name):
            for number, size in enumerate(protocol.sizes()):
                taken = await seconds(workload, size)
                if number:
                    protocol.tell(taken)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def work(workload: Workload) -> None:
    """Be the worker process."""
    async with app.open_async():
        await serve("tasks", workload)


if __name__ == "__main__":
    asyncio.run(work(Workload(sys.argv[2])) if protocol.is_worker() else coordinate(protocol.workload()))
