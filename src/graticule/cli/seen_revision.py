"""The revision that a reviewer decides on at the command line: the one that was named, or shown and confirmed."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.core.states import ApprovalState

if TYPE_CHECKING:
    from graticule.core.models import AssetVersion

RevisionOption = Annotated[
    int | None,
    typer.Option("--revision", min=1, help="The revision that you have looked at; refused if another is there."),
]


def is_interactive() -> bool:
    """Whether someone is there to be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm_revision(versions: "Sequence[AssetVersion]", ordinal: int | None, *, is_served: bool) -> int | None:
    """Show the revision that would be decided on and return it; where there were several, ask whether it is the one.

    None where nothing is there to be decided on: the server says why.
    """
    from graticule.cli.asking import local_time
    from graticule.cli.console import say

    version = _find_version(versions, ordinal, is_served=is_served)
    if version is None:
        return None
    revision = version.approved_revision if is_served else version.revision
    which = f"revision {revision} of version {version.version_ordinal} ({version.version_label})"
    say(f"This is {which}, processed {local_time(version.processing_completed_at)}, outputs {version.output_hash}.")
    if version.revision > 1:
        typer.confirm("Is it the one that you have looked at?", abort=True, err=True)
    return revision


def _find_version(versions: "Sequence[AssetVersion]", ordinal: int | None, *, is_served: bool) -> "AssetVersion | None":
    """Find the newest version that the server would choose."""
    for version in sorted(versions, key=lambda each: each.version_ordinal, reverse=True):
        is_pending = version.approval_state is ApprovalState.PENDING_REVIEW
        fits = version.approved_revision is not None if is_served else is_pending
        if version.deleted_at is None and fits and ordinal in {None, version.version_ordinal}:
            return version
    return None
