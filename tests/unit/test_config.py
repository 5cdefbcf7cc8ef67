"""Settings: their established names, their defaults, and the secrets that they keep."""

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError
from tests.examples import examples

from graticule.cli.config_notes import explain_settings
from graticule.config import RunMode, Settings, StorageKind, Transport
from graticule.core.errors import ConfigurationError
from graticule.core.log_format import LogFormat
from graticule.core.token_login import TOKEN_FOR_PASSWORD

# alias, GRATICULE_ name, field, two values
ALIASES = [
    ("RUN_MODE", "GRATICULE_RUN_MODE", "run_mode", "gateway", "up"),
    ("LOG_LEVEL", "GRATICULE_LOG_LEVEL", "log_level", "DEBUG", "ERROR"),
    ("LOG_FORMAT", "GRATICULE_LOG_FORMAT", "log_format", "json", "console"),
    ("POSTGRES_HOST", "GRATICULE_POSTGRES_HOST", "postgres_host", "db.example", "other.example"),
    ("POSTGRES_PORT", "GRATICULE_POSTGRES_PORT", "postgres_port", "6432", "7432"),
    ("POSTGRES_DB", "GRATICULE_POSTGRES_DB", "postgres_db", "maps", "atlas"),
    ("POSTGRES_USER", "GRATICULE_POSTGRES_USER", "postgres_user", "ann", "bob"),
    ("USE_MANAGED_IDENTITY", "GRATICULE_USE_MANAGED_IDENTITY", "use_managed_identity", "True", "False"),
    (
        "MANAGED_IDENTITY_CLIENT_ID",
        "GRATICULE_MANAGED_IDENTITY_CLIENT_ID",
        "managed_identity_client_id",
        "a533cb80",
        "b644dc91",
    ),
    (
        "DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID",
        "GRATICULE_DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID",
        "db_admin_managed_identity_client_id",
        "a533cb80",
        "b644dc91",
    ),
    ("SERVICE_BUS_FQDN", "GRATICULE_SERVICE_BUS_FQDN", "service_bus_fqdn", "a.example", "b.example"),
    ("SERVICE_BUS_NAMESPACE", "GRATICULE_SERVICE_BUS_NAMESPACE", "service_bus_namespace", "a", "b"),
    (
        "ORCHESTRATOR_POLL_INTERVAL",
        "GRATICULE_ORCHESTRATOR_POLL_INTERVAL",
        "orchestrator_poll_interval",
        "1.5",
        "2.5",
    ),
    ("HEARTBEAT_INTERVAL_SEC", "GRATICULE_HEARTBEAT_INTERVAL_SECONDS", "heartbeat_interval_seconds", "7.0", "8.0"),
    ("ORPHAN_THRESHOLD_SEC", "GRATICULE_ORPHAN_THRESHOLD_SECONDS", "orphan_threshold_seconds", "90.0", "91.0"),
    (
        "ORPHAN_SCAN_INTERVAL_SEC",
        "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS",
        "orphan_scan_interval_seconds",
        "3.0",
        "4.0",
    ),
    ("JOB_QUEUE_NAME", "GRATICULE_JOB_QUEUE_NAME", "job_queue_name", "jobs-a", "jobs-b"),
    ("WORKER_QUEUE", "GRATICULE_WORKER_QUEUE", "worker_queue", "heavy", "light"),
    ("WORKER_TYPE", "GRATICULE_WORKER_TYPE", "worker_type", "raster", "vector"),
    (
        "DAG_CALLBACK_URL",
        "GRATICULE_DAG_CALLBACK_URL",
        "dag_callback_url",
        "https://a.example/back",
        "https://b.example/back",
    ),
    (
        "AZURE_STORAGE_ACCOUNT_NAME",
        "GRATICULE_AZURE_STORAGE_ACCOUNT_NAME",
        "azure_storage_account_name",
        "account-a",
        "account-b",
    ),
]
SECRET_ALIASES = [
    ("POSTGRES_PASSWORD", "postgres_password"),
    ("SERVICE_BUS_CONNECTION_STRING", "service_bus_connection_string"),
]
DEFAULTS = {
    "run_mode": None,
    "log_level": "INFO",
    "log_format": LogFormat.CONSOLE,
    "development": False,
    "home": Path(".graticule"),
    "postgres_port": 5432,
    "postgres_db": "graticule",
    "use_managed_identity": False,
    "orchestrator_poll_interval": 5,
    "heartbeat_interval_seconds": 30,
    "orphan_threshold_seconds": 120,
    "orphan_scan_interval_seconds": 5,
    "job_queue_name": "orchestrator-jobs",
    "admin_key": None,
    "database_url": None,
    "postgres_host": None,
    "service_bus_connection_string": None,
}

