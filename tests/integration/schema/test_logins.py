"""Logins of identities: made by Azure's function, and members of one role each."""

from collections.abc import Iterator
from uuid import uuid4

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
from graticule.schema.logins import ensure_logins

# What a server of Azure brings, as far as it is asked for here.
AZURE = """
    CREATE FUNCTION pgaadauth_create_principal(login text, is_admin boolean, is_mfa boolean) RETURNS text
    LANGUAGE plpgsql AS $$
    BEGIN
        ASSERT NOT is_admin AND NOT is_mfa;
        EXECUTE format('CREATE ROLE %I LOGIN', login);
        RETURN 'Created role for "' || login || '"';
    END $$
"""


@pytest.fixture
def identities(own_database: TestDatabase) -> Iterator[dict[DatabaseRole, str]]:
    """Give the names of two identities; the logins that were made of them go with the test."""
    run = uuid4().hex
    named = {role: f"it's-{role}-{run}" for role in (DatabaseRole.GATEWAY, DatabaseRole.WORKER)}
    yield named
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        for login in named.values():
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(login)))


async def test_each_identity_acts_as_the_role_of_its_process_and_as_no_other(
    own_database: TestDatabase, identities: dict[DatabaseRole, str]
) -> None:
    url, name = own_database.url(), own_database.name
    with pytest.raises(ConfigurationError, match="knows no identities"):
        await ensure_logins(url, identities, database=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(AZURE)
    assert await ensure_logins(url, identities, database=name) == dict.fromkeys(identities, True)
    assert await ensure_logins(url, identities, database=name) == dict.fromkeys(identities, False)
    login = make_conninfo(url, user=identities[DatabaseRole.GATEWAY])
    async with Database(login, DatabaseRole.GATEWAY, pool_size=1) as database:
        assert (await database.ping())["role"] == DatabaseRole.GATEWAY
    with pytest.raises(psycopg.OperationalError, match="permission denied to set role"):
        psycopg.connect(make_conninfo(login, options=f"-c role={DatabaseRole.WORKER}"))


@pytest.mark.parametrize("pair", ["gateway", "gateway=", "owner=someone", "someone=else"])
def test_what_is_no_process_is_refused_before_anything_is_done(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    result = CliRunner().invoke(app, ["azure", "logins", "ensure", pair])
    assert isinstance(result.exception, ConfigurationError), result.output
    assert "serve_external" in str(result.exception.hint)
