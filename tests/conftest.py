"""A real PostgreSQL for the whole run: one embedded cluster, one template database, and clones of it."""

import asyncio
import gc
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import structlog
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb
from pydantic import AliasChoices
from structlog.dev import ConsoleRenderer, plain_traceback
from tests import examples
from tests.azurite_server import Azurite, stop_azurite
from tests.folders import new_cluster_folder
from tests.managed_identity import managed_identity

from graticule.config import Settings
from graticule.core.models import TABLES, Platform, SchemaDeployment
from graticule.core.table import DatabaseRole, Row
from graticule.embedded.cluster import Cluster, running_cluster_url
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.repositories.database import Connection, Database
from graticule.services.bootstrap import BootstrapService

HOME_VARIABLE = "GRATICULE_TEST_HOME"
TEMPLATE = "graticule_template"
POOL_SIZE = 4
# Nothing here must survive a power cut, so the tests need not wait for the disk. A session that is the first to meet a
# geometry would have to load PostGIS, which takes longer than to connect; and most tests have sessions of their own.
QUICK = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",  # of which each session pays for its share
    "autovacuum": "off",  # a few hundred databases are gone before it is worth the while
    "shared_preload_libraries": "postgis-3",
}
SEEDED = (Platform, SchemaDeployment)  # the tables in which a deployment leaves rows
SHAPE = """
    SELECT md5(string_agg(concat_ws(' ', kind, name, detail), E'\\n' ORDER BY kind, name, detail))
    FROM (SELECT 'column' AS kind, attrelid::regclass::text AS name,
                 concat_ws(' ', attname, atttypid::regtype, attnotnull, atthasdef, relkind, relowner, relacl) AS detail
          FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
          WHERE relnamespace = ANY ('{dagapp,geo,external}'::regnamespace[]) AND NOT attisdropped
          UNION ALL
          SELECT 'constraint', conrelid::regclass::text, concat_ws(' ', conname, pg_get_constraintdef(oid))
          FROM pg_constraint WHERE connamespace = 'dagapp'::regnamespace) AS object
"""

# Whatever changes the shape leaves rows of the catalogue in a later version, or fewer or more of them.
CATALOGUE = """
    SELECT count(*), sum(version)
    FROM (SELECT xmin::text::bigint AS version FROM pg_class
          WHERE relnamespace = ANY ('{dagapp,geo,external}'::regnamespace[])
          UNION ALL
          SELECT pg_attribute.xmin::text::bigint FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
          WHERE relnamespace = ANY ('{dagapp,geo,external}'::regnamespace[])
          UNION ALL
          SELECT xmin::text::bigint FROM pg_constraint WHERE connamespace = 'dagapp'::regnamespace) AS object
"""
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = %s AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
ASKED = "asked_for_a_password"  # the role whose members have to prove theirs
WAYS_IN = (("local", ""), ("host", "all"))
WAITING = tuple(f"tests/integration/{folder}/" for folder in ("messaging", "servicebus", "worker"))

PLAIN = ConsoleRenderer(colors=False, exception_formatter=plain_traceback)


class SharedCluster:
    """The cluster of a test run, held by the process that began it."""

    def __init__(self) -> None:
        self._home = new_cluster_folder()
        self._runner = asyncio.Runner()  # kept open: the server is a child of its loop
        self._cluster = Cluster.of(self._home, settings=QUICK)
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
        await self._spare_passwords(url)

    async def _spare_passwords(self, url: str) -> None:
        """Let everyone in but the owner and the members of `ASKED`.

        To prove a password takes longer than most tests, and few are about that.
        """
        (rules,) = self._home.rglob("pg_hba.conf")
        users = f"{DatabaseRole.OWNER},+{ASKED}"
        asked = "".join(f"{way} all {users} {whence} scram-sha-256\n" for way, whence in WAYS_IN)
        rules.write_text(asked + rules.read_text().replace("scram-sha-256", "trust"))
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(ASKED)))
            await connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        stop_azurite(self._home)
        self._runner.run(self._cluster.stop())
        self._runner.close()
        shutil.rmtree(self._home, ignore_errors=True)


