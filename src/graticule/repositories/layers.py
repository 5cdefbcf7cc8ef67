"""Layer metadata, and its published projection."""

from typing import ClassVar

from graticule.core.ids import AssetId
from graticule.core.models import LayerCatalog, LayerMetadata
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries

QUERIES = load_queries("layers.sql")


class LayerMetadataRepository(Repository[LayerMetadata]):
    """Reads and writes the metadata that people edit."""

    model = LayerMetadata
    subject: ClassVar = "layer metadata"
    queries: ClassVar = QUERIES

    async def write(self, row: LayerMetadata) -> LayerMetadata:
        """Write a description anew, unless someone else has since it was read; the first one was at version 0."""
        return await (self.replace(row) if row.version else self.insert(row.model_copy(update={"version": 1})))


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
