"""How many workers are needed: the query of deploy/kubernetes on a real queue, by the login that is made for it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
import yaml
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.conftest import ASKED, TestDatabase
from typer.testing import CliRunner

from graticule.cli.main import app
from graticule.core.errors import ConfigurationError
from graticule.schema.passwords import SCALER, set_passwords
from graticule.services.bootstrap import BootstrapService

SCALING = Path(__file__).parents[3] / "deploy" / "kubernetes" / "components" / "scaling-postgresql" / "scaling.yaml"
PASSWORD = "what only the scaler knows"  # of all databases of the cluster: its tests may run side by side
TASKS: LiteralString = """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, status, available_at,
                                  leased_by, lease_expires_at)
    SELECT %(queue)s || %(status)s || %(delay)s || n, 'job', 'node', %(queue)s, 'echo',
           %(status)s::dagapp.message_status, now() + %(delay)s * interval '1 second',
           CASE WHEN %(status)s = 'leased' THEN 'worker' END, CASE WHEN %(status)s = 'leased' THEN now() END
    FROM generate_series(1, %(count)s) n
"""
FORBIDDEN: tuple[LiteralString, ...] = (
    "SELECT params FROM dagapp.dag_tasks",
    "SELECT * FROM dagapp.dag_jobs",
    "SELECT * FROM dagapp.api_clients",
    "UPDATE dagapp.dag_tasks SET queue = ''",
    "CREATE TABLE dagapp.mine (x int)",
    "SET ROLE graticule_worker",
)


def queries() -> dict[str, str]:
    """Give the query of each queue, as KEDA is given it."""
    scaled = [each for each in yaml.safe_load_all(SCALING.read_text(encoding="utf-8")) if "triggers" in each["spec"]]
    found = [each["spec"]["triggers"][0]["metadata"]["query"] for each in scaled]
    return {query.split("'")[1]: query for query in found}


def ensure_logins(database: TestDatabase, monkeypatch: pytest.MonkeyPatch, **passwords: str) -> str:
    """Run `graticule schema logins` as the job that migrates does, and give what it says."""
    monkeypatch.setenv("GRATICULE_OWNER_DATABASE_URL", database.url())
    for role, password in passwords.items():
        monkeypatch.setenv(f"GRATICULE_{role}_PASSWORD", password)
    result = CliRunner().invoke(app, ["schema", "logins"])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def queue(own_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """Give the administrator's connection to a database with tasks of all kinds, and with the scaler's login."""
    assert SCALER in ensure_logins(own_database, monkeypatch, SCALER=PASSWORD)
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        with suppress(psycopg.errors.UniqueViolation):  # a test beside this one was quicker
            connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(ASKED), sql.Identifier(SCALER)))
        connection.execute("SET session_replication_role = replica")  # tasks of no job
        for name, status, delay, count in (
            ("container-tasks", "queued", 0, 5),
            ("container-tasks", "queued", 3600, 2),
            ("container-tasks", "leased", 0, 3),
            ("container-tasks", "done", 0, 3000),
            ("functionapp-tasks", "queued", 0, 1500),
            ("functionapp-tasks", "done", 0, 3000),
        ):
            connection.execute(TASKS, {"queue": name, "status": status, "delay": delay, "count": count})
        connection.execute("ANALYZE dagapp.dag_tasks")
        yield connection


@pytest.fixture
def scaler(queue: psycopg.Connection, own_database: TestDatabase) -> Iterator[psycopg.Connection]:
    """Give a connection as KEDA makes it."""
    url = make_conninfo(own_database.url(), user=SCALER, password=PASSWORD)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _read(plan: dict[str, Any]) -> Iterator[str]:
    """Give what a plan reads."""
    if name := plan.get("Index Name") or plan.get("Relation Name"):
        yield name
    for part in plan.get("Plans", ()):
        yield from _read(part)


def test_what_waits_and_what_runs_is_counted_and_from_indexes_alone(scaler: psycopg.Connection) -> None:
    counted = {name: scaler.execute(query.encode()).fetchone() for name, query in queries().items()}
    assert counted == {"container-tasks": (5 + 3,), "functionapp-tasks": (1000,)}, "no more than so many are counted"
    for query in queries().values():
        row = scaler.execute(f"EXPLAIN (FORMAT JSON) {query}".encode()).fetchone()
        assert row is not None
        assert set(_read(row[0][0]["Plan"])) <= {
            "dag_tasks_queue_priority_turn_available_at_task_id_idx",
            "dag_tasks_queue_priority_share_turn_idx",
            "dag_tasks_lease_expires_at_idx",
            "dag_tasks",
        }, json.dumps(row)
        assert "Seq Scan" not in json.dumps(row)


def test_the_scaler_can_do_nothing_else(scaler: psycopg.Connection) -> None:
    for statement in FORBIDDEN:
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
            scaler.execute(statement)
    scaler.execute("SET default_transaction_read_only = off")
    for statement in FORBIDDEN:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            scaler.execute(statement)


async def test_its_login_wants_its_password_and_is_nothing_that_a_migration_minds(
    queue: psycopg.Connection, own_database: TestDatabase
) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(make_conninfo(own_database.url(), user=SCALER, password="another"))
    migrated = await BootstrapService(own_database.url(), development=False).migrate()
    assert (migrated.current, migrated.differences) == (True, [])


def test_roles_get_their_passwords_again_and_again(own_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> object:
        with psycopg.connect(own_database.url()) as connection:
            statement = "SELECT rolpassword FROM pg_authid WHERE rolname = 'graticule_serve_external'"
            return connection.execute(statement).fetchone()

    first, second = "a password of 24 letters", "another of as many letters"
    assert "graticule_serve_external can log in" in ensure_logins(own_database, monkeypatch, SERVE_EXTERNAL=first)
    before = kept()
    assert first not in str(before)
    ensure_logins(own_database, monkeypatch, SERVE_EXTERNAL=second)
    assert str(kept()).startswith("('SCRAM-SHA-256")
    assert kept() != before


async def test_roles_get_them_while_other_deployments_on_the_same_server_do_the_same(
    own_database: TestDatabase,
) -> None:
    wanted = {SCALER: PASSWORD, "graticule_serve_external": PASSWORD}
    await asyncio.gather(*(set_passwords(own_database.url(), wanted) for _ in range(4)))


def test_a_password_that_is_none_is_refused_and_not_shown(
    own_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="GRATICULE_WORKER_PASSWORD has fewer") as refused:
        ensure_logins(own_database, monkeypatch, WORKER="short")
    assert "short" not in str(refused.value)
    monkeypatch.delenv("GRATICULE_WORKER_PASSWORD")
    with pytest.raises(ConfigurationError, match="No password is given"):
        ensure_logins(own_database, monkeypatch)
