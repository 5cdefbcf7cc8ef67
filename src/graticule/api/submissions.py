"""`/api/v1/submit` and `/api/v1/status`: new data of partners, and how it stands."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Request

from graticule.api.services import Assets, Reader, Submissions, Warnings
from graticule.core.asset_views import OperatorStatus
from graticule.core.errors import NotFound
from graticule.core.exchange import PlatformStatus, PlatformSubmission, Reprocessing, Retrial, SubmissionReceipt
from graticule.core.ids import JobId
from graticule.core.models.fields import AssetKey, Short
from graticule.core.permissions import Caller, Deed
from graticule.http.callers import CallerWhoOperates, CallerWhoReads, CallerWhoSubmits
from graticule.http.problems import problem_responses
from graticule.services.job_reading import JobInBrief
from graticule.services.unserved_queues import QueueWarnings

router = APIRouter(prefix="/api/v1", tags=["submissions"], responses=problem_responses(401, 403, 404, 422, 429, 503))

AssetPath = Annotated[AssetKey, Path(description="The asset.")]
IdempotencyKey = Annotated[
    Short | None,
    Header(description="A second submission with the same key gives the receipt of the first.", min_length=1),
]
StatusKey = Annotated[str, Path(max_length=64, description="A request, an asset, or for operators a job.")]


@router.post("/submit", status_code=202, responses=problem_responses(409, 413))
async def submit(
    submission: PlatformSubmission,
    service: Submissions,
    warnings: Warnings,
    caller: CallerWhoSubmits,
    idempotency_key: IdempotencyKey = None,
) -> SubmissionReceipt:
    """Take new data: a new version of an asset, or with `overwrite` a new revision of a version."""
    return await _for(caller, await service.submit(submission, caller, idempotency_key), warnings)


@router.get("/status/{key}")
async def status(
    key: StatusKey, request: Request, assets: Assets, jobs: Reader, caller: CallerWhoReads
) -> OperatorStatus | PlatformStatus | JobInBrief:
    """Tell how a request stands, in the words of a partner; operators are told more, and of any job."""
    try:
        return await assets.status(key, caller, request.app.state.addresses)
    except NotFound:
        if not caller.may(Deed.OPERATE):
            raise
        return JobInBrief.of(await jobs.job(JobId(key)))


@router.post("/assets/{asset_id}/retry", status_code=202, responses=problem_responses(409))
async def retry(
    asset_id: AssetPath,
    service: Submissions,
    warnings: Warnings,
    caller: CallerWhoSubmits,
    asked: Retrial | None = None,
) -> SubmissionReceipt:
    """Process a version again that failed: the same request, with a new job."""
    return await _for(caller, await service.retry(asset_id, asked or Retrial(), caller), warnings)


@router.post("/assets/{asset_id}/reprocess", status_code=202, responses=problem_responses(409))
async def reprocess(
    asset_id: AssetPath, asked: Reprocessing, service: Submissions, warnings: Warnings, caller: CallerWhoOperates
) -> SubmissionReceipt:
    """Process the source of a version again, as a new revision; an approval lasts if the content is the same."""
    return await _for(caller, await service.reprocess(asset_id, asked, caller), warnings)


async def _for(caller: Caller, receipt: SubmissionReceipt, warnings: QueueWarnings) -> SubmissionReceipt:
    """Return a receipt with what may keep its job from running; those who do not operate see neither."""
    if receipt.job_id is None or not caller.may(Deed.OPERATE):
        return receipt.model_copy(update={"job_id": None})
    return receipt.model_copy(update={"warnings": await warnings.about_job(receipt.job_id)})
