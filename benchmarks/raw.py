"""The limit: plain psycopg with SKIP LOCKED and NOTIFY, one orchestrator process and one worker process.

Every hop is durable, and there is nothing else: the worker claims (commit), the worker reports and notifies
(commit), the orchestrator records the result, writes the next task and notifies (commit). No workflow, no
events, no leases, no retries. The connections are synchronous, which is the faster way here: neither process
ever has two things to do at once. A batch is one statement per row, which `executemany` sends in one pipeline;
folded into single statements over arrays, the two batched workloads would run 1.5 times as fast again.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from benchmarks.workloads import Size, Workload

Connection = psycopg.Connection[TupleRow]
URL_VARIABLE = "RAW_DATABASE_URL"
READY_WITHIN_SECONDS = 30.0
LONGEST_RUN_SECONDS = 120.0
READY, TASKS, RESULTS, ENDED = "raw_ready", "raw_tasks", "raw_results", "raw_ended"

SCHEMA: LiteralString = """
DROP SCHEMA IF EXISTS raw CASCADE;
CREATE SCHEMA raw;
CREATE TABLE raw.jobs (
    job_id BIGINT PRIMARY KEY, steps INTEGER NOT NULL, width INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, ended_at TIMESTAMPTZ
);
CREATE TABLE raw.tasks (
    task_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job_id BIGINT NOT NULL, step INTEGER NOT NULL,
    params JSONB NOT NULL, status TEXT NOT NULL DEFAULT 'queued'
);
CREATE INDEX ON raw.tasks (task_id) WHERE status = 'queued';
CREATE TABLE raw.results (
    result_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id BIGINT NOT NULL, output JSONB NOT NULL,
    processed BOOLEAN NOT NULL DEFAULT false
);
CREATE INDEX ON raw.results (result_id) WHERE NOT processed;
"""
EMPTY: LiteralString = "TRUNCATE raw.jobs, raw.tasks, raw.results"
SUBMIT: LiteralString = """
WITH job AS (
    INSERT INTO raw.jobs (job_id, steps, width)
    SELECT n, %(steps)s, %(width)s FROM generate_series(1, %(jobs)s) AS n
    RETURNING job_id
), task AS (
    INSERT INTO raw.tasks (job_id, step, params)
    SELECT job_id, 1, jsonb_build_object('index', n) FROM job, generate_series(1, %(width)s) AS n
)
SELECT pg_notify('raw_tasks', '')
"""
CLAIM: LiteralString = """
UPDATE raw.tasks SET status = 'leased'
WHERE task_id IN (
    SELECT task_id FROM raw.tasks WHERE status = 'queued' ORDER BY task_id LIMIT %s FOR UPDATE SKIP LOCKED
)
RETURNING task_id, params
"""
FINISH: LiteralString = "UPDATE raw.tasks SET status = 'done' WHERE task_id = %s"
REPORT: LiteralString = "INSERT INTO raw.results (task_id, output) VALUES (%s, %s)"
TAKE: LiteralString = """
WITH taken AS (
    UPDATE raw.results SET processed = true
    WHERE result_id IN (
        SELECT result_id FROM raw.results WHERE NOT processed ORDER BY result_id LIMIT %s FOR UPDATE SKIP LOCKED
    )
    RETURNING task_id, output
)
SELECT job_id, step, steps, output FROM taken JOIN raw.tasks USING (task_id) JOIN raw.jobs USING (job_id)
"""
COUNT: LiteralString = """
WITH job AS (
    UPDATE raw.jobs SET
        done = done + tasks,
        ended_at = CASE WHEN done + tasks = steps * width THEN now() END
    FROM (SELECT job_id, count(*) AS tasks FROM unnest(%s::bigint[]) AS job_id GROUP BY job_id) AS result
    WHERE jobs.job_id = result.job_id
    RETURNING ended_at
), ended AS (
    SELECT count(*) AS jobs FROM job WHERE ended_at IS NOT NULL
)
SELECT pg_notify('raw_ended', jobs::text) FROM ended WHERE jobs > 0
"""
SEND: LiteralString = "INSERT INTO raw.tasks (job_id, step, params) VALUES (%s, %s, %s)"


def work(connection: Connection, batch: int) -> None:
    """Claim, do nothing with the parameters but give them back, and report, batch after batch."""
    while True:
        tasks = connection.execute(CLAIM, (batch,)).fetchall()
        if tasks:
            outputs = [(task, Jsonb({"echoed_params": params})) for task, params in tasks]
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(FINISH, [(task,) for task, _ in tasks])
                cursor.executemany(REPORT, outputs)
                cursor.execute(f"NOTIFY {RESULTS}")
        if len(tasks) < batch:
            _wait(connection)


def orchestrate(connection: Connection, batch: int) -> None:
    """Record results and write what follows, batch after batch, in one transaction each."""
    while True:
        with connection.transaction(), connection.cursor() as cursor:
            results = cursor.execute(TAKE, (batch,)).fetchall()
            if results:
                cursor.execute(COUNT, ([job for job, *_ in results],))
            following = [
                (job, step + 1, Jsonb(output["echoed_params"])) for job, step, steps, output in results if step < steps
            ]
            if following:
                cursor.executemany(SEND, following)
                cursor.execute(f"NOTIFY {TASKS}")
        if len(results) < batch:
            _wait(connection)


def _wait(connection: Connection) -> None:
    """Sleep until something is told; what was told while we worked counts."""
    for _ in connection.notifies(stop_after=1):
        return


ROLES: dict[str, tuple[str, Callable[[Connection, int], None]]] = {
    "worker": (TASKS, work),
    "orchestrator": (RESULTS, orchestrate),
}


class Raw:
    """The tables, and one run at a time on them."""

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)

    def seconds(self, workload: Workload, size: Size) -> float:
        """Run a workload with two fresh processes on empty tables, and give the time until all jobs ended."""
        jobs, steps, width = {
            Workload.CHAIN: (1, size.chain, 1),
            Workload.FAN_OUT: (1, 1, size.fan_out),
            Workload.JOBS: (size.jobs, size.tasks_per_job, 1),
        }[workload]
        with self._emptied() as connection, self._processes(connection, size.batch(workload)):
            began = time.perf_counter()
            connection.execute(SUBMIT, {"jobs": jobs, "steps": steps, "width": width})
            ended = 0
            for told in connection.notifies(timeout=LONGEST_RUN_SECONDS):
                ended += int(told.payload)
                if ended == jobs:
                    return time.perf_counter() - began
            raise RuntimeError(f"Of {jobs} jobs, {ended} ended within {LONGEST_RUN_SECONDS:.0f} s.")

    def _emptied(self) -> Connection:
        connection = psycopg.connect(self._url, autocommit=True)
        connection.execute(EMPTY)
        return connection

    @contextmanager
    def _processes(self, connection: Connection, batch: int) -> Iterator[None]:
        connection.execute(f"LISTEN {READY}")
        processes = [self._start(role, batch) for role in ROLES]
        try:
            if len(list(connection.notifies(timeout=READY_WITHIN_SECONDS, stop_after=len(processes)))) < len(processes):
                raise RuntimeError(f"The processes were not ready within {READY_WITHIN_SECONDS:.0f} s.")
            connection.execute(f"UNLISTEN {READY}")
            connection.execute(f"LISTEN {ENDED}")
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def _start(self, role: str, batch: int) -> "subprocess.Popen[bytes]":
        command = (sys.executable, "-m", "benchmarks.raw", role, str(batch))
        return subprocess.Popen(command, env={**os.environ, URL_VARIABLE: self._url})


def main(role: str, batch: int) -> None:
    """Be one of the two processes."""
    channel, loop = ROLES[role]
    with psycopg.connect(os.environ[URL_VARIABLE], autocommit=True, prepare_threshold=1) as connection:
        connection.execute(f"LISTEN {channel}")
        connection.execute(f"NOTIFY {READY}")
        loop(connection, batch)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
