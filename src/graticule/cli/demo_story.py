"""The story of `graticule demo`: a partner sends data, operators look on, and a reviewer approves what was made."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import httpx

from graticule.cli.console import done, out, say, warn
from graticule.cli.demo_made import print_made
from graticule.cli.demo_samples import CONTAINER, PARTNER, Sample, Samples
from graticule.cli.installation import Installation
from graticule.cli.server import Server, connected
from graticule.cli.watch import NoView, watch_job
from graticule.client import ApiProblem, AsyncClient, calls
from graticule.core.asset_names import asset_id_of
from graticule.core.asset_views import OperatorStatus, PartnerAsset
from graticule.core.exchange import Approval, PlatformStatus
from graticule.core.models.platform import ClientRole
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.storage.protocol import Storage

UPLOADER: Final = "island-survey-uploader"
REVIEWER: Final = "demo-reviewer"
DATASET: Final = "island"
UNDER_WAY: Final = frozenset({ProcessingState.QUEUED, ProcessingState.PROCESSING})
LARGE_PARCELS: Final = "area_ha > 10"
MAPS: Final = {
    "tiles": "/WebMercatorQuad/map.html",
    "features": "/collections/features/tiles/WebMercatorQuad/map.html",
}
CONFLICT: Final = 409
NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class Sent:
    """A file that was submitted, and the job that works on it."""

    sample: Sample
    request_id: UUID
    job_id: str
    edition: str


@dataclass(frozen=True, slots=True)
class Cast:
    """Who acts: each with a key that opens no more than the part needs."""

    partner: AsyncClient
    reviewer: AsyncClient
    operator: AsyncClient

    async def submit(self, sample: Sample) -> Sent:
        """Send a file as the partner, in the partner's own words."""
        edition, is_next = await self._edition(sample)
        body = {
            "dataset": DATASET,
            "resource": sample.resource,
            "edition": edition,
            "data_type": sample.data_type,
            "container_name": CONTAINER,
            "file_name": sample.file_name,
            "overwrite": not is_next,
            "processing_options": dict(sample.options),
        }
        receipt = await self.partner.send(calls.gateway.submit(body))
        return Sent(sample, receipt.request_id, await self._job(receipt.request_id), edition)

    async def status(self, sent: Sent) -> PlatformStatus:
        """Ask as the partner how a submission stands."""
        return await self.partner.send(calls.gateway.get_status(sent.request_id))

    async def made(self, sent: Sent, *nodes: str) -> dict[str, Any]:
        """Give what the job of a submission has made, with the details that some of its nodes tell."""
        job = await self.operator.send(calls.get_job(sent.job_id))
        told = [(await self.operator.send(calls.get_job_node(sent.job_id, node))).output for node in nodes]
        return {name: value for each in (job.result, *told) if isinstance(each, dict) for name, value in each.items()}

    async def _edition(self, sample: Sample) -> tuple[str, bool]:
        """Name the edition: the next one, unless the last was not approved, and is replaced."""
        newest = await self._newest(sample)
        if newest is None or newest.newest_version is None:
            return "1", True
        version = newest.newest_version
        if version.processing_state in UNDER_WAY:
            say(f"An earlier run left {sample.file_name} unfinished; that comes first.")
            await watch_job(self.operator, await self._job(newest.asset_id), NoView())
        is_next = version.approval_state is ApprovalState.APPROVED
        return (str(version.version_ordinal + 2) if is_next else version.version_label), is_next

    async def _newest(self, sample: Sample) -> PartnerAsset | None:
        asset_id = asset_id_of(PARTNER, {"dataset": DATASET, "resource": sample.resource})
        try:
            found = await self.partner.send(calls.gateway.get_asset(asset_id))
        except ApiProblem as problem:
            if problem.status == NOT_FOUND:
                return None
            raise
        return found if isinstance(found, PartnerAsset) else None

    async def _job(self, key: UUID | str) -> str:
        status = await self.operator.send(calls.get_status(str(key)))
        assert isinstance(status, OperatorStatus)  # noqa: S101 - an operator's answer
        assert status.job_id is not None  # noqa: S101 - the job is made together with the request
        return status.job_id


