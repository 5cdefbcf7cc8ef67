"""How a model says what its table looks like: the vocabulary of table metadata.

A model that derives from `Row` and has a `table` is one table of the database. Columns come from
the fields (type, nullability, length, default, comment); what a field cannot say stands in `table`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

SCHEMA = "dagapp"


class DatabaseRole(StrEnum):
    """The database roles: each process connects as one of them and can do no more than it."""

    OWNER = "graticule_owner"
    ORCHESTRATOR = "graticule_orchestrator"
    WORKER = "graticule_worker"
    GATEWAY = "graticule_gateway"
    SERVE_INTERNAL = "graticule_serve_internal"
    SERVE_EXTERNAL = "graticule_serve_external"


@dataclass(frozen=True, slots=True)
class Column:
    """What a field's annotation cannot say of its column; given as `Annotated[T, Column(...)]`."""

    type: str | None = None  # an SQL type, when the annotation alone would choose another
    default: str | None = None  # an SQL expression, evaluated by the database
    identity: bool = False  # numbered by the database


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference to another table of the same schema."""

    columns: tuple[str, ...]
    references: str
    referenced_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule that every row must satisfy, whoever writes it."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index. An entry of `columns` is a column, `column DESC`, or an expression in parentheses."""

    columns: tuple[str, ...]
    unique: bool = False
    method: str = "btree"
    where: str | None = None
    include: tuple[str, ...] = ()
    name: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class MonthlyPartitions:
    """The table is partitioned by month of this column."""

    column: str


@dataclass(frozen=True, slots=True)
class Table:
    """The metadata of one table."""

    name: str
    primary_key: tuple[str, ...]
    schema: str = SCHEMA
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[Check, ...] = ()
    indexes: tuple[Index, ...] = ()
    partitions: MonthlyPartitions | None = None
    seeds: Sequence[Mapping[str, Any]] = ()
    # What each role may do; the gateway can be given nothing but SELECT (see DatabaseRole).
    grants: Mapping[DatabaseRole, frozenset[str]] = field(default_factory=dict)


class Row(BaseModel):
    """A row of a table as an immutable value. Its docstring is the table's comment."""

    # A column that a newer release added is passed over: old and new programs run side by side. A model is built when
    # its first row is read: processes import all of them, and most read few.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    table: ClassVar[Table]

    def stored(self, column: str) -> Any:
        """Return the value that the database keeps in a column."""
        return getattr(self, column)
