"""What the classes that read for people share: a row of a query becomes the model that the query was made for."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries

V = TypeVar("V", bound=BaseModel)


class Views:
    """Reads on a connection; nothing is ever written here."""

    queries: ClassVar[Queries]

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _rows(
        self, query: str, parameters: Mapping[str, Any], *, prepare: bool | None = None
    ) -> list[dict[str, Any]]:
        """Give the rows of a query; one that is not prepared is planned for its values each time."""
        with domain_errors(query.replace("_", " ")):
            cursor = await self._connection.execute(self.queries[query], parameters, prepare=prepare)
            return await cursor.fetchall()

    async def _views(
        self, model: type[V], query: str, parameters: Mapping[str, Any], *, prepare: bool | None = None
    ) -> list[V]:
        return [model.model_validate(row) for row in await self._rows(query, parameters, prepare=prepare)]

    async def _view(self, model: type[V], query: str, parameters: Mapping[str, Any]) -> V | None:
        found = await self._views(model, query, parameters)
        return found[0] if found else None
