"""A change of one asset: it is locked to the end of the transaction, checked, written, and told of, with who did it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, NoReturn

from graticule.core.errors import NotFound, Refused
from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId
from graticule.core.models import AssetVersion, Event, GeospatialAsset
from graticule.core.models.engine import EventType, JobPurpose
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.core.states import ProcessingState
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.platforms import PlatformRepository
from graticule.services.review_effects import Standing

UNDER_WAY = frozenset({ProcessingState.QUEUED, ProcessingState.PROCESSING})
AFTER_FAILURE: Final = (
    "Have a corrected file submitted with the same label and overwrite=true, or retry the version as it is:"
    " POST /api/platform/retry, or `graticule asset retry` on the command line."
)


class AssetUnderChange:
    """An asset with all its versions, in the hands of one caller until the transaction ends."""

    def __init__(
        self,
        connection: Connection,
        asset: GeospatialAsset,
        versions: Sequence[AssetVersion],
        caller: Caller,
        *,
        is_new: bool = False,
        dry_run: bool = False,
        four_eyes: bool = False,
    ) -> None:
        self.dry_run = dry_run  # nothing of it is kept
        self.four_eyes = four_eyes  # two people for each decision that opens access: see four_eyes.py
        self.is_new = is_new  # made by this transaction: nobody has seen it, so nothing of it has changed
        self.connection = connection
        self.asset = asset
        self.versions = {version.version_ordinal: version for version in versions}
        self.caller = caller
        self.before = self.standing()

    def standing(self) -> Standing:
        """Return how the asset stands now."""
        return Standing.of(self.asset, self.versions, four_eyes=self.four_eyes)

    @property
    def live(self) -> list[AssetVersion]:
        """Give the versions that were not deleted, the oldest first."""
        return [version for version in self.versions.values() if version.deleted_at is None]

    @property
    def in_service(self) -> list[AssetVersion]:
        """Give the versions of which a revision is approved, the oldest first."""
        return [version for version in self.live if version.approved_revision is not None]

    def version(self, ordinal: int) -> AssetVersion:
        """Give a version that was not deleted, or refuse."""
        found = self.versions.get(ordinal)
        if found is None:
            hint = "The versions of an asset are listed below its address, at /versions."
            raise NotFound(f"The asset {self.asset.asset_id} has no version {ordinal}.", hint=hint)
        if found.deleted_at is not None:
            hint = "Choose another version, or have its data submitted again: it gets a new ordinal."
            self.refuse(Refusal.VERSION_DELETED, f"Version {ordinal} was deleted.", hint)
        return found

    def chosen(self, ordinal: int | None, *wanted: Sequence[AssetVersion]) -> AssetVersion:
        """Give the version that was named, or else the one that is meant."""
        return self.newest(*wanted, self.live) if ordinal is None else self.version(ordinal)

    def newest(self, *wanted: Sequence[AssetVersion]) -> AssetVersion:
        """Give the newest of the first of these lists that is not empty: what a caller means who names no version."""
        for versions in wanted:
            if versions:
                return versions[-1]
        raise NotFound(f"The asset {self.asset.asset_id} has no version for this.", hint="Name one: version_ordinal.")

    def refuse(self, reason: Refusal, message: str, hint: str | None = None) -> NoReturn:
        """Refuse the change, and tell how things stand."""
        raise Refused(reason, message, hint=hint, current=standing(self.asset, self.live))

    def require_live(self) -> None:
        """Refuse what an unpublished asset does not allow."""
        if self.asset.deleted_at is not None:
            hint = "Submit new data to it: that revives it."
            self.refuse(Refusal.ASSET_DELETED, f"The asset {self.asset.asset_id} was unpublished.", hint)

    def written(self, version: AssetVersion | None) -> AssetVersion:
        """Note a version as it was written; None means that the engine has moved it since it was read."""
        if version is None:
            self.refuse(Refusal.STALE_VERSION, "The version has moved on meanwhile.", "Read it again and repeat.")
        self.versions[version.version_ordinal] = version
        return version

    async def read_again(self, version: AssetVersion) -> None:
        """Read a version that a new job was counted for."""
        key = {"asset_id": version.asset_id, "version_ordinal": version.version_ordinal}
        self.written(await AssetVersionRepository(self.connection).get(**key))

    async def change_asset(self, now: datetime, **changes: Any) -> None:
        """Write the asset; its `version` is raised by every change of it or of one of its versions."""
        changed = self.asset.model_copy(update={**changes, "updated_at": now})
        self.asset = await AssetRepository(self.connection).replace(changed)

    async def cancel_jobs(
        self, now: datetime, version_ordinal: int | None = None, purposes: Sequence[JobPurpose] | None = None
    ) -> None:
        """Ask for the end of jobs under way."""
        active = await AssetRepository(self.connection).active_jobs(self.asset.asset_id, version_ordinal, purposes)
        for job_id in active:
            await OwnershipRepository(self.connection).request_cancel(job_id, self.caller.name, now)

    async def has_jobs(self, version_ordinal: int, purposes: Sequence[JobPurpose]) -> bool:
        """Tell whether a job of one of these purposes is under way."""
        return bool(await AssetRepository(self.connection).active_jobs(self.asset.asset_id, version_ordinal, purposes))

    def other_reviewer(self, named: str | None) -> str | None:
        """Return the reviewer whom a body names, for the history, if that is another name than the caller's."""
        return None if named == self.caller.name else named

    async def tell(self, event_type: EventType, now: datetime, version_ordinal: int | None = None, **data: Any) -> None:
        """Leave the event of the change, and tell those who remember the asset."""
        event = {
            "event_type": event_type,
            "asset_id": self.asset.asset_id,
            "version_ordinal": version_ordinal,
            "actor": self.caller.name,
            "data": {name: value for name, value in data.items() if value is not None},
            "created_at": now,
        }
        await EventRepository(self.connection).insert_of_change(Event.model_validate(event))


