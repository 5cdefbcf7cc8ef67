"""Leases and presence by HTTP: a worker without a database holds what the rows say that it holds, and nothing else."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import JsonValue
from tests.integration.api.running import KEY, TOKEN
from tests.integration.api.stored import add_job
from tests.integration.repositories import rows

from graticule.api.callbacks import router as callback_routes
from graticule.api.catalogue import router as catalogue_routes
from graticule.core.errors import Unavailable
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.models import Task
from graticule.core.states import MessageStatus, ResultStatus
from graticule.handlers.context import Checkpoint
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Connection
from graticule.repositories.processes import WorkerRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import LeaseState, TakenTask, TaskRepository
from graticule.worker.callbacks.client import CallbackClient
from graticule.worker.callbacks.ledger import HttpLedger
from graticule.worker.callbacks.reports import HttpCheckpoints, HttpSink
from graticule.worker.outcome import Outcome
from graticule.worker.presence import HttpPresence, worker_row
from graticule.worker.reports import Report

LEASES = "/api/v1/callbacks/leases"
ONE, TWO = TaskId("one"), TaskId("two")
MINE, OTHER = WorkerId("mine"), WorkerId("other")
PARAMS: dict[str, JsonValue] = {"tile": 7}
HELD = TakenTask(
    is_held=True,
    job_id=JobId("job"),
    node_id=NodeId("node"),
    queue="q",
    handler="echo",
    timeout_seconds=3600,
    retry_count=0,
    delivery_count=1,
    max_deliveries=10,
    priority=0,
    params=PARAMS,
)


def message(task_id: TaskId = ONE, delivery_count: int = 1) -> TaskMessage:
    return TaskMessage(task_id, JobId("job"), NodeId("node"), "echo", {}, "q", delivery_count=delivery_count)


@pytest.fixture
async def tasks(connection: Connection) -> TaskRepository:
    """Give the rows: two tasks that a broker has, and nobody holds."""
    await add_job(connection, "job", owner_id=rows.OWNER, owner_epoch=1)
    found = TaskRepository(connection)
    for task_id in (ONE, TWO):
        await found.insert(rows.task(task_id, sent_at=rows.NOW, params=PARAMS))
    return found


@pytest.fixture
def mine(admin_client: httpx.AsyncClient) -> HttpLedger:
    return ledger(admin_client, MINE)


@pytest.fixture
def others(admin_client: httpx.AsyncClient) -> HttpLedger:
    return ledger(admin_client, OTHER)


def callbacks(client: httpx.AsyncClient, worker_id: WorkerId) -> CallbackClient:
    return CallbackClient("http://orchestrator", TOKEN, worker_id, client)


def ledger(client: httpx.AsyncClient, worker_id: WorkerId) -> HttpLedger:
    return HttpLedger(callbacks(client, worker_id))


async def row(tasks: TaskRepository, task_id: TaskId = ONE) -> Task:
    return await tasks.get(task_id=task_id)


async def run_out(connection: Connection) -> None:
    over = "SET lease_expires_at = now() - interval '1 second' WHERE status = 'leased'"
    await connection.execute(f"UPDATE dagapp.dag_tasks {over}".encode())


async def test_a_task_that_waits_is_leased_once_and_asking_again_changes_nothing(
    tasks: TaskRepository, mine: HttpLedger, others: HttpLedger
) -> None:
    assert await mine.take([ONE, TWO, TaskId("unknown")]) == {ONE: HELD, TWO: HELD}
    assert await mine.take([ONE]) == {ONE: HELD}  # the answer may have been lost
    assert await others.take([ONE]) == {ONE: replace(HELD, is_held=False, params=None)}
    found = await row(tasks)
    assert (found.status, found.leased_by, found.delivery_count) == (MessageStatus.LEASED, MINE, 1)


async def test_who_is_silent_for_too_long_loses_the_task_and_can_change_nothing(
    tasks: TaskRepository,
    mine: HttpLedger,
    others: HttpLedger,
    connection: Connection,
    admin_client: httpx.AsyncClient,
) -> None:
    await mine.take([ONE])
    await run_out(connection)
    assert (await others.take([ONE]))[ONE] == replace(HELD, delivery_count=2)
    before = await row(tasks)
    late = callbacks(admin_client, MINE)
    for delivery in (1, 2):  # its own, and the one that it may have guessed
        lost = message(delivery_count=delivery)
        assert await mine.renew([lost]) == {ONE: LeaseState.LOST}
        assert await mine.give_back([lost]) == set()
        assert not await mine.dead_letter(lost, "broken")
        assert await HttpSink(late).finish([Report(lost, Outcome(ResultStatus.COMPLETED))]) == set()
        assert not await HttpCheckpoints(late).save(lost, Checkpoint("one"))
    assert await row(tasks) == before
    assert await ResultRepository(connection).unprocessed(JobId("job")) == []


async def test_renewing_tells_what_is_held_what_was_withdrawn_and_what_is_lost(
    tasks: TaskRepository, mine: HttpLedger, connection: Connection
) -> None:
    await mine.take([ONE, TWO])
    await run_out(connection)
    withdrawn = "UPDATE dagapp.dag_tasks SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL"
    await connection.execute(f"{withdrawn} WHERE task_id = 'two'".encode())
    states = await mine.renew([message(), message(TWO), message(TaskId("unknown"))])
    assert states == {ONE: LeaseState.HELD, TWO: LeaseState.WITHDRAWN, "unknown": LeaseState.LOST}
    await tasks.reap_expired()
    assert (await row(tasks)).leased_by == MINE


async def test_a_task_that_is_given_back_is_to_be_sent_anew(tasks: TaskRepository, mine: HttpLedger) -> None:
    await mine.take([ONE, TWO])
    assert await mine.give_back([message()], counts=False) == {ONE}
    assert await mine.give_back([message()], counts=False) == set()
    assert await mine.give_back([message(TWO)], delay_seconds=600) == {TWO}
    first, second = await row(tasks), await row(tasks, TWO)
    assert (first.status, first.delivery_count, first.sent_at) == (MessageStatus.QUEUED, 0, None)
    assert (second.delivery_count, second.sent_at) == (1, None)
    assert (second.available_at - rows.NOW).total_seconds() > 500


async def test_a_task_that_nobody_can_run_is_set_aside(
    tasks: TaskRepository, mine: HttpLedger, connection: Connection, admin_client: httpx.AsyncClient
) -> None:
    await mine.take([ONE])
    assert await mine.dead_letter(message(), "not JSON: \0")
    told = (await admin_client.get("/metrics")).text
    assert 'graticule_task_wait_seconds_count{queue="q"} 1.0' in told  # such a worker does not know it
    assert 'graticule_dead_letters_total{kind="task",queue="q"} 1.0' in told
    assert not await mine.dead_letter(message(), "again")
    found = await row(tasks)
    assert (found.status, found.dead_reason) == (MessageStatus.DEAD, "not JSON: \N{REPLACEMENT CHARACTER}")
    (result,) = await ResultRepository(connection).unprocessed(JobId("job"))
    assert (result.status, result.retryable) == (ResultStatus.FAILED, False)
    assert not (await mine.take([ONE]))[ONE].is_held


async def test_of_two_workers_with_the_same_message_one_gets_the_task(
    tasks: TaskRepository, mine: HttpLedger, others: HttpLedger
) -> None:
    taken = await asyncio.gather(*(each.take([ONE, TWO]) for _ in range(4) for each in (mine, others)))
    for task_id in (ONE, TWO):
        holder = (await row(tasks, task_id)).leased_by
        assert [each[task_id].is_held for each in taken] == [holder == MINE, holder == OTHER] * 4


async def test_more_tasks_than_one_request_takes_are_asked_for_in_several(
    tasks: TaskRepository, mine: HttpLedger
) -> None:
    names = [TaskId(f"unknown {number}") for number in range(1500)]
    assert (await mine.take([*names, ONE])).keys() == {ONE}
    assert set((await mine.renew([message(name) for name in names])).values()) == {LeaseState.LOST}


async def test_what_is_no_question_of_a_worker_is_refused(admin_client: httpx.AsyncClient) -> None:
    one = {"task_id": "t", "delivery_count": 1}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("", {"task_ids": []}),
        ("", {"task_ids": ["t"] * 1001}),
        ("", {"task_ids": ["t" * 225]}),
        ("", {"task_ids": ["nul\0"]}),
        ("/renew", {"tasks": [{"task_id": "t"}]}),
        ("/renew", {"tasks": [{**one, "delivery_count": 2**31}]}),
        ("/give-back", {"tasks": [one], "delay_seconds": -1}),
        ("/dead-letter", {**one, "reason": ""}),
    ]
    token = {"Authorization": f"Bearer {TOKEN}"}
    for path, body in wrong:
        answer = await admin_client.post(f"{LEASES}{path}", json={"worker_id": "w", **body}, headers=token)
        assert answer.status_code == 422, (path, body, answer.text)


async def test_only_workers_may_ask(visitor: httpx.AsyncClient) -> None:
    routes = [route for router in (callback_routes, catalogue_routes) for route in router.routes]
    endpoints = [
        (method, route.path) for route in routes if isinstance(route, APIRoute) for method in route.methods or ()
    ]
    assert len(endpoints) > 15
    for method, path in endpoints:
        assert (await visitor.request(method, path, json={})).status_code == 401, path
        as_admin = await visitor.request(method, path, json={}, headers={"X-API-Key": KEY})
        assert as_admin.status_code == 403, path


async def test_a_worker_is_there_from_its_first_word_to_its_last(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    wanted = worker_row(MINE, ["a", "b"], ["echo"], 4)
    presence, workers = HttpPresence(callbacks(admin_client, MINE), wanted, 30), WorkerRepository(connection)
    await presence._beat()
    first = await workers.get(worker_id=MINE)
    await presence._beat()
    times = {"started_at", "heartbeat_at"}
    assert first.model_dump(exclude=times) == wanted.model_dump(exclude=times)
    assert (await workers.get(worker_id=MINE)).heartbeat_at > first.heartbeat_at
    await presence.close()
    stopped = await workers.get(worker_id=MINE)
    assert stopped.stopped_at is not None
    await presence.close()  # said twice, it is said once
    assert await workers.get(worker_id=MINE) == stopped


async def test_a_worker_whose_word_is_not_heard_goes_on() -> None:
    nobody = CallbackClient("http://127.0.0.1:9", TOKEN, MINE)
    presence = HttpPresence(nobody, worker_row(MINE, ["a"], [], 1), 0.01)
    await presence.close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(presence.beat_forever(), 0.1)
    with pytest.raises(Unavailable):
        await HttpLedger(nobody).take([ONE])
    await nobody.close()
