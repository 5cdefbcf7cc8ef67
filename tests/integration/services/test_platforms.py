"""The registry: partners are added and changed as rows, each change with one event, and see only themselves."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows

from graticule.core.errors import AlreadyExists, InvalidInput, NotFound, Refused
from graticule.core.ids import PlatformId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.repositories.assets import AssetRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.services.platforms import NewPlatform, PlatformChange, PlatformService

ADMIN = Caller("Ada", frozenset({ClientRole.ADMIN}))
PARTNER = Caller("portal", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
STRANGER = Caller("stray", frozenset({ClientRole.SUBMITTER}))
ATLAS = PlatformId("atlas")
DDH = PlatformId("ddh")


def new(**changes: Any) -> NewPlatform:
    values = {"platform_id": "atlas", "display_name": "Atlas", "required_refs": ["sheet"], "version_ref": "release"}
    return NewPlatform(**{**values, **changes})


@pytest.fixture
def service(pool: Database) -> PlatformService:
    return PlatformService(pool)


async def events(connection: Connection) -> list[Event]:
    return await EventRepository(connection).between(0, 2**60)


async def test_a_partner_is_added_with_one_event_and_the_same_again_is_no_error(
    service: PlatformService, connection: Connection
) -> None:
    added = await service.add(new(optional_refs=["edition"], description="Maps"), ADMIN)
    again = await service.add(new(optional_refs=["edition"], description="Maps"), ADMIN)
    assert (added.created, again.created) == (True, False)
    assert added.platform == again.platform == await service.platform(ATLAS, ADMIN)
    assert (added.platform.required_refs, added.platform.optional_refs) == (["sheet"], ["edition"])
    (event,) = await events(connection)
    assert (event.event_type, event.actor) == (EventType.COMMAND_EXECUTED, "Ada")
    assert event.data == {"command": "platform.add", **new(optional_refs=["edition"], description="Maps").model_dump()}


async def test_another_partner_of_the_same_name_is_refused(service: PlatformService, connection: Connection) -> None:
    await service.add(new(), ADMIN)
    with pytest.raises(AlreadyExists, match="another one"):
        await service.add(new(display_name="Another"), ADMIN)
    assert len(await events(connection)) == 1


async def test_two_who_add_the_same_at_once_add_it_once(service: PlatformService, connection: Connection) -> None:
    added = await asyncio.gather(*(service.add(new(), ADMIN) for _ in range(4)))
    assert sorted(each.created for each in added) == [False, False, False, True]
    assert len(await events(connection)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"platform_id": "Atlas"},
        {"platform_id": "a" * 51},
        {"platform_id": ""},
        {"display_name": " "},
        {"display_name": "a\0"},
        {"required_refs": []},
        {"required_refs": ["a", "a"]},
        {"required_refs": [f"r{number}" for number in range(21)]},
        {"required_refs": ["a b"]},
        {"required_refs": ["file_name"]},
        {"optional_refs": ["sheet"]},
        {"optional_refs": ["release"]},
        {"optional_refs": [f"r{number}" for number in range(20)]},
        {"version_ref": "sheet"},
        {"version_ref": "priority"},
        {"is_active": False},
    ],
    ids=str,
)
def test_a_partner_that_makes_no_sense_cannot_be_asked_for(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        new(**changes)


def test_a_partner_may_call_the_version_as_we_do() -> None:
    assert new(version_ref="version_label").version_ref == "version_label"


async def test_a_change_leaves_what_it_does_not_name_and_one_event(
    service: PlatformService, connection: Connection
) -> None:
    before = await service.platform(DDH, ADMIN)
    changed = await service.change(DDH, PlatformChange(optional_refs=["region"], is_active=False), ADMIN)
    assert changed.model_dump(exclude={"optional_refs", "is_active", "updated_at"}) == before.model_dump(
        exclude={"optional_refs", "is_active", "updated_at"}
    )
    assert (changed.optional_refs, changed.is_active) == (["region"], False)
    assert changed.updated_at > before.updated_at
    assert await service.change(DDH, PlatformChange(is_active=False), ADMIN) == changed
    (event,) = await events(connection)
    changes = {"optional_refs": ["region"], "is_active": False}
    assert event.data == {"command": "platform.change", "platform_id": "ddh", "changes": changes}
    assert event.actor == "Ada"


async def test_sources_are_added_and_changed_with_events(service: PlatformService, connection: Connection) -> None:
    assert (await service.add(new(), ADMIN)).platform.source_containers == ["bronze/atlas/"]
    await service.add(new(platform_id="maps", source_containers=["maps", "bronze/maps/"]), ADMIN)
    assert (await service.platform(PlatformId("maps"), ADMIN)).source_containers == ["maps", "bronze/maps/"]
    changed = await service.change(ATLAS, PlatformChange(source_containers=["atlas"]), ADMIN)
    assert changed.source_containers == ["atlas"]
    assert await service.platform(ATLAS, ADMIN) == changed
    _, added, change = await events(connection)
    assert added.data["source_containers"] == ["maps", "bronze/maps/"]
    assert change.data["changes"] == {"source_containers": ["atlas"]}


@pytest.mark.parametrize("pattern", ["silver", "silver/atlas/", "external", "outputs/x/"])
async def test_containers_of_ours_are_no_sources(
    service: PlatformService, connection: Connection, pattern: str
) -> None:
    patterns = ["bronze/atlas/", pattern]
    with pytest.raises(InvalidInput, match="and no sources"):
        await service.add(new(source_containers=patterns), ADMIN)
    with pytest.raises(InvalidInput, match="and no sources"):
        await service.change(DDH, PlatformChange(source_containers=patterns), ADMIN)
    assert (await service.platform(DDH, ADMIN)).source_containers == ["bronze/ddh/"]
    assert await events(connection) == []


async def test_what_identifies_datasets_is_changed_only_while_there_are_none(
    service: PlatformService, connection: Connection
) -> None:
    await service.change(DDH, PlatformChange(required_refs=["dataset_id"], version_ref="v"), ADMIN)
    await AssetRepository(connection).insert(rows.asset())
    for change in (PlatformChange(required_refs=["dataset_id", "x"]), PlatformChange(version_ref="version_id")):
        with pytest.raises(Refused) as caught:
            await service.change(DDH, change, ADMIN)
        assert caught.value.code == Refusal.PLATFORM_IN_USE
        assert caught.value.current == {"platform_id": "ddh", "required_refs": ["dataset_id"], "version_ref": "v"}
    same = PlatformChange(required_refs=["dataset_id"], version_ref="v", display_name="Hub")
    assert (await service.change(DDH, same, ADMIN)).display_name == "Hub"
    assert len(await events(connection)) == 2


async def test_an_asset_that_is_being_added_keeps_the_identity_from_being_changed(
    service: PlatformService, pool: Database, connection: Connection
) -> None:
    async with pool.connection() as other, other.transaction():
        await AssetRepository(other).insert(rows.asset())
        change = asyncio.create_task(service.change(DDH, PlatformChange(version_ref="v"), ADMIN))
        await waiting_for_a_lock(connection)
    with pytest.raises(Refused, match="has assets"):
        await change


@pytest.mark.parametrize(
    "change",
    [PlatformChange(optional_refs=["dataset_id"]), PlatformChange(version_ref="resource_id")],
    ids=["optional", "version"],
)
async def test_a_change_does_not_give_one_name_two_meanings(service: PlatformService, change: PlatformChange) -> None:
    with pytest.raises(InvalidInput, match="named once"):
        await service.change(DDH, change, ADMIN)


async def test_nobody_changes_what_is_not_there(service: PlatformService) -> None:
    with pytest.raises(NotFound, match="There is no platform nobody"):
        await service.change(PlatformId("nobody"), PlatformChange(is_active=False), ADMIN)


async def test_a_partner_sees_itself_and_no_other(service: PlatformService) -> None:
    async def seen(caller: Caller, *, with_inactive: bool = False) -> list[str]:
        return [each.platform_id for each in await service.platforms(caller, with_inactive=with_inactive)]

    await service.change(DDH, PlatformChange(is_active=False), ADMIN)
    assert await seen(ADMIN) == ["arcgis", "geonode"]
    assert await seen(ADMIN, with_inactive=True) == ["arcgis", "ddh", "geonode"]
    assert await seen(PARTNER, with_inactive=True) == ["ddh"]
    assert await seen(STRANGER, with_inactive=True) == []
    assert (await service.platform(DDH, PARTNER)).platform_id == "ddh"
    for platform_id in ("arcgis", "nobody"):
        with pytest.raises(NotFound, match=f"There is no platform {platform_id}"):
            await service.platform(PlatformId(platform_id), PARTNER)
