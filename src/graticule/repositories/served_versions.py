"""Versions in service, as one audience sees them."""

from typing import Any, ClassVar, Final

from psycopg import sql
from pydantic import BaseModel, ConfigDict

from graticule.core.audience import Audience
from graticule.core.models.platform import DataType, UrlMode
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import Queries, load_queries

SCHEMA: Final = "serving"
PREVIEWS: Final = "previews"


class VersionRow(BaseModel):
    """A version that is, or was, in service."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    asset_id: str
    version_ordinal: int
    data_type: DataType
    url_mode: UrlMode
    is_served: bool
    revision: int
    blob_path: str | None
    table_schema: str
    table_name: str | None
    output_hash: str | None
    bbox: tuple[float, float, float, float] | None
    title: str | None
    stac_item_id: str | None


class ServedVersions:
    """Reads versions through the view of an audience, or that of reviewers."""

    queries: ClassVar[Queries] = load_queries("served_versions.sql")

    def __init__(self, connection: Connection, view: str) -> None:
        self._connection = connection
        self._view = sql.Identifier(SCHEMA, view)

    @classmethod
    def of_audience(cls, connection: Connection, audience: Audience) -> "ServedVersions":
        """Read what an audience may see."""
        return cls(connection, f"{audience}_versions")

    @classmethod
    def for_review(cls, connection: Connection) -> "ServedVersions":
        """Read what reviewers look at."""
        return cls(connection, PREVIEWS)

    async def latest(self, asset_id: str) -> VersionRow | None:
        """Give the latest version of an asset that is in service; when none is, the latest that was."""
        return await self._one("served_latest", asset_id=asset_id)

    async def version(self, asset_id: str, ordinal: int) -> VersionRow | None:
        """Give one version, if it is or was in service."""
        return await self._one("served_version", asset_id=asset_id, version_ordinal=ordinal)

    async def check(self) -> None:
        """Raise if the view cannot be read."""
        await self._one("served_nothing")

    async def _one(self, query: str, **parameters: Any) -> VersionRow | None:
        statement = sql.SQL(self.queries[query]).format(view=self._view)
        with domain_errors("find what is served"):
            row = await (await self._connection.execute(statement, parameters)).fetchone()
        return None if row is None else VersionRow.model_validate(row)
