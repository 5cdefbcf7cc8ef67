"""Descriptions of layers: written whole, under the asset's lock, by version, with one event that says what changed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import AsyncConnection
from pydantic import ValidationError
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, NOW

from graticule.core.errors import InvalidInput, NotFound, Refused
from graticule.core.ids import AssetId, PlatformId
from graticule.core.models import LayerMetadata
from graticule.core.models.engine import EventType
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.services.layer_metadata import LARGEST_BYTES, LayerDescription, LayerMetadataService

REVIEWER = Caller("Rita", frozenset({ClientRole.REVIEWER}))
PARTNER = Caller("portal", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
OTHER = Caller("other", frozenset({ClientRole.SUBMITTER}), PlatformId("arcgis"))
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
FULL: dict[str, Any] = {
    "title": "Höhen",
    "description": rows.NASTY,
    "keywords": ["dem", "europe"],
    "attribution": "© Atlas",
    "licence": "CC-BY-4.0",
    "temporal_start": BEGIN,
    "temporal_end": NOW,
    "bands": [{"name": "elevation", "unit": "m", "nodata": -9999.5}],
    "style": rows.NESTED,
}


@pytest.fixture
async def service(pool: Database, connection: Connection) -> LayerMetadataService:
    await AssetRepository(connection).insert(rows.asset())
    await AssetVersionRepository(connection).insert(rows.version())
    return LayerMetadataService(pool)


@pytest.fixture
async def a_table(admin: AsyncConnection) -> AsyncIterator[None]:
    """Make a table that the service's own role may not read."""
    await admin.execute("CREATE TABLE geo.described_v0 (fid bigint, area_m2 float8, n int, geom text)")
    await admin.execute("COMMENT ON COLUMN geo.described_v0.area_m2 IS 'Area (m²)'")
    yield
    await admin.execute("DROP TABLE geo.described_v0")


async def written(service: LayerMetadataService, **values: Any) -> LayerMetadata:
    return await service.write(ASSET, 0, LayerDescription(**values), REVIEWER)


async def told(connection: Connection) -> list[dict[str, Any]]:
    events = await EventRepository(connection).of_asset(ASSET)
    assert {(event.event_type, event.actor, event.version_ordinal) for event in events} <= {
        (EventType.ASSET_METADATA_CHANGED, "Rita", 0)
    }
    return [event.data for event in events]


async def test_a_description_is_kept_whole_and_told_of(service: LayerMetadataService, connection: Connection) -> None:
    first = await written(service, **FULL)
    assert first.model_dump(include={*FULL}) == FULL
    assert (first.version, first.updated_by) == (1, "Rita")
    assert dict(await service.read(ASSET, 0, REVIEWER)) == {**dict(first), "columns": None}
    assert (await service.read(ASSET, 0, PARTNER)).updated_by is None
    second = await written(service, **{**FULL, "title": "Heights", "style": None})
    assert (second.version, second.title, second.style, second.created_at) == (2, "Heights", None, first.created_at)
    assert await told(connection) == [
        {"fields": [*FULL], "version": 1},
        {"fields": ["title", "style"], "version": 2},
    ]


async def test_what_nobody_describes_has_an_empty_description(service: LayerMetadataService) -> None:
    found = await service.read(ASSET, 0, PARTNER)
    assert (found.version, found.title, found.keywords, found.columns) == (0, None, [], None)


async def test_features_tell_their_columns_even_if_nobody_describes_them(
    service: LayerMetadataService, connection: Connection, a_table: None
) -> None:
    await connection.execute("UPDATE dagapp.asset_versions SET table_name = 'never_was'")
    assert (await service.read(ASSET, 0, PARTNER)).columns is None
    await connection.execute("UPDATE dagapp.asset_versions SET table_name = 'described_v0'")
    columns = [
        {"name": "area_m2", "field": "Area (m²)", "type": "double precision"},
        {"name": "n", "field": "n", "type": "integer"},
    ]
    found = await service.read(ASSET, 0, PARTNER)
    assert (found.version, found.title) == (0, None)
    assert [column.model_dump() for column in found.columns or []] == columns
    await written(service, title="Parcels")
    described = await service.read(ASSET, 0, PARTNER)
    assert (described.title, described.columns) == ("Parcels", found.columns)


async def test_the_same_description_again_changes_nothing(
    service: LayerMetadataService, connection: Connection
) -> None:
    first = await written(service, **FULL, expected_version=0)
    assert await written(service, **FULL, expected_version=0) == first  # whose answer was lost
    assert len(await told(connection)) == 1


