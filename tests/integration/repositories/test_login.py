"""Tokens of Entra ID as the password of PostgreSQL: a server that takes only the newest one, and asks for it."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from tests.azure_login import Entra, known_identity
from tests.conftest import TestDatabase

from graticule.cli.connection import owner_url, process_url
from graticule.core.audience import Audience
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.core.table import DatabaseRole
from graticule.embedded.server import facts
from graticule.repositories.database import Connection, Database
from graticule.repositories.listener import Heard, Listener, listening
from graticule.repositories.login import connected
from graticule.schema import pgstac
from graticule.serve.pools import opened_pool
from graticule.services.bootstrap import BootstrapService

RESOURCE = "https://ossrdbms-aad.database.windows.net"


@pytest.fixture
def entra(database: TestDatabase) -> Iterator[Entra]:
    with known_identity(database) as entra:
        yield entra


def _pool(entra: Entra) -> Database:
    """Give a pool of one connection: those that begin at the same time would end each other's tokens."""
    return Database(entra.url, DatabaseRole.ORCHESTRATOR, pool_size=1)


async def _session(connection: Connection) -> tuple[str, str]:
    row = await (await connection.execute("SELECT session_user AS login, current_user AS role")).fetchone()
    assert row is not None
    return row["login"], row["role"]


async def test_new_connections_show_the_token_of_their_moment_and_open_ones_live_on(entra: Entra) -> None:
    entra.endpoint.seconds = 60  # too short to be kept
    async with _pool(entra) as one, one.connection() as opened, _pool(entra) as other, other.connection() as new:
        assert await _session(opened) == await _session(new) == (entra.role, DatabaseRole.ORCHESTRATOR)
    assert entra.endpoint.asked == [RESOURCE] * 2
    assert len(set(entra.endpoint.tokens)) == 2


async def test_a_pool_that_has_lost_its_connections_asks_for_another_token(entra: Entra) -> None:
    entra.endpoint.seconds = 60
    async with _pool(entra) as pool:
        await pool.ping()
        entra.cut()
        with pytest.raises(Unavailable):
            await pool.ping()
        await pool.ping()
    assert len(set(entra.endpoint.tokens)) == 2


async def test_a_token_is_kept_for_as_long_as_it_holds(entra: Entra) -> None:
    async with _pool(entra) as one, one.connection() as opened, _pool(entra) as other, other.connection() as new:
        assert await _session(opened) == await _session(new)
    assert entra.endpoint.asked == [RESOURCE]


async def test_what_listens_connects_anew_with_another_token_also_when_there_was_none_for_a_while(entra: Entra) -> None:
    entra.endpoint.seconds = 60
    lost: list[None] = []

    def noted() -> None:
        lost.append(None)
        entra.endpoint.is_refusing = len(lost) == 1

    listener = Listener(entra.url, DatabaseRole.ORCHESTRATOR, ["events"], on_lost=noted)
    async with asyncio.timeout(20), listening(listener) as heard:
        assert await anext(heard) == Heard(None)
        entra.cut()
        assert await anext(heard) == Heard(None)
    assert (len(lost), len(set(entra.endpoint.tokens))) == (2, 2)


async def test_the_commands_of_the_schema_log_in_so_too(entra: Entra) -> None:
    url = owner_url(entra.settings())
    assert url
    assert (await BootstrapService(url, development=False).status()).deployed
    assert "postgis" in facts(url, ["postgis"], timeout=5).extensions  # for `graticule doctor`


async def test_pypgstac_is_given_the_token_by_its_environment(
    entra: Entra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "$PGUSER $PGPASSWORD $PGSSLMODE $*" > "$0.asked"\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    await pgstac.migrate(entra.url)
    (given,) = entra.endpoint.tokens
    assert (tmp_path / "python.asked").read_text() == f"{entra.role} {given} disable -P -m pypgstac.pypgstac migrate"


async def test_the_pools_of_the_services_show_it_for_each_connection(entra: Entra) -> None:
    entra.endpoint.seconds = 60

    async def prepare(_: asyncpg.Connection) -> None:
        """Nothing."""

    opened = opened_pool(entra.url, Audience.INTERNAL, size=2, name="test", settings={}, prepare=prepare)
    async with opened as pool, pool.acquire() as first, pool.acquire() as second:
        for each in (first, second):
            assert await each.fetchval("SELECT current_user") == DatabaseRole.SERVE_INTERNAL
    assert len(entra.endpoint.asked) == 2


async def test_it_is_shown_only_by_way_of_tls_unless_the_address_says_otherwise(entra: Entra) -> None:
    with pytest.raises(psycopg.OperationalError, match="SSL"):  # which the server of the tests does not speak
        await connected(process_url(entra.settings(""), DatabaseRole.ORCHESTRATOR))


async def test_without_a_token_or_with_one_that_is_refused_nothing_is_given_away(
    entra: Entra, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    entra.endpoint.is_refusing = True
    pool = Database(entra.url, DatabaseRole.ORCHESTRATOR, timeout_seconds=0.3)
    async with pool:
        with pytest.raises(Unavailable) as without:
            await pool.ping()
    entra.endpoint.is_refusing, entra.is_known = False, False
    with pytest.raises(ConfigurationError) as refused:
        await BootstrapService(entra.url, development=False).status()
    (token,) = entra.endpoint.tokens
    said = f"{without.value} {refused.value} {refused.value.detail} {pool} {refused.value.__cause__!r} {caplog.text}"
    assert "the login was refused" in said
    assert token not in said
