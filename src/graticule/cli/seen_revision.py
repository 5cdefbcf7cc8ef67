"""The revision that a reviewer decides on at the command line: the one that was named, or shown and confirmed."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.core.states import ApprovalState

if TYPE_CHECKING:
    from graticule.core.models import AssetVersion

RevisionOption = Annotated[
    int | None,
    typer.Option("--revision", min=1, help="The revision that you have looked at; refused if another is there."),
]


class Deciding(StrEnum):
    """Which versions a decision can be about."""

    PENDING = "waiting for a decision"
    SERVED = "in service"


def is_interactive() -> bool:
    """Whether someone is there to be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


@dataclass(frozen=True, slots=True)
class SeenRevision:
    """What a decision names."""

    version_ordinal: int | None
    revision: int | None


def confirm_revision(versions: "Sequence[AssetVersion]", ordinal: int | None, *decisions: Deciding) -> SeenRevision:
    """Show what would be decided on and return it; ask whether it is meant where something else could be.

    Of several kinds of versions that a decision may be about, the first that there is counts, as at the server. Where
    nothing is there to be decided on, the server says why.
    """
    from graticule.cli.asking import local_time
    from graticule.cli.console import say

    found = next(filter(None, (_find_version(versions, ordinal, each) for each in decisions)), None)
    if found is None:
        return SeenRevision(ordinal, None)
    version, deciding = found
    revision = version.approved_revision if deciding is Deciding.SERVED else version.revision
    which = f"revision {revision} of version {version.version_ordinal} ({version.version_label}), {deciding}"
    say(f"This is {which}, processed {local_time(version.processing_completed_at)}, outputs {version.output_hash}.")
    if version.revision > 1 or deciding is not decisions[0]:
        typer.confirm("Is it the one that you have looked at?", abort=True, err=True)
    return SeenRevision(version.version_ordinal, revision)


def _find_version(
    versions: "Sequence[AssetVersion]", ordinal: int | None, deciding: Deciding
) -> "tuple[AssetVersion, Deciding] | None":
    """Find the newest version that the server would choose."""
    for version in sorted(versions, key=lambda each: each.version_ordinal, reverse=True):
        is_pending = version.approval_state is ApprovalState.PENDING_REVIEW
        fits = is_pending if deciding is Deciding.PENDING else version.approved_revision is not None
        if version.deleted_at is None and fits and ordinal in {None, version.version_ordinal}:
            return version, deciding
    return None
