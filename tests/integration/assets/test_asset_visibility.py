"""What belongs to another partner does not exist: no method and no filter shows any of it, nor that it is there."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.assets.small_world import PLATFORMS, SmallWorld
from tests.integration.assets.test_asset_lists import FILTERS

from graticule.core.errors import NotFound
from graticule.core.ids import AssetId, PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.states import RequestStatus
from graticule.repositories.asset_views import AssetFilter, RequestFilter
from graticule.repositories.database import Database
from graticule.services.asset_reading import AssetReader
from graticule.services.service_addresses import ServiceAddresses

RANDOMLY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STAFF = Caller("olaf", frozenset({ClientRole.OPERATOR}))
HOMELESS = Caller("w", frozenset({ClientRole.WORKER}))  # neither staff nor of a partner
NOT_THERE = AssetId("0" * 32)
NO_REQUEST = UUID(int=0)


def partner(platform_id: str) -> Caller:
    return Caller(f"client of {platform_id}", frozenset({ClientRole.SUBMITTER}), PlatformId(platform_id))


SERVE = ServiceAddresses("https://serve")
Read = Callable[[AssetReader, AssetId, Caller], Awaitable[object]]
BY_ASSET: dict[str, Read] = {
    "asset": lambda reader, asset_id, caller: reader.asset(asset_id, caller),
    "versions": lambda reader, asset_id, caller: reader.versions(asset_id, caller),
    "version": lambda reader, asset_id, caller: reader.version(asset_id, 0, caller),
    "revisions": lambda reader, asset_id, caller: reader.revisions(asset_id, caller),
    "revisions of a version": lambda reader, asset_id, caller: reader.revisions(asset_id, caller, 0),
    "history": lambda reader, asset_id, caller: reader.history(asset_id, caller),
    "status": lambda reader, asset_id, caller: reader.status(asset_id, caller, SERVE),
    "target": lambda reader, asset_id, caller: reader.target(asset_id, None, caller),
}


@RANDOMLY
@given(wanted=FILTERS, own=st.sampled_from(PLATFORMS))
async def test_no_filter_lists_the_assets_of_another_partner(
    world: SmallWorld, gateway: Database, wanted: AssetFilter, own: str
) -> None:
    found = await AssetReader(gateway).assets(wanted, limit=500, caller=partner(own))
    expected = [asset_id for asset_id in world.expected(wanted) if world.platform_of(asset_id) == own]
    assert [asset.asset_id for asset in found] == expected


@RANDOMLY
@given(
    wanted=st.builds(
        RequestFilter,
        platform_id=st.none() | st.sampled_from(PLATFORMS).map(PlatformId),
        status=st.none() | st.sampled_from(RequestStatus),
    ),
    number=st.none() | st.integers(0, 10**6),
    own=st.sampled_from(PLATFORMS),
)
async def test_no_filter_lists_the_requests_of_another_partner(
    world: SmallWorld, gateway: Database, wanted: RequestFilter, number: int | None, own: str
) -> None:
    asset_id = None if number is None else world.assets[number % len(world.assets)].asset_id
    wanted = RequestFilter(wanted.platform_id, asset_id, wanted.status)
    found = await AssetReader(gateway).requests(partner(own), wanted, limit=500)
    expected = [
        request.request_id
        for request in sorted(world.requests, key=lambda each: (each.created_at, each.request_id), reverse=True)
        if request.platform_id == own
        and wanted.platform_id in {None, own}
        and wanted.asset_id in {None, request.asset_id}
        and wanted.status in {None, request.status}
    ]
    assert [request.request_id for request in found] == expected


@pytest.mark.parametrize("name", BY_ASSET)
@pytest.mark.parametrize("caller", [*map(partner, PLATFORMS), HOMELESS], ids=lambda caller: caller.name)
async def test_an_asset_of_another_partner_is_told_as_one_that_is_not_there(
    world: SmallWorld, gateway: Database, name: str, caller: Caller
) -> None:
    reader, read = AssetReader(gateway), BY_ASSET[name]
    with pytest.raises(NotFound) as missing:
        await read(reader, NOT_THERE, caller)
    foreign = [asset.asset_id for asset in world.assets if asset.platform_id != caller.platform_id]
    for asset_id in foreign[:12]:
        with pytest.raises(NotFound) as refused:
            await read(reader, asset_id, caller)
        assert refused.value.message.replace(asset_id, NOT_THERE) == missing.value.message
        assert (refused.value.hint, refused.value.detail) == (missing.value.hint, missing.value.detail)


@pytest.mark.parametrize("caller", [*map(partner, PLATFORMS), HOMELESS], ids=lambda caller: caller.name)
async def test_a_request_of_another_partner_is_told_as_one_that_is_not_there(
    world: SmallWorld, gateway: Database, caller: Caller
) -> None:
    reader = AssetReader(gateway)
    for read in (
        lambda request_id: reader.status(str(request_id), caller),
        lambda request_id: reader.target(None, request_id, caller),
    ):
        with pytest.raises(NotFound) as missing:
            await read(NO_REQUEST)
        foreign = [request.request_id for request in world.requests if request.platform_id != caller.platform_id]
        for request_id in foreign[:12]:
            with pytest.raises(NotFound) as refused:
                await read(request_id)
            assert refused.value.message.replace(str(request_id), str(NO_REQUEST)) == missing.value.message


@pytest.mark.parametrize("name", BY_ASSET)
async def test_a_partner_reads_what_is_its_own_and_staff_read_everything(
    world: SmallWorld, gateway: Database, name: str
) -> None:
    reader = AssetReader(gateway)
    with_first = {version.asset_id for version in world.versions if version.version_ordinal == 0}
    for asset in (each for each in world.assets if each.asset_id in with_first):
        for caller in (STAFF, partner(asset.platform_id)):
            await BY_ASSET[name](reader, asset.asset_id, caller)


async def test_who_is_neither_staff_nor_of_a_partner_sees_nothing(gateway: Database) -> None:
    reader = AssetReader(gateway)
    assert await reader.assets(AssetFilter(with_deleted=True), caller=HOMELESS) == []
    assert await reader.requests(HOMELESS, RequestFilter()) == []
