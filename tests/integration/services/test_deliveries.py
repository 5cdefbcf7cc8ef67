"""Callbacks leave the outbox at least once, by one sender at a time, and each try leaves an event."""

import asyncio
from collections.abc import AsyncIterator, Collection
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.services.outbox import JOB, PARTNERS, REQUEST, SETTINGS, Outbox, verified
from tests.integration.services.receiver import Receiver, receiving, silence, status

from graticule.core import fault_points
from graticule.core.errors import ConfigurationError, NotFound
from graticule.core.fault_points import Commit, Moment
from graticule.core.models.engine import EventType
from graticule.core.table import DatabaseRole
from graticule.orchestrator import deliveries as running_deliveries
from graticule.orchestrator.deliveries import AT_ONCE, AT_ONCE_PER_HOST, SHORTEST_SECONDS, Deliveries
from graticule.repositories.callbacks import ClaimedCallback, DeliveryState, host_of
from graticule.repositories.database import Database
from graticule.services.deliveries import CLAIM_SECONDS, PAUSES, SHORTEST_SECRET_BYTES, CallbackSender, DeliveryService
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.safe_http import ALL_SECONDS
from graticule.services.webhooks import OPERATORS

NEVER = 3600.0


@pytest.fixture
async def outbox(pool: Database) -> Outbox:
    async with pool.connection() as connection:
        await pool.clock.set_by(connection)
    return Outbox(pool)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as running:
        yield running


async def send_due(sender: CallbackSender) -> int:
    claimed = await sender.claim(100)
    await asyncio.gather(*map(sender.attempt, claimed))
    return len(claimed)


# One try

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


async def test_a_delivery_is_signed_told_and_over(outbox: Outbox, receiver: Receiver) -> None:
    (callback,) = await outbox.fill(receiver.url)
    assert await send_due(outbox.sender()) == 1
    (received,) = receiver.received
    assert verified(received) == {
        "request_id": REQUEST,
        "status": "completed",
        "result_url": f"https://partners.example/api/platform/status/{REQUEST}",
    }
    row = await outbox.row(callback.callback_id)
    assert (row.attempt_count, row.last_error, row.given_up_at) == (1, None, None)
    assert row.delivered_at is not None
    (event,) = await outbox.events()
    assert (event.event_type, event.job_id) == (EventType.CALLBACK_SENT, JOB)
    assert event.data == {"callback_id": callback.callback_id, "attempt": 1, "status": 204}
    await outbox.let_pass(1e6)
    assert await send_due(outbox.sender()) == 0


async def test_an_operators_callback_is_signed_with_the_operators_secret(outbox: Outbox, receiver: Receiver) -> None:
    await outbox.fill(receiver.url, payload={"job_id": JOB, "status": "failed"})
    await send_due(outbox.sender(public_url=None))
    told = {"job_id": JOB, "status": "failed", "result_url": f"/api/status/job/{JOB}"}
    assert verified(receiver.received[0], OPERATORS) == told


@pytest.mark.parametrize(("kept", "sent"), [(TRACE, TRACE), ("00-hostile", None), (None, None)])
async def test_a_callback_carries_the_trace_of_its_job(
    outbox: Outbox, receiver: Receiver, kept: str | None, sent: str | None
) -> None:
    await outbox.fill(receiver.url)
    async with outbox.pool.connection() as connection:
        await connection.execute("UPDATE dagapp.dag_jobs SET traceparent = %s", [kept])
    await send_due(outbox.sender())
    assert receiver.received[0].headers.get("traceparent") == sent


async def test_a_failure_is_told_and_tried_again_by_the_schedule_until_it_is_given_up(
    outbox: Outbox, receiver: Receiver
) -> None:
    receiver.answers = [status(500)]
    (callback,) = await outbox.fill(receiver.url)
    sender = outbox.sender()
    for attempt, pause in enumerate(PAUSES, 1):
        assert await send_due(sender) == 1
        row = await outbox.row(callback.callback_id)
        assert (row.attempt_count, row.last_error, row.given_up_at) == (attempt, "status 500", None)
        ahead = row.next_attempt_at - outbox.pool.now()
        assert pause * 0.89 < ahead < pause * 1.11
        await outbox.let_pass((pause * 0.89).total_seconds() - 1)
        assert await send_due(sender) == 0, "not before its time"
        await outbox.let_pass((pause * 0.22).total_seconds() + 1)
    assert await send_due(sender) == 1
    row = await outbox.row(callback.callback_id)
    assert row.given_up_at is not None
    await outbox.let_pass(1e6)
    assert await send_due(sender) == 0
    events = await outbox.events()
    assert [event.event_type for event in events] == [EventType.CALLBACK_FAILED] * 10
    assert [event.data["attempt"] for event in events] == [*range(1, 11)]
    assert events[0].data.keys() == {"callback_id", "attempt", "status", "error", "next_attempt_at"}
    assert events[-1].data["next_attempt_at"] is None
    assert len({received.headers["webhook-id"] for received in receiver.received}) == 1


