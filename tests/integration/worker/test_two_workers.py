"""Two workers on one queue share its tasks; each task is run by one of them."""

from tests.integration.worker.conftest import QUEUE, Board, StartWorker, on_both_transports

from graticule.repositories.database import Connection

pytestmark = on_both_transports


async def test_two_workers_share_and_nothing_is_run_twice(
    board: Board, connection: Connection, start_worker: StartWorker
) -> None:
    async with start_worker(concurrency=4), start_worker(concurrency=4):
        await connection.execute(
            "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params)"
            " SELECT 't' || n, 'job', 'n', %s, 'chunk_processor', '{\"seconds\": 0.01}' FROM generate_series(1, 600) n",
            [QUEUE],
        )
        await connection.execute("SELECT pg_notify('graticule_queue_' || md5(%s), '')", [QUEUE])

        async def all_done() -> bool:
            cursor = await connection.execute("SELECT count(*) AS n FROM dagapp.dag_task_results")
            return bool(((await cursor.fetchone()) or {})["n"] >= 600)

        await board.until(all_done, "all results", seconds=60)
    cursor = await connection.execute(
        "SELECT count(*) AS n, count(DISTINCT task_id) AS tasks, count(DISTINCT worker_id) AS workers"
        " FROM dagapp.dag_task_results"
    )
    assert await cursor.fetchone() == {"n": 600, "tasks": 600, "workers": 2}
