"""For whom a service shows the platform's data."""

from enum import StrEnum

from graticule.core.table import DatabaseRole


class Audience(StrEnum):
    """Who looks: those of the house see what is approved, the public what is approved, public and exported."""

    INTERNAL = "internal"
    EXTERNAL = "external"

    @property
    def role(self) -> DatabaseRole:
        """The database role that sees no more than this audience may."""
        return DatabaseRole.SERVE_INTERNAL if self is Audience.INTERNAL else DatabaseRole.SERVE_EXTERNAL