@asynccontextmanager
async def changing(
    database: Database,
    asset_id: AssetId,
    caller: Caller,
    expected_version: int | None = None,
    commit: Commit = Commit.CHANGE_ASSET,
    *,
    dry_run: bool = False,
) -> AsyncIterator[AssetUnderChange]:
    """Lock an asset that the caller may see; refuse when someone else changed it since the caller, or we, saw it."""
    async with database.transaction(commit, dry_run=dry_run) as connection:
        yield await _locked(connection, asset_id, caller, expected_version, dry_run=dry_run)


async def _locked(
    connection: Connection, asset_id: AssetId, caller: Caller, expected_version: int | None, *, dry_run: bool
) -> AssetUnderChange:
    assets = AssetRepository(connection)
    seen = await assets.find(asset_id=asset_id)
    if seen is None or not caller.sees(seen.platform_id):
        raise no_such_asset(asset_id)
    await assets.lock(asset_id)
    change = await loaded(connection, asset_id, caller, dry_run=dry_run)
    if change.asset.version != (expected_version or seen.version):
        change.refuse(
            Refusal.STALE_VERSION,
            f"The asset was changed by someone else: it is at version {change.asset.version} now.",
            "Look at how it stands now, and repeat the change if it is still wanted.",
        )
    return change


async def loaded(
    connection: Connection, asset_id: AssetId, caller: Caller, *, dry_run: bool = False
) -> AssetUnderChange:
    """Read an asset that is there, and locked, with its versions; none of its jobs moves on meanwhile."""
    await AssetRepository(connection).hold_jobs(asset_id)
    asset = await AssetRepository(connection).get(asset_id=asset_id)
    versions = await AssetVersionRepository(connection).of_asset(asset_id)
    platform = await PlatformRepository(connection).get(platform_id=asset.platform_id)
    return AssetUnderChange(connection, asset, versions, caller, dry_run=dry_run, four_eyes=platform.four_eyes)


def no_such_asset(asset_id: AssetId) -> NotFound:
    """Give the error for an asset that does not exist, or not for this caller."""
    return NotFound(f"There is no asset {asset_id}.")


def standing(asset: GeospatialAsset, live: Sequence[AssetVersion]) -> Mapping[str, Any]:
    """Tell how an asset stands, without anything internal."""
    return {
        "asset_id": asset.asset_id,
        "version": asset.version,
        "clearance_state": asset.clearance_state,
        "latest_approved_version_ordinal": asset.latest_approved_version_ordinal,
        "deleted": asset.deleted_at is not None,
        "versions": [
            {
                "version_ordinal": version.version_ordinal,
                "version_label": version.version_label,
                "revision": version.revision,
                "approved_revision": version.approved_revision,
                "processing_state": version.processing_state,
                "approval_state": version.approval_state,
            }
            for version in live
        ],
    }
