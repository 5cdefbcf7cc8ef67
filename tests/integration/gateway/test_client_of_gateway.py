"""The client library against the real gateway: partners are given their views, staff the rows."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.integration.gateway.front import FLAT, Front, key_of, served
from tests.unit.docs.examples import ran
from tests.unit.docs.pages import blocks, page

from graticule.client import ApiProblem, AsyncClient, calls
from graticule.client.models import OperatorReceipt
from graticule.core.asset_views import (
    OperatorStatus,
    PartnerAsset,
    PartnerEvent,
    PartnerRequest,
    PartnerRevision,
    PartnerVersion,
    StaffAsset,
)
from graticule.core.exchange import Approval, ClearanceChange, PlatformStatus, Removal, Retrial, Revocation
from graticule.core.models import AssetRevision, AssetVersion, Event, PlatformRequest
from graticule.core.states import ApprovalState, ClearanceState
from graticule.core.worker_command import missing_worker

PAGE = page("client.md")


def client_of(front: Front, who: str) -> AsyncClient:
    return AsyncClient("http://gateway", api_key=key_of(who), transport=httpx.ASGITransport(front.app))


async def kinds(client: AsyncClient, asset_id: str) -> list[type]:
    """Give the types as which the things of an asset are read."""
    gateway = calls.gateway
    lists: list[Any] = [
        gateway.list_assets(platform="ddh"),
        gateway.list_asset_versions(asset_id),
        gateway.list_asset_revisions(asset_id),
        gateway.list_asset_history(asset_id),
        gateway.list_requests(asset_id=asset_id, limit=1),
    ]
    found = [{type(item) async for item in client.pages(call)} for call in lists]
    assert all(len(each) == 1 for each in found), found
    return [type(await client.send(gateway.get_asset(asset_id))), *(kind for each in found for kind in each)]


async def test_partners_are_given_their_views_and_staff_the_rows(front: Front) -> None:
    async with client_of(front, "partner") as partner, client_of(front, "operator") as operator:
        receipt = await partner.send(calls.gateway.submit(FLAT, idempotency_key="k-1"))
        assert not isinstance(receipt, OperatorReceipt)
        front.process(receipt.asset_id)
        again = {**FLAT, "platform_id": "ddh", "overwrite": True}
        second = await operator.send(calls.gateway.submit(again))
        assert isinstance(second, OperatorReceipt)
        assert second.job_id
        assert missing_worker("functionapp-tasks") in second.warnings
        assert await kinds(partner, receipt.asset_id) == [
            *(PartnerAsset, PartnerAsset, PartnerVersion, PartnerRevision, PartnerEvent, PartnerRequest)
        ]
        assert await kinds(operator, receipt.asset_id) == [
            *(StaffAsset, StaffAsset, AssetVersion, AssetRevision, Event, PlatformRequest)
        ]
        assert type(await partner.send(calls.gateway.get_status(receipt.request_id))) is PlatformStatus
        assert type(await operator.send(calls.gateway.get_status(receipt.request_id))) is OperatorStatus


async def test_staff_decide_by_the_gateway(front: Front) -> None:
    gateway = calls.gateway
    async with client_of(front, "partner") as partner, client_of(front, "reviewer") as reviewer:
        receipt = await partner.send(gateway.submit(FLAT))
        asset_id = receipt.asset_id
        front.process(asset_id)
        approval = Approval(clearance_level=ClearanceState.OUO)
        with pytest.raises(ApiProblem) as refused:
            await partner.send(gateway.approve(approval, asset_id=asset_id))
        assert refused.value.status == 403
        approved = await reviewer.send(gateway.approve(approval, request_id=receipt.request_id))
        assert approved.version is not None
        assert approved.version.approval_state is ApprovalState.APPROVED
        same = await reviewer.send(
            gateway.change_clearance(asset_id, ClearanceChange(clearance_level=ClearanceState.OUO))
        )
        assert same.changed is False
        with pytest.raises(ApiProblem) as conflict:
            await partner.send(gateway.retry(Retrial(), asset_id=asset_id))
        assert (conflict.value.status, conflict.value.code) == (409, "not_failed")
        revoked = await reviewer.send(gateway.revoke(Revocation(reason="wrong"), asset_id=asset_id))
        assert revoked.asset.latest_approved_version_ordinal is None
        deleted = await reviewer.send(gateway.delete_version(asset_id, 0))
        assert deleted.version is not None
        assert deleted.version.deleted_at is not None
        removed = await reviewer.send(gateway.unpublish(Removal(reason="done"), asset_id=asset_id))
        assert removed.asset.deleted_at is not None
        platforms = await partner.send(gateway.list_platforms())
        assert [each.platform_id for each in platforms.items] == ["ddh"]
        assert (await partner.send(gateway.get_platform("ddh"))).version_ref == "version_id"


async def test_the_example_for_partners_prints_what_is_said(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(front.app) as address:
        monkeypatch.setenv("GRATICULE_API_URL", address)
        monkeypatch.setenv("GRATICULE_API_KEY", key_of("partner"))
        printed = await asyncio.to_thread(ran, blocks(PAGE, "python")[2])
    assert printed == blocks(PAGE, "text")[2]
