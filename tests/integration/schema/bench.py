"""A bench on which small models are deployed and migrated, in a schema of the test's own."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, LiteralString
from uuid import uuid4

from psycopg import AsyncConnection
from pydantic import create_model
from tests.conftest import HOME_VARIABLE

from graticule.core.table import Row, Table
from graticule.schema.catalogue import Catalogue, read_catalogue
from graticule.schema.ddl import Kind
from graticule.schema.deploy import DatabaseSchema
from graticule.schema.report import Reported, SchemaReport, SchemaStatus

Spec = dict[str, Any]


def enum(name: str, *values: str) -> type[StrEnum]:
    """Make an enum; the same name with other values is the same enum of another release."""
    make: Any = StrEnum
    made: type[StrEnum] = make(name, {value.upper(): value for value in values})
    return made


@dataclass(frozen=True)
class Bench:
    """A connection of the administrator, and the schema in which the test's models live."""

    connection: AsyncConnection[Any]
    url: str
    schema: str

    def model(
        self, fields: Spec | None = None, *, name: str = "things", doc: str | None = "A thing.", **metadata: Any
    ) -> type[Row]:
        """Make a model with an `id` and a `name`, and what else the fields say."""
        given = {"id": (int, ...), "name": (str | None, None), **(fields or {})}
        made = create_model("Thing", __base__=Row, __doc__=doc, **given)
        made.table = Table(**{"name": name, "schema": self.schema, "primary_key": ("id",), **metadata})
        return made

    def commands(self, *models: type[Row]) -> DatabaseSchema:
        """Give the schema's commands for these models."""
        return DatabaseSchema(self.connection, self.url, models)

    async def deploy(self, *models: type[Row]) -> SchemaReport:
        """Deploy these models."""
        return await self.commands(*models).deploy()

    async def migrate(self, *models: type[Row]) -> SchemaReport:
        """Migrate to these models."""
        return await self.commands(*models).migrate()

    async def status(self, *models: type[Row]) -> SchemaStatus:
        """Compare with these models."""
        return await self.commands(*models).status()

    async def execute(self, statement: LiteralString, **values: Any) -> list[Any]:
        """Run a statement in which OURS stands for the schema."""
        cursor = await self.connection.execute(statement.replace("OURS", self.schema).encode(), values)
        return await cursor.fetchall() if cursor.description else []

    async def catalogue(self) -> Catalogue:
        """Read what the schema has, comments on empty things aside."""
        async with self.connection.transaction(force_rollback=True):
            return await read_catalogue(self.connection, {self.schema: "it"})

    def beside(self) -> "Bench":
        """Give a bench on the same database with another, empty schema."""
        return Bench(self.connection, self.url, new_schema())


def new_schema() -> str:
    """Give a name that no other test uses."""
    return f"evo_{uuid4().hex[:12]}"


def told(items: list[Reported]) -> dict[str, str]:
    """Give what was reported, by object."""
    return {item.object: item.detail for item in items}


def parts(catalogue: Catalogue, *kinds: Kind) -> dict[str, Any]:
    """Give the objects of some kinds by name."""
    return {key.name: value for key, value in catalogue.items() if key.kind in kinds}


@contextmanager
def alone_on_the_server() -> Iterator[None]:
    """Let no other test make pgstac at the same time: its roles are the server's, and two at once collide."""
    with (Path(os.environ[HOME_VARIABLE]) / "pgstac.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
