"""Models become DDL: every object of the schema, in the order in which it can be made."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cache, cached_property

from graticule.core.columns import ColumnDefinition, column_definitions, enum_name, literal
from graticule.core.table import DatabaseRole, ForeignKey, Index, Row, Table

MONTHS_AHEAD = 2
LONGEST_NAME = 63  # PostgreSQL cuts longer ones


class Kind(StrEnum):
    """The kinds of objects that a schema is made of, in the order in which they are made."""

    SCHEMA = "schema"
    ENUM = "enum"
    TABLE = "table"
    COLUMN = "column"
    CONSTRAINT = "constraint"
    PARTITION = "partition"
    INDEX = "index"
    COMMENT = "comment"
    GRANT = "grant"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What identifies an object of the schema."""

    kind: Kind
    name: str
    of: str = field(default="", compare=False)  # the table to which it belongs

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """An object, and the statement that makes it alone."""

    key: Key
    create: str
    within: Key | None = None  # the object whose own statement makes this one too


@dataclass(frozen=True)
class TableDdl:
    """Writes the DDL of one model's table, with its schema under the given name."""

    model: type[Row]
    schema: str

    @property
    def table(self) -> Table:
        """The table's metadata."""
        return self.model.table

    @property
    def name(self) -> str:
        """The qualified name."""
        return f"{self.schema}.{self.table.name}"

    @property
    def key(self) -> Key:
        """The key of the table itself."""
        return Key(Kind.TABLE, self.table.name)

    @cached_property
    def columns(self) -> tuple[ColumnDefinition, ...]:
        """The columns in order; each part of the DDL needs them, and every process writes all of it when it starts."""
        return column_definitions(self.model, self.schema)

    def create_table(self) -> SchemaObject:
        """CREATE TABLE with its columns, primary key, unique constraints and checks."""
        lines = [column.sql() for column in self.columns]
        lines += [f"CONSTRAINT {name} {rule}" for name, rule in self._own_constraints()]
        partitioning = f" PARTITION BY RANGE ({self.table.partitions.column})" if self.table.partitions else ""
        body = ",\n    ".join(lines)
        return SchemaObject(self.key, f"CREATE TABLE {self.name} (\n    {body}\n){partitioning}")

    def _own_constraints(self) -> Iterator[tuple[str, str]]:
        for name, rule in self._rules():
            yield name[:LONGEST_NAME], rule

    def _rules(self) -> Iterator[tuple[str, str]]:
        table = self.table
        yield f"{table.name}_pkey", f"PRIMARY KEY ({', '.join(table.primary_key)})"
        for columns in table.unique:
            yield f"{table.name}_{'_'.join(columns)}_key", f"UNIQUE ({', '.join(columns)})"
        for check in table.checks:
            yield f"{table.name}_{check.name}", f"CHECK ({check.expression})"
        for column in self.columns:
            if column.checks:
                yield f"{table.name}_{column.name}_range", f"CHECK ({' AND '.join(column.checks)})"

    def add_columns(self) -> Iterator[SchemaObject]:
        """ADD COLUMN for each column."""
        for column in self.columns:
            key = Key(Kind.COLUMN, f"{self.table.name}.{column.name}", self.table.name)
            yield SchemaObject(key, f"ALTER TABLE {self.name} ADD COLUMN {column.sql()}", within=self.key)

    def add_constraints(self) -> Iterator[SchemaObject]:
        """ADD CONSTRAINT for each constraint that stands in CREATE TABLE."""
        for name, rule in self._own_constraints():
            yield SchemaObject(self._constraint_key(name), self._add_constraint(name, rule), within=self.key)

    def add_foreign_keys(self) -> Iterator[SchemaObject]:
        """ADD CONSTRAINT for each foreign key: after all tables, for they may refer to each other."""
        for foreign in self.table.foreign_keys:
            name = f"{self.table.name}_{'_'.join(foreign.columns)}_fkey"[:LONGEST_NAME]
            yield SchemaObject(self._constraint_key(name), self._add_constraint(name, self._foreign_key(foreign)))

    def _constraint_key(self, name: str) -> Key:
        return Key(Kind.CONSTRAINT, f"{self.table.name}.{name}", self.table.name)

    def _add_constraint(self, name: str, rule: str) -> str:
        return f"ALTER TABLE {self.name} ADD CONSTRAINT {name} {rule}"

    def _foreign_key(self, foreign: ForeignKey) -> str:
        return (
            f"FOREIGN KEY ({', '.join(foreign.columns)}) REFERENCES {self.schema}.{foreign.references}"
            f" ({', '.join(foreign.referenced_columns)}) ON DELETE {foreign.on_delete}"
        )

    def create_partitions(self, today: date) -> Iterator[SchemaObject]:
        """CREATE TABLE … PARTITION OF for this month, the next ones, and all that fits in none."""
        if self.table.partitions is None:
            return
        yield self._partition("default", "DEFAULT")
        for ahead in range(MONTHS_AHEAD + 1):
            first, following = _month(today, ahead), _month(today, ahead + 1)
            yield self._partition(
                first.strftime("%Y_%m"), f"FOR VALUES FROM ('{first} 00:00Z') TO ('{following} 00:00Z')"
            )

    def _partition(self, suffix: str, bounds: str) -> SchemaObject:
        name = f"{self.table.name}_{suffix}"
        create = f"CREATE TABLE {self.schema}.{name} PARTITION OF {self.name} {bounds}"
        return SchemaObject(Key(Kind.PARTITION, name), create)

    def create_indexes(self) -> Iterator[SchemaObject]:
        """CREATE INDEX for each index."""
        for index in self.table.indexes:
            name = index_name(self.table.name, index)
            yield SchemaObject(Key(Kind.INDEX, name, self.table.name), self._create_index(name, index))

    def _create_index(self, name: str, index: Index) -> str:
        unique = "UNIQUE " if index.unique else ""
        include = f" INCLUDE ({', '.join(index.include)})" if index.include else ""
        where = f" WHERE {index.where}" if index.where else ""
        columns = ", ".join(index.columns)
        return f"CREATE {unique}INDEX {name} ON {self.name} USING {index.method} ({columns}){include}{where}"

    def comments(self) -> Iterator[SchemaObject]:
        """COMMENT ON for the table, and for what has something to say."""
        if text := _first_paragraph(self.model.__doc__):
            yield self._comment(self.table.name, f"TABLE {self.name}", text)
        for column in self.columns:
            if column.comment:
                yield self._comment(
                    f"{self.table.name}.{column.name}", f"COLUMN {self.name}.{column.name}", column.comment
                )
        for index in self.table.indexes:
            if index.comment:
                name = index_name(self.table.name, index)
                yield self._comment(name, f"INDEX {self.schema}.{name}", index.comment)

    def _comment(self, name: str, target: str, text: str) -> SchemaObject:
        return SchemaObject(Key(Kind.COMMENT, name, self.table.name), f"COMMENT ON {target} IS {literal(text, 'TEXT')}")

    def grants(self) -> Iterator[SchemaObject]:
        """GRANT each privilege of each role."""
        for role, privileges in self.table.grants.items():
            for privilege in sorted(privileges):
                key = Key(Kind.GRANT, f"{self.table.name} {privilege} {role}", self.table.name)
                yield SchemaObject(key, f"GRANT {privilege} ON {self.name} TO {role}")

    def seeds(self) -> Iterator[str]:
        """INSERT each seed row unless it is there; a row that was changed since is left as it is."""
        types = {column.name: column.type.sql for column in self.columns}
        for seed in self.table.seeds:
            values = ", ".join(literal(value, types[name]) for name, value in seed.items())
            # The values are literals of our own seeds, and the script must also run in psql.
            yield f"INSERT INTO {self.name} ({', '.join(seed)}) VALUES ({values}) ON CONFLICT DO NOTHING"  # noqa: S608


