"""What must be so of a blob for a write to take its place."""

from dataclasses import dataclass

from graticule.core.errors import Conflict


@dataclass(frozen=True, slots=True)
class Condition:
    """That there is no blob yet, or the one that the writer has read; or nothing."""

    path: str
    only_new: bool = False
    etag: str | None = None

    def taken(self) -> Conflict:
        """Tell that there is a blob."""
        return Conflict(f"{self.path!r} is there already.")

    def changed(self) -> Conflict:
        """Tell that there is another blob than the one that was read, or none."""
        return Conflict(f"{self.path!r} is not as it was read.", hint="Read it again.")
