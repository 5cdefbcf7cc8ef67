"""The revision that a decision is about: what its reviewer looked at has to be what the decision changes."""

from dataclasses import dataclass
from typing import TypeVar

from graticule.core.errors import InvalidInput, NotFound
from graticule.core.exchange import Decision
from graticule.core.ids import JobId
from graticule.core.models import AssetVersion, PlatformRequest
from graticule.core.refusals import Refusal
from graticule.core.states import ApprovalState, ProcessingState
from graticule.repositories.asset_views import AssetViews
from graticule.repositories.assets import AssetRevisionRepository
from graticule.services.asset_changes import AssetUnderChange

D = TypeVar("D", bound=Decision)


@dataclass(frozen=True, slots=True)
class RevisionAtIssue:
    """A revision that can be decided on: the newest of its version, or the one that is in service."""

    version: AssetVersion
    number: int
    output_hash: str | None
    is_served: bool

    @classmethod
    def newest(cls, version: AssetVersion) -> "RevisionAtIssue":
        """Return the newest revision; until it is processed, the row's outputs are those of an earlier one."""
        is_made = version.processing_state is ProcessingState.COMPLETED
        return cls(version, version.revision, version.output_hash if is_made else None, is_served=False)

    @classmethod
    async def in_service(cls, change: AssetUnderChange, version: AssetVersion) -> "RevisionAtIssue":
        """Return the approved revision of a version that has one."""
        approved = version.approved_revision or version.revision
        kept = await AssetRevisionRepository(change.connection).find(
            asset_id=version.asset_id, version_ordinal=version.version_ordinal, revision=approved
        )
        return cls(version, approved, (kept or version).output_hash, is_served=True)

    def check(self, change: AssetUnderChange, decision: Decision) -> None:
        """Refuse a decision that names another revision, or other outputs."""
        if decision.revision not in {None, self.number}:
            self._refuse(change, f"and the decision names revision {decision.revision}.")
        if decision.output_hash not in {None, self.output_hash}:
            self._refuse(change, "and the decision names other outputs by their hash.")

    def require(self, change: AssetUnderChange, decision: Decision) -> None:
        """Refuse a decision that leaves open which version or which revision was looked at.

        One that names only the asset counts while a single version has ever been there to look at, with a single
        revision: what it means could otherwise change between the look and the decision. A number alone names none of
        several versions, for each of them has a revision 1.
        """
        if decision.output_hash is not None:
            return
        if decision.revision is None and self.version.revision > 1:
            self._refuse_unnamed(change, "revision")
        if decision.revision is not None or self._could_be_another(change):
            self.require_version(change, decision)

    def require_version(self, change: AssetUnderChange, decision: Decision) -> None:
        """Refuse a decision that leaves open which of several versions was looked at, deleted ones included."""
        names = (decision.version_ordinal, decision.output_hash, decision.expected_version)
        if len(change.versions) > 1 and all(name is None for name in names):
            self._refuse_unnamed(change, "version")

    def _could_be_another(self, change: AssetUnderChange) -> bool:
        """Whether another version may have been looked at: all but those that failed and were never anything else."""
        return any(
            other.approval_state is not ApprovalState.FAILED or other.revision > 1
            for ordinal, other in change.versions.items()
            if ordinal != self.version.version_ordinal
        )

    def _refuse_unnamed(self, change: AssetUnderChange, what: str) -> None:
        message = f"{self._standing}, and the decision does not say which {what} was looked at."
        change.refuse(Refusal.REVISION_REQUIRED, message, self._hint(change))

    def _refuse(self, change: AssetUnderChange, difference: str) -> None:
        change.refuse(Refusal.REVISION_CHANGED, f"{self._standing}, {difference}", self._hint(change))

    @property
    def _standing(self) -> str:
        ordinal = self.version.version_ordinal
        if self.is_served:
            return f"Revision {self.number} of version {ordinal} is in service"
        standing, state = f"Version {ordinal} is at revision {self.number} now", self.version.processing_state
        return standing if state is ProcessingState.COMPLETED else f"{standing}, whose processing is {state}"

    def _hint(self, change: AssetUnderChange) -> str:
        place = f"{change.asset.asset_id}/{self.version.version_ordinal}"
        where = "at its service addresses" if self.is_served else f"at the gateway, /api/view/preview/{place}/"
        return (
            f"Look at it ({where}; or /review/{place} in the console), and repeat the decision if it still stands with "
            f"version_ordinal {self.version.version_ordinal} and revision {self.number} in the body, or "
            f"--version {self.version.version_ordinal} --revision {self.number} at the command line."
        )


async def resolve_named_revision(change: AssetUnderChange, decision: D) -> D:
    """Return a decision with the version and the revision of the request or the job that it names, if it names one."""
    request = await _find_named_request(AssetViews(change.connection), decision)
    if request is None:
        return decision
    if request.asset_id != change.asset.asset_id:
        raise InvalidInput("The request is for another asset than the one named.", hint="Send one of them.")
    own = {"version_ordinal": request.version_ordinal, "revision": request.revision}
    for name, value in own.items():
        if getattr(decision, name) not in {None, value}:
            raise InvalidInput(
                f"The request has {name} {value}, and the body says otherwise.", hint="Leave one of them out."
            )
    return decision.model_copy(update=own)


async def _find_named_request(views: AssetViews, decision: Decision) -> PlatformRequest | None:
    if decision.job_id is not None:
        return await find_processed_request(views, decision.job_id)
    if decision.request_id is None:
        return None
    request = await views.request(decision.request_id)
    if request is None:
        raise NotFound(f"There is no request {decision.request_id}.")
    return request


async def find_processed_request(views: AssetViews, job_id: JobId) -> PlatformRequest:
    """Return the request that a job has processed, or raise `NotFound`: other jobs made nothing that is reviewed."""
    request = await views.request_processed_by(job_id)
    if request is None:
        raise NotFound(
            f"The job {job_id} is not the one that processed a version.",
            hint="Name the version by asset_id and revision, or by request_id.",
        )
    return request
