"""Messages that ask for jobs become rows, each once, and are ended after that."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.integration.messaging.bus import JOBS, Bus, dead_letters, failing, put, until
from tests.servicebus_emulator import QueueOptions
from tests.servicebus_emulator.message import Section

from graticule.core import fault_points
from graticule.core.fault_points import Commit, Moment
from graticule.core.models import JobMessage
from graticule.core.table import DatabaseRole
from graticule.orchestrator.engine import create_engine
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository

ASK = json.dumps({"workflow_id": "echo_test", "parameters": {"a": "ü"}}).encode()


async def test_a_message_becomes_a_row_and_is_gone(bus: Bus) -> None:
    put(bus.jobs, json.dumps({"workflow_id": "w", "priority": 7}).encode(), "urgent")
    put(bus.jobs, json.dumps({"workflow_id": "w", "priority": 11}).encode(), "odd")
    put(bus.jobs, ASK, "plain")
    async with bus.broker():
        await until(lambda: not bus.jobs.messages)
    messages = await kept(bus)
    assert messages["plain"].body == json.loads(ASK)
    assert {name: message.priority for name, message in messages.items()} == {"urgent": 7, "odd": 0, "plain": 0}


async def test_ids_tell_which_messages_are_the_same(bus: Bus) -> None:
    put(bus.jobs, ASK, "twice")
    put(bus.jobs, ASK, "twice")
    put(bus.jobs, ASK, "l" * 100)
    put(bus.jobs, ASK, "nul\0")
    put(bus.jobs, json.dumps({"workflow_id": "w", "message_id": "inside"}).encode(), None)
    put(bus.jobs, json.dumps({"workflow_id": "w", "message_id": "inside"}).encode(), None)
    put(bus.jobs, json.dumps({"workflow_id": "w"}).encode(), None)
    put(bus.jobs, json.dumps({"workflow_id": "w"}).encode(), None)
    async with bus.broker():
        await until(lambda: not bus.jobs.messages)
    messages = await kept(bus)
    numbered = {name for name in messages if "@" in name}
    assert len(numbered) == 2, "nothing says that they are the same"
    hashed = {sha256(name.encode()).hexdigest() for name in ("l" * 100, "nul\0")}
    assert messages.keys() - numbered == {"twice", "inside"} | hashed


async def test_a_message_is_ended_after_the_commit_and_outlives_a_database_that_is_away(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[object] = []
    watchers = [lambda *place: reached.append(place), failing(Commit.SEND, Moment.BEFORE, 3)]
    monkeypatch.setattr(fault_points, "_watchers", watchers)
    put(bus.jobs, ASK, "m")
    put(bus.jobs, b"no job", "bad")
    async with bus.broker():
        await until(lambda: reached.count((Commit.SEND, Moment.BEFORE)) == 2)
        assert [(entry.id, entry.deliveries) for entry in bus.jobs.messages if entry.id == "m"] == [("m", 0)]
        assert await kept(bus) == {}
        await until(lambda: not bus.jobs.messages)
        assert reached.count((Commit.SEND, Moment.BEFORE)) == 4
    assert list(await kept(bus)) == ["m"]
    assert [entry.id for entry in dead_letters(bus.jobs)] == ["bad"]


async def test_who_ends_after_the_commit_finds_the_message_again_and_makes_no_second_row(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_points, "_watchers", [failing(Commit.SEND, Moment.AFTER)])
    put(bus.jobs, ASK, "m")
    async with bus.broker():
        await until(lambda: not bus.jobs.messages)
    assert list(await kept(bus)) == ["m"]


MALFORMED = {
    "no JSON": (b"{", "The message is not JSON."),
    "a list": (b"[]", "The message is not a JSON object."),
    "nul": (json.dumps({"workflow_id": "w\0"}).encode(), "The message has a NUL character, which cannot be stored."),
    "deep": (b'{"a":' * 300 + b"1" + b"}" * 300, "The message is nested too deeply."),
    "deepest": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "The message is not JSON."),
}


async def test_what_can_be_no_job_becomes_a_dead_letter_with_its_reason_and_the_rest_goes_on(bus: Bus) -> None:
    for name, (body, _) in MALFORMED.items():
        put(bus.jobs, body, name)
    put(bus.jobs, b"text", "a value", section=Section.VALUE)
    put(bus.jobs, rb'{"pattern": "[\\u0000-\\u001f]"}', "no nul")
    with capture_logs() as logged:
        async with bus.broker():
            await until(lambda: not bus.jobs.messages)
    assert list(await kept(bus)) == ["no nul"]
    found = {entry.id: (entry.reason, entry.description) for entry in dead_letters(bus.jobs)}
    told = {name: ("malformed", description) for name, (_, description) in MALFORMED.items()}
    assert found == {**told, "a value": ("malformed", "The message does not carry bytes.")}
    assert {line["event"] for line in logged} == {"a job message is set aside"}


async def kept(bus: Bus) -> dict[str, JobMessage]:
    """Give the rows of messages, by their ids."""
    async with bus.orchestrators.connection() as connection:
        waiting = await MessageRepository(connection).claim("me", JOBS, 100, 60)  # type: ignore[arg-type]
        for message in waiting:
            await MessageRepository(connection).abandon(message, "looked at", counts=False)
    return {message.message_id: message for message in waiting}


async def test_a_message_that_comes_twice_becomes_one_job_and_its_tasks_go_the_same_way(
    bus: Bus, connection: Connection
) -> None:
    """An orchestrator and a worker as they are, with nothing between them but the namespace and the rows."""
    tasks = bus.emulator.namespace.create("functionapp-tasks", QueueOptions())
    asked = json.dumps({"workflow_id": "echo_test", "input_params": {"message": "ü"}}).encode()
    put(bus.jobs, asked, "m")
    put(bus.jobs, asked, "m")
    engine = create_engine(bus.settings, bus.orchestrators, bus.database.url(DatabaseRole.ORCHESTRATOR))
    async with engine.running(), bus.worker(queues=["functionapp-tasks"]):
        await until(lambda: has_completed(connection))
        await until(lambda: not bus.jobs.messages and not tasks.messages)
    cursor = await connection.execute("SELECT count(*) AS jobs FROM dagapp.dag_jobs WHERE workflow_id = 'echo_test'")
    assert await cursor.fetchone() == {"jobs": 1}


async def test_a_message_for_a_workflow_that_is_announced_later_becomes_a_job(
    bus: Bus, connection: Connection, tmp_path: Path
) -> None:
    put(bus.jobs, json.dumps({"workflow_id": "later"}).encode(), "m")
    settings = bus.settings.model_copy(update={"workflows": str(tmp_path), "orchestrator_poll_interval": 0.2})
    engine = create_engine(settings, bus.orchestrators, bus.database.url(DatabaseRole.ORCHESTRATOR))

    async def is_left() -> bool:
        return [message.unknown_since is not None for message in (await kept(bus)).values()] == [True]

    async def is_made() -> bool:
        cursor = await connection.execute("SELECT FROM dagapp.dag_jobs WHERE workflow_id = 'later'")
        return await cursor.fetchone() is not None

    async with engine.running():
        await until(is_left)
        nodes = "nodes: {start: {type: start, next: end}, end: {type: end}}"
        (tmp_path / "later.yaml").write_text(f"workflow_id: later\nversion: 1\n{nodes}\n")
        await engine.sharing.reload("ann")
        await until(is_made)
    assert dead_letters(bus.jobs) == []


async def has_completed(connection: Connection) -> bool:
    cursor = await connection.execute(
        "SELECT FROM dagapp.dag_jobs WHERE workflow_id = 'echo_test' AND status = 'completed'"
    )
    return await cursor.fetchone() is not None
