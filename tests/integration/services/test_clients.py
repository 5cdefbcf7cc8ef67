"""API keys: who gets one, what it opens, how it ends, and what is left behind in the database."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr, ValidationError
from tests.conftest import TestDatabase

from graticule.config import Settings
from graticule.core.errors import AlreadyExists, InvalidInput, NotFound, Unauthenticated
from graticule.core.ids import ClientId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.table import DatabaseRole
from graticule.repositories.clients import ClientRepository
from graticule.repositories.database import Connection, Database
from graticule.services import access as access_module
from graticule.services.access import ADMIN, WORKER, AccessService, key_hash
from graticule.services.clients import ClientService, IssuedKey, NewClient
from graticule.services.service_tokens import ServiceTokens

PORTAL = ClientId("ddh-portal")
ADMIN_KEY = "the admin key of the settings"
WORKER_TOKEN = "the token of the workers"
TOKENS = ServiceTokens(SecretStr("the key that the gateway and the orchestrator share"))
SETTINGS = Settings(admin_key=SecretStr(ADMIN_KEY), worker_token=SecretStr(WORKER_TOKEN))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(pool: Database, clock: Clock) -> AccessService:
    """Give what lets callers in, as in a process that is told of no change."""
    return AccessService(pool, SETTINGS, service_tokens=TOKENS, clock=clock)


@pytest.fixture
def clients(pool: Database) -> ClientService:
    return ClientService(pool)


async def portal(clients: ClientService, **changes: Any) -> IssuedKey:
    given = {"client_id": PORTAL, "display_name": "The portal", "roles": ["submitter"], "platform_id": "ddh"}
    return await clients.add(NewClient.model_validate({**given, **changes}), actor="root")


async def events(connection: Connection) -> list[tuple[str, Any]]:
    cursor = await connection.execute("SELECT actor, event_type, data FROM dagapp.dag_job_events ORDER BY event_id")
    rows = await cursor.fetchall()
    assert {row["event_type"] for row in rows} <= {"command_executed"}
    return [(row["actor"], row["data"]) for row in rows]


def secret(issued: IssuedKey) -> str:
    return issued.key.get_secret_value()


# Keys


async def test_a_key_tells_who_calls(clients: ClientService, access: AccessService, connection: Connection) -> None:
    issued = await portal(clients)
    caller = await access.authenticate(api_key=secret(issued))
    assert caller == Caller("ddh-portal", frozenset({ClientRole.SUBMITTER}), issued.client.platform_id, PORTAL)  # type: ignore[arg-type]
    assert caller.platform_id == "ddh"
    granted = {"roles": ["submitter"], "platform_id": "ddh"}
    assert await events(connection) == [("root", {"command": "client.add", "client_id": PORTAL, **granted})]


async def test_only_a_hash_of_the_key_is_kept(
    clients: ClientService, access: AccessService, admin: psycopg.AsyncConnection, database: TestDatabase
) -> None:
    issued = await portal(clients)
    again = await clients.rotate(PORTAL, actor="root")
    cursor = await admin.execute("SELECT key_hash FROM dagapp.api_clients")
    assert await cursor.fetchall() == [(key_hash(secret(again)),)]
    for table in ("api_clients", "dag_job_events"):
        cursor = await admin.execute(f"SELECT string_agg(t::text, ' ') FROM dagapp.{table} t")
        ((text,),) = await cursor.fetchall()
        assert text
        for each in (issued, again):
            assert secret(each) not in text
            assert secret(each).removeprefix("gtc_") not in text


async def test_keys_are_long_and_never_twice_the_same(clients: ClientService) -> None:
    await portal(clients)
    keys = {secret(await clients.rotate(PORTAL, actor="root")) for _ in range(10)}
    assert len(keys) == 10
    assert all(key.startswith("gtc_") and len(key) == 47 for key in keys)


@pytest.mark.parametrize("key", ["", "gtc_", "gtc_" + "A" * 43, "wrong", "gtc_" + "A" * 42 + "\x00", "ключ"])
async def test_another_key_opens_nothing(access: AccessService, clients: ClientService, key: str) -> None:
    await portal(clients)
    with pytest.raises(Unauthenticated) as refused:
        await access.authenticate(api_key=key)
    assert not key or key not in f"{refused.value!r}{refused.value.detail}"


async def test_a_part_of_a_key_opens_nothing(access: AccessService, clients: ClientService) -> None:
    key = secret(await portal(clients))
    for wrong in (key[:-1], key + "A", key.removeprefix("gtc_"), key.lower(), key_hash(key), f" {key}"):
        with pytest.raises(Unauthenticated):
            await access.authenticate(api_key=wrong)


async def test_a_new_key_ends_the_old_one(
    clients: ClientService, pool: Database, clock: Clock, connection: Connection
) -> None:
    access = AccessService(pool, SETTINGS, clock=clock)
    telling = ClientService(pool, on_change=access.forget)
    old = await portal(telling)
    await access.authenticate(api_key=secret(old))
    new = await telling.rotate(PORTAL, actor="root")
    with pytest.raises(Unauthenticated):  # at once, although it was remembered
        await access.authenticate(api_key=secret(old))
    assert (await access.authenticate(api_key=secret(new))).client_id == PORTAL
    assert (await events(connection))[1:] == [("root", {"command": "client.rotate", "client_id": PORTAL})]


async def test_a_disabled_client_is_out_within_five_seconds_and_can_come_back(
    clients: ClientService, access: AccessService, clock: Clock, connection: Connection
) -> None:
    key = secret(await portal(clients))
    await access.authenticate(api_key=key)
    assert not (await clients.disable(PORTAL, actor="root")).is_active
    clock.now += 4.9
    assert (await access.authenticate(api_key=key)).client_id == PORTAL, "another process remembers it so long"
    clock.now += 0.1
    with pytest.raises(Unauthenticated):
        await access.authenticate(api_key=key)
    assert (await clients.enable(PORTAL, actor="ben")).is_active
    assert (await access.authenticate(api_key=key)).client_id == PORTAL, "a refusal is not remembered"
    commands = [(actor, data["command"]) for actor, data in await events(connection)]
    assert commands == [("root", "client.add"), ("root", "client.disable"), ("ben", "client.enable")]


async def test_what_is_so_already_is_no_event(clients: ClientService, connection: Connection) -> None:
    await portal(clients)
    assert (await clients.enable(PORTAL, actor="root")).is_active
    for _ in range(2):
        assert not (await clients.disable(PORTAL, actor="root")).is_active
    assert len(await events(connection)) == 2


async def test_a_new_key_for_a_disabled_client_does_not_enable_it(
    clients: ClientService, access: AccessService
) -> None:
    await portal(clients)
    await clients.disable(PORTAL, actor="root")
    issued = await clients.rotate(PORTAL, actor="root")
    with pytest.raises(Unauthenticated):
        await access.authenticate(api_key=secret(issued))


# Who may be a client


async def test_an_id_is_taken_once(clients: ClientService, connection: Connection, access: AccessService) -> None:
    first = await portal(clients)
    with pytest.raises(AlreadyExists):
        await portal(clients)
    assert len(await events(connection)) == 1
    assert (await access.authenticate(api_key=secret(first))).client_id == PORTAL


async def test_of_many_at_once_one_gets_the_id(clients: ClientService, connection: Connection) -> None:
    answers = await asyncio.gather(*(portal(clients) for _ in range(4)), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["AlreadyExists"] * 3 + ["IssuedKey"]
    assert len(await events(connection)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"platform_id": None},
        {"roles": ["operator"]},
        {"roles": ["submitter", "reviewer"]},
        {"roles": ["worker"]},
        {"roles": []},
        {"roles": ["emperor"]},
        {"client_id": "admin"},
        {"client_id": "gateway"},
        {"client_id": "x"},
        {"client_id": "Portal"},
        {"client_id": "a" * 64},
        {"client_id": "portal\n"},
        {"display_name": " "},
        {"display_name": "a\x00b"},
        {"key": "my own"},
    ],
)
async def test_a_client_that_cannot_be_is_refused(clients: ClientService, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        await portal(clients, **changes)


async def test_a_platform_must_exist(clients: ClientService, connection: Connection) -> None:
    with pytest.raises(InvalidInput, match="no platform nowhere"):
        await portal(clients, platform_id="nowhere")
    assert await events(connection) == []


async def test_what_is_not_there_cannot_be_changed(clients: ClientService, connection: Connection) -> None:
    for change in (clients.rotate, clients.disable, clients.enable):
        with pytest.raises(NotFound, match="ddh-portal"):
            await change(PORTAL, actor="root")
    with pytest.raises(NotFound):
        await clients.get(PORTAL)
    assert await events(connection) == []


async def test_clients_are_listed_by_id(clients: ClientService) -> None:
    await portal(clients)
    await portal(clients, client_id="atlas", roles=["operator", "reviewer"], platform_id=None)
    assert [client.client_id for client in await clients.all()] == ["atlas", "ddh-portal"]
    assert (await clients.get(ClientId("atlas"))).roles == [ClientRole.OPERATOR, ClientRole.REVIEWER]


# Other credentials


async def test_the_admin_key_needs_no_row(access: AccessService) -> None:
    assert await access.authenticate(api_key=ADMIN_KEY) is ADMIN
    assert access.take_used() == set()


async def test_the_admin_key_needs_no_schema(empty_databases: list[TestDatabase]) -> None:
    async with Database(empty_databases[0].url(), DatabaseRole.ORCHESTRATOR) as bare:
        assert await AccessService(bare, SETTINGS).authenticate(api_key=ADMIN_KEY) is ADMIN


@pytest.mark.parametrize("settings", [Settings(), Settings(admin_key=SecretStr(""), worker_token=SecretStr(""))])
async def test_a_secret_that_is_not_set_opens_nothing(pool: Database, settings: Settings) -> None:
    access = AccessService(pool, settings)
    for credentials in ({"api_key": ""}, {"bearer": ""}, {"service_token": ""}, {}, {"api_key": "None"}):
        with pytest.raises(Unauthenticated):
            await access.authenticate(**credentials)


async def test_more_than_one_credential_is_refused(access: AccessService) -> None:
    token = TOKENS.sign(ADMIN)
    for both in (
        {"api_key": ADMIN_KEY, "bearer": "x"},
        {"api_key": ADMIN_KEY, "service_token": token},
        {"bearer": "x", "service_token": token},
    ):
        with pytest.raises(Unauthenticated, match="more than one"):
            await access.authenticate(**both)


async def test_the_worker_token_may_stand_beside_another_credential(access: AccessService) -> None:
    assert await access.authenticate(bearer=WORKER_TOKEN) is WORKER
    assert await access.authenticate(bearer=WORKER_TOKEN, api_key=ADMIN_KEY) is ADMIN
    with pytest.raises(Unauthenticated):
        await access.authenticate(bearer=WORKER_TOKEN, api_key="wrong")


async def test_service_tokens_count_only_where_they_are_expected(access: AccessService, pool: Database) -> None:
    caller = Caller("ada", frozenset({ClientRole.REVIEWER}))
    assert await access.authenticate(service_token=TOKENS.sign(caller)) == caller
    with pytest.raises(Unauthenticated, match="no service tokens"):
        await AccessService(pool, SETTINGS).authenticate(service_token=TOKENS.sign(caller))


# What a burst costs, and when a client has last called


async def test_a_burst_costs_one_query(
    clients: ClientService, access: AccessService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    find = ClientRepository.find_by_key_hash

    async def counting(self: Any, hashed: str) -> Any:
        asked.append(hashed)
        return await find(self, hashed)

    monkeypatch.setattr(ClientRepository, "find_by_key_hash", counting)
    key = secret(await portal(clients))
    await asyncio.gather(*(access.authenticate(api_key=key) for _ in range(20)))
    await access.authenticate(api_key=key)
    assert len(asked) == 1
    clock.now += 5
    await access.authenticate(api_key=key)
    assert len(asked) == 2


async def test_one_who_goes_away_does_not_end_the_search_of_the_others(
    clients: ClientService, access: AccessService
) -> None:
    key = secret(await portal(clients))
    leaving = asyncio.create_task(access.authenticate(api_key=key))
    staying = asyncio.create_task(access.authenticate(api_key=key))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).client_id == PORTAL


async def test_only_so_many_keys_are_remembered(
    clients: ClientService, access: AccessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "MOST_CACHED", 2)
    for number in range(4):
        await access.authenticate(api_key=secret(await portal(clients, client_id=f"client-{number}")))
    assert len(access._keys._known) == 2


async def test_who_has_called_is_told_once(clients: ClientService, access: AccessService) -> None:
    key = secret(await portal(clients))
    for _ in range(2):
        await access.authenticate(api_key=key)
    with pytest.raises(Unauthenticated):
        await access.authenticate(api_key="gtc_" + "A" * 43)
    assert access.take_used() == {PORTAL}
    assert access.take_used() == set()


@pytest.fixture
async def two_orchestrators(database: TestDatabase) -> AsyncIterator[list[ClientService]]:
    url = database.url(DatabaseRole.ORCHESTRATOR)
    async with (
        Database(url, DatabaseRole.ORCHESTRATOR, pool_size=2) as one,
        Database(url, DatabaseRole.ORCHESTRATOR, pool_size=2) as other,
    ):
        yield [ClientService(one), ClientService(other)]


async def test_the_last_use_is_written_at_most_once_a_minute(clients: ClientService, connection: Connection) -> None:
    await portal(clients)
    unknown = ClientId("unknown")
    assert await clients.note_used({PORTAL, unknown}) == 1
    first = (await clients.get(PORTAL)).last_used_at
    assert first is not None
    assert await clients.note_used({PORTAL}) == 0
    assert (await clients.get(PORTAL)).last_used_at == first
    aged = first - timedelta(seconds=61)
    await connection.execute("UPDATE dagapp.api_clients SET last_used_at = %s", [aged])
    assert await clients.note_used({PORTAL}) == 1
    later = await clients.get(PORTAL)
    assert later.last_used_at is not None
    assert later.last_used_at >= first
    assert later.updated_at < later.last_used_at, "to call is no change of the client"
    assert await clients.note_used(set()) == 0
    assert len(await events(connection)) == 1, "to call is no event, either"


async def test_many_orchestrators_note_the_same_clients_without_waiting_for_each_other(
    clients: ClientService, two_orchestrators: list[ClientService]
) -> None:
    ids = {ClientId(f"client-{number}") for number in range(10)}
    for client_id in ids:
        await portal(clients, client_id=client_id)
    counts = await asyncio.gather(*(service.note_used(ids) for service in two_orchestrators for _ in range(2)))
    assert sum(counts) == 10


# The gateway


async def test_the_gateway_lets_clients_in_with_a_role_that_can_only_read(
    clients: ClientService, database: TestDatabase
) -> None:
    key = secret(await portal(clients))
    async with Database(database.url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY) as reading:
        access = AccessService(reading, SETTINGS)
        assert (await access.authenticate(api_key=key)).client_id == PORTAL
        assert access.take_used() == {PORTAL}
