"""The revision that a reviewer decides on at the command line: the one that was named, or shown and confirmed."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.core.states import ApprovalState

if TYPE_CHECKING:
    from graticule.core.models import AssetRevision, AssetVersion

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


@dataclass(frozen=True, slots=True)
class RevisionToConfirm:
    """The revision that a decision would be about."""

    version: "AssetVersion"
    deciding: Deciding
    is_ambiguous: bool

    @property
    def revision(self) -> int:
        """Return its number."""
        approved = self.version.approved_revision
        return approved if self.deciding is Deciding.SERVED and approved is not None else self.version.revision

    @property
    def successors(self) -> int:
        """Return how many revisions of the version came after it; where there are some, the version's row is theirs."""
        return self.version.revision - self.revision


def find_revision(
    versions: "Sequence[AssetVersion]", ordinal: int | None, *decisions: Deciding
) -> RevisionToConfirm | None:
    """Find what would be decided on; None where nothing is there to be decided on, and the server says why.

    Of several kinds of versions that a decision may be about, the first that there is counts, as at the server.
    """
    for deciding in decisions:
        version = _find_version(versions, ordinal, deciding)
        if version is not None:
            is_unnamed = ordinal is None and len(versions) > 1
            is_ambiguous = is_unnamed or version.revision > 1 or deciding is not decisions[0]
            return RevisionToConfirm(version, deciding, is_ambiguous)
    return None


def confirm_revision(found: RevisionToConfirm, made: "AssetVersion | AssetRevision | None") -> SeenRevision:
    """Show what would be decided on, as it was made, and return it; ask whether it is meant where that is ambiguous."""
    from graticule.cli.asking import local_time
    from graticule.cli.console import say

    version = found.version
    which = f"revision {found.revision} of version {version.version_ordinal} ({version.version_label})"
    how = "" if made is None else f", processed {local_time(made.processing_completed_at)}, outputs {made.output_hash}"
    say(f"This is {which}, {found.deciding}{how}.")
    if found.is_ambiguous:
        typer.confirm("Is it the one that you have looked at?", abort=True, err=True)
    return SeenRevision(version.version_ordinal, found.revision)


def _find_version(versions: "Sequence[AssetVersion]", ordinal: int | None, deciding: Deciding) -> "AssetVersion | None":
    """Find the newest version that the server would choose."""
    for version in sorted(versions, key=lambda each: each.version_ordinal, reverse=True):
        is_pending = version.approval_state is ApprovalState.PENDING_REVIEW
        fits = is_pending if deciding is Deciding.PENDING else version.approved_revision is not None
        if version.deleted_at is None and fits and ordinal in {None, version.version_ordinal}:
            return version
    return None
