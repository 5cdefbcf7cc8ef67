"""Logins of identities: made by Azure's function, and members of one role each."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.conftest import TestDatabase
from typer.testing import CliRunner

from graticule.cli.main import app
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.schema.logins import Found, Identity, ensure_logins

# What a server of Azure brings, as far as it is asked for here: a role, and a label that says whose it is.
AZURE = """
    CREATE FUNCTION pgaadauth_create_principal(login text, is_admin boolean, is_mfa boolean) RETURNS text
    LANGUAGE plpgsql AS $$
    BEGIN
        ASSERT NOT is_admin AND NOT is_mfa;
        EXECUTE format('CREATE ROLE %I LOGIN', login);
        RETURN 'Created role for "' || login || '"';
    END $$;
    CREATE FUNCTION pgaadauth_create_principal_with_oid(
        login text, object_id text, kind text, is_admin boolean, is_mfa boolean
    ) RETURNS text
    LANGUAGE plpgsql AS $$
    BEGIN
        ASSERT kind = 'service';
        PERFORM pgaadauth_create_principal(login, is_admin, is_mfa);
        INSERT INTO pg_shseclabel (classoid, provider, objoid, label)
        SELECT 'pg_authid'::regclass, 'pgaadauth', oid, format('aadauth,oid=%s,type=%s', object_id, kind)
        FROM pg_authid WHERE rolname = login;
        RETURN 'Created role for "' || login || '"';
    END $$
"""


@pytest.fixture
def names(own_database: TestDatabase) -> Iterator[dict[DatabaseRole, str]]:
    """Give the names of two identities; the logins that were made of them go with the test."""
    run = uuid4().hex
    named = {role: f"it's-{role}-{run}" for role in (DatabaseRole.GATEWAY, DatabaseRole.WORKER)}
    yield named
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        for login in named.values():
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(login)))


async def test_each_identity_acts_as_the_role_of_its_process_and_as_no_other(
    own_database: TestDatabase, names: dict[DatabaseRole, str]
) -> None:
    url, name = own_database.url(), own_database.name
    identities = {role: Identity(login) for role, login in names.items()}
    with pytest.raises(ConfigurationError, match="knows no identities"):
        await ensure_logins(url, identities, database=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(AZURE)
    assert await ensure_logins(url, identities, database=name) == dict.fromkeys(identities, Found.MISSING)
    assert await ensure_logins(url, identities, database=name) == dict.fromkeys(identities, Found.RIGHT)
    login = make_conninfo(url, user=names[DatabaseRole.GATEWAY])
    async with Database(login, DatabaseRole.GATEWAY, pool_size=1) as database:
        assert (await database.ping())["role"] == DatabaseRole.GATEWAY
    with pytest.raises(psycopg.OperationalError, match="permission denied to set role"):
        psycopg.connect(make_conninfo(login, options=f"-c role={DatabaseRole.WORKER}"))


async def test_the_login_of_an_identity_that_was_made_anew_is_made_anew(
    own_database: TestDatabase, names: dict[DatabaseRole, str]
) -> None:
    url, login = own_database.url(), names[DatabaseRole.WORKER]

    async def ensure(object_id: UUID) -> Found:
        asked = {DatabaseRole.WORKER: Identity(login, object_id)}
        return (await ensure_logins(url, asked, database=own_database.name))[DatabaseRole.WORKER]

    first, second = uuid4(), uuid4()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(AZURE)
        assert [await ensure(first) for _ in range(2)] == [Found.MISSING, Found.RIGHT]
        connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(*_names(own_database.name, login)))
        with pytest.raises(ConfigurationError, match="has further rights"):
            await ensure(second)
        assert await ensure(first) is Found.RIGHT, "it was left half done"
        connection.execute(sql.SQL("DROP OWNED BY {}").format(*_names(login)))
        assert [await ensure(second) for _ in range(2)] == [Found.OF_ANOTHER, Found.RIGHT]
        async with Database(make_conninfo(url, user=login), DatabaseRole.WORKER, pool_size=1) as database:
            assert (await database.ping())["role"] == DatabaseRole.WORKER
        connection.execute(sql.SQL("DROP ROLE {0}; CREATE ROLE {0} LOGIN").format(*_names(login)))
        with pytest.raises(ConfigurationError, match="of nobody in Entra ID"):
            await ensure(second)


def _names(*names: str) -> list[sql.Identifier]:
    return [sql.Identifier(name) for name in names]


@pytest.mark.parametrize(
    "pair",
    [
        "gateway",
        "gateway=",
        "owner=someone",
        "someone=else",
        "gateway=a:",
        "gateway=a:b",
        "gateway=:0f6a4c52-8f0e-4c1b-b0a1-5d8b9e3a7c22",
    ],
)
def test_what_is_no_process_is_refused_before_anything_is_done(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    result = CliRunner().invoke(app, ["azure", "logins", "ensure", pair])
    assert isinstance(result.exception, ConfigurationError), result.output
    assert "serve_external" in str(result.exception.hint)
