"""A field's annotation decides its column: type, nullability, default, checks, comment."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, NewType, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, JsonValue, create_model

from graticule.core.columns import ColumnDefinition, column_definitions, enum_name
from graticule.core.models.fields import BigInt, CreatedAt, Identity, JsonObject, Priority, Sha256
from graticule.core.table import Column, Row

Label = NewType("Label", str)


class RoadClass(StrEnum):
    """A road's class."""

    LOCAL = "local"
    MAIN = "main's"


class Inner(BaseModel):
    """A document."""

    a: int = 0


def column(annotation: Any, default: Any = ...) -> ColumnDefinition:
    (found,) = column_definitions(create_model("Thing", __base__=Row, field=(annotation, default)), "s")
    return found


TYPES: list[tuple[Any, str]] = [
    (str, "TEXT"),
    (int, "INTEGER"),
    (float, "DOUBLE PRECISION"),
    (bool, "BOOLEAN"),
    (bytes, "BYTEA"),
    (datetime, "TIMESTAMPTZ"),
    (date, "DATE"),
    (Decimal, "NUMERIC"),
    (UUID, "UUID"),
    (Annotated[str, Field(max_length=64)], "VARCHAR(64)"),
    (Annotated[Label, Field(max_length=7)], "VARCHAR(7)"),
    (Label, "TEXT"),
    (Sha256, "VARCHAR(64)"),
    (BigInt, "BIGINT"),
    (Identity, "BIGINT"),
    (RoadClass, "s.road_class"),
    (list[str], "TEXT[]"),
    (list[int], "INTEGER[]"),
    (list[Annotated[str, Field(max_length=64)]], "VARCHAR(64)[]"),
    (list[RoadClass], "s.road_class[]"),
    (list[UUID], "UUID[]"),
    (dict[str, Any], "JSONB"),
    (JsonObject, "JSONB"),
    (JsonValue, "JSONB"),
    (Inner, "JSONB"),
    (list[JsonObject], "JSONB"),
    (list[Inner], "JSONB"),
    (Annotated[str, Column(type="CITEXT")], "CITEXT"),
]


@pytest.mark.parametrize(("annotation", "sql"), TYPES, ids=str)
def test_the_annotation_chooses_the_type(annotation: Any, sql: str) -> None:
    assert column(annotation).type.sql == sql


@pytest.mark.parametrize(("annotation", "sql"), [pair for pair in TYPES if pair[0] is not Identity], ids=str)
def test_an_optional_field_is_the_same_column_with_nulls(annotation: Any, sql: str) -> None:
    found = column(annotation | None, None)
    assert found.type.sql == sql
    assert found.type.nullable
    assert found.sql() == f"field {sql}"


def test_a_field_that_is_not_optional_allows_no_null() -> None:
    assert not column(str).type.nullable
    assert column(str).sql() == "field TEXT NOT NULL"
    assert column(Optional[str], None).type.nullable  # noqa: UP045 - the older spelling is a type of its own


def test_a_json_value_may_be_null_as_json_may_be() -> None:
    assert column(JsonValue, None).sql() == "field JSONB"


def test_a_number_by_the_database_is_never_null_although_a_new_row_has_none() -> None:
    assert column(Identity, None).sql() == "field BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL"


def test_an_enum_brings_its_type_also_inside_an_array_or_an_optional() -> None:
    assert column(RoadClass).type.enum is RoadClass
    assert column(list[RoadClass]).type.enum is RoadClass
    assert column(RoadClass | None, None).type.enum is RoadClass
    assert column(str).type.enum is None


@pytest.mark.parametrize(
    ("name", "expected"), [("JobStatus", "job_status"), ("State", "state"), ("AOIKind", "a_o_i_kind"), ("X", "x")]
)
def test_an_enum_is_named_in_snake_case(name: str, expected: str) -> None:
    make: Any = StrEnum
    assert enum_name(make(name, {"A": "a"})) == expected


@pytest.mark.parametrize(
    ("annotation", "default", "sql"),
    [
        (str, "it's", "DEFAULT 'it''s'"),
        (int, 0, "DEFAULT 0"),
        (int, -1, "DEFAULT -1"),
        (float, 0.5, "DEFAULT 0.5"),
        (bool, False, "DEFAULT FALSE"),
        (bool, True, "DEFAULT TRUE"),
        (RoadClass, RoadClass.MAIN, "DEFAULT 'main''s'::s.road_class"),
        (list[str], Field(default_factory=list), "DEFAULT '{}'::TEXT[]"),
        (JsonObject, Field(default_factory=dict), "DEFAULT '{}'::jsonb"),
        (list[JsonObject], Field(default_factory=list), "DEFAULT '[]'::jsonb"),
        (JsonObject, {"b": 1, "a": "'"}, 'DEFAULT \'{"a": "\'\'", "b": 1}\'::jsonb'),
        (CreatedAt, ..., "DEFAULT now()"),
        (Annotated[int, Column(default="random()")], 7, "DEFAULT random()"),
    ],
    ids=str,
)
def test_a_default_of_the_model_is_one_of_the_database(annotation: Any, default: Any, sql: str) -> None:
    assert f" {sql} NOT NULL" in column(annotation, default).sql()


def test_a_default_of_none_is_no_default() -> None:
    assert column(str | None, None).default is None
    assert column(str).default is None


@pytest.mark.parametrize("default", [5, 1.5, True], ids=str)
def test_a_json_columns_default_is_json_also_when_it_is_a_number_or_a_truth_value(default: Any) -> None:
    assert column(JsonValue, default).default == f"'{str(default).lower()}'::jsonb"


def test_a_documents_default_is_written_as_json() -> None:
    assert column(Inner, Inner()).default == "'{\"a\": 0}'::jsonb"


@pytest.mark.parametrize(
    ("annotation", "checks"),
    [
        (Annotated[int, Field(ge=0, le=10)], ("field >= 0", "field <= 10")),
        (Annotated[int, Field(gt=0, lt=10)], ("field > 0", "field < 10")),
        (Annotated[float, Field(ge=-0.5)], ("field >= -0.5",)),
        (Priority, ("field >= 0", "field <= 10")),
        (Priority | None, ("field >= 0", "field <= 10")),
        (int, ()),
        (Annotated[str, Field(max_length=3)], ()),
    ],
    ids=str,
)
def test_numeric_bounds_are_checks(annotation: Any, checks: tuple[str, ...]) -> None:
    assert column(annotation, None if annotation == Priority | None else ...).checks == checks


def test_a_description_is_the_comment() -> None:
    assert column(int, Field(description="How many.")).comment == "How many."
    assert column(int).comment is None


def test_columns_stand_in_the_order_of_the_fields() -> None:
    fields: dict[str, Any] = dict.fromkeys(("zebra", "apple", "mango"), (int, ...))
    made = column_definitions(create_model("Thing", __base__=Row, **fields), "s")
    assert [each.name for each in made] == ["zebra", "apple", "mango"]


@pytest.mark.parametrize("annotation", [set[str], complex, int | str, tuple[int, int], object], ids=str)
def test_a_type_that_no_column_has_is_refused_with_the_way_out(annotation: Any) -> None:
    model = create_model("Thing", __base__=Row, __config__=None, field=(annotation, ...))
    with pytest.raises(TypeError, match="No column type is known"):
        column_definitions(model, "s")


def test_the_way_out_is_open_a_type_said_with_column_needs_no_known_annotation() -> None:
    assert column(Annotated[set[str], Column(type="TEXT[]")]).type.sql == "TEXT[]"
    assert column(Annotated[set[str], Column(type="TEXT[]")] | None, None).sql() == "field TEXT[]"
