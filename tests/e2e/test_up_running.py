"""`graticule up`: what a first start makes, what runs afterwards, and what it keeps to itself."""

import json
import re
from ipaddress import ip_address
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.conftest import KEPT, FirstStart, Place, on_both_installations
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.processes import listening_addresses, sees_workers

from graticule import __version__
from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.schema.pgstac import wanted_version

PROCESSES = ("gateway", "orchestrator", "worker")
each_process = pytest.mark.parametrize("process", PROCESSES)


def secrets_of(home: Path) -> dict[str, str]:
    passwords: dict[str, str] = json.loads((home / "credentials.json").read_text())
    keys = {f"{file.stem} key": file.read_text().strip() for file in home.glob("*.key")}
    return passwords | keys


def shown_in(text: str, home: Path) -> list[str]:
    """Name the secrets of a data folder that a text gives away."""
    return [name for name, secret in secrets_of(home).items() if secret in text]


@pytest.fixture
def used(installation: Up) -> Up:
    """Give the installation after its keys were used, rightly and wrongly."""
    status = "/api/v1/bootstrap/status"
    port = installation.ports["orchestrator"]
    assert installation.get(status, port, headers={"X-API-Key": installation.admin_key}).status_code == 200
    assert installation.get(status, port, headers={"X-API-Key": installation.admin_key[:-1]}).status_code == 401
    assert installation.get("/", params={"key": installation.admin_key}).status_code == 200
    eventually(lambda: "bootstrap/status" in installation.logs, "the request in the log")
    return installation


def test_the_first_start_makes_a_cluster_a_database_and_the_schema(first_start: FirstStart) -> None:
    assert first_start.exit_code == 0
    assert "Creating a PostgreSQL" in first_start.errors
    assert "Created the database graticule." in first_start.errors
    assert f"pgstac {wanted_version()} was installed." in first_start.errors
    assert re.search(r"Made \d+ objects of the schema in graticule\.", first_start.errors)
    assert (first_start.home / "postgres" / "data" / "PG_VERSION").is_file()


def test_the_addresses_and_places_are_printed(first_start: FirstStart) -> None:
    gateway = re.search(r"gateway +http://127\.0\.0\.1:(\d+)", first_start.output)
    orchestrator = re.search(r"orchestrator +http://127\.0\.0\.1:(\d+)", first_start.output)
    worker = re.search(r"workers +http://127\.0\.0\.1:(\d+)\n", first_start.output)
    assert gateway
    assert orchestrator
    assert worker
    assert int(orchestrator[1]) == int(gateway[1]) + 1
    assert int(worker[1]) == int(gateway[1]) + 2
    assert str(first_start.home / "logs") in first_start.output
    assert str(first_start.home / "admin.key") in first_start.output


def test_the_admin_key_is_private_and_not_printed_without_a_terminal(first_start: FirstStart) -> None:
    file = first_start.home / "admin.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(first_start.admin_key) >= 32
    assert first_start.admin_key not in first_start.output + first_start.errors


