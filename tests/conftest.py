"""A real PostgreSQL for the whole run: one embedded cluster, one template database, a clone for each test."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import AliasChoices

from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster, running_cluster_url
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.repositories.database import Connection, Database
from graticule.services.bootstrap import BootstrapService

HOME_VARIABLE = "GRATICULE_TEST_HOME"
TEMPLATE = "graticule_template"
# Nothing here must survive a power cut, so the tests need not wait for the disk.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# A busy machine is no failure, and a run of continuous integration can be repeated to the letter.
hypothesis.settings.register_profile("graticule", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("graticule")


class SharedCluster:
    """The cluster of a test run, held by the process that began it."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="gtc-test-"))
        self._home.chmod(0o711)
        self._runner = asyncio.Runner()  # kept open: the server is a child of its loop
        self._cluster = Cluster.of(self._home, settings=NOT_DURABLE)
        try:
            self._runner.run(self._start())
        except BaseException:
            self.stop()
            raise
        os.environ[HOME_VARIABLE] = str(self._home)

    async def _start(self) -> None:
        await self._cluster.start()
        await self._cluster.ensure_database(TEMPLATE)
        url = self._cluster.url(ADMIN, TEMPLATE)
        await BootstrapService(url, development=False).deploy()
        await allow_logins(url, Credentials.load(self._home))

    def stop(self) -> None:
        self._runner.run(self._cluster.stop())
        self._runner.close()
        shutil.rmtree(self._home, ignore_errors=True)


_shared: SharedCluster | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Start the cluster once, before the workers of a parallel run are."""
    global _shared  # noqa: PLW0603 - pytest's hooks have no other place for it
    for name in _settings_variables() & set(os.environ):
        del os.environ[name]
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        _shared = SharedCluster()


def _settings_variables() -> set[str]:
    """Give the variables of all settings: those of whoever runs the tests must not count."""
    aliases = [field.validation_alias for field in Settings.model_fields.values()]
    named = {str(name).upper() for alias in aliases if isinstance(alias, AliasChoices) for name in alias.choices}
    return named | {f"GRATICULE_{name}".upper() for name in (*Settings.model_fields, "host", "port")}


def pytest_unconfigure() -> None:
    """Stop the cluster with the process that started it."""
    if _shared is not None:
        _shared.stop()


@dataclass(frozen=True)
class TestDatabase:
    """A database of one test."""

    __test__ = False

    name: str
    home: Path

    def url(self, role: str = ADMIN) -> str:
        """Give its address for a role; the administrator's by default."""
        found = running_cluster_url(self.home, role, self.name)
        assert found is not None
        return found


def _admin_url() -> str:
    found = running_cluster_url(Path(os.environ[HOME_VARIABLE]), ADMIN, "postgres")
    assert found is not None
    return found


def _create_database(template: str) -> TestDatabase:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(_admin_url(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    return TestDatabase(name, Path(os.environ[HOME_VARIABLE]))


def _drop_database(database: TestDatabase) -> None:
    with psycopg.connect(_admin_url(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database.name)))


@pytest.fixture
def database() -> Iterator[TestDatabase]:
    """Give a database with the whole schema, the test's own."""
    created = _create_database(TEMPLATE)
    yield created
    _drop_database(created)


@pytest.fixture
def empty_databases() -> Iterator[list[TestDatabase]]:
    """Give two databases in which nothing was made yet."""
    created = [_create_database("template0"), _create_database("template0")]
    yield created
    for each in created:
        _drop_database(each)


@pytest.fixture
async def pool(database: TestDatabase) -> AsyncIterator[Database]:
    """Give a pool of connections that act as the orchestrator."""
    async with Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=4) as opened:
        yield opened


@pytest.fixture
async def connection(pool: Database) -> AsyncIterator[Connection]:
    """Give one connection that acts as the orchestrator; each statement commits by itself."""
    async with pool.connection() as opened:
        yield opened


@pytest.fixture
async def admin(database: TestDatabase) -> AsyncIterator[psycopg.AsyncConnection]:
    """Give a connection of the administrator."""
    async with await psycopg.AsyncConnection.connect(make_conninfo(database.url()), autocommit=True) as opened:
        yield opened
