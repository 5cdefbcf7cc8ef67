"""Statements made from a model: complete, quoted, and blind to what the database numbers."""

from enum import StrEnum
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from pydantic import BaseModel, create_model
from tests.integration.repositories import rows

from graticule.core.models import TABLES, GeospatialAsset, LayerMetadata, TaskResult
from graticule.core.models.fields import Identity, JsonObject
from graticule.core.table import Row, Table
from graticule.repositories import statements


class Style(BaseModel):
    """A document."""

    colour: str = "red"


class Kind(StrEnum):
    """A kind."""

    ONE = "one"


Odd: Any = create_model(
    "Odd",
    __base__=Row,
    __doc__="An odd thing.",
    number=(Identity, None),
    order=(str, "x"),
    style=(Style | None, None),
    styles=(list[Style], []),
    data=(JsonObject, {}),
    kind=(Kind, Kind.ONE),
)
Odd.table = Table(name="odd", schema="s", primary_key=("number",))


def test_what_the_database_numbers_is_not_written() -> None:
    assert "number" not in statements.written_columns(Odd)
    assert "result_id" not in statements.written_columns(TaskResult)
    assert '"number"' not in statements.insert(Odd).as_string().split("RETURNING")[0]


def test_names_are_quoted_so_that_a_column_may_be_called_order() -> None:
    assert statements.insert(Odd).as_string() == (
        'INSERT INTO "s"."odd" ("order", "style", "styles", "data", "kind")'
        " VALUES (%(order)s, %(style)s, %(styles)s, %(data)s, %(kind)s) RETURNING *"
    )
    assert statements.copy_in(Odd).as_string() == (
        'COPY "s"."odd" ("order", "style", "styles", "data", "kind") FROM STDIN'
    )


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model.__name__)
def test_a_row_is_selected_by_its_whole_key(model: type[Row]) -> None:
    where = statements.select_by_key(model).as_string().partition(" WHERE ")[2]
    assert where == " AND ".join(f'"{name}" = %({name})s' for name in model.table.primary_key)


@pytest.mark.parametrize("model", [GeospatialAsset, LayerMetadata], ids=lambda model: model.__name__)
def test_a_replacement_guards_the_version_and_raises_it_and_leaves_the_key(model: type[Row]) -> None:
    text = statements.replace_versioned(model).as_string()
    head, _, where = text.partition(" WHERE ")
    assert head.endswith(", version = version + 1")
    assert '"version" = %(version)s' in where
    assert '"version" =' not in head
    assert all(f'"{name}" =' not in head for name in model.table.primary_key)


def test_documents_are_wrapped_models_among_them_and_none_stays_none() -> None:
    made = statements.parameters(Odd(style=Style(), styles=[Style(colour="blue")], data={"a": [1]}))
    assert isinstance(made["style"], Jsonb)
    assert made["style"].obj == {"colour": "red"}
    assert made["styles"].obj == [{"colour": "blue"}]
    assert made["data"].obj == {"a": [1]}
    assert statements.parameters(Odd())["style"] is None


@pytest.mark.parametrize("row", rows.rich_rows(), ids=lambda row: type(row).__name__)
def test_the_parameters_are_the_written_columns_in_their_order(row: Row) -> None:
    assert tuple(statements.parameters(row)) == statements.written_columns(type(row))