async def test_a_receiver_that_is_gone_is_left_alone(outbox: Outbox, receiver: Receiver) -> None:
    receiver.answers = [status(410)]
    (callback,) = await outbox.fill(receiver.url)
    await send_due(outbox.sender())
    assert (await outbox.row(callback.callback_id)).given_up_at is not None


async def test_a_receiver_that_asks_for_time_gets_it(outbox: Outbox, receiver: Receiver) -> None:
    receiver.answers = [status(429, Retry_After="1800")]
    (callback,) = await outbox.fill(receiver.url)
    await send_due(outbox.sender())
    ahead = (await outbox.row(callback.callback_id)).next_attempt_at - outbox.pool.now()
    assert timedelta(minutes=29) < ahead <= timedelta(minutes=30)


@pytest.mark.parametrize(
    ("url", "settings", "told"),
    [
        ("http://10.0.0.1/?key=secret", {}, "the address is private"),
        ("http://127.0.0.1:1/?key=secret", {}, "the host cannot be connected to"),
        ("http://127.0.0.1:1/?key=secret", {"callback_allow": ""}, "the address is private"),
        ("https://example.org/?key=secret", {"webhook_secret": None}, "this installation has no GRATICULE_WEBHOOK"),
    ],
)
async def test_what_cannot_be_sent_is_told_without_the_key_in_the_url(
    outbox: Outbox, url: str, settings: dict[str, Any], told: str
) -> None:
    (callback,) = await outbox.fill(url)
    await send_due(outbox.sender(**settings))
    row = await outbox.row(callback.callback_id)
    (event,) = await outbox.events()
    assert (row.last_error or "").startswith(told)
    assert event.data["error"] == row.last_error
    shown = await DeliveryService(outbox.pool, SETTINGS).get(callback.callback_id or 0)
    assert "secret" not in f"{row.last_error} {event.data} {shown}"


# Many senders


async def test_a_claim_outlasts_any_try() -> None:
    assert CLAIM_SECONDS > 2 * ALL_SECONDS


async def test_two_senders_at_once_deliver_each_once(outbox: Outbox, receiver: Receiver) -> None:
    await outbox.fill(*[receiver.url] * 20)
    first, second = outbox.sender(), outbox.sender()
    claims = await asyncio.gather(*(sender.claim(5) for sender in (first, second) * 3))
    assert sum(map(len, claims)) == 20
    assert len({callback.callback_id for claim in claims for callback in claim}) == 20


