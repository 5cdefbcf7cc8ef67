"""Assets, versions and requests as people read them: lists by filters, newest first, and one thing in full."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import BaseModel

from graticule.core.asset_views import StaffAsset, WaitingVersion
from graticule.core.exchange import SupersedingRequest
from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import AssetRevision, AssetVersion, Event, GeospatialAsset, PlatformRequest
from graticule.core.models.engine import EventType
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views

PENDING_REVIEW: Final = ApprovalState.PENDING_REVIEW
HAS_FAILED: Final = {ApprovalState.PENDING_REVIEW: False, ApprovalState.FAILED: True}


@dataclass(frozen=True, slots=True)
class Area:
    """A box in degrees; one whose west is greater than its east lies across the antimeridian."""

    west: float
    south: float
    east: float
    north: float

    @property
    def parts(self) -> tuple["Area", "Area"]:
        """Give the two boxes on either side of the antimeridian; one that does not cross it is both."""
        if self.west <= self.east:
            return self, self
        return Area(self.west, self.south, 180, self.north), Area(-180, self.south, self.east, self.north)

    def __str__(self) -> str:
        return f"({self.west},{self.south}),({self.east},{self.north})"


@dataclass(frozen=True, slots=True)
class AssetFilter:
    """Which assets a list shows; what is None does not matter. One live version has all that is asked of versions."""

    platform_id: PlatformId | None = None
    refs: Mapping[str, str | int] | None = None
    data_type: DataType | None = None
    clearance_state: ClearanceState | None = None
    approval_state: ApprovalState | None = None
    processing_state: ProcessingState | None = None
    text: str | None = None
    bbox: Area | None = None
    with_deleted: bool = False

    @property
    def is_of_versions(self) -> bool:
        """Tell whether something is asked that only a version can have."""
        return any(asked is not None for asked in (self.approval_state, self.processing_state, self.bbox))

    def parameters(self) -> dict[str, Any]:
        """Give the values for the statements."""
        one, other = (None, None) if self.bbox is None else self.bbox.parts
        return {
            "platform_id": self.platform_id,
            "refs": None if self.refs is None else Jsonb(self.refs),
            "data_type": self.data_type,
            "clearance_state": self.clearance_state,
            # `failed` is derived: the database keeps `pending_review`.
            "approval_state": PENDING_REVIEW if self.approval_state is ApprovalState.FAILED else self.approval_state,
            "has_failed": HAS_FAILED.get(self.approval_state) if self.approval_state else None,
            "processing_state": self.processing_state,
            "box": one and str(one),
            "other_box": other and str(other),
            "west": one and one.west,
            "east": one and one.east,
            "of_versions": self.is_of_versions,
            "with_deleted": self.with_deleted,
        }


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which work orders a list shows; what is None does not matter."""

    platform_id: PlatformId | None = None
    asset_id: AssetId | None = None
    status: RequestStatus | None = None


class Publication(BaseModel):
    """The end of a job that made or removed copies for the public."""

    event_id: int
    job_id: JobId
    event_type: EventType
    revision: int | None
    at: datetime
    error: str | None = None  # why it failed, for operators


class RequestInFull(BaseModel):
    """A work order with the version and the asset that it is for, all from one moment."""

    request: PlatformRequest
    version: AssetVersion
    asset: GeospatialAsset
    superseded: AssetRevision | None  # its own revision, once a newer one has taken its place
    superseded_by: SupersedingRequest | None  # the request of the later revision in service, or else of the next one
    decision: Event | None  # the last one on this revision, or on one before it
    latest: AssetVersion | None  # the latest version in service
    publications: list[Publication]  # the newest first
    exporting_since: datetime | None


