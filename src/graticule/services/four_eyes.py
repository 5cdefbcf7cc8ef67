"""The rule of four eyes, for the platforms that have it.

Nobody approves a revision that they submitted themselves. Two reviewers approve what the public is to see: the approval
of the first is kept as an endorsement, and that of another one counts. What is in service already, approved by one, is
seconded by the other one's decision that lets the public see it. The database holds the same rules (`rules.sql`).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graticule.core.ids import AssetId
from graticule.core.models import AssetVersion
from graticule.core.models.engine import EventType
from graticule.core.refusals import Refusal
from graticule.repositories.assets import AssetVersionRepository
from graticule.repositories.requests import RequestRepository
from graticule.services.asset_changes import AssetUnderChange


async def require_other_than_submitter(change: AssetUnderChange, version: AssetVersion, revision: int) -> None:
    """Refuse to let someone approve the revision that they submitted."""
    requests, ordinal = RequestRepository(change.connection), version.version_ordinal
    if await requests.submitter(AssetId(version.asset_id), ordinal, revision) == change.caller.name:
        message = f"You submitted revision {revision} of version {ordinal} yourself."
        change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to decide.")


def is_endorsed(change: AssetUnderChange, version: AssetVersion) -> bool:
    """Whether another reviewer has approved the newest revision of a version for the public; refuse the same one."""
    if version.endorsed_revision != version.revision:
        return False
    if version.endorsed_by == change.caller.name:
        message = f"You have approved version {version.version_ordinal} for the public already."
        change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to approve it, too.")
    return True


async def second(
    change: AssetUnderChange, versions: Sequence[AssetVersion], now: datetime, **said: Any
) -> list[AssetVersion]:
    """Let the caller be the other reviewer of what becomes public, and return what had none.

    Whoever submitted the revision in service, or is the only one who approved it, is refused.
    """
    for version in versions:
        await require_other_than_submitter(change, version, version.approved_revision or version.revision)
    alone = [version for version in versions if version.seconded_by is None]
    for version in alone:
        if version.approved_by == change.caller.name:
            message = f"Nobody but you has approved version {version.version_ordinal}, and the public would see it."
            change.refuse(Refusal.SECOND_PERSON_REQUIRED, message, "Ask another reviewer to make it public.")
    for version in alone:
        change.written(await AssetVersionRepository(change.connection).second(version, change.caller.name, now))
        ordinal, revision = version.version_ordinal, version.approved_revision
        await change.tell(EventType.ASSET_ENDORSED, now, ordinal, revision=revision, **said)
    return alone


def may_be_public(change: AssetUnderChange, version: AssetVersion) -> bool:
    """Whether as many reviewers as the platform wants have approved the revision in service."""
    return not change.four_eyes or version.seconded_by is not None


def describe_withheld(version: AssetVersion) -> str:
    """Say that the public does not see a version, and what helps."""
    return (
        f"The public does not see version {version.version_ordinal} ({version.version_label}): only "
        f"{version.approved_by or 'one reviewer'} has approved it. "
        "It will once another reviewer has approved it with the clearance public."
    )