async def test_whoever_ends_before_it_is_written_down_has_it_sent_again_with_the_same_id(
    outbox: Outbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(commit: Commit, moment: Moment) -> None:
        if (commit, moment) == (Commit.RECORD_CALLBACK, Moment.BEFORE):
            raise SystemError("the end of the process")

    (callback,) = await outbox.fill(receiver.url)
    with monkeypatch.context() as broken:
        broken.setattr(fault_points, "_watchers", [end])
        with pytest.raises(SystemError):
            await send_due(outbox.sender())
    assert (await outbox.row(callback.callback_id)).delivered_at is None
    assert await send_due(outbox.sender()) == 0, "it is held"
    await outbox.let_pass(CLAIM_SECONDS)
    assert await send_due(outbox.sender()) == 1
    assert len(receiver.received) == 2
    assert len({received.headers["webhook-id"] for received in receiver.received}) == 1
    (event,) = await outbox.events()
    assert event.data["attempt"] == 2


async def test_a_sender_that_was_too_slow_records_nothing(outbox: Outbox, receiver: Receiver) -> None:
    receiver.answers = [status(500), status(204)]
    (callback,) = await outbox.fill(receiver.url)
    registry = CollectorRegistry()
    slow = outbox.sender(metrics=EngineMetrics(registry))
    (held,) = await slow.claim(1)
    await outbox.let_pass(CLAIM_SECONDS)
    (held_by_other,) = await outbox.sender().claim(1)
    await slow.attempt(held)
    assert await outbox.events() == []
    assert registry.get_sample_value("graticule_callback_attempts_total", {"outcome": "failed"}) == 0
    await outbox.sender().attempt(held_by_other)
    (event,) = await outbox.events()
    assert (event.event_type, event.data["attempt"]) == (EventType.CALLBACK_SENT, 2)
    assert (await outbox.row(callback.callback_id)).delivered_at is not None


# Operators


async def test_an_operator_sends_one_anew_that_was_delivered(outbox: Outbox, receiver: Receiver) -> None:
    (callback,) = await outbox.fill(receiver.url)
    await send_due(outbox.sender())
    service = DeliveryService(outbox.pool, SETTINGS)
    renewed = await service.redeliver(callback.callback_id or 0, "ann")
    assert (renewed.state, renewed.attempt_count, renewed.delivered_at) == (DeliveryState.WAITING, 0, None)
    event = (await outbox.events())[-1]
    assert (event.event_type, event.actor) == (EventType.COMMAND_EXECUTED, "ann")
    assert event.data == {"command": "callback.redeliver", "callback_id": callback.callback_id}
    assert await send_due(outbox.sender()) == 1
    assert len(receiver.received) == 2
    assert (await outbox.row(callback.callback_id)).attempt_count == 1


async def test_one_that_is_sent_anew_meanwhile_is_not_ended_by_the_sender_before(
    outbox: Outbox, receiver: Receiver
) -> None:
    """Its attempts are counted anew, so the number of the attempt alone would not tell the two apart."""
    (callback,) = await outbox.fill(receiver.url)
    before = outbox.sender()
    (held,) = await before.claim(1)
    await DeliveryService(outbox.pool, SETTINGS).redeliver(callback.callback_id or 0, "ann")
    (anew,) = await outbox.sender().claim(1)
    assert anew.attempt_count == held.attempt_count
    await before.attempt(held)
    assert (await outbox.row(callback.callback_id)).delivered_at is None
    await outbox.sender().attempt(anew)
    assert (await outbox.row(callback.callback_id)).delivered_at is not None


async def test_what_does_not_exist_cannot_be_sent_anew(outbox: Outbox) -> None:
    service = DeliveryService(outbox.pool, SETTINGS)
    with pytest.raises(NotFound):
        await service.redeliver(7, "ann")
    with pytest.raises(NotFound):
        await service.get(7)


async def test_lists_by_state_and_job_in_pages(outbox: Outbox) -> None:
    now = outbox.pool.now()
    waiting = [each.callback_id for each in await outbox.fill(*["https://example.org/?key=1"] * 3)]
    delivered = [each.callback_id for each in await outbox.fill("https://example.org/a", delivered_at=now)]
    given_up = [each.callback_id for each in await outbox.fill("https://example.org/b", given_up_at=now)]
    service = DeliveryService(outbox.pool, SETTINGS)
    found = {state: await service.page(state=state) for state in DeliveryState}
    assert {state: [each.callback_id for each in shown] for state, shown in found.items()} == {
        DeliveryState.WAITING: waiting[::-1],
        DeliveryState.DELIVERED: delivered,
        DeliveryState.GIVEN_UP: given_up,
    }
    first = await service.page(limit=2)
    second = await service.page(limit=10, before=first[-1].callback_id)
    assert [each.callback_id for each in first + second] == [*given_up, *delivered, *waiting[::-1]]
    assert len(await service.page(job_id=JOB)) == 5
    assert await service.page(job_id=type(JOB)("other")) == []
    shown = found[DeliveryState.WAITING][0]
    assert (shown.url, shown.recipient, shown.payload) == ("https://example.org/", "ddh", PARTNERS)
    assert shown.next_attempt_at is not None
    assert found[DeliveryState.DELIVERED][0].next_attempt_at is None


# Beside the loop


def deliveries(outbox: Outbox, database: TestDatabase, poll: float = NEVER, **settings: Any) -> Deliveries:
    given = SETTINGS.model_copy(update={"orchestrator_poll_interval": poll})
    return Deliveries(outbox.sender(**settings), database.url(DatabaseRole.ORCHESTRATOR), given)


async def until_delivered(outbox: Outbox, count: int) -> None:
    async with asyncio.timeout(20):
        while sum(row.delivered_at is not None for row in await outbox.rows()) < count:  # noqa: ASYNC110 - rows give no signal
            await asyncio.sleep(0.01)


async def test_two_orchestrators_send_what_they_are_told_of_each_once(
    outbox: Outbox, receiver: Receiver, database: TestDatabase
) -> None:
    async with deliveries(outbox, database).running(), deliveries(outbox, database).running():
        for _ in range(3):
            await outbox.fill(*[receiver.url] * 10)
        await until_delivered(outbox, 30)
    assert len(receiver.received) == 30
    assert len({received.headers["webhook-id"] for received in receiver.received}) == 30


async def test_one_that_is_due_later_is_sent_then_although_nobody_tells(
    outbox: Outbox, receiver: Receiver, database: TestDatabase
) -> None:
    due = outbox.pool.now() + timedelta(seconds=0.4)
    await outbox.fill(receiver.url, next_attempt_at=due)
    async with deliveries(outbox, database).running():
        await receiver.until(1)
        assert due <= outbox.pool.now() < due + timedelta(seconds=5)


async def test_one_that_nobody_told_of_is_found_by_the_poll(
    outbox: Outbox, receiver: Receiver, database: TestDatabase
) -> None:
    async with deliveries(outbox, database, poll=0.2).running():
        await outbox.fill(receiver.url, next_attempt_at=outbox.pool.now() + timedelta(days=1))
        async with outbox.pool.connection() as connection:
            await connection.execute("UPDATE dagapp.dag_callbacks SET next_attempt_at = now() - interval '1 s'")
        await receiver.until(1)


async def test_at_most_so_many_at_once_and_the_end_does_not_wait_for_them(
    outbox: Outbox, receiver: Receiver, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_deliveries, "AT_ONCE_PER_HOST", AT_ONCE)
    receiver.answers = [silence]
    await outbox.fill(*[receiver.url] * (AT_ONCE + 5))
    async with deliveries(outbox, database, seconds=NEVER).running():
        await receiver.until(AT_ONCE)
        await asyncio.sleep(0.1)  # for what must not happen there is no signal
        assert len(receiver.received) == AT_ONCE
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 3
    assert sorted(row.attempt_count for row in await outbox.rows()) == [0] * 5 + [1] * AT_ONCE, "the rest is not held"


async def test_a_silent_host_leaves_room_for_others_and_is_not_asked_for_again_meanwhile(
    outbox: Outbox, receiver: Receiver, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[int] = []
    claim = CallbackSender.claim

    async def counted(self: CallbackSender, limit: int, busy: Collection[str] = ()) -> list[ClaimedCallback]:
        claims.append(limit)
        return await claim(self, limit, busy)

    monkeypatch.setattr(CallbackSender, "claim", counted)
    receiver.answers = [silence]
    await outbox.fill(*[receiver.url] * (AT_ONCE + 5))
    async with receiving(host="127.0.0.2") as other:
        allowed = f"{receiver.host}, {other.host}"
        async with deliveries(outbox, database, seconds=NEVER, callback_allow=allowed).running():
            await receiver.until(AT_ONCE_PER_HOST)
            await outbox.fill(*[other.url] * AT_ONCE)
            await until_delivered(outbox, AT_ONCE)
            before = len(claims)
            await asyncio.sleep(8 * SHORTEST_SECONDS)  # for what must not happen there is no signal
            assert len(claims) - before <= AT_ONCE_PER_HOST, "what is due and cannot be sent does not keep it awake"
    assert len(receiver.received) == AT_ONCE_PER_HOST
    assert len(other.received) == AT_ONCE


async def test_a_host_that_was_busy_gets_the_rest(outbox: Outbox, receiver: Receiver, database: TestDatabase) -> None:
    async with deliveries(outbox, database).running():
        await outbox.fill(*[receiver.url] * (3 * AT_ONCE_PER_HOST))
        await until_delivered(outbox, 3 * AT_ONCE_PER_HOST)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.ORG/hook", "example.org"),
        ("http://example.org.:8080?key=a:b", "example.org"),
        ("http://example.org", "example.org"),
        ("https://[2001:DB8::1]:8443/a", "[2001:db8::1]"),
        ("http://10.0.0.1:80/x@y", "10.0.0.1"),
        ("ftp://example.org/", ""),
    ],
)
async def test_the_database_and_the_sender_read_the_same_host(outbox: Outbox, url: str, host: str) -> None:
    await outbox.fill(url)
    assert host_of(url) == host
    sender = outbox.sender()
    assert await sender.claim(1, busy=["another", host]) == []
    assert await sender.seconds_to_next(busy=[host]) is None
    assert await sender.seconds_to_next(busy=["another"]) is not None
    assert len(await sender.claim(1, busy=["another"])) == 1


# The secret


@pytest.mark.parametrize("user", [CallbackSender, DeliveryService])
async def test_a_secret_that_could_be_guessed_is_refused(
    outbox: Outbox, user: type[CallbackSender | DeliveryService]
) -> None:
    def using(secret: str) -> Any:
        return user(outbox.pool, SETTINGS.model_copy(update={"webhook_secret": SecretStr(secret)}))

    using("s" * SHORTEST_SECRET_BYTES)
    using("")  # as if there were none
    with pytest.raises(ConfigurationError, match="GRATICULE_WEBHOOK_SECRET is too short") as raised:
        using("s" * (SHORTEST_SECRET_BYTES - 1))
    assert "openssl rand" in (raised.value.hint or "")