def test_the_passwords_are_private(first_start: FirstStart) -> None:
    assert (first_start.home / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert len(set(secrets_of(first_start.home).values())) == len(secrets_of(first_start.home))


def test_a_later_start_finds_the_data_the_key_and_makes_nothing(installation: Up, first_start: FirstStart) -> None:
    assert installation.query(f"SELECT count(*) FROM dagapp.platforms WHERE platform_id = '{KEPT}'") == [(1,)]
    assert installation.admin_key == first_start.admin_key
    assert "Creat" not in installation.errors
    assert "Made" not in installation.errors


def test_the_database_has_postgis_pgstac_and_every_table(installation: Up) -> None:
    assert installation.query("SELECT count(*) FROM pg_extension WHERE extname = 'postgis'") == [(1,)]
    assert installation.query("SELECT version FROM pgstac.migrations") == [(wanted_version(),)]
    tables = {name for (name,) in installation.query("SELECT tablename FROM pg_tables WHERE schemaname = 'dagapp'")}
    assert {model.table.name for model in TABLES} <= tables


@each_process
def test_each_process_is_alive_ready_and_tells_its_health(installation: Up, process: str) -> None:
    port = installation.ports[process]
    assert installation.get("/livez", port).json() == {"status": "alive"}
    assert installation.get("/readyz", port).json() == {"status": "ready"}
    answer = installation.get("/health", port)
    health = answer.json()
    assert answer.status_code == 200
    assert (health["status"], health["process"]) == ("healthy", process)
    checks = {"database": True, "schema": True, **({} if process == "gateway" else {"disks": True})}
    assert {name: check["ok"] for name, check in health["checks"].items()} == checks
    if process == "gateway":  # which strangers can reach
        assert set(health) == {"status", "process", "checks"}
        return
    assert health["version"] == __version__
    assert health["uptime_seconds"] > 0
    database = health["checks"]["database"]["detail"]
    assert database["role"] == f"graticule_{process}"
    assert database["latency_ms"] > 0
    assert "pool_size" in database["pool"]


@each_process
def test_each_process_serves_metrics_in_the_text_format(installation: Up, process: str) -> None:
    port = installation.ports[process]
    installation.get("/livez", port)
    answer = installation.get("/metrics", port)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert {name for name in samples if name[0] == "graticule_build_info"} == {
        ("graticule_build_info", process, __version__)
    }
    assert samples["graticule_http_requests_total", "GET", "/livez", "200"] >= 1
    assert samples["graticule_http_request_duration_seconds_count", "GET", "/livez"] >= 1


def test_the_front_door_answers_and_leads_on(installation: Up) -> None:
    answer = installation.get("/")
    assert answer.status_code == 200
    assert answer.json()["version"] == __version__
    assert all(installation.status(link) == 200 for link in answer.json()["links"].values())


@sees_workers
def test_every_port_is_open_to_this_machine_only(installation: Up) -> None:
    listening = {name: listening_addresses(child.pid) for name, child in installation.children.items()}
    assert {name: {port for _, port in found} for name, found in listening.items() if name != "postgres"} == {
        name: {port} for name, port in installation.ports.items()
    }
    assert listening["postgres"]
    assert all(ip_address(host).is_loopback for found in listening.values() for host, _ in found)


def test_no_secret_is_printed_or_logged(used: Up) -> None:
    assert used.logs
    assert shown_in(used.logs, used.home) == []
    assert shown_in(used.output + used.errors, used.home) == []


def test_no_secret_is_in_any_row(used: Up) -> None:
    ((rows,),) = used.query("SELECT schema_to_xml('dagapp', true, false, '')::text")
    assert KEPT in rows
    assert shown_in(rows, used.home) == []
    assert "whsec_" not in rows  # how the secrets for signing callbacks begin


def test_no_secret_is_in_any_metric(used: Up) -> None:
    metrics = "".join(used.get("/metrics", used.ports[process]).text for process in PROCESSES)
    assert "graticule_http_requests_total" in metrics
    assert shown_in(metrics, used.home) == []


def test_no_secret_is_in_any_command_line(used: Up) -> None:
    everyone = used.everyone()
    assert len(everyone) > 9  # itself, its four children and the database's processes
    assert shown_in("\n".join(" ".join(process.command) for process in everyone), used.home) == []


@sees_workers
def test_the_worker_knows_its_own_login_and_nothing_more(installation: Up) -> None:
    environment = installation.child("worker").environment
    assert shown_in(environment, installation.home) == [DatabaseRole.WORKER]


def test_the_gateway_knows_its_own_login_and_the_keys_of_callers(installation: Up) -> None:
    environment = installation.child("gateway").environment
    known = {DatabaseRole.GATEWAY, "admin key", "service key"}
    assert set(shown_in(environment, installation.home)) == known


def test_the_orchestrator_knows_the_keys_and_two_logins(installation: Up) -> None:
    environment = installation.child("orchestrator").environment
    known = {DatabaseRole.OWNER, DatabaseRole.ORCHESTRATOR, "admin key", "service key", "webhook key"}
    assert set(shown_in(environment, installation.home)) == known


@sees_workers
@on_both_installations
def test_the_key_of_the_broker_is_known_to_those_who_carry_tasks(up: Up, place: Place) -> None:
    key = "SharedAccessKey="
    knowing = {name for name, process in up.children.items() if key in process.environment}
    assert knowing == (set() if place is Place.LAPTOP else {"orchestrator", "worker"})
    assert key not in up.logs + up.output + up.errors


def test_the_database_server_knows_no_secret(installation: Up) -> None:
    servers = [process for process in installation.everyone() if process.command[0].startswith("postgres:")]
    assert servers
    assert shown_in("".join(server.environment for server in servers), installation.home) == []


def test_the_login_of_the_gateway_cannot_write(installation: Up) -> None:
    url = re.search(r"GRATICULE_DATABASE_URL=([^\0]*)", installation.child("gateway").environment)
    assert url
    with psycopg.connect(url[1], autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM dagapp.platforms").fetchone() is not None
        connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE dagapp.platforms SET display_name = 'x'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SET ROLE graticule_owner")


def test_the_logs_are_closed_to_others(installation: Up) -> None:
    assert (installation.home / "logs").stat().st_mode & 0o077 == 0
