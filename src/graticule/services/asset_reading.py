"""Assets, versions and requests as people read them. Nothing is changed here.

What belongs to another platform than the caller's does not exist for that caller: it is told as what is not there.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from graticule.core.asset_views import PARTNER_EVENTS, ServedVersion, StaffAsset, WaitingVersion
from graticule.core.errors import InvalidInput, NotFound
from graticule.core.exchange import PlatformStatus
from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import AssetRevision, AssetVersion, Event, PlatformRequest
from graticule.core.permissions import Caller, Deed
from graticule.repositories.asset_views import AssetFilter, AssetViews, RequestFilter, RequestInFull
from graticule.repositories.database import Database
from graticule.repositories.job_views import JobViews
from graticule.services.job_reading import progress_of
from graticule.services.request_status import RequestStatusView
from graticule.services.reviewed_revisions import find_processed_request
from graticule.services.service_addresses import ServiceAddresses

LENGTH_OF_UUID: Final = 36
NOWHERE: Final = ServiceAddresses()

F = TypeVar("F", AssetFilter, RequestFilter)


@dataclass(frozen=True, slots=True)
class Target:
    """The asset that a change is asked for, and the version, if a request named one."""

    asset_id: AssetId
    version_ordinal: int | None = None


class AssetReader:
    """Reads assets for whoever calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def assets(
        self, wanted: AssetFilter, before: tuple[datetime, AssetId] | None = None, limit: int = 50, *, caller: Caller
    ) -> list[StaffAsset]:
        """Give assets that the caller sees, newest first, after the one that `before` names (created_at, asset_id)."""
        limited = _limited(wanted, caller)
        if limited is None:
            return []
        async with self._database.connection() as connection:
            return await AssetViews(connection).assets(limited, before, limit)

    async def asset(self, asset_id: AssetId, caller: Caller) -> StaffAsset:
        """Give one asset, also when it was deleted."""
        async with self._database.connection() as connection:
            return await _visible_asset(AssetViews(connection), asset_id, caller)

    async def versions(
        self, asset_id: AssetId, caller: Caller, before: int | None = None, limit: int = 500
    ) -> list[AssetVersion]:
        """Give the versions of an asset, newest first, the deleted ones too, below the ordinal `before`."""
        async with self._of_asset(asset_id, caller) as views:
            return await views.versions(asset_id, before, limit)

    async def in_service(
        self,
        asset_id: AssetId,
        caller: Caller,
        addresses: ServiceAddresses,
        before: int | None = None,
        limit: int = 500,
    ) -> list[ServedVersion]:
        """Give the versions of an asset that are in service and where, newest first, below the ordinal `before`."""
        async with self._database.connection() as connection:
            views = AssetViews(connection)
            asset = await _visible_asset(views, asset_id, caller)
            versions = await views.versions_in_service(asset_id, before, limit)
        return [
            ServedVersion(version_ordinal=each.version_ordinal, service_urls=addresses.of_version(asset, each))
            for each in versions
        ]

    async def waiting(
        self, after: tuple[datetime, AssetId, int] | None = None, limit: int = 50
    ) -> list[WaitingVersion]:
        """Give the versions of all partners that wait for a decision, the longest first: for staff."""
        async with self._database.connection() as connection:
            return await AssetViews(connection).waiting(after, limit)

    async def version(self, asset_id: AssetId, ordinal: int, caller: Caller) -> AssetVersion:
        """Give one version, also when it was deleted."""
        async with self._of_asset(asset_id, caller) as views:
            return await _found_version(views, asset_id, ordinal)

    async def revisions(
        self,
        asset_id: AssetId,
        caller: Caller,
        version_ordinal: int | None = None,
        before: tuple[int, int] | None = None,
        limit: int = 500,
    ) -> list[AssetRevision]:
        """Give superseded revisions of an asset or of one version, newest first, before (ordinal, revision)."""
        async with self._of_asset(asset_id, caller) as views:
            if version_ordinal is not None:
                await _found_version(views, asset_id, version_ordinal)
            return await views.revisions(asset_id, version_ordinal, before, limit)

    async def history(self, asset_id: AssetId, caller: Caller, after: int = 0, limit: int = 100) -> list[Event]:
        """Give what happened to an asset in order, after an event id; callers who are not staff get partner events."""
        async with self._of_asset(asset_id, caller) as views:
            return await views.history(asset_id, after, limit, None if caller.is_staff else PARTNER_EVENTS)

    async def status(self, key: str, caller: Caller, addresses: ServiceAddresses = NOWHERE) -> PlatformStatus:
        """Tell how a request stands: by its id, by an asset (its newest request), for operators also by a job.

        Operators are given an `OperatorStatus`.
        """
        async with self._database.connection() as connection:
            views = AssetViews(connection)
            request_id = await _request_meant(views, key, caller)
            found = None if request_id is None else await views.request_in_full(request_id)
            if found is None or not _sees_all(caller, found):
                raise NotFound(f"There is no request or asset {key}.")
            job_id = found.request.job_id or found.version.current_job_id
            counters = await JobViews(connection).counters(job_id) if job_id else []
        progress, of_asset = progress_of(counters), key == found.request.asset_id
        return RequestStatusView(found, progress, addresses, self._database.now(), of_asset=of_asset).document(caller)

    async def target(
        self, asset_id: AssetId | None, request_id: UUID | None, caller: Caller, *, job_id: JobId | None = None
    ) -> Target:
        """Find what a change is asked for, by asset or by request; if both are given, they must agree.

        The job that processed a version names the request that it carried out.
        """
        async with self._database.connection() as connection:
            views = AssetViews(connection)
            if job_id is not None:
                request_id = (await find_processed_request(views, job_id)).request_id
            if request_id is None:
                if asset_id is None:
                    raise InvalidInput("Neither an asset nor a request is named.", hint="Send asset_id or request_id.")
                await _visible_asset(views, asset_id, caller)
                return Target(asset_id)
            request = await _visible_request(views, request_id, caller)
        if asset_id not in {None, request.asset_id}:
            raise InvalidInput("The request is for another asset than the one named.", hint="Send one of them.")
        return Target(request.asset_id, request.version_ordinal)

    async def requests(
        self, caller: Caller, wanted: RequestFilter, before: tuple[datetime, UUID] | None = None, limit: int = 50
    ) -> list[PlatformRequest]:
        """Give work orders that the caller sees, newest first, after the one that `before` names."""
        limited = _limited(wanted, caller)
        if limited is None:
            return []
        async with self._database.connection() as connection:
            return await AssetViews(connection).requests(limited, before, limit)

    @asynccontextmanager
    async def _of_asset(self, asset_id: AssetId, caller: Caller) -> AsyncIterator[AssetViews]:
        """Give what reads, once it is sure that the caller sees the asset."""
        async with self._database.connection() as connection:
            views = AssetViews(connection)
            await _visible_asset(views, asset_id, caller)
            yield views


