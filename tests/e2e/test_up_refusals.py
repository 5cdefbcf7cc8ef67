"""`graticule up` where it cannot work: it says why and what to do, and leaves everything as it was."""

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.conftest import TestDatabase
from tests.e2e.conftest import StartUp
from tests.e2e.installation import FORKED, Program, Up
from tests.e2e.processes import SEES_WORKERS, end_all, free_ports, processes_of

from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.schema.pgstac import wanted_version

# The same command, with less patience, and with processes that never get ready.
IMPATIENT = """
import graticule.cli.installation as installation
from graticule.cli.main import main
installation.READY_WITHIN_SECONDS = 0.3
main()
"""


def assert_told_in_two_lines(errors: str) -> None:
    """The last two lines say what is wrong and how to mend it; there is no traceback."""
    assert "Traceback" not in errors
    problem, hint = errors.splitlines()[-2:]
    assert problem.startswith("✗ ")
    assert hint.startswith("  ")


@pytest.mark.parametrize(("offset", "process"), [(0, "gateway"), (1, "orchestrator"), (2, "worker")])
def test_a_taken_port_is_named_with_the_way_out(folder: Path, start_up: StartUp, offset: int, process: str) -> None:
    port = free_ports()
    with socket.create_server(("127.0.0.1", port + offset)):
        up = start_up(folder / "home", port=port)
        assert up.wait() == 1
    assert_told_in_two_lines(up.errors)
    assert f"Port {port + offset}" in up.errors
    assert process in up.errors
    assert "graticule up --port" in up.errors
    assert processes_of(up.home) == []
    assert not (up.home / "postgres").exists()


def test_a_port_taken_on_all_addresses_is_found_too(folder: Path, start_up: StartUp) -> None:
    port = free_ports()
    with socket.create_server(("0.0.0.0", port)):
        up = start_up(folder / "home", port=port)
        assert up.wait() == 1
    assert f"Port {port}" in up.errors


def test_the_proposed_port_can_be_used(folder: Path, start_up: StartUp) -> None:
    """Also next to the highest port, where a proposal of a higher one would be refused."""
    with socket.create_server(("127.0.0.1", 65534)):
        up = start_up(folder / "home", port=65534)
        assert up.wait() == 1
    proposed = int(up.errors.rpartition("--port ")[2].strip(" .\n"))
    assert 1 <= proposed <= 65534


def test_a_second_up_on_the_same_folder_is_refused_and_the_first_unharmed(installation: Up) -> None:
    before, logs = installation.children, sorted((installation.home / "logs").iterdir())
    second = Program(
        installation.home.parent,
        *(FORKED, "up", "--no-serve", "--port", str(free_ports()), "--home", str(installation.home)),
    )
    assert second.wait() == 1
    assert_told_in_two_lines(second.errors)
    assert str(installation.home) in second.errors
    assert f"(pid {installation.pid})" in second.errors
    assert installation.children == before
    assert sorted((installation.home / "logs").iterdir()) == logs
    assert installation.is_ready()


def test_processes_that_never_get_ready_are_told_without_a_traceback(home: Path) -> None:
    port = free_ports()
    up = Program(
        home.parent,
        *(sys.executable, "-c", IMPATIENT, "up", "--no-serve", "--workers", "0"),
        *("--port", str(port), "--home", str(home)),
        port=port,
    )
    try:
        assert up.wait() == 1
        assert f"http://127.0.0.1:{port}/readyz did not become ready" in up.errors
        assert str(home / "logs") in up.errors
        assert_told_in_two_lines(up.errors)
        assert processes_of(home) == []
    finally:
        up.close()
        end_all(home)


def test_a_home_that_is_a_file_is_refused(folder: Path, start_up: StartUp) -> None:
    (folder / "home").write_text("not a folder")
    up = start_up(folder / "home")
    assert up.wait() == 1
    assert_told_in_two_lines(up.errors)
    assert str(folder / "home") in up.errors


def test_an_existing_server_is_used_instead_of_a_cluster_of_its_own(
    folder: Path, start_up: StartUp, empty_databases: list[TestDatabase]
) -> None:
    database = empty_databases[0]
    up = start_up(folder / "home", GRATICULE_DATABASE_URL=database.url()).until_ready()
    password = conninfo_to_dict(database.url())["password"]
    assert up.is_ready()
    assert set(up.children) == {"gateway", "orchestrator", "worker"}
    assert not (up.home / "postgres").exists()
    assert not (up.home / "credentials.json").exists()
    assert database.name in up.output
    assert str(password) not in up.output + up.errors + up.logs
    assert up.end(signal.SIGINT) == 0
    assert processes_of(up.home) == []
    with psycopg.connect(database.url()) as connection:
        made = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'dagapp'").fetchall()
        assert {model.table.name for model in TABLES} <= {name for (name,) in made}
        assert connection.execute("SELECT version FROM pgstac.migrations").fetchall() == [(wanted_version(),)]


def test_an_existing_server_that_is_away_is_told_without_its_password(folder: Path, start_up: StartUp) -> None:
    url = f"postgresql://someone:hunter2@127.0.0.1:{free_ports()}/nowhere"
    up = start_up(folder / "home", GRATICULE_DATABASE_URL=url)
    assert up.wait() == 1
    assert_told_in_two_lines(up.errors)
    assert "hunter2" not in up.output + up.errors


@pytest.fixture
def service_login(database: TestDatabase) -> Iterator[str]:
    """Give the address of a login that may act as our processes, and is not the owner."""
    name = f"service_{database.name[-12:]}"
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'service' IN ROLE {}, {}, {}").format(
                *map(sql.Identifier, (name, DatabaseRole.ORCHESTRATOR, DatabaseRole.GATEWAY, DatabaseRole.WORKER))
            )
        )
        yield make_conninfo(database.url(), user=name, password="service")
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_no_process_inherits_the_secrets_of_others_and_an_admin_key_that_is_set_opens(
    folder: Path, start_up: StartUp, database: TestDatabase, service_login: str
) -> None:
    """With an existing server, too, a process gets the address that it needs, and no more."""
    secret = {
        "GRATICULE_ADMIN_KEY": "secret-admin-key",
        "GRATICULE_OIDC_CLIENT_SECRET": "secret-of-the-client",
        "POSTGRES_PASSWORD": "secret-password-1",
        "GRATICULE_POSTGRES_PASSWORD": "secret-password-2",
    }
    addresses = {"GRATICULE_DATABASE_URL": service_login, "GRATICULE_OWNER_DATABASE_URL": database.url()}
    up = start_up(folder / "home", **addresses, **secret).until_ready()
    owner = str(conninfo_to_dict(database.url())["password"])
    kept = {file.stem: file.read_text().strip() for file in up.home.glob("*.key")}
    of_gateway = {kept["service"], secret["GRATICULE_ADMIN_KEY"], secret["GRATICULE_OIDC_CLIENT_SECRET"]}
    for process, known in (("gateway", of_gateway), *([("worker", set[str]())] if SEES_WORKERS else [])):
        environment = up.child(process).environment
        assert "service" in environment
        assert {value for value in (owner, *kept.values(), *secret.values()) if value in environment} == known
    headers = {"X-API-Key": secret["GRATICULE_ADMIN_KEY"]}
    assert up.get("/api/v1/bootstrap/status", up.ports["orchestrator"], headers=headers).status_code == 200
