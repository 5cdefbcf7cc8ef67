"""Statements that every table has alike, made from its model: insert, read by key, replace."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from graticule.core.columns import ColumnDefinition, column_definitions
from graticule.core.table import Row

R = TypeVar("R", bound=Row)


@cache
def columns(model: type[Row]) -> tuple[ColumnDefinition, ...]:
    """Give the columns of a model's table."""
    return column_definitions(model, model.table.schema)


@cache
def written_columns(model: type[Row]) -> tuple[str, ...]:
    """Give the columns that a writer sets: all but those that the database numbers."""
    return tuple(column.name for column in columns(model) if not column.identity)


@cache
def insert(model: type[Row]) -> sql.Composed:
    """INSERT one row and give it back as the database has it."""
    return sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING *").format(
        _table(model),
        _names(written_columns(model)),
        sql.SQL(", ").join(map(sql.Placeholder, written_columns(model))),
    )


@cache
def copy_in(model: type[Row]) -> sql.Composed:
    """COPY many rows in."""
    return sql.SQL("COPY {} ({}) FROM STDIN").format(_table(model), _names(written_columns(model)))


@cache
def select_by_key(model: type[Row]) -> sql.Composed:
    """SELECT the row with the given primary key."""
    return sql.SQL("SELECT * FROM {} WHERE {}").format(_table(model), _matches(model.table.primary_key))


@cache
def replace_versioned(model: type[Row]) -> sql.Composed:
    """UPDATE a row that has a version, if nobody changed it since it was read, and raise the version."""
    changed = [name for name in written_columns(model) if name not in {*model.table.primary_key, "version"}]
    assignments = [sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in changed]
    return sql.SQL("UPDATE {} SET {}, version = version + 1 WHERE {} RETURNING *").format(
        _table(model), sql.SQL(", ").join(assignments), _matches((*model.table.primary_key, "version"))
    )


@cache
def rendered(statement: Callable[[type[Row]], sql.Composed], model: type[Row]) -> bytes:
    """Give a statement for a model as the server gets it, written out once and not whenever it runs."""
    return statement(model).as_bytes(None)


def parameters(row: Row) -> dict[str, Any]:
    """Give a row's values by column, ready for the driver."""
    values = {name: row.stored(name) for name in written_columns(type(row))}
    for column in columns(type(row)):
        if column.is_json and values.get(column.name) is not None:
            values[column.name] = Jsonb(_plain(values[column.name]))
    return values


def from_database(model: type[R], row: dict[str, Any]) -> R:
    """Give the model of a row."""
    for name in _enum_arrays(model):
        row[name] = [label for label in row[name].strip("{}").split(",") if label]
    return model.model_validate(row)


@cache
def _enum_arrays(model: type[Row]) -> tuple[str, ...]:
    """Give the columns that are arrays of our enums: the driver does not know these and hands over their text."""
    return tuple(column.name for column in columns(model) if column.type.enum and column.type.sql.endswith("[]"))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _table(model: type[Row]) -> sql.Identifier:
    return sql.Identifier(model.table.schema, model.table.name)


def _names(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _matches(names: Sequence[str]) -> sql.Composed:
    pairs = [sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in names]
    return sql.SQL(" AND ").join(pairs)