def _limited(wanted: F, caller: Caller) -> F | None:
    """Narrow a filter to what the caller sees; None when that is nothing."""
    if caller.is_staff:
        return wanted
    own = caller.platform_id
    if own is None or wanted.platform_id not in {None, own}:
        return None
    return replace(wanted, platform_id=PlatformId(own))


async def _visible_asset(views: AssetViews, asset_id: AssetId, caller: Caller) -> StaffAsset:
    asset = await views.asset(asset_id)
    if asset is None or not caller.sees(asset.platform_id):
        raise NotFound(f"There is no asset {asset_id}.")
    return asset


async def _visible_request(views: AssetViews, request_id: UUID, caller: Caller) -> PlatformRequest:
    request = await views.request(request_id)
    if request is None or not caller.sees(request.platform_id):
        raise NotFound(f"There is no request {request_id}.")
    return request


async def _found_version(views: AssetViews, asset_id: AssetId, ordinal: int) -> AssetVersion:
    version = await views.version(asset_id, ordinal)
    if version is None:
        raise NotFound(f"There is no version {ordinal} of the asset {asset_id}.")
    return version


def _sees_all(caller: Caller, found: RequestInFull) -> bool:
    return caller.sees(found.request.platform_id) and caller.sees(found.asset.platform_id)


async def _request_meant(views: AssetViews, key: str, caller: Caller) -> UUID | None:
    """Find the request that a key means; a job means something only to operators."""
    request_id = _as_uuid(key)
    if request_id is not None:
        return request_id
    newest = await views.newest_request(AssetId(key))
    if newest is None and caller.may(Deed.OPERATE):
        return await views.request_of_job(JobId(key))
    return newest


def _as_uuid(key: str) -> UUID | None:
    """Read a request's id; without its dashes it would look like an asset's."""
    try:
        return UUID(key) if len(key) == LENGTH_OF_UUID else None
    except ValueError:
        return None
