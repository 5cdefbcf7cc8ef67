"""`/api/v1/deliveries`: callbacks out, for operators; and the secrets that receivers verify them with."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from graticule.api.services import Deliveries
from graticule.core.ids import JobId, PlatformId
from graticule.core.models.fields import PlatformKey, Short
from graticule.core.permissions import Deed
from graticule.http.callers import CallerWhoAdministers, CallerWhoOperates, allowed
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.logs import get_logger
from graticule.repositories.callbacks import DeliveryState
from graticule.services.deliveries import Delivery, WebhookSecret

_log = get_logger(__name__)
LARGEST_ID: Final = 2**63 - 1
REFUSALS: Final = problem_responses(401, 403, 422, 429, 503)

router = APIRouter(
    prefix="/api/v1/deliveries",
    tags=["callbacks out"],
    dependencies=[Depends(allowed(Deed.OPERATE))],
    responses=REFUSALS,
)
platform_secrets = APIRouter(prefix="/api/v1/platforms", tags=["callbacks out"], responses=REFUSALS)

CallbackPath = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The callback's id.", examples=[12])]
PlatformPath = Annotated[PlatformKey, Path(description="The platform's id.", examples=["ddh"])]

_DELIVERIES: Cursors[int] = Cursors(Annotated[int, Field(ge=1, le=LARGEST_ID)])


@router.get("")
async def list_deliveries(
    service: Deliveries,
    state: Annotated[DeliveryState | None, Query(description="Only those that stand so.")] = None,
    job_id: Annotated[Short | None, Query(description="Only those of this job.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Delivery]:
    """List callbacks, newest first."""
    job = None if job_id is None else JobId(job_id)
    found = await service.page(state=state, job_id=job, before=_DELIVERIES.read(cursor), limit=limit + 1)
    return _DELIVERIES.page(found, limit, lambda delivery: delivery.callback_id)


@router.get("/webhook-secret", responses=problem_responses(409))
async def operators_webhook_secret(service: Deliveries, caller: CallerWhoOperates) -> WebhookSecret:
    """Tell the secret that signs the callbacks of operators' jobs."""
    return _noted(service.operators_secret(), caller.name)


@router.get("/{callback_id}", responses=problem_responses(404))
async def get_delivery(callback_id: CallbackPath, service: Deliveries) -> Delivery:
    """Give one callback."""
    return await service.get(callback_id)


@router.post("/{callback_id}/redeliver", responses=problem_responses(404))
async def redeliver(callback_id: CallbackPath, service: Deliveries, caller: CallerWhoOperates) -> Delivery:
    """Send a callback anew, also one that was delivered: it is due at once, and its tries are counted from one."""
    return await service.redeliver(callback_id, caller.name)


@platform_secrets.get("/{platform_id}/webhook-secret", responses=problem_responses(404, 409))
async def platform_webhook_secret(
    platform_id: PlatformPath, service: Deliveries, caller: CallerWhoAdministers
) -> WebhookSecret:
    """Tell the secret that signs the callbacks to a platform; an admin hands it to the partner."""
    return _noted(await service.secret_of(PlatformId(platform_id)), caller.name)


def _noted(secret: WebhookSecret, actor: str) -> WebhookSecret:
    _log.info("a webhook secret was told", recipient=secret.recipient, actor=actor)
    return secret
