"""The files of a version that a reviewer wants to approve: access opens to what was made, and to nothing else."""

import asyncio
from typing import Final

from graticule.core.errors import Unavailable
from graticule.core.models import AssetVersion, GeospatialAsset
from graticule.handlers.outputs.integrity import RevisionFiles, find_fault
from graticule.handlers.outputs.staging import final_path
from graticule.repositories.catalogue import reading
from graticule.repositories.database import Database
from graticule.services.workflow_choice import blob_prefix_of
from graticule.storage.protocol import Storage

MAX_BYTES_HASHED: Final = 64 * 1024 * 1024  # of a file while a reviewer waits; the export reads all
CHECK_SECONDS: Final = 20.0


class ReviewedFiles:
    """Looks at the files of the newest revision of a version, in the storage and in the catalog."""

    def __init__(self, database: Database, storage: Storage, seconds: float = CHECK_SECONDS) -> None:
        self._database, self._storage, self._seconds = database, storage, seconds

    async def find_fault(self, asset: GeospatialAsset, version: AssetVersion) -> str | None:
        """Return why the files are not those that were made, or None; `Unavailable` when it takes too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._find_fault(asset, version)
        except TimeoutError as error:
            raise Unavailable(
                f"The files of version {version.version_ordinal} could not be checked within {self._seconds:g} s. "
                "Nothing was decided.",
                hint="Repeat the decision. If the files were moved or restored and are too large to be read in that "
                "time, have the version processed again.",
            ) from error

    async def _find_fault(self, asset: GeospatialAsset, version: AssetVersion) -> str | None:
        item = None
        if version.stac_collection_id is not None and version.stac_item_id is not None:
            name = (version.stac_collection_id, version.stac_item_id)
            async with reading(self._database) as catalogue:
                item = await catalogue.item(*name)
                is_intact = version.item_hash in {None, await catalogue.hash_item(*name)}
            if item is None:
                return f"its item {version.stac_item_id!r} is missing from the catalog"
            if not is_intact:
                return f"its item {version.stac_item_id!r} was changed in the catalog"
        if version.blob_path is None:
            return None
        prefix = final_path(self._storage, blob_prefix_of(asset, version), "")
        files = RevisionFiles(prefix, version.blob_path, item)
        return await find_fault(self._storage, files, max_bytes_hashed=MAX_BYTES_HASHED)
