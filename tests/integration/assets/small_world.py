"""Some assets of three partners with all that belongs to them, and which of them a filter should find."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.integration.repositories import rows

from graticule.core.ids import AssetId, PlatformId
from graticule.core.models import (
    AssetRevision,
    AssetVersion,
    Event,
    GeospatialAsset,
    LayerMetadata,
    PlatformRequest,
)
from graticule.core.models.engine import EventType
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.repositories.asset_views import Area, AssetFilter
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.database import Connection
from graticule.repositories.events import EventRepository
from graticule.repositories.layers import LayerMetadataRepository
from graticule.repositories.requests import RequestRepository

PLATFORMS = ("ddh", "arcgis", "geonode")
WORDS = ("river", "riverbed", "lake", "alpine", "north")
ASSETS = 36
STORED = [state for state in ApprovalState if state is not ApprovalState.FAILED]  # which is derived


@dataclass
class SmallWorld:
    """Rows, and the answers that lists of them should give."""

    assets: list[GeospatialAsset] = field(default_factory=list)
    versions: list[AssetVersion] = field(default_factory=list)
    revisions: list[AssetRevision] = field(default_factory=list)
    requests: list[PlatformRequest] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    layers: list[LayerMetadata] = field(default_factory=list)

    async def insert(self, connection: Connection) -> None:
        """Add all rows."""
        await AssetRepository(connection).insert_many(self.assets)
        await AssetVersionRepository(connection).insert_many(self.versions)
        await AssetRevisionRepository(connection).insert_many(self.revisions)
        await RequestRepository(connection).insert_many(self.requests)
        await EventRepository(connection).insert_many(self.events)
        await LayerMetadataRepository(connection).insert_many(self.layers)

    def platform_of(self, asset_id: str) -> str:
        return next(asset.platform_id for asset in self.assets if asset.asset_id == asset_id)

    def live(self, asset_id: str) -> list[AssetVersion]:
        return [each for each in self.versions if each.asset_id == asset_id and each.deleted_at is None]

    def expected(self, wanted: AssetFilter) -> list[AssetId]:
        """Give the ids that a list should show, in its order, by looking at every row."""
        newest = sorted(self.assets, key=lambda asset: (asset.created_at, asset.asset_id), reverse=True)
        return [asset.asset_id for asset in newest if self._fits(asset, wanted)]

    def _fits(self, asset: GeospatialAsset, wanted: AssetFilter) -> bool:
        asked = (wanted.platform_id, wanted.data_type, wanted.clearance_state)
        has = (asset.platform_id, asset.data_type, asset.clearance_state)
        return (
            all(one is None or one == other for one, other in zip(asked, has, strict=True))
            and (wanted.with_deleted or asset.deleted_at is None)
            and (wanted.refs is None or set(wanted.refs.items()) <= set(asset.platform_refs.items()))
            and (wanted.text is None or self._has_words(asset, wanted.text))
            and (not wanted.is_of_versions or any(_version_fits(each, wanted) for each in self.live(asset.asset_id)))
        )

    def _has_words(self, asset: GeospatialAsset, text: str) -> bool:
        live = {each.version_ordinal for each in self.live(asset.asset_id)}
        described = [
            f"{layer.title or ''} {layer.description or ''}"
            for layer in self.layers
            if layer.asset_id == asset.asset_id and layer.version_ordinal in live
        ]
        return any(_all_in(text, words) for words in (" ".join(map(str, asset.platform_refs.values())), *described))


def _all_in(text: str, words: str) -> bool:
    *whole, last = text.lower().split()
    there = words.lower().split()
    return all(word in there for word in whole) and any(word.startswith(last) for word in there)


def _version_fits(version: AssetVersion, wanted: AssetFilter) -> bool:
    return (
        wanted.approval_state in {None, version.approval_state}
        and wanted.processing_state in {None, version.processing_state}
        and (wanted.bbox is None or (version.bbox is not None and _touch(wanted.bbox, Area(*version.bbox))))
    )


def _touch(one: Area, other: Area) -> bool:
    if one.north < other.south or other.north < one.south:
        return False
    return any(
        west <= other_east and other_west <= east
        for west, east in _longitudes(one)
        for other_west, other_east in _longitudes(other)
    )


def _longitudes(area: Area) -> list[tuple[float, float]]:
    return [(area.west, area.east)] if area.west <= area.east else [(area.west, 180), (-180, area.east)]


def build(seed: int = 5) -> SmallWorld:
    """Make a world; the same seed makes the same."""
    chance, world = random.Random(seed), SmallWorld()
    for number in range(ASSETS):
        asset_id = AssetId(f"{chance.getrandbits(128):032x}")
        world.assets.append(_asset(asset_id, number, chance))
        for ordinal in range(chance.randint(0, 3)):
            world.versions.append(_version(asset_id, ordinal, chance))
        _add_rest(world, world.assets[-1], chance)
    return world


def _asset(asset_id: AssetId, number: int, chance: random.Random) -> GeospatialAsset:
    clearance = chance.choice(list(ClearanceState))
    changes: dict[str, Any] = {"clearance_state": clearance}
    if clearance is not ClearanceState.UNCLEARED:
        changes |= {"cleared_at": rows.NOW, "cleared_by": "rita"}
    if clearance is ClearanceState.PUBLIC:
        changes |= {"made_public_at": rows.NOW, "made_public_by": "rita"}
    if chance.random() < 0.15:
        changes |= {"deleted_at": rows.NOW, "deleted_by": "olaf"}
    return rows.asset(
        asset_id,
        platform_id=PlatformId(PLATFORMS[number % 3]),
        platform_refs={"dataset_id": f"d{number // 4}", "name": chance.choice(WORDS), "part": number % 2},
        data_type=chance.choice(list(DataType)),
        created_at=rows.NOW + timedelta(minutes=chance.randint(0, 9)),  # several of one moment
        **changes,
    )


def _version(asset_id: AssetId, ordinal: int, chance: random.Random) -> AssetVersion:
    approval = ApprovalState.APPROVED if ordinal < 2 else chance.choice(STORED)
    processing = chance.choice(list(ProcessingState))
    changes: dict[str, Any] = {"approval_state": approval, "processing_state": processing}
    if approval is not ApprovalState.PENDING_REVIEW:
        changes |= {"reviewer": "rita", "reviewed_at": rows.NOW}
    if approval is ApprovalState.APPROVED:
        changes["approved_revision"] = 1
    if approval is ApprovalState.REJECTED:
        changes["rejection_reason"] = "blurred"
    if chance.random() < 0.2:
        changes |= {"deleted_at": rows.NOW, "deleted_by": "olaf"}
    if chance.random() < 0.9:
        changes["bbox"] = [*_corner(chance), *_corner(chance)]
        changes["bbox"][1::2] = sorted(changes["bbox"][1::2])
    return rows.version(ordinal, asset_id=asset_id, revision=2, workflow_id="flow", table_name="secret", **changes)


def _corner(chance: random.Random) -> tuple[float, float]:
    return chance.randint(-18, 18) * 10.0, chance.randint(-9, 9) * 10.0


def _add_rest(world: SmallWorld, asset: GeospatialAsset, chance: random.Random) -> None:
    key: dict[str, Any] = {"asset_id": asset.asset_id}
    for version in (each for each in world.versions if each.asset_id == asset.asset_id):
        at: dict[str, Any] = {**key, "version_ordinal": version.version_ordinal}
        states = {"approval_state": ApprovalState.PENDING_REVIEW, "clearance_state": ClearanceState.UNCLEARED}
        world.revisions.append(
            AssetRevision(**at, revision=1, created_at=rows.NOW, superseded_at=rows.LATER, reviewer="rita", **states)
        )
        world.requests.append(
            rows.request(
                UUID(int=chance.getrandbits(128)),
                **at,
                platform_id=asset.platform_id,
                status=RequestStatus.COMPLETED,
                created_at=rows.NOW + timedelta(minutes=chance.randint(0, 9)),
            )
        )
        world.layers.append(
            LayerMetadata(
                **at,
                title=chance.choice([None, *WORDS]),
                description=" ".join(chance.choices(WORDS, k=2)),
                created_at=rows.NOW,
                updated_at=rows.NOW,
            )
        )
    for event_type in (EventType.ASSET_CREATED, EventType.NODE_READY, EventType.ASSET_EXPORT_FAILED):
        world.events.append(rows.event(**key, event_type=event_type, actor="rita", job_id="job", node_id="node"))


def pages(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut a list as paging would."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
