"""The rule of four eyes, for the platforms that have it.

Nobody approves a revision that they submitted themselves. Two reviewers approve what the public is to see: the approval
of the first is kept as an endorsement, and that of another one counts.
"""

from collections.abc import Sequence

from graticule.core.models import AssetVersion
from graticule.core.refusals import Refusal
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.requests import RequestRepository
from graticule.services.asset_changes import AssetUnderChange


async def applies(change: AssetUnderChange) -> bool:
    """Whether the platform of an asset wants two people for each decision that opens access."""
    platform = await PlatformRepository(change.connection).get(platform_id=change.asset.platform_id)
    return platform.four_eyes


async def require_other_than_submitter(change: AssetUnderChange, version: AssetVersion) -> None:
    """Refuse to let someone approve the revision that they submitted."""
    if version.last_request_id is None:
        return
    request = await RequestRepository(change.connection).get(request_id=version.last_request_id)
    if request.submitted_by == change.caller.name:
        ordinal = version.version_ordinal
        message = f"You submitted revision {version.revision} of version {ordinal} yourself."
        change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to decide.")


def is_endorsed(change: AssetUnderChange, version: AssetVersion) -> bool:
    """Whether another reviewer has approved the newest revision of a version for the public; refuse the same one."""
    if version.endorsed_revision != version.revision:
        return False
    if version.endorsed_by == change.caller.name:
        message = f"You have approved version {version.version_ordinal} for the public already."
        change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to approve it, too.")
    return True


def require_two_reviewers(change: AssetUnderChange, versions: Sequence[AssetVersion]) -> None:
    """Refuse to make public what nobody but the caller has approved."""
    name = change.caller.name
    for version in versions:
        is_seconded = version.endorsed_revision == version.approved_revision and version.endorsed_by != name
        if version.reviewer == name and not is_seconded:
            message = f"Nobody but you has approved version {version.version_ordinal}, and the public would see it."
            change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to make it public.")