def index_name(table: str, index: Index) -> str:
    """Give an index its name: its own, or one made of the table and the leading words of its columns."""
    if index.name:
        return index.name
    columns = "_".join("_".join(re.findall(r"\w+", entry.split()[0])) for entry in index.columns)
    return f"{table}_{columns}_idx"[:LONGEST_NAME]


def schema_objects(
    models: Sequence[type[Row]], today: date, rename: Mapping[str, str] | None = None
) -> list[SchemaObject]:
    """Give every object of the models' schemas in the order in which they can be made."""
    names = {model.table.schema: model.table.schema for model in models} | dict(rename or {})
    tables = [TableDdl(model, names[model.table.schema]) for model in models]
    objects = [*_schemas(tables), *_enums(tables)]
    for table in tables:
        objects += [table.create_table(), *table.add_columns(), *table.add_constraints()]
    for table in tables:
        objects += [*table.create_partitions(today), *table.create_indexes(), *table.add_foreign_keys()]
    for table in tables:
        objects += [*table.comments(), *table.grants()]
    return objects


def _schemas(tables: Sequence[TableDdl]) -> Iterator[SchemaObject]:
    for table in {table.schema: table for table in tables}.values():
        real = table.table.schema
        yield SchemaObject(Key(Kind.SCHEMA, real), f"CREATE SCHEMA {table.schema}")
        for role in DatabaseRole:
            if any(each.table.grants.get(role) for each in tables if each.schema == table.schema):
                grant = f"GRANT USAGE ON SCHEMA {table.schema} TO {role}"
                yield SchemaObject(Key(Kind.GRANT, f"{real} USAGE {role}"), grant)


def _enums(tables: Sequence[TableDdl]) -> Iterator[SchemaObject]:
    seen = set()
    for table in tables:
        for column in table.columns:
            enum = column.type.enum
            if enum is not None and (table.schema, enum) not in seen:
                seen.add((table.schema, enum))
                labels = ", ".join(literal(member.value, "TEXT") for member in enum)
                name = enum_name(enum)
                yield SchemaObject(Key(Kind.ENUM, name), f"CREATE TYPE {table.schema}.{name} AS ENUM ({labels})")


def create_statements(objects: Iterable[SchemaObject]) -> list[str]:
    """Give the statements that make the objects where there is nothing yet."""
    return [item.create for item in objects if item.within is None]


def seed_statements(models: Sequence[type[Row]]) -> list[str]:
    """Give the statements that put the seed rows in."""
    return [seed for model in models if model.table.seeds for seed in TableDdl(model, model.table.schema).seeds()]


def fingerprint(models: Sequence[type[Row]]) -> str:
    """Give the hash that identifies this schema; partitions come and go and do not count."""
    return _fingerprint(tuple(models))


@cache
def _fingerprint(models: tuple[type[Row], ...]) -> str:
    objects = schema_objects(models, date(2000, 1, 1))
    text = "\n".join(item.create for item in objects if item.key.kind is not Kind.PARTITION)
    return hashlib.sha256("\n".join([text, *seed_statements(models)]).encode()).hexdigest()


def _month(day: date, ahead: int) -> date:
    years, month = divmod(day.month - 1 + ahead, 12)
    return date(day.year + years, month + 1, 1)


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().split("\n\n")[0].split())
