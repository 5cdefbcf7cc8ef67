"""Layer metadata, and its published projection."""

from typing import ClassVar

from graticule.core.asset_views import LayerColumn
from graticule.core.ids import AssetId
from graticule.core.models import LayerCatalog, LayerMetadata
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES = load_queries("layers.sql")


class LayerMetadataRepository(Repository[LayerMetadata]):
    """Reads and writes the metadata that people edit, and reads what tables tell of themselves."""

    model = LayerMetadata
    subject: ClassVar = "layer metadata"
    queries: ClassVar = QUERIES

    async def write(self, row: LayerMetadata) -> LayerMetadata:
        """Write a description anew, unless someone else has since it was read; the first one was at version 0."""
        return await (self.replace(row) if row.version else self.insert(row.model_copy(update={"version": 1})))

    async def columns(self, table_name: str | None) -> list[LayerColumn] | None:
        """Tell the columns of a table of features; None when there is no such table."""
        if table_name is None:
            return None
        with domain_errors("columns of table"):
            cursor = await self._connection.execute(self.queries["columns_of_table"], {"table_name": table_name})
            return [LayerColumn.model_validate(row) for row in await cursor.fetchall()] or None


class LayerCatalogRepository(Repository[LayerCatalog]):
    """Reads and writes what the catalogue shows."""

    model = LayerCatalog
    subject: ClassVar = "catalogue entry"
    queries: ClassVar = QUERIES

    async def publish(self, entry: LayerCatalog) -> None:
        """Show this entry in place of the one before."""
        await self._execute("publish_layer", statements.parameters(entry))

    async def of_asset(self, asset_id: AssetId) -> list[LayerCatalog]:
        """Give what is shown of an asset."""
        return await self._all("layers_of_asset", {"asset_id": asset_id})

    async def withdraw(self, asset_id: AssetId, version_ordinal: int) -> bool:
        """Show the entry no longer; False when it was not shown."""
        parameters = {"asset_id": asset_id, "version_ordinal": version_ordinal}
        return await self._execute("withdraw_layer", parameters) == 1
