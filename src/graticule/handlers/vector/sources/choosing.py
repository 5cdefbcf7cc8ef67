"""Which of the layers of a source is meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from graticule.core.validation import shortened
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.source import Kind

MAX_LISTED: Final = 20
MAX_MERGED: Final = 100
_POINT_LAYERS: Final = {"route_points", "track_points"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which layers of a source a submission asks for."""

    layer: str | None = None
    has_all: bool = False

    def of(self, names: list[str]) -> list[str]:
        """Return the layers that are meant, of all that there are."""
        if not self.has_all or self.layer is not None or not names:
            return [chosen(names, self.layer)]
        check_count(len(names))
        return names


def check_count(count: int) -> None:
    """Reject more layers than one table is made of: each is opened several times."""
    if count > MAX_MERGED:
        raise rejected(Code.TOO_MANY_LAYERS, f"The file has {count} layers; at most {MAX_MERGED} become one table.")


def chosen(names: list[str], wanted: str | None) -> str:
    """Give the layer that is meant, of all that there are."""
    if not names:
        raise rejected(Code.NO_LAYER, "The file has no vector layer.")
    if wanted is None and len(names) > 1:
        raise rejected(Code.SEVERAL_LAYERS, f"The file has {len(names)} layers: {listed(names)}.")
    if wanted is not None and wanted not in names:
        what = f"The file has no layer {wanted[:100]!r}. Its layers are: {listed(names)}."
        raise rejected(Code.UNKNOWN_LAYER, what)
    return wanted or names[0]


def listed(names: Sequence[str]) -> str:
    """Return names for a message, not more than a reader wants to see."""
    shown = [shortened(name, 64) for name in names[:MAX_LISTED]]
    return ", ".join(shown) + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


def candidates(kind: Kind, names: list[str]) -> list[str]:
    """Return the layers that may be meant when none is named, nor all.

    GPX readers give the points of each route and track once more as layers of their own.
    """
    own = [name for name in names if name not in _POINT_LAYERS] if kind is Kind.GPX else names
    return own or names
