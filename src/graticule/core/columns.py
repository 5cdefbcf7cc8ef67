"""A model's field becomes a column: SQL type, nullability, default, checks, comment."""

import json
import math
import re
import types
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from graticule.core.table import Column, Row

SCALARS: dict[Any, str] = {
    str: "TEXT",
    int: "INTEGER",
    float: "DOUBLE PRECISION",
    bool: "BOOLEAN",
    bytes: "BYTEA",
    datetime: "TIMESTAMPTZ",
    date: "DATE",
    Decimal: "NUMERIC",
    UUID: "UUID",
}
COMPARISONS = {Ge: (">=", "ge"), Gt: (">", "gt"), Le: ("<=", "le"), Lt: ("<", "lt")}
JSON_TYPE = "JSONB"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What an annotation says: the SQL type, whether NULL is allowed, and the enum that it needs."""

    sql: str
    nullable: bool = False
    enum: type[StrEnum] | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column, complete."""

    name: str
    type: ColumnType
    default: str | None
    identity: bool
    checks: tuple[str, ...]
    comment: str | None

    @property
    def is_json(self) -> bool:
        """Tell whether the column holds a JSON document."""
        return self.type.sql == JSON_TYPE

    def sql(self) -> str:
        """Give the column as it stands in CREATE TABLE and ADD COLUMN."""
        parts = [self.name, self.type.sql]
        if self.identity:
            parts.append("GENERATED ALWAYS AS IDENTITY")
        if self.default is not None:
            parts.append(f"DEFAULT {self.default}")
        if not self.type.nullable:
            parts.append("NOT NULL")
        return " ".join(parts)


def enum_name(enum: type[Enum]) -> str:
    """Give the name of the PostgreSQL type of an enum: `JobStatus` is `job_status`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).lower()


def column_definitions(model: type[Row], schema: str) -> tuple[ColumnDefinition, ...]:
    """Give the columns of a model's table, in the order of its fields."""
    return tuple(_definition(name, field, schema) for name, field in model.model_fields.items())


def _definition(name: str, field: FieldInfo, schema: str) -> ColumnDefinition:
    metadata = _all_metadata(field)
    column = next((item for item in metadata if isinstance(item, Column)), Column())
    if column.type:
        nullable = _is_union(field.annotation) and type(None) in get_args(field.annotation)
        resolved = ColumnType(column.type, nullable=nullable)
    else:
        resolved = column_type(field.annotation, metadata, schema)
    if column.identity:
        resolved = replace(resolved, nullable=False)
    default = column.default or _default(field, resolved)
    return ColumnDefinition(name, resolved, default, column.identity, _checks(name, metadata), field.description)


def _all_metadata(field: FieldInfo) -> list[Any]:
    """Collect a field's own metadata and that of the annotations inside an optional type."""
    found = list(field.metadata)
    for part in get_args(field.annotation) if _is_union(field.annotation) else ():
        found.extend(_annotated_metadata(part))
    return found


def _annotated_metadata(annotation: Any) -> list[Any]:
    if get_origin(annotation) is not Annotated:
        return []
    _, *extras = get_args(annotation)
    return [item for extra in extras for item in (extra.metadata if isinstance(extra, FieldInfo) else [extra])]


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def column_type(annotation: Any, metadata: list[Any], schema: str) -> ColumnType:
    """Choose the SQL type of an annotation."""
    if annotation is JsonValue:
        return ColumnType(JSON_TYPE, nullable=True)
    if _is_union(annotation):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        if len(parts) == 1:
            return replace(column_type(parts[0], metadata, schema), nullable=True)
    if get_origin(annotation) is Annotated:
        return column_type(get_args(annotation)[0], metadata + _annotated_metadata(annotation), schema)
    if hasattr(annotation, "__supertype__"):  # a NewType
        return column_type(annotation.__supertype__, metadata, schema)
    return _plain_type(annotation, metadata, schema)


def _plain_type(annotation: Any, metadata: list[Any], schema: str) -> ColumnType:
    if get_origin(annotation) is list:
        return _array_type(get_args(annotation)[0], schema)
    if get_origin(annotation) is dict or _is_class(annotation, BaseModel):
        return ColumnType(JSON_TYPE)
    if _is_class(annotation, StrEnum):
        return ColumnType(f"{schema}.{enum_name(annotation)}", enum=annotation)
    if annotation is str and (limit := _max_length(metadata)):
        return ColumnType(f"VARCHAR({limit})")
    if annotation in SCALARS:
        return ColumnType(SCALARS[annotation])
    raise TypeError(f"No column type is known for {annotation!r}; add one, or say it with Column(type=…).")


def _array_type(item: Any, schema: str) -> ColumnType:
    inner = column_type(item, [], schema)
    if inner.sql == JSON_TYPE:  # a list of documents is one document
        return ColumnType(JSON_TYPE)
    return ColumnType(f"{inner.sql}[]", enum=inner.enum)


def _is_class(annotation: Any, parent: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, parent)


def _max_length(metadata: list[Any]) -> int | None:
    return next((item.max_length for item in metadata if isinstance(item, MaxLen)), None)


def _checks(name: str, metadata: list[Any]) -> tuple[str, ...]:
    """Turn numeric bounds of the field into conditions on the column."""
    bounds = []
    for item in metadata:
        if type(item) in COMPARISONS:
            operator, attribute = COMPARISONS[type(item)]
            bounds.append(f"{name} {operator} {getattr(item, attribute)}")
    return tuple(bounds)


def _default(field: FieldInfo, column: ColumnType) -> str | None:
    value = field.get_default(call_default_factory=True, validated_data={}) if not field.is_required() else None
    return None if value is None else literal(value, column.sql)


def literal(value: Any, sql_type: str) -> str:
    """Write a Python value as an SQL literal of the given type."""
    if value is None:
        return "NULL"
    if sql_type == JSON_TYPE:
        return f"{_quoted(json.dumps(value, sort_keys=True, ensure_ascii=False, default=_document))}::jsonb"
    if isinstance(value, bool | int | float):
        return _number(value)
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if isinstance(value, list):
        return f"{_quoted('{' + ','.join(map(_array_item, value)) + '}')}::{sql_type}"
    return f"{_quoted(value.value)}::{sql_type}" if isinstance(value, StrEnum) else _quoted(str(value))


def _number(value: bool | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"'{value}'::float8"
    return str(value).upper() if isinstance(value, bool) else str(value)


def _document(value: Any) -> Any:
    return value.model_dump(mode="json")


def _array_item(value: Any) -> str:
    if value is None:
        return "NULL"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