async def test_an_empty_description_is_one_too(service: LayerMetadataService, connection: Connection) -> None:
    assert (await written(service)).version == 1
    assert (await written(service)).version == 1
    assert await told(connection) == [{"fields": [], "version": 1}]


async def test_what_is_left_out_is_not_said_any_more(service: LayerMetadataService) -> None:
    await written(service, **FULL)
    left = await written(service, title="Höhen")
    assert (left.title, left.description, left.keywords, left.bands) == ("Höhen", None, [], [])


@pytest.mark.parametrize("expected", [0, 2])
async def test_who_has_seen_another_version_is_refused(
    service: LayerMetadataService, connection: Connection, expected: int
) -> None:
    await written(service, title="one")
    with pytest.raises(Refused) as caught:
        await written(service, title="two", expected_version=expected)
    assert (caught.value.code, caught.value.current) == (Refusal.STALE_VERSION, {"version": 1})
    assert (await service.read(ASSET, 0, REVIEWER)).title == "one"
    assert (await written(service, title="two", expected_version=1)).version == 2
    assert len(await told(connection)) == 2


async def test_of_two_at_once_who_saw_the_same_one_wins(service: LayerMetadataService, connection: Connection) -> None:
    found = await asyncio.gather(
        *(written(service, title=f"title {number}", expected_version=0) for number in range(4)),
        return_exceptions=True,
    )
    refused = [each for each in found if isinstance(each, Refused)]
    assert len(refused) == 3
    assert {each.code for each in refused} == {Refusal.STALE_VERSION}
    assert len(await told(connection)) == 1


async def test_it_is_written_under_the_lock_of_the_asset(
    service: LayerMetadataService, pool: Database, connection: Connection
) -> None:
    async with pool.connection() as other, other.transaction():
        await AssetRepository(other).lock(ASSET)
        writing = asyncio.create_task(written(service, title="late"))
        await waiting_for_a_lock(connection)
    assert (await writing).title == "late"


async def test_what_was_removed_is_not_described(service: LayerMetadataService, connection: Connection) -> None:
    versions = AssetVersionRepository(connection)
    await versions.insert(rows.version(1, deleted_at=NOW, deleted_by="x"))
    with pytest.raises(Refused) as caught:
        await service.write(ASSET, 1, LayerDescription(), REVIEWER)
    assert caught.value.code == Refusal.VERSION_DELETED
    gone = rows.asset("f" * 32, deleted_at=NOW, deleted_by="x")
    await AssetRepository(connection).insert(gone)
    await versions.insert(rows.version(asset_id=gone.asset_id))
    with pytest.raises(Refused) as caught:
        await service.write(gone.asset_id, 0, LayerDescription(), REVIEWER)
    assert caught.value.code == Refusal.ASSET_DELETED


async def test_what_is_not_there_or_not_for_the_caller_is_not_found(service: LayerMetadataService) -> None:
    await written(service, title="one")
    for asset_id, ordinal, caller in ((ASSET, 0, OTHER), (AssetId("e" * 32), 0, REVIEWER), (ASSET, 3, REVIEWER)):
        with pytest.raises(NotFound):
            await service.read(asset_id, ordinal, caller)
    with pytest.raises(NotFound):
        await service.write(ASSET, 3, LayerDescription(), REVIEWER)


@pytest.mark.parametrize(
    "values",
    [
        {"title": ""},
        {"title": "x" * 256},
        {"title": "a\0b"},
        {"description": "x" * 10_001},
        {"keywords": ["x"] * 101},
        {"keywords": ["x" * 65]},
        {"keywords": ["a\0"]},
        {"bands": [{}] * 501},
        {"bands": ["red"]},
        {"temporal_start": NOW, "temporal_end": BEGIN},
        {"temporal_start": NOW.replace(tzinfo=None)},
        {"expected_version": -1},
        {"colour": "red"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_what_is_too_much_cannot_be_said(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LayerDescription(**values)


@pytest.mark.parametrize(
    "style",
    [{"a": "x" * LARGEST_BYTES}, {"a": ["b\0"]}, {"a\0": 1}, {"a": "\ud800"}],
    ids=["size", "nul", "key", "half"],
)
async def test_what_no_row_can_hold_is_refused(service: LayerMetadataService, style: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await written(service, style=style)