_shared: SharedCluster | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Start the cluster once, before the workers of a parallel run are."""
    global _shared  # noqa: PLW0603 - pytest's hooks have no other place for it
    for name in _settings_variables() & set(os.environ):
        del os.environ[name]
    plain_logs()
    examples.choose(is_thorough="not thorough" not in config.option.markexpr)
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        _shared = SharedCluster()
    gc.disable()  # while tests are collected nothing is thrown away, and there is much to look at


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the tests that mostly wait for a broker go beside all others, instead of at the same time as each other.

    Each process of a parallel run begins with one part of the list, and who is done takes from the end of another's
    part. So the first begins with what starts whole installations, and the second with what waits.
    """
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    waiting = [item for item in items if item.nodeid.startswith(WAITING)]
    others = [item for item in items if not item.nodeid.startswith(WAITING)]
    second = len(items) // processes
    items[:] = [*others[:second], *waiting, *others[second:]]


def pytest_collection_finish() -> None:
    """Leave out of every later search for garbage what stays to the end: the modules, and the tests themselves.

    To search once for the little that collecting has left would take longer than it saves.
    """
    gc.freeze()
    gc.set_threshold(10_000)  # what a test leaves is little, and goes with it
    gc.enable()


def plain_logs() -> None:
    """Log tracebacks as text: structlog's default draws local variables, which can take seconds."""
    structlog.reset_defaults()
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], PLAIN])


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


