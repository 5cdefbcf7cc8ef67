"""What every repository does: rows become models, the driver's errors the domain's, transitions are guarded."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from psycopg import sql

from graticule.core.errors import NotFound, StaleVersion
from graticule.core.table import Row
from graticule.repositories import statements
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries

M = TypeVar("M", bound=Row)
Parameters = Mapping[str, Any]


class Repository(Generic[M]):
    """Reads and writes one model on a connection whose transaction belongs to the caller."""

    model: type[M]
    subject: ClassVar[str]  # what a row is called in messages
    queries: ClassVar[Queries]

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def insert(self, row: M) -> M:
        """Add a row; `AlreadyExists` when its identity is taken."""
        found = await self._fetch_one(
            statements.rendered(statements.insert, self.model), statements.parameters(row), f"add the {self.subject}"
        )
        return statements.from_database(self.model, found or {})

    async def insert_many(self, rows: Sequence[M]) -> None:
        """Add many rows at once, by COPY."""
        with domain_errors(f"add {len(rows)} rows of {self.subject}"):
            async with (
                self._connection.cursor() as cursor,
                cursor.copy(statements.copy_in(self.model)) as copy,
            ):
                for row in rows:
                    await copy.write_row(tuple(statements.parameters(row).values()))

    async def find(self, **key: Any) -> M | None:
        """Give the row with this primary key, or None."""
        statement = statements.rendered(statements.select_by_key, self.model)
        found = await self._fetch_one(statement, key, f"read the {self.subject}")
        return None if found is None else statements.from_database(self.model, found)

    async def get(self, **key: Any) -> M:
        """Give the row with this primary key, or raise `NotFound`."""
        found = await self.find(**key)
        if found is None:
            raise NotFound(f"There is no {self.subject} {_told(key)}.")
        return found

    async def replace(self, row: M) -> M:
        """Write a changed row of a model that has a `version`, unless someone else changed it since it was read."""
        found = await self._fetch_one(
            statements.rendered(statements.replace_versioned, self.model),
            statements.parameters(row),
            f"change the {self.subject}",
        )
        if found is None:
            raise self._stale(await self.get(**self._key(row)))
        return statements.from_database(self.model, found)

    def _key(self, row: M) -> dict[str, Any]:
        return {name: getattr(row, name) for name in self.model.table.primary_key}

    def _stale(self, present: M) -> StaleVersion:
        return StaleVersion(
            f"The {self.subject} {_told(self._key(present))} was changed by someone else: it is at version "
            f"{getattr(present, 'version', '?')} now.",
            hint="Read it again and repeat the change.",
        )

    async def _one(self, query: str, parameters: Parameters) -> M | None:
        found = await self._fetch_one(sql.SQL(self.queries[query]), parameters, _action(query))
        return None if found is None else statements.from_database(self.model, found)

    async def _all(self, query: str, parameters: Parameters) -> list[M]:
        with domain_errors(_action(query)):
            cursor = await self._connection.execute(self.queries[query], parameters)
            return [statements.from_database(self.model, row) for row in await cursor.fetchall()]

    async def _execute(self, query: str, parameters: Parameters) -> int:
        """Run a statement and tell how many rows it moved."""
        with domain_errors(_action(query)):
            return (await self._connection.execute(self.queries[query], parameters)).rowcount

    async def _fetch_one(
        self, statement: sql.SQL | bytes, parameters: Parameters, action: str
    ) -> dict[str, Any] | None:
        with domain_errors(action):
            return await (await self._connection.execute(statement, parameters)).fetchone()


def _told(key: Parameters) -> str:
    return " ".join(str(value) for value in key.values())


def _action(query: str) -> str:
    return query.replace("_", " ")