# Parts of every secret below: none of them, and so no part of the secret between them, may be seen.
HEAD, TAIL = "Zq7hunter", "Xk9rabbit"
anything = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
odd = st.one_of(anything, st.text("@/?#[]%:;&=+'\"\\ ,", max_size=6))
secrets = odd.map(lambda middle: f"{HEAD}{middle}{TAIL}")


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Have these variables and no others."""
    with patch.dict(os.environ, variables, clear=True):
        yield


def told(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def everything_shown(found: Settings) -> str:
    """Give every way in which settings are shown, one after the other."""
    database = found.external_database
    ways = [repr(found), str(found), found.model_dump(mode="json"), found.model_dump_json(), found.shown()]
    return "\n".join(map(str, [*ways, found.model_dump(), repr(database), str(database), f"{database}"]))


def seen(error: ValidationError) -> str:
    """Give what a person gets to see of a refusal: in a traceback, or as our command line tells it."""
    return "\n".join(
        [str(error), repr(error), *traceback.format_exception(error), str(error.errors(include_input=False))]
    )


def shown_or_refused() -> str:
    """Read the settings, and give all that can be seen of them, or of the error that refuses them."""
    try:
        return everything_shown(Settings())
    except ValidationError as error:
        return seen(error)
    except ConfigurationError as error:
        return f"{error} {error!r} {error.detail}"


@pytest.mark.parametrize(("alias", "name", "field", "value", "other"), ALIASES)
def test_an_established_name_sets_its_field(alias: str, name: str, field: str, value: str, other: str) -> None:
    for given_value in (value, other):
        with environment(**{alias: given_value}):
            assert told(getattr(Settings(), field)) == given_value
        with environment(**{name: given_value}):
            assert told(getattr(Settings(), field)) == given_value


@pytest.mark.parametrize(("alias", "name", "field", "value", "other"), ALIASES)
def test_our_own_name_wins_over_the_established_one(alias: str, name: str, field: str, value: str, other: str) -> None:
    for ours, established in ((value, other), (other, value)):
        with environment(**{name: ours, alias: established}):
            assert told(getattr(Settings(), field)) == ours


@pytest.mark.parametrize(("alias", "field"), SECRET_ALIASES)
def test_an_established_name_sets_its_secret(alias: str, field: str) -> None:
    with environment(**{alias: "established"}):
        assert getattr(Settings(), field).get_secret_value() == "established"
    with environment(**{alias: "established", f"GRATICULE_{alias}": "ours"}):
        assert getattr(Settings(), field).get_secret_value() == "ours"


@pytest.mark.parametrize(("field", "value"), DEFAULTS.items())
def test_the_default_of(field: str, value: object) -> None:
    with environment():
        assert getattr(Settings(), field) == value


@pytest.mark.parametrize("name", ["run_mode", "Run_Mode", "graticule_run_mode"])
def test_the_case_of_a_name_does_not_matter(name: str) -> None:
    with environment(**{name: "orchestrator"}):
        assert Settings().run_mode is RunMode.ORCHESTRATOR


def test_a_variable_that_only_looks_like_ours_is_passed_over() -> None:
    with environment(HOME="/elsewhere", DATABASE_URL="postgresql://stranger/db", PORT="1", DEVELOPMENT="true"):
        found = Settings()
    assert found.home == Path(".graticule")
    assert found.database_url is None
    assert not found.development


@pytest.mark.parametrize("level", ["debug", "Info", "WARNING"])
def test_the_log_level_is_taken_in_any_case(level: str) -> None:
    with environment(LOG_LEVEL=level):
        assert Settings().log_level == level.upper()


def test_without_an_address_the_embedded_database_is_meant() -> None:
    with environment(POSTGRES_DB="maps", POSTGRES_USER="someone", POSTGRES_PASSWORD="x"):
        assert Settings().external_database is None


def test_an_address_wins_over_its_parts() -> None:
    with environment(GRATICULE_DATABASE_URL="postgresql://h1/db1", POSTGRES_HOST="h2", POSTGRES_DB="db2"):
        found = Settings().external_database
    assert found
    assert conninfo_to_dict(found.get_secret_value()) == {"host": "h1", "dbname": "db1"}


TOKEN = {"sslmode": "require", "password": TOKEN_FOR_PASSWORD}


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"POSTGRES_HOST": "h", "POSTGRES_USER": "gateway"}, {"host": "h", "port": "5432", "user": "gateway", **TOKEN}),
        ({"GRATICULE_DATABASE_URL": "postgresql://gateway@h"}, {"host": "h", "user": "gateway", **TOKEN}),
        (
            {"GRATICULE_DATABASE_URL": "host=h user=gateway sslmode=verify-full"},
            {"host": "h", "user": "gateway", **TOKEN, "sslmode": "verify-full"},
        ),
        ({"GRATICULE_DATABASE_URL": "postgresql://a:own@h"}, {"host": "h", "user": "a", "password": "own"}),
    ],
)
def test_with_an_identity_a_token_stands_for_the_password_that_is_not_given(
    variables: dict[str, str], found: dict[str, str]
) -> None:
    with environment(USE_MANAGED_IDENTITY="true", **variables):
        address = Settings().external_database
    assert address
    parts = address.parts()
    parts.pop("dbname", None)
    assert parts == found
    with environment(USE_MANAGED_IDENTITY="true", GRATICULE_DATABASE_URL=address.get_secret_value()):
        assert Settings().external_database == address  # as a process is told by the one that starts it
    assert TOKEN_FOR_PASSWORD not in f"{address} {address!r}"


def test_the_login_that_changes_the_schema_is_another_identity_or_the_same() -> None:
    with environment(USE_MANAGED_IDENTITY="true", GRATICULE_DATABASE_URL="postgresql://app@h/d"):
        assert Settings().owner_database == Settings().external_database
    with environment(USE_MANAGED_IDENTITY="true", GRATICULE_OWNER_DATABASE_URL="postgresql://owner@h/d"):
        owner = Settings().owner_database
    assert owner
    assert owner.parts() == {"host": "h", "dbname": "d", "user": "owner", **TOKEN}


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer"])
@pytest.mark.parametrize(
    ("where", "is_here"),
    [
        ("host=db.example", False),
        ("host=127.0.0.1.example", False),
        ("host=/run/postgresql,db.example", False),
        ("host=localhost hostaddr=10.0.0.5", False),
        ("hostaddr=::1", True),
        ("host=localhost,127.0.0.1", True),
        ("host=/run/postgresql", True),
        ("dbname=d", True),
    ],
)
def test_a_token_goes_over_a_network_by_tls_alone(where: str, is_here: bool, mode: str) -> None:
    with environment(USE_MANAGED_IDENTITY="true", GRATICULE_DATABASE_URL=f"{where} user=app sslmode={mode}"):
        if is_here:
            assert Settings().external_database
            return
        with pytest.raises(ConfigurationError, match=f"sslmode={mode}") as refused:
            _ = Settings().external_database
    assert "verify-full" in str(refused.value.hint)


def test_an_identity_without_the_name_of_its_role_is_refused() -> None:
    with environment(USE_MANAGED_IDENTITY="true", POSTGRES_HOST="h"), pytest.raises(ConfigurationError) as refused:
        _ = Settings().external_database
    assert "POSTGRES_USER" in str(refused.value.hint)


@pytest.mark.parametrize(("lease", "renew"), [("30", "30"), ("30", "31"), ("20", None), (None, "60")])
def test_leases_that_run_out_before_they_are_renewed_are_refused(lease: str | None, renew: str | None) -> None:
    named = {"GRATICULE_WORKER_LEASE_SECONDS": lease, "GRATICULE_WORKER_RENEW_SECONDS": renew}
    with (
        environment(**{name: value for name, value in named.items() if value}),
        pytest.raises(ValidationError) as refused,
    ):
        Settings()
    (problem,) = refused.value.errors()
    assert problem["loc"] == ("worker_renew_seconds",)
    assert "less than GRATICULE_WORKER_LEASE_SECONDS" in problem["msg"]
    assert "a third of that" in problem["msg"]


def test_leases_that_are_renewed_in_time_are_accepted() -> None:
    with environment(GRATICULE_WORKER_LEASE_SECONDS="0.3", GRATICULE_WORKER_RENEW_SECONDS="0.29"):
        assert Settings().worker_lease_seconds == 0.3


def test_a_lease_that_is_no_number_is_the_only_problem() -> None:
    with environment(GRATICULE_WORKER_LEASE_SECONDS="long"), pytest.raises(ValidationError) as refused:
        Settings()
    assert [problem["loc"] for problem in refused.value.errors()] == [("worker_lease_seconds",)]


@pytest.mark.parametrize(("beat", "threshold"), [("30", "30"), ("31", "30"), ("120", None), (None, "30")])
def test_an_orchestrator_that_would_count_as_gone_between_heartbeats_is_refused(
    beat: str | None, threshold: str | None
) -> None:
    named = {"GRATICULE_HEARTBEAT_INTERVAL_SECONDS": beat, "GRATICULE_ORPHAN_THRESHOLD_SECONDS": threshold}
    with (
        environment(**{name: value for name, value in named.items() if value}),
        pytest.raises(ValidationError) as refused,
    ):
        Settings()
    (problem,) = refused.value.errors()
    assert "more than GRATICULE_HEARTBEAT_INTERVAL_SECONDS" in problem["msg"]


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
hosts = st.sampled_from(["localhost", "db.example", "10.0.0.1", "/var/run/postgresql", "/tmp/a folder", "::1"])


@given(host=hosts, port=st.integers(1, 65535), database=words, user=words, password=words)
@settings(deadline=None, max_examples=examples(200))
def test_the_parts_make_an_address_whatever_characters_they_have(
    host: str, port: int, database: str, user: str, password: str
) -> None:
    with environment(
        POSTGRES_HOST=host,
        POSTGRES_PORT=str(port),
        POSTGRES_DB=database,
        POSTGRES_USER=user,
        POSTGRES_PASSWORD=password,
    ):
        found = Settings().external_database
    assert found
    parts = {"host": host, "port": str(port), "dbname": database, "user": user, "password": password}
    assert conninfo_to_dict(found.get_secret_value()) == parts


@pytest.mark.parametrize("name", ["GRATICULE_ADMIN_KEY", "POSTGRES_PASSWORD", "SERVICE_BUS_CONNECTION_STRING"])
@given(secret=secrets)
@settings(deadline=None, max_examples=30)
def test_a_secret_is_never_shown(name: str, secret: str) -> None:
    with environment(**{name: secret, "POSTGRES_HOST": "h"}):
        shown = shown_or_refused()
    assert HEAD not in shown
    assert TAIL not in shown


ADDRESSES: dict[str, Callable[[str], str]] = {
    "encoded": lambda secret: f"postgresql://u:{quote(secret, safe='')}@h:5432/db",
    "as it is": lambda secret: f"postgresql://u:{secret}@h:5432/db",
    "without a user": lambda secret: f"postgresql://:{quote(secret, safe='')}@h/db",
    "in the query": lambda secret: f"postgresql://u@h/db?password={quote(secret, safe='')}",
    "in the query, as it is": lambda secret: f"postgresql:///db?host=h&user=u&password={secret}",
    "in both places": lambda secret: f"postgresql://u:{quote(secret, safe='')}@h/db?password={quote(secret, safe='')}",
    "under an encoded name": lambda secret: f"postgresql://u@h/db?passwor%64={quote(secret, safe='')}",
    "of a key": lambda secret: f"postgresql://u@h/db?sslpassword={quote(secret, safe='')}",
    "in pairs": lambda secret: "host=h user=u password='{}'".format(secret.replace("\\", "\\\\").replace("'", "\\'")),
    "in pairs, as it is": lambda secret: f"host=h user=u password={secret}",
    "as the whole": lambda secret: secret,
    "of another scheme": lambda secret: f"postgres+asyncpg://u:{secret}@h/db",
}


@pytest.mark.parametrize("name", ["GRATICULE_DATABASE_URL", "GRATICULE_OWNER_DATABASE_URL"])
@pytest.mark.parametrize("form", ADDRESSES)
@given(secret=secrets)
@settings(deadline=None, max_examples=examples(60))
def test_the_password_of_an_address_is_never_shown(name: str, form: str, secret: str) -> None:
    with environment(**{name: ADDRESSES[form](secret)}):
        shown = shown_or_refused()
    assert HEAD not in shown
    assert TAIL not in shown


@pytest.mark.parametrize("url", [f"https://u:{HEAD}@h/back", f"https://h/back?code={HEAD}"])
def test_a_key_in_the_callback_address_is_never_shown(url: str) -> None:
    """Function apps are called with their key in the query."""
    with environment(DAG_CALLBACK_URL=url):
        assert HEAD not in shown_or_refused()


@pytest.mark.parametrize("name", ["GRATICULE_DATABASE_URL", "POSTGRES_HOST", "LOG_LEVEL", "GRATICULE_ADMIN_KEY"])
def test_an_empty_variable_counts_as_unset(name: str) -> None:
    """As container files leave them."""
    with environment(**{name: ""}):
        settings = Settings()
    assert settings == Settings()
    assert settings.external_database is None


def test_an_address_is_shown_with_where_it_leads() -> None:
    with environment(GRATICULE_DATABASE_URL="postgresql://ann:secret@db.example:6432/maps"):
        shown = str(Settings().shown()["database_url"])
    assert all(part in shown for part in ("ann", "db.example", "6432", "maps"))


# Text that is no secret and is shown as it is.
PLAIN = {"home", "pg_bin", "postgres_host", "postgres_db", "postgres_user", "job_queue_name", "worker_queue"} | {
    "worker_type",
    "service_bus_fqdn",
    "service_bus_namespace",
    "azure_storage_account_name",
    "storage_root",
    "silver_container",
    "external_container",
    "storage_allow_hosts",
    "storage_allow_roots",
    "template_environment",
    "workflows",
    "callback_allow",
    "oidc_issuer",
    "oidc_audience",
    "oidc_algorithms",
    "oidc_role_claim",
    "oidc_platform_claim",
    "oidc_name_claim",
    "oidc_client_id",
    "oidc_scopes",
    "oidc_label",
    "console_base_map_attribution",
    "serve_cors_origins",
    "adf_subscription_id",
    "default_container",
    "managed_identity_client_id",
    "db_admin_managed_identity_client_id",
    "adf_resource_group",
    "adf_factory_name",
    "adf_export_pipeline",
    "adf_reversal_pipeline",
}


@pytest.mark.parametrize("field", sorted(Settings.model_fields.keys() - PLAIN))
def test_a_refused_value_is_not_repeated(field: str) -> None:
    """Whatever was put into the wrong variable may have been a secret."""
    for name in {alias for alias, _, known, *_ in ALIASES if known == field} | {f"GRATICULE_{field.upper()}"}:
        with environment(**{name: HEAD}):
            assert HEAD not in shown_or_refused()


@pytest.mark.parametrize(
    "given",
    [
        "https://master.example/api/v1/callbacks/task-result",
        "https://master.example/api/v1/callbacks/task-result/",
        "https://master.example",
    ],
)
def test_the_callback_url_may_name_the_endpoint(given: str) -> None:
    with environment(DAG_CALLBACK_URL=given):
        assert Settings().shown()["dag_callback_url"] == "https://master.example/"


@pytest.mark.parametrize(
    ("variables", "transport", "note"),
    [
        ({}, Transport.POSTGRES, None),
        ({"SERVICE_BUS_FQDN": "n.example"}, Transport.SERVICEBUS, "because SERVICE_BUS_FQDN names"),
        ({"SERVICE_BUS_NAMESPACE": "n"}, Transport.SERVICEBUS, "because SERVICE_BUS_NAMESPACE names"),
        ({"SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://n/"}, Transport.SERVICEBUS, "SERVICE_BUS_CONNECTION_STRING"),
        ({"SERVICE_BUS_FQDN": "n.example", "GRATICULE_TRANSPORT": "postgres"}, Transport.POSTGRES, "has no effect"),
        ({"SERVICE_BUS_FQDN": "n.example", "GRATICULE_TRANSPORT": "servicebus"}, Transport.SERVICEBUS, None),
    ],
)
def test_a_namespace_of_service_bus_selects_the_transport(
    variables: dict[str, str], transport: Transport, note: str | None
) -> None:
    with environment(**variables):
        chosen = Settings()
    assert chosen.transport is transport
    assert (note or "") in "".join(explain_settings(chosen))
    assert bool(explain_settings(chosen)) is bool(note)


@pytest.mark.parametrize(
    ("variables", "storage", "note"),
    [
        ({}, StorageKind.LOCAL, None),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a"}, StorageKind.AZURE, "because AZURE_STORAGE_ACCOUNT_NAME names"),
        ({"GRATICULE_AZURE_STORAGE_ACCOUNTS": "silver=a"}, StorageKind.AZURE, "_STORAGE_ACCOUNTS names"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a", "GRATICULE_STORAGE": "local"}, StorageKind.LOCAL, "has no effect"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a", "GRATICULE_STORAGE": "azure"}, StorageKind.AZURE, None),
    ],
)
def test_an_account_of_azure_selects_the_storage(
    variables: dict[str, str], storage: StorageKind, note: str | None
) -> None:
    with environment(**variables):
        chosen = Settings()
    assert chosen.storage is storage
    assert (note or "") in "".join(explain_settings(chosen))
    assert bool(explain_settings(chosen)) is bool(note)


@pytest.mark.parametrize(
    ("variables", "for_all", "for_database"),
    [
        ({}, None, None),
        ({"AZURE_CLIENT_ID": "a"}, "a", "a"),
        ({"AZURE_CLIENT_ID": "a", "MANAGED_IDENTITY_CLIENT_ID": "m"}, "m", "m"),
        ({"DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID": "d"}, "d", "d"),
        ({"MANAGED_IDENTITY_CLIENT_ID": "m", "DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID": "d"}, "m", "d"),
    ],
)
def test_the_managed_identity_is_named_in_any_of_its_spellings(
    variables: dict[str, str], for_all: str | None, for_database: str | None
) -> None:
    with environment(**variables):
        chosen = Settings()
    assert (chosen.identity_client_id, chosen.database_client_id) == (for_all, for_database)
