"""Who may make a backup and restore it, what is refused, and what is left when it fails: nothing."""

import dataclasses
import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.conftest import TestDatabase, new_database
from typer.testing import CliRunner

from graticule.cli.backup import _programs
from graticule.cli.main import app
from graticule.config import Settings
from graticule.core.errors import Conflict, NotFound, Unavailable
from graticule.schema.archive import NO_TIMEOUT, ROLES, Programs, Settled, dump, restore
from graticule.services.bootstrap import BootstrapService

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"


class Backup(NamedTuple):
    """A dump, in which something is granted to a role that is gone."""

    file: Path
    role: str


@pytest.fixture(scope="module")
def programs() -> Programs:
    return _programs(Settings())


@pytest.fixture
def empty() -> Iterator[TestDatabase]:
    with new_database("template0") as created:
        yield created


@pytest.fixture
async def backup(own_database: TestDatabase, programs: Programs, tmp_path: Path) -> Backup:
    role, file = f"analyst_{uuid4().hex}", tmp_path / "graticule.dump"
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        named = sql.Identifier(role)
        connection.execute(sql.SQL("CREATE ROLE {0}; GRANT SELECT ON dagapp.dag_jobs TO {0}").format(named))
        await dump(own_database.url(), programs, file)
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(named))
    return Backup(file, role)


def schemas(database: TestDatabase) -> set[str]:
    with psycopg.connect(database.url()) as connection:
        return {name for (name,) in connection.execute(SCHEMAS)}


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_restore_that_fails_leaves_the_database_empty(
    backup: Backup, empty: TestDatabase, programs: Programs
) -> None:
    assert backup.file.stat().st_mode & 0o777 == 0o600  # it has all that partners sent
    with pytest.raises(Unavailable, match="could not be restored; nothing was changed") as refused:
        await restore(empty.url(), programs, backup.file)
    assert refused.value.hint is not None
    assert f'role "{backup.role}" does not exist' in refused.value.hint
    assert schemas(empty) == {"public"}


async def test_a_restore_that_fails_at_once_leaves_no_pipe_open(
    backup: Backup, empty: TestDatabase, programs: Programs
) -> None:
    deaf = dataclasses.replace(programs, psql=Path(shutil.which("false") or ""))
    with pytest.raises(Unavailable, match="could not be restored; nothing was changed"):
        await restore(empty.url(), deaf, backup.file)
    gc.collect()  # what is left open complains


async def test_a_login_that_is_no_superuser_restores_what_another_one_deployed_and_dumps_it(
    own_database: TestDatabase, empty: TestDatabase, programs: Programs, tmp_path: Path
) -> None:
    """As on a managed server, which has its extensions and an administrator of its own.

    The dump is of an older release, and pg_restore newer than the server.
    """
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        connection.execute("ALTER TABLE dagapp.dag_tasks DROP COLUMN traceparent")
    await dump(own_database.url(), programs, tmp_path / "graticule.dump")
    programs = with_newer_pg_restore(programs, tmp_path / "pg_restore")
    with psycopg.connect(empty.url(), autocommit=True) as connection:
        login = prepared_login(connection, empty.name)
        try:
            url = make_conninfo(empty.url(), user=login)
            assert await restore(url, programs, tmp_path / "graticule.dump") == Settled(jobs=0, tasks=0)
            assert (await BootstrapService(url, development=False).status()).current
            connection.execute("SELECT traceparent FROM dagapp.dag_tasks")
            await dump(url, programs, tmp_path / "again.dump")
        finally:
            connection.execute(sql.SQL("REASSIGN OWNED BY {0} TO CURRENT_USER").format(sql.Identifier(login)))
            connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(login)))


def with_newer_pg_restore(programs: Programs, script: Path) -> Programs:
    """Let pg_restore say to every server what only those of PostgreSQL 17 and newer know."""
    told = NO_TIMEOUT.decode().strip()
    script.write_text(f"#!/bin/sh\n{programs.pg_restore} \"$@\" | sed 's/^SET lock_timeout = 0;$/&\\n{told}/'\n")
    script.chmod(0o755)
    return dataclasses.replace(programs, pg_restore=script)


def prepared_login(connection: psycopg.Connection, database: str) -> str:
    """Make the administrator of an empty database; the roles are there, and it may act as them."""
    login = f"manager_{uuid4().hex}"
    connection.execute("CREATE EXTENSION postgis; CREATE EXTENSION btree_gist; CREATE EXTENSION unaccent")
    roles = sql.SQL(", ").join(map(sql.Identifier, ROLES))
    named = {"login": sql.Identifier(login), "database": sql.Identifier(database), "roles": roles}
    connection.execute(sql.SQL("CREATE ROLE {login} LOGIN CREATEROLE CREATEDB IN ROLE {roles}").format(**named))
    connection.execute(sql.SQL("ALTER DATABASE {database} OWNER TO {login}").format(**named))
    return login


async def test_half_a_backup_is_not_restored(backup: Backup, empty: TestDatabase, programs: Programs) -> None:
    whole = backup.file.read_bytes()
    half = backup.file.with_name("half.dump")
    half.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Unavailable, match="nothing was changed") as refused:
        await restore(empty.url(), programs, half)
    assert "pg_restore: error" in (refused.value.hint or "")
    assert schemas(empty) == {"public"}
    half.write_text("no dump at all")
    with pytest.raises(Unavailable, match="The backup cannot be read; nothing was changed"):
        await restore(empty.url(), programs, half)


async def test_a_database_that_has_data_is_not_overwritten(
    emptied_database: TestDatabase, programs: Programs, tmp_path: Path
) -> None:
    schemas = "dagapp, dagapp_compat, external, geo, pgstac, serving"
    with pytest.raises(Conflict, match=f"is not empty: it has the schemas {schemas}"):
        await restore(emptied_database.url(), programs, tmp_path / "any.dump")


async def test_a_backup_that_fails_leaves_no_file(empty: TestDatabase, programs: Programs, tmp_path: Path) -> None:
    away = empty.url().replace(empty.name, f"{empty.name}_not")
    with pytest.raises(Unavailable, match="pg_dump could not write the backup") as refused:
        await dump(away, programs, tmp_path / "x.dump")
    assert "does not exist" in (refused.value.hint or "")
    assert files(tmp_path) == []


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "x.dump"
    file.write_text("kept")
    assert isinstance(CliRunner().invoke(app, ["backup", str(file)]).exception, Conflict)
    assert file.read_text() == "kept"
    assert isinstance(CliRunner().invoke(app, ["restore", str(tmp_path / "none")]).exception, NotFound)


def test_without_the_programs_of_postgresql_it_is_said_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    refused = CliRunner().invoke(app, ["backup", "x.dump"], env={"GRATICULE_PG_BIN": str(tmp_path)}).exception
    assert str(refused).startswith("The program pg_dump of PostgreSQL is not installed here.")


def test_a_database_that_came_back_by_other_means_is_made_ready(emptied_database: TestDatabase) -> None:
    done = CliRunner().invoke(app, ["restore"], env={"GRATICULE_DATABASE_URL": emptied_database.url()})
    assert done.exit_code == 0
    assert "The database is ready. Jobs that go on when an orchestrator starts: 0." in done.stderr