async def tell_story(running: Installation, storage: Storage, samples: Samples) -> None:
    """Send the samples, and show what becomes of them."""
    for sample in (samples.raster, samples.vector, samples.broken):
        await storage.put(sample.path, sample.data)
    for sample in (samples.raster, samples.vector):
        done(f"Made {sample.path}: {sample.told}, {len(sample.data) / 1e6:.1f} MB.")
    async with _cast(running) as cast:
        raster, vector, broken = [await cast.submit(each) for each in (samples.raster, samples.vector, samples.broken)]
        done(f"The partner {PARTNER} submitted them through the gateway: edition {raster.edition}.")
        for sent in (raster, vector):
            out.print()
            await watch_job(cast.operator, sent.job_id)
        out.print()
        await _review(cast, [raster, vector])
        await _show_made(cast, raster, vector)
        await _show_reject(cast, broken)


async def _review(cast: Cast, all_sent: list[Sent]) -> None:
    """Show what the partner is told, and approve."""
    for sent in all_sent:
        status = await cast.status(sent)
        told = f"{status.processing_state}, {status.progress:.0f} %, {status.approval_state}"
        say(f"The partner reads of {sent.sample.file_name}: {told.replace('_', ' ')}.")
        approval = Approval(clearance_level=ClearanceState.OUO)
        await cast.reviewer.send(calls.gateway.approve(approval, request_id=sent.request_id))
    done("A reviewer approved both, for official use only.")


async def _show_made(cast: Cast, raster: Sent, vector: Sent) -> None:
    print_made(await cast.made(raster, "create_cog"), await cast.made(vector))
    statuses = [await cast.status(sent) for sent in (raster, vector)]
    addresses = [(name, address) for status in statuses for name, address in status.service_urls.items()]
    if not addresses:
        return
    out.print(" They are served at")
    for name, address in addresses:
        out.print(f"   {name:<12} {address}", soft_wrap=True)
        if name in MAPS:
            out.print(f"   {'map':<12} {address}{MAPS[name]}", soft_wrap=True)
    out.print()
    await _show_service(dict(addresses))


async def _show_service(addresses: Mapping[str, str]) -> None:
    """Show that the services answer, as anyone in the house may ask them."""
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        picture = await client.get(f"{addresses['tiles']}/preview.png", params={"max_size": 512})
        page = await client.get(
            f"{addresses['features']}/collections/features/items", params={"filter": LARGE_PARCELS, "limit": 1}
        )
    size = f"{len(picture.raise_for_status().content) / 1e3:.0f} kB"
    found = page.raise_for_status().json()
    done(f"The tile service drew a picture of the island ({size}).")
    done(f"The feature service found {found['numberMatched']} parcels with {LARGE_PARCELS}.")


async def _show_reject(cast: Cast, broken: Sent) -> None:
    """Show how a file that cannot be used is sent back."""
    await watch_job(cast.operator, broken.job_id, NoView())
    report = (await cast.status(broken)).validation
    for finding in report.findings if report else ():
        warn(f"{broken.sample.file_name} was sent back: {finding.what} ({finding.code})")
        say(f"The partner sees how to fix it: {finding.how_to_fix}")


@asynccontextmanager
async def _cast(running: Installation) -> AsyncIterator[Cast]:
    """Register the partner and the reviewer, and give clients with their keys."""
    async with AsyncExitStack() as open_clients:
        operator = await open_clients.enter_async_context(
            connected(Server(running.orchestrator, running.admin_key.value))
        )
        await operator.send(
            calls.add_platform(
                PARTNER,
                display_name="Island survey (demonstration)",
                required_refs=["dataset", "resource"],
                version_ref="edition",
            )
        )
        partner = await _key(operator, UPLOADER, ClientRole.SUBMITTER, PARTNER)
        reviewer = await _key(operator, REVIEWER, ClientRole.REVIEWER)
        yield Cast(
            partner=await open_clients.enter_async_context(connected(Server(running.gateway, partner))),
            reviewer=await open_clients.enter_async_context(connected(Server(running.gateway, reviewer))),
            operator=operator,
        )


async def _key(admin: AsyncClient, client_id: str, role: ClientRole, platform_id: str | None = None) -> str:
    """Give a client a key; one that is there from an earlier run gets a new one."""
    name = f"{client_id} (demonstration)"
    try:
        made = await admin.send(calls.add_client(client_id, display_name=name, roles=[role], platform_id=platform_id))
    except ApiProblem as problem:
        if problem.status != CONFLICT:
            raise
        made = await admin.send(calls.rotate_client(client_id))
    return made.key
