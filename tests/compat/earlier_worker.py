"""A worker that knows the earlier shapes alone and imports nothing of ours. Argument: how many `echo` tasks to run."""

import json
import os
import sys
import time
from typing import Any
from urllib.request import Request, urlopen


def work_from_service_bus(url: str, queue: str, tasks: int) -> None:
    from azure.servicebus import ServiceBusClient

    with ServiceBusClient.from_connection_string(url) as client, client.get_queue_receiver(queue) as receiver:
        for _, message in zip(range(tasks), receiver, strict=False):
            echo(**json.loads(b"".join(message.body)))
            receiver.complete_message(message)


def work_from_postgres(url: str, queue: str, tasks: int) -> None:
    import psycopg

    query = "SELECT task_id, params FROM dagapp.dag_tasks WHERE queue = %s AND status = 'queued' LIMIT 1"
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(tasks):
            while (task := connection.execute(query, [queue]).fetchone()) is None:
                time.sleep(0.05)
            echo(*task)


def echo(task_id: str, params: dict[str, Any], **_: Any) -> None:
    report = {"task_id": task_id, "status": "completed", "output": {"echoed_params": params}, "worker_id": "worker-xyz"}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['WORKER_TOKEN']}"}
    with urlopen(Request(os.environ["DAG_CALLBACK_URL"], json.dumps(report).encode(), headers)) as answer:
        assert answer.status == 200


broker = os.environ.get("SERVICE_BUS_CONNECTION_STRING")
work = work_from_service_bus if broker else work_from_postgres
work(broker or os.environ["POSTGRES_URL"], os.environ["WORKER_QUEUE"], int(sys.argv[1]))
