"""The bootstrap endpoints, called by an admin: they do what the commands do, and answer as documented."""

import httpx
import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.api.conftest import KEY, StartApi

from graticule.api.bootstrap import TableList
from graticule.core.models import TABLES
from graticule.schema.ddl import fingerprint
from graticule.schema.deploy import ddl_script
from graticule.schema.report import SchemaReport, SchemaStatus

BOOTSTRAP = "/api/v1/bootstrap"
HEADERS = {"X-API-Key": KEY}


@pytest.fixture
def database(own_database: TestDatabase) -> TestDatabase:
    """The commands change the schema and the privileges, so each test has a database of its own."""
    return own_database


async def test_status_of_a_current_schema(admin_client: httpx.AsyncClient, database: TestDatabase) -> None:
    assert (
        await admin_client.post(f"{BOOTSTRAP}/deploy")
    ).status_code == 200  # privileges on a database are not cloned
    answer = await admin_client.get(f"{BOOTSTRAP}/status")
    assert answer.status_code == 200
    status = SchemaStatus.model_validate_json(answer.content, strict=True)
    assert status.model_dump(mode="json") == answer.json()
    assert status.database == database.name
    assert status.current
    assert status.deployed
    assert status.fingerprint == status.deployed_fingerprint == fingerprint(TABLES)
    assert status.pgstac_version == status.pgstac_wanted
    assert status.postgis_version
    assert status.pending == status.differences == []


async def test_status_of_an_empty_database_changes_nothing(
    empty_databases: list[TestDatabase], start_api: StartApi
) -> None:
    async with start_api(empty_databases[0]) as client:
        answer = await client.get(f"{BOOTSTRAP}/status", headers=HEADERS)
    status = SchemaStatus.model_validate_json(answer.content, strict=True)
    assert not status.deployed
    assert not status.current
    assert status.postgis_version is None
    with psycopg.connect(empty_databases[0].url()) as connection:
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('dagapp', 'dagapp__expected', 'pgstac')"
        assert connection.execute(schemas).fetchone() == (0,)


async def test_a_status_that_is_not_current_tells_what_is_missing(
    admin_client: httpx.AsyncClient, admin: psycopg.AsyncConnection, database: TestDatabase
) -> None:
    """As after a restore: the tables are there, and the owner's right to make more of them is not."""
    await admin.execute(f'REVOKE CREATE ON DATABASE "{database.name}" FROM graticule_owner'.encode())
    status = SchemaStatus.model_validate_json((await admin_client.get(f"{BOOTSTRAP}/status")).content)
    assert not status.current
    assert status.pending or status.differences


async def test_tables_are_a_list_with_an_end(admin_client: httpx.AsyncClient) -> None:
    answer = await admin_client.get(f"{BOOTSTRAP}/tables")
    assert answer.status_code == 200
    assert answer.json().keys() == {"items", "next"}
    assert answer.json()["next"] is None
    tables = {table.name: table for table in TableList.model_validate_json(answer.content, strict=True).items}
    assert tables.keys() == {f"{model.table.schema}.{model.table.name}" for model in TABLES}
    assert tables["dagapp.platforms"].rows >= 2
    assert not tables["dagapp.platforms"].rows_estimated
    assert all(table.comment and table.bytes > 0 and table.indexes > 0 for table in tables.values())


async def test_ddl_is_the_script_that_the_command_prints(admin_client: httpx.AsyncClient) -> None:
    answer = await admin_client.get(f"{BOOTSTRAP}/ddl")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == ddl_script()


@pytest.mark.parametrize("command", ["deploy", "migrate"])
async def test_a_command_makes_everything_once_and_nothing_twice(
    empty_databases: list[TestDatabase], start_api: StartApi, command: str
) -> None:
    async with start_api(empty_databases[0]) as client:
        first = SchemaReport.model_validate_json((await client.post(f"{BOOTSTRAP}/{command}", headers=HEADERS)).content)
        assert first.current
        assert len(first.applied) > len(TABLES)
        assert first.pending == first.differences == []
        again = SchemaReport.model_validate_json((await client.post(f"{BOOTSTRAP}/{command}", headers=HEADERS)).content)
        assert again.current
        assert again.applied == []
        assert again.notices == []
        assert (await client.get("/readyz")).status_code == 200


async def test_deploy_leaves_an_existing_table_and_migrate_completes_it(
    admin_client: httpx.AsyncClient, admin: psycopg.AsyncConnection
) -> None:
    await admin.execute("ALTER TABLE dagapp.platforms DROP COLUMN description")
    deployed = SchemaReport.model_validate_json((await admin_client.post(f"{BOOTSTRAP}/deploy")).content)
    assert (deployed.current, deployed.applied) == (False, [])
    assert any("platforms.description" in item.object for item in deployed.pending)
    status = SchemaStatus.model_validate_json((await admin_client.get(f"{BOOTSTRAP}/status")).content)
    assert (status.current, status.pending) == (False, deployed.pending)
    migrated = SchemaReport.model_validate_json((await admin_client.post(f"{BOOTSTRAP}/migrate")).content)
    assert (migrated.current, migrated.pending) == (True, [])
    assert migrated.applied == deployed.pending


async def test_rebuild_is_refused_outside_development_mode(
    admin_client: httpx.AsyncClient, database: TestDatabase, admin: psycopg.AsyncConnection
) -> None:
    answer = await admin_client.post(f"{BOOTSTRAP}/rebuild", params={"confirm": database.name})
    assert answer.status_code == 403
    assert answer.json()["code"] == "permission_denied"
    assert "GRATICULE_DEVELOPMENT" in answer.json()["hint"]
    assert await platforms(admin) > 0


@pytest.mark.parametrize("confirm", ["", "yes", "TEST"])
async def test_rebuild_is_refused_with_a_wrong_confirmation(
    database: TestDatabase, start_api: StartApi, admin: psycopg.AsyncConnection, confirm: str
) -> None:
    async with start_api(database, development=True) as client:
        answer = await client.post(f"{BOOTSTRAP}/rebuild", params={"confirm": confirm}, headers=HEADERS)
    assert answer.status_code == 409
    assert answer.json()["code"] == "conflict"
    assert database.name in answer.json()["hint"]
    assert await platforms(admin) > 0


async def test_rebuild_without_a_confirmation_is_not_understood(database: TestDatabase, start_api: StartApi) -> None:
    async with start_api(database, development=True) as client:
        answer = await client.post(f"{BOOTSTRAP}/rebuild", headers=HEADERS)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_input"
    assert answer.json()["errors"][0]["loc"] == ["query", "confirm"]


async def test_rebuild_in_development_mode_makes_everything_anew(
    database: TestDatabase, start_api: StartApi, admin: psycopg.AsyncConnection
) -> None:
    await admin.execute("INSERT INTO dagapp.platforms VALUES ('lost', 'Lost', '', ARRAY['a'], '{}', 'v')")
    seeds = await platforms(admin) - 1
    async with start_api(database, development=True) as client:
        answer = await client.post(f"{BOOTSTRAP}/rebuild", params={"confirm": database.name}, headers=HEADERS)
        assert answer.status_code == 200
        assert (await client.get("/readyz")).status_code == 200
    report = SchemaReport.model_validate_json(answer.content, strict=True)
    assert report.current
    assert len(report.applied) > len(TABLES)
    assert await platforms(admin) == seeds


async def platforms(admin: psycopg.AsyncConnection) -> int:
    row = await (await admin.execute("SELECT count(*) FROM dagapp.platforms")).fetchone()
    assert row
    return int(row[0])
