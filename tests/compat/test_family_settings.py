"""The environment blocks of the platform family's documents lead to the settings that they mean."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compat.family_documents import ADDED_FOR_WORKERS, environment
from tests.conftest import plain_logs
from tests.unit.cli.conftest import run

from graticule.cli.config_notes import explain_settings
from graticule.cli.processes import begin
from graticule.config import RunMode, Settings, Transport
from graticule.core.errors import ConfigurationError
from graticule.core.token_login import TOKEN_FOR_PASSWORD
from graticule.worker.ways import needs_no_database

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "expected", "notes"),
    [
        (
            "orchestrator",
            {
                "run_mode": "orchestrator",
                "log_format": "json",
                "use_managed_identity": True,
                "db_admin_managed_identity_client_id": "a533cb80-0000-4000-8000-000000000000",
                "postgres_host": "family.postgres.database.azure.com",
                "postgres_db": "geopgflex",
                "service_bus_fqdn": "family.servicebus.windows.net",
                "transport": "servicebus",
                "orchestrator_poll_interval": 5.0,
            },
            ["SERVICE_BUS_FQDN names a namespace"],
        ),
        (
            "worker",
            {
                "run_mode": "worker",
                "worker_type": "docker",
                "worker_queue": "container-tasks",
                "dag_callback_url": "https://family-master.azurewebsites.net/",
                "azure_storage_account_name": "familygeo",
                "storage": "azure",
                "transport": "postgres",
            },
            ["AZURE_STORAGE_ACCOUNT_NAME names an account", "the orchestrator too"],
        ),
        (
            "queues",
            {
                "service_bus_namespace": "family.servicebus.windows.net",
                "managed_identity_client_id": "b644dc91-0000-4000-8000-000000000000",
                "job_queue_name": "dag-jobs",
                "heartbeat_interval_seconds": 30.0,
                "orphan_threshold_seconds": 120.0,
                "orphan_scan_interval_seconds": 60.0,
                "transport": "servicebus",
            },
            ["SERVICE_BUS_NAMESPACE names a namespace"],
        ),
    ],
)
def test_an_environment_is_understood_as_it_stands(name: str, expected: dict[str, Any], notes: list[str]) -> None:
    result = run("config", variables=environment(name))
    assert result.code == 0, result.err
    shown = json.loads(result.out)
    assert {setting: shown[setting] for setting in expected} == expected
    told = " ".join(result.err.split())
    assert [note for note in notes if note not in told] == []


def settings_of(**variables: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return Settings()


def test_the_table_of_the_orchestrator_leads_to_its_database() -> None:
    """The login is the one that the deployment to Azure makes for the identity of this process."""
    address = settings_of(**environment("orchestrator")).external_database
    assert address is not None
    parts = address.parts()
    assert (parts["host"], parts["dbname"], parts["sslmode"]) == (
        *("family.postgres.database.azure.com", "geopgflex", "require"),
    )
    assert (parts["user"], parts["password"]) == ("graticule-orchestrator", TOKEN_FOR_PASSWORD)


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({"POSTGRES_USER": "family-admin"}, "family-admin"),
        ({"RUN_MODE": "gateway"}, "graticule-gateway"),
        ({"RUN_MODE": "worker"}, "graticule-worker"),
        ({"RUN_MODE": "serve"}, "graticule-serve-internal"),
        ({"RUN_MODE": "serve", "GRATICULE_SERVE_AUDIENCE": "external"}, "graticule-serve-external"),
    ],
)
def test_the_login_of_an_identity_is_named_or_that_of_the_process(changes: dict[str, str], user: str) -> None:
    settings = settings_of(**environment("orchestrator") | changes)
    address = settings.external_database
    assert address is not None
    assert address.parts()["user"] == user
    assert any(user in note for note in explain_settings(settings)) is ("POSTGRES_USER" not in changes)
    assert (
        user
        in (REPOSITORY / "deploy/kubernetes/components/azure/processes.yaml").read_text()
        + (REPOSITORY / "deploy/kubernetes/components/azure/serve-external.yaml").read_text()
        or "POSTGRES_USER" in changes
    )


@pytest.mark.parametrize("mode", ["", "up"])
def test_a_process_without_a_login_says_what_is_missing(mode: str) -> None:
    settings = settings_of(**environment("orchestrator") | {"RUN_MODE": mode})
    with pytest.raises(ConfigurationError, match="as whom to log in"):
        _ = settings.external_database
    assert any("POSTGRES_USER" in note for note in explain_settings(settings))


@pytest.fixture
def process_state() -> Iterator[None]:
    """Undo what the start of a process of ours changes in this one: how files are made, and how it logs."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)
    plain_logs()


@pytest.mark.usefixtures("process_state")
def test_an_identity_without_a_mode_logs_in_as_the_process_that_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (environment("orchestrator") | {"RUN_MODE": ""}).items():
        monkeypatch.setenv(name, value)
    address = begin(RunMode.GATEWAY).external_database
    assert address is not None
    assert address.parts()["user"] == "graticule-gateway"


def test_the_table_of_a_worker_needs_two_more_variables_and_says_so(tmp_path: Path) -> None:
    given = environment("worker") | {"GRATICULE_HOME": str(tmp_path)}
    without = run("worker", variables=given)
    assert without.code == 1
    assert [name for name in ADDED_FOR_WORKERS if name not in without.err] == []
    notes = explain_settings(settings_of(**given))
    assert "SERVICE_BUS_FQDN" in " ".join(notes)
    (broker, token) = ADDED_FOR_WORKERS.items()
    half = settings_of(**given, **dict([broker]))
    assert needs_no_database(half)
    assert "GRATICULE_WORKER_TOKEN" in " ".join(explain_settings(half))
    complete = settings_of(**given, **dict([broker, token]))
    assert needs_no_database(complete)
    informed = ("SERVICE_BUS_FQDN names a namespace", "AZURE_STORAGE_ACCOUNT_NAME names an account")
    assert [note for note in explain_settings(complete) if not any(each in note for each in informed)] == []


EMPTY = ("MANAGED_IDENTITY_CLIENT_ID", "SERVICE_BUS_CONNECTION_STRING")
FAMILY = {name for document in ("orchestrator", "worker", "queues") for name in environment(document)} | {*EMPTY}


@pytest.mark.parametrize("names", [[name] for name in sorted(FAMILY)] + [sorted(FAMILY)], ids=",".join)
def test_an_empty_variable_means_that_it_is_unset(names: list[str]) -> None:
    """Templates of deployments leave them so."""
    shown, unset = [run("config", variables=variables) for variables in (dict.fromkeys(names, ""), {})]
    assert shown == unset
    assert json.loads(shown.out)["transport"] == "postgres"


def test_an_identity_beside_an_empty_one_is_used_for_all() -> None:
    identity = "a533cb80-0000-4000-8000-000000000000"
    variables = {
        "USE_MANAGED_IDENTITY": "true",
        "DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID": identity,
        "SERVICE_BUS_NAMESPACE": "family",
        **dict.fromkeys(EMPTY, ""),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        settings = Settings()
    assert (settings.identity_client_id, settings.database_client_id) == (identity, identity)
    assert settings.service_bus_connection_string is None, "the namespace is reached with the identity"
    assert settings.transport is Transport.SERVICEBUS
