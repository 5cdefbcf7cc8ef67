"""Assets, their versions, and the revisions that were superseded."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from psycopg.types.json import Jsonb
from pydantic import JsonValue

from graticule.core.errors import Conflict
from graticule.core.ids import AssetId, PlatformId
from graticule.core.models import AssetRevision, AssetVersion, GeospatialAsset
from graticule.core.states import (
    APPROVAL,
    CLEARANCE,
    PROCESSING,
    ApprovalState,
    ClearanceState,
    ProcessingState,
)
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries

QUERIES = load_queries("assets.sql")


class AssetRepository(Repository[GeospatialAsset]):
    """Reads and writes assets."""

    model = GeospatialAsset
    subject: ClassVar = "asset"
    queries: ClassVar = QUERIES

    async def lock(self, asset_id: AssetId) -> None:
        """Let no one else change this asset until the transaction ends."""
        await self._execute("lock_asset", {"asset_id": asset_id})

    async def clear(
        self, asset_id: AssetId, new: ClearanceState, now: datetime, *, actor: str, version: int
    ) -> GeospatialAsset:
        """Move the clearance of an asset that is still as it was read."""
        values = {"now": now, "actor": actor, "version": version}
        key = {"asset_id": asset_id}
        return await self._transition("transition_clearance", CLEARANCE, new, key, values, column="clearance_state")

    def _explain_refusal(self, present: GeospatialAsset, values: Mapping[str, Any]) -> None:
        if present.version != values["version"]:
            raise self._stale(present)

    async def with_refs(
        self, refs: Mapping[str, JsonValue], platform_id: PlatformId | None = None, limit: int = 100
    ) -> list[GeospatialAsset]:
        """Give the assets whose refs contain these, newest first."""
        return await self._all("assets_with_refs", {"refs": Jsonb(refs), "platform_id": platform_id, "limit": limit})


class AssetVersionRepository(Repository[AssetVersion]):
    """Reads and writes versions."""

    model = AssetVersion
    subject: ClassVar = "version"
    queries: ClassVar = QUERIES

    async def of_asset(self, asset_id: AssetId) -> list[AssetVersion]:
        """Give all versions of an asset in order, the deleted ones too."""
        return await self._all("versions_of_asset", {"asset_id": asset_id})

    async def review(
        self,
        asset_id: AssetId,
        version_ordinal: int,
        new: ApprovalState,
        now: datetime,
        *,
        reviewer: str | None = None,
        rejection_reason: str | None = None,
    ) -> AssetVersion:
        """Move the approval of a version."""
        key = {"asset_id": asset_id, "version_ordinal": version_ordinal}
        values = {"reviewer": reviewer, "rejection_reason": rejection_reason, "now": now}
        return await self._transition("transition_approval", APPROVAL, new, key, values, column="approval_state")

    async def process(
        self,
        asset_id: AssetId,
        version_ordinal: int,
        new: ProcessingState,
        now: datetime,
        *,
        last_error: str | None = None,
    ) -> AssetVersion:
        """Move the processing of a version."""
        key = {"asset_id": asset_id, "version_ordinal": version_ordinal}
        values = {"last_error": last_error, "now": now}
        return await self._transition("transition_processing", PROCESSING, new, key, values, column="processing_state")

    def _explain_refusal(self, present: AssetVersion, values: Mapping[str, Any]) -> None:
        if present.deleted_at is not None:
            raise Conflict(f"The version {present.asset_id} {present.version_ordinal} was deleted.")


class AssetRevisionRepository(Repository[AssetRevision]):
    """Adds and reads superseded revisions."""

    model = AssetRevision
    subject: ClassVar = "revision"
    queries: ClassVar = QUERIES

    async def of_version(self, asset_id: AssetId, version_ordinal: int) -> list[AssetRevision]:
        """Give what a version was before, oldest first."""
        return await self._all("revisions_of_version", {"asset_id": asset_id, "version_ordinal": version_ordinal})