def create_database(template: str = TEMPLATE) -> TestDatabase:
    """Make a clone; to copy its files takes a third of the time that their blocks in the log would."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(_admin_url(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    return TestDatabase(name, Path(os.environ[HOME_VARIABLE]))


def _drop_database(database: TestDatabase) -> None:
    with psycopg.connect(_admin_url(), autocommit=True) as connection:
        _end_others(connection, database)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database.name)))


@contextmanager
def new_database(template: str = TEMPLATE) -> Iterator[TestDatabase]:
    """Give a clone, and drop it afterwards."""
    created = create_database(template)
    try:
        yield created
    finally:
        _drop_database(created)


class SharedDatabase:
    """A clone that many tests use one after the other; one that a test has spoiled is replaced."""

    def __init__(self) -> None:
        self.database = create_database()
        self._connection = self._connect()
        self._seeds = {model: _rows(self._connection, model) for model in SEEDED}
        self._shape = _shape(self._connection)
        self._catalogue = _catalogue(self._connection)
        self._counts = _counts(self._connection)

    def drop(self) -> None:
        self._connection.close()
        _drop_database(self.database)

    def empty(self) -> None:
        """Make it as it was; what cannot be undone by changing rows is the fault of the test before."""
        connection = self._kept_connection()
        _end_others(connection, self.database)
        if not self._has_its_shape(connection) or not self._empty_tables(connection):
            self.drop()
            self.database = create_database()
            self._connection = self._connect()
            pytest.fail("The test changed the shared database for good; give it one of its own (`own_database`).")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.database.url(), autocommit=True)

    def _kept_connection(self) -> psycopg.Connection:
        """Give the connection of the time before, if no test has ended it: a new one has to read the catalogue anew."""
        try:
            self._connection.execute("SELECT")
        except psycopg.OperationalError:
            self._connection = self._connect()
        return self._connection

    def _has_its_shape(self, connection: psycopg.Connection) -> bool:
        """Tell whether the tables are as they were; they are looked at only if their catalogue has changed."""
        catalogue = _catalogue(connection)
        if catalogue != self._catalogue and _shape(connection) != self._shape:
            return False
        self._catalogue = catalogue
        return True

    def _empty_tables(self, connection: psycopg.Connection) -> bool:
        """Bring the rows back to the seeds; False when something still writes."""
        with connection.transaction():
            _delete_rows(connection)
            self._restore_seeds(connection)
        return _counts(connection) == self._counts

    def _restore_seeds(self, connection: psycopg.Connection) -> None:
        for model, seeds in self._seeds.items():
            if _rows(connection, model) != seeds:
                query = (
                    "DELETE FROM {0};"
                    " INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::{0}, {1})"
                )
                connection.execute(sql.SQL(query).format(_table(model), Jsonb(seeds)))


def _rows(connection: psycopg.Connection, model: type[Row]) -> list[object]:
    query = "SELECT coalesce(jsonb_agg(seed ORDER BY seed), '[]') FROM {} AS seed"
    (found,) = connection.execute(sql.SQL(query).format(_table(model))).fetchone() or ([],)
    return list(found)


def _end_others(connection: psycopg.Connection, database: TestDatabase) -> None:
    """End the connections that a test has left; they could write later, or hold locks.

    The server would look every tenth of a second only whether they are gone, and most are about to end when it begins.
    """
    deadline = time.monotonic() + 5
    while connection.execute(END_OTHERS, [database.name]).rowcount and time.monotonic() < deadline:
        time.sleep(0.001)


def _delete_rows(connection: psycopg.Connection) -> None:
    """Delete all rows but the seeds; faster than TRUNCATE, which makes new files for every table and index."""
    connection.execute("SET LOCAL session_replication_role = replica")  # no order among the tables
    emptied = [*(_table(model) for model in TABLES if model not in SEEDED), sql.Identifier("pgstac", "items")]
    connection.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(table) for table in emptied))


def _shape(connection: psycopg.Connection) -> object:
    """Give a digest of the tables themselves."""
    return connection.execute(SHAPE).fetchone()


def _catalogue(connection: psycopg.Connection) -> object:
    """Give what every change of the tables themselves changes, too."""
    return connection.execute(CATALOGUE).fetchone()


def _counts(connection: psycopg.Connection) -> object:
    """Give the number of rows of each table."""
    counts = [sql.SQL("(SELECT count(*) FROM {})").format(_table(model)) for model in TABLES]
    return connection.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(counts))).fetchone()


def _table(model: type[Row]) -> sql.Identifier:
    return sql.Identifier(model.table.schema, model.table.name)


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """Give Azure's storage with accounts for the tests of this process; `fresh` gives others."""
    with managed_identity() as identity:
        yield Azurite.shared(Path(os.environ[HOME_VARIABLE]), identity)


@pytest.fixture
def own_database() -> Iterator[TestDatabase]:
    """Give a database with the whole schema, the test's own: for what changes tables, roles or seeds."""
    with new_database() as created:
        yield created


@pytest.fixture(scope="session")
def shared_clone() -> Iterator[SharedDatabase]:
    """Give one clone to all tests of this process that leave only rows; one for each would be most of their time."""
    shared = SharedDatabase()
    yield shared
    shared.drop()


@pytest.fixture
def emptied_database(shared_clone: SharedDatabase) -> Iterator[TestDatabase]:
    """Give a database with the whole schema and no rows but the seeds; it is emptied after the test."""
    yield shared_clone.database
    shared_clone.empty()


@pytest.fixture
def database(own_database: TestDatabase) -> TestDatabase:
    """Give the database of the test; folders whose tests write nothing but rows take the shared one instead."""
    return own_database


@pytest.fixture
def empty_databases() -> Iterator[list[TestDatabase]]:
    """Give two databases in which nothing was made yet."""
    with new_database("template0") as one, new_database("template0") as other:
        yield [one, other]


@pytest.fixture
async def pool(database: TestDatabase) -> AsyncIterator[Database]:
    """Give a pool of connections that act as the orchestrator."""
    async with Database(
        database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=POOL_SIZE
    ) as opened:
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
