"""The models of all tables are sound: what their metadata names exists, and no role is given too much."""

import re
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError
from tests.integration.repositories.rows import NOW, client, rich_rows

import graticule.core.errors as domain
from graticule.core.columns import column_definitions
from graticule.core.errors import Conflict, GraticuleError, Refused, StaleVersion, TooManyRequests
from graticule.core.models import TABLES, ApiClient, Platform
from graticule.core.refusals import Refusal
from graticule.core.table import SCHEMA, DatabaseRole, Row
from graticule.repositories.job_views import JobListItem, OwnedJob
from graticule.schema.ddl import schema_objects
from graticule.services.job_reading import JobDetail, NodeDetail

every_model = pytest.mark.parametrize("model", TABLES, ids=[model.__name__ for model in TABLES])
BY_NAME = {model.table.name: model for model in TABLES}
DATA_PRIVILEGES = {"SELECT", "INSERT", "UPDATE", "DELETE"}


@every_model
def test_keys_indexes_and_seeds_name_columns_that_exist(model: type[Row]) -> None:
    table, columns = model.table, set(model.model_fields)
    named = {*table.primary_key, *(name for columns_ in table.unique for name in columns_)}
    named |= {name for key in table.foreign_keys for name in key.columns}
    named |= {entry.split()[0] for index in table.indexes for entry in index.columns if not entry.startswith("(")}
    named |= {name for index in table.indexes for name in index.include}
    named |= {name for seed in table.seeds for name in seed}
    named |= {table.partitions.column} if table.partitions else set()
    assert named <= columns


@pytest.mark.parametrize("model", [*TABLES, JobListItem, OwnedJob, JobDetail, NodeDetail])
def test_a_model_can_be_built(model: type[Row]) -> None:
    assert model.model_rebuild(force=True)


@every_model
def test_a_foreign_key_refers_to_the_key_of_a_table_that_exists(model: type[Row]) -> None:
    for key in model.table.foreign_keys:
        target = BY_NAME[key.references].table
        assert key.referenced_columns in {target.primary_key, *target.unique}
        assert len(key.columns) == len(key.referenced_columns)


@every_model
def test_a_table_has_a_comment_and_a_primary_key_without_nulls(model: type[Row]) -> None:
    assert (model.__doc__ or "").strip().endswith(".")
    nullable = {column.name for column in column_definitions(model, SCHEMA) if column.type.nullable}
    assert model.table.primary_key
    assert not nullable & set(model.table.primary_key)


@every_model
def test_the_gateway_may_read_and_nothing_else(model: type[Row]) -> None:
    assert model.table.grants[DatabaseRole.GATEWAY] == {"SELECT"}


@every_model
def test_no_role_is_granted_more_than_data_privileges_and_the_owner_needs_none(model: type[Row]) -> None:
    assert {privilege for granted in model.table.grants.values() for privilege in granted} <= DATA_PRIVILEGES
    assert DatabaseRole.OWNER not in model.table.grants


@every_model
def test_writers_may_read_what_they_write(model: type[Row]) -> None:
    for privileges in model.table.grants.values():
        assert not privileges or "SELECT" in privileges


def test_the_audit_trail_and_superseded_revisions_cannot_be_changed() -> None:
    for name in ("dag_job_events", "asset_revisions"):
        assert all("UPDATE" not in privileges for privileges in BY_NAME[name].table.grants.values())


def test_names_are_unique_and_short_enough_for_postgresql() -> None:
    keys = [item.key for item in schema_objects(TABLES, NOW.date())]
    assert [key for key, count in Counter(keys).items() if count > 1] == []
    names = [re.split(r"[. ]", key.name)[-1] for key in keys]
    assert [name for name in names if len(name) > 63] == []


def test_a_row_is_immutable() -> None:
    with pytest.raises(ValidationError):
        client().display_name = "other"  # type: ignore[misc]


def test_a_row_passes_over_columns_that_it_does_not_know() -> None:
    values: dict[str, Any] = {**client().model_dump(), "newer": 1}
    assert ApiClient.model_validate(values) == client()


def test_a_refused_value_is_not_echoed() -> None:
    with pytest.raises(ValidationError) as refused:
        Platform.model_validate({"platform_id": "S3CRET!", "required_refs": "S3CRET"})
    assert "S3CRET" not in str(refused.value)


def test_the_hash_of_a_key_is_not_shown() -> None:
    assert "0" * 64 not in repr(client())


@pytest.mark.parametrize("row", rich_rows(), ids=lambda row: type(row).__name__)
def test_every_row_survives_json(row: Row) -> None:
    assert type(row).model_validate_json(row.model_dump_json()) == row


def _errors() -> list[type[GraticuleError]]:
    """Give the errors that are made from a message alone."""
    named = vars(domain).values()
    kinds = [each for each in named if isinstance(each, type) and issubclass(each, GraticuleError)]
    return [kind for kind in kinds if kind not in {Refused, TooManyRequests}]


def test_every_error_has_a_stable_code_of_its_own() -> None:
    codes = [*(error.code for error in _errors()), TooManyRequests.code, *({*Refusal} - {StaleVersion.code})]
    assert len(set(codes)) == len(codes) > 10
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


def test_a_refusal_tells_its_name_and_how_things_stand() -> None:
    refused = Refused(Refusal.NOT_PROCESSED, "It is queued.", hint="Wait.", current={"version": 2})
    assert (refused.code, refused.current) == ("not_processed", {"version": 2})
    assert str(refused) == "It is queued. Wait."
    assert isinstance(refused, Conflict)


def test_who_asks_too_often_is_told_when_to_come_again() -> None:
    error = TooManyRequests("Too many.", retry_after_seconds=7)
    assert (str(error), error.retry_after_seconds) == ("Too many. Try again in 7 s.", 7)


@pytest.mark.parametrize("kind", _errors(), ids=lambda kind: kind.__name__)
def test_an_error_tells_the_message_and_the_hint_and_keeps_the_detail_to_itself(kind: type[GraticuleError]) -> None:
    error = kind("It failed.", hint="Mend it.", detail="SELECT secret")
    assert str(error) == "It failed. Mend it."
    assert str(kind("It failed.", detail="SELECT secret")) == "It failed."
    assert (error.message, error.hint, error.detail) == ("It failed.", "Mend it.", "SELECT secret")
    assert "secret" not in repr(error)
