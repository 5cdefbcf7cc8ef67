"""A worker that knows the earlier shapes alone: it takes task messages, runs `echo`, and reports each by HTTP.

It imports nothing of ours. Arguments: how many tasks to do. Messages come from Service Bus, or from PostgreSQL's table.
"""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Generator
from typing import Any


def from_service_bus() -> Generator[dict[str, Any]]:
    from azure.servicebus import ServiceBusClient

    client = ServiceBusClient.from_connection_string(os.environ["SERVICE_BUS_CONNECTION_STRING"])
    with client, client.get_queue_receiver(os.environ["WORKER_QUEUE"]) as receiver:
        for message in receiver:
            yield json.loads(b"".join(message.body))
            receiver.complete_message(message)


def from_postgres() -> Generator[dict[str, Any]]:
    import psycopg
    from psycopg.rows import dict_row

    query = "SELECT task_id, params FROM dagapp.dag_tasks WHERE queue = %s AND status = 'queued' LIMIT 1"
    with psycopg.connect(os.environ["POSTGRES_URL"], autocommit=True, row_factory=dict_row) as connection:
        while True:
            yield from connection.execute(query, [os.environ["WORKER_QUEUE"]]).fetchall()
            time.sleep(0.05)


def report(message: dict[str, Any]) -> None:
    result = {"status": "completed", "output": {"echoed_params": message["params"]}, "worker_id": "worker-xyz"}
    body = json.dumps({"task_id": message["task_id"], **result}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['WORKER_TOKEN']}"}
    with urllib.request.urlopen(urllib.request.Request(os.environ["DAG_CALLBACK_URL"], body, headers)) as answer:
        assert answer.status == 200


messages = from_service_bus() if "SERVICE_BUS_CONNECTION_STRING" in os.environ else from_postgres()
for _ in range(int(sys.argv[1])):
    report(next(messages))
messages.close()
