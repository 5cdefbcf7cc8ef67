"""What the live database has, in a form that can be compared with what the models ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from graticule.repositories.queries import load_queries
from graticule.schema.ddl import Key, Kind

QUERIES = load_queries("catalogue.sql", package=__package__)


@dataclass(frozen=True, slots=True)
class ColumnState:
    """A column as PostgreSQL describes it."""

    type: str
    nullable: bool
    default: str | None
    identity: bool


Definition = str | ColumnState | tuple[str, ...]
Catalogue = Mapping[Key, Definition]


async def read_catalogue(connection: AsyncConnection[Any], schemas: Mapping[str, str]) -> Catalogue:
    """Read the objects of the given schemas; `schemas` maps each name to the one under which it is told."""
    await connection.execute("SET LOCAL search_path = pg_catalog")
    rows = {name: await _rows(connection, name, schemas) for name in QUERIES if name != "sizes"}
    found: dict[Key, Definition] = {}
    found |= {Key(Kind.SCHEMA, row["name"]): "" for row in rows["schemas"]}
    found |= {Key(Kind.ENUM, row["name"]): tuple(row["labels"]) for row in rows["enums"]}
    found |= _tables(rows["tables"])
    found |= _columns(rows["columns"])
    found |= {Key(Kind.CONSTRAINT, _dotted(row), row["table_name"]): row["definition"] for row in rows["constraints"]}
    found |= {Key(Kind.INDEX, row["name"], row["table_name"]): _index(row) for row in rows["indexes"]}
    found |= {
        Key(Kind.GRANT, f"{row['name']} {row['privilege']} {row['role']}", row["table_name"] or ""): ""
        for row in rows["grants"]
    }
    found |= _comments(rows)
    return found


async def _rows(connection: AsyncConnection[Any], query: str, schemas: Mapping[str, str]) -> list[DictRow]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[query], {"schemas": list(schemas)})
        return [{name: _told(value, schemas) for name, value in row.items()} for row in await cursor.fetchall()]


def _told(value: Any, schemas: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for real, name in schemas.items():
            value = value.replace(real, name)
    return value


def _dotted(row: DictRow) -> str:
    return f"{row['table_name']}.{row['name']}"


def _tables(rows: Sequence[DictRow]) -> dict[Key, Definition]:
    return {
        Key(Kind.PARTITION, row["name"]) if row["is_partition"] else Key(Kind.TABLE, row["name"]): (
            row["partition_key"] or ""
        )
        for row in rows
    }


def _columns(rows: Sequence[DictRow]) -> dict[Key, Definition]:
    return {
        Key(Kind.COLUMN, _dotted(row), row["table_name"]): ColumnState(
            row["type"], row["nullable"], row["default_expression"], row["identity"]
        )
        for row in rows
    }


def _index(row: DictRow) -> str:
    return str(row["definition"]) if row["valid"] else f"{row['definition']} -- INVALID"


def _comments(rows: Mapping[str, Sequence[DictRow]]) -> dict[Key, Definition]:
    named = [(row["name"], row["comment"]) for row in (*rows["tables"], *rows["indexes"])]
    named += [(_dotted(row), row["comment"]) for row in rows["columns"]]
    return {Key(Kind.COMMENT, name): comment for name, comment in named if comment}