class AssetViews(Views):
    """Reads assets, versions and requests for people."""

    queries: ClassVar = load_queries("asset_views.sql")

    async def _rows(
        self, query: str, parameters: Mapping[str, Any], *, prepare: bool | None = None
    ) -> list[dict[str, Any]]:
        """Let each statement be planned for its values: a plan for any values suits no filter."""
        return await super()._rows(query, parameters, prepare=False)

    async def assets(
        self, wanted: AssetFilter, before: tuple[datetime, AssetId] | None = None, limit: int = 50
    ) -> list[StaffAsset]:
        """Give assets, newest first, after the one that `before` names."""
        created_at, asset_id = before or (None, None)
        parameters = {"before_created_at": created_at, "before_asset_id": asset_id, "limit": limit}
        parameters |= wanted.parameters()
        if wanted.text is None:
            query = "assets_by_versions" if wanted.is_of_versions else "assets_by_themselves"
            return await self._views(StaffAsset, query, parameters)
        words = await self._words(wanted.text)
        return [] if words is None else await self._views(StaffAsset, "assets_by_text", {**parameters, "words": words})

    async def _words(self, text: str) -> str | None:
        """Give the query for words of a text as people type it; None when there is nothing to look for."""
        *others, last = _storable(text).split() or [""]
        (row,) = await self._rows("words_sought", {"others": " ".join(others), "last": last})
        words: str | None = row["words"]
        return words

    async def asset(self, asset_id: AssetId) -> StaffAsset | None:
        """Give one asset with its newest live version."""
        return await self._view(StaffAsset, "asset_with_newest_version", {"asset_id": asset_id})

    async def versions(self, asset_id: AssetId, before: int | None = None, limit: int = 500) -> list[AssetVersion]:
        """Give the versions of an asset, newest first, also the deleted ones."""
        parameters = {"asset_id": asset_id, "before": before, "limit": limit}
        return await self._views(AssetVersion, "newest_versions_of_asset", parameters)

    async def versions_in_service(
        self, asset_id: AssetId, before: int | None = None, limit: int = 500
    ) -> list[AssetVersion]:
        """Give the versions of an asset that its addresses reach, newest first."""
        parameters = {"asset_id": asset_id, "before": before, "limit": limit}
        return await self._views(AssetVersion, "versions_in_service", parameters)

    async def waiting(
        self, after: tuple[datetime, AssetId, int] | None = None, limit: int = 50
    ) -> list[WaitingVersion]:
        """Give the versions that wait for a decision, the longest first, after the one that `after` names."""
        waiting_since, asset_id, ordinal = after or (None, None, None)
        parameters = {"after_at": waiting_since, "after_asset_id": asset_id, "after_ordinal": ordinal, "limit": limit}
        return await self._views(WaitingVersion, "versions_that_wait", parameters)

    async def version(self, asset_id: AssetId, ordinal: int) -> AssetVersion | None:
        """Give one version."""
        parameters = {"asset_id": asset_id, "version_ordinal": ordinal}
        return await self._view(AssetVersion, "version_of_asset", parameters)

    async def revisions(
        self,
        asset_id: AssetId,
        version_ordinal: int | None = None,
        before: tuple[int, int] | None = None,
        limit: int = 500,
    ) -> list[AssetRevision]:
        """Give superseded revisions, newest first."""
        ordinal, revision = before or (None, None)
        parameters = {"asset_id": asset_id, "version_ordinal": version_ordinal, "limit": limit}
        parameters |= {"before_ordinal": ordinal, "before_revision": revision}
        return await self._views(AssetRevision, "superseded_revisions", parameters)

    async def history(
        self, asset_id: AssetId, after: int = 0, limit: int = 100, types: Collection[EventType] | None = None
    ) -> list[Event]:
        """Give the events of an asset in order; of some types only, if any are named."""
        wanted = None if types is None else list(types)
        parameters = {"asset_id": asset_id, "after": after, "types": wanted, "limit": limit}
        return await self._views(Event, "history_of_asset", parameters)

    async def newest_request(self, asset_id: AssetId) -> UUID | None:
        """Give the id of the newest request for an asset."""
        return await self._request_id("newest_request_of_asset", {"asset_id": asset_id})

    async def request_of_job(self, job_id: JobId) -> UUID | None:
        """Give the id of the request that a job serves."""
        return await self._request_id("request_of_job", {"job_id": job_id})

    async def _request_id(self, query: str, parameters: Mapping[str, Any]) -> UUID | None:
        rows = await self._rows(query, parameters)
        return rows[0]["request_id"] if rows else None

    async def request_processed_by(self, job_id: JobId) -> PlatformRequest | None:
        """Return the work order that a job carried out; None for other jobs, and for attempts before the last."""
        return await self._view(PlatformRequest, "request_processed_by_job", {"job_id": job_id})

    async def request(self, request_id: UUID) -> PlatformRequest | None:
        """Give one work order."""
        return await self._view(PlatformRequest, "request_by_id", {"request_id": request_id})

    async def request_in_full(self, request_id: UUID) -> RequestInFull | None:
        """Give one work order with its version and asset."""
        return await self._view(RequestInFull, "request_with_version_and_asset", {"request_id": request_id})

    async def requests(
        self, wanted: RequestFilter, before: tuple[datetime, UUID] | None = None, limit: int = 50
    ) -> list[PlatformRequest]:
        """Give work orders, newest first, after the one that `before` names."""
        created_at, request_id = before or (None, None)
        parameters = {
            "platform_id": wanted.platform_id,
            "asset_id": wanted.asset_id,
            "status": wanted.status,
            "before_created_at": created_at,
            "before_request_id": request_id,
            "limit": limit,
        }
        return await self._views(PlatformRequest, "list_requests", parameters)


def _storable(text: str) -> str:
    """Give a text without what PostgreSQL cannot take: NUL, and halves of characters."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()
