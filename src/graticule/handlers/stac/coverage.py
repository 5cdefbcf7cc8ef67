"""What the items of a collection cover, as the collection tells it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from graticule.repositories.catalogue import Coverage, Document

CLOSE: Final = 1e-6  # degrees: what rounding makes of one place


def covering(present: Document, coverage: Coverage | None) -> Document:
    """Give a collection with the extent and the summaries of its items."""
    if coverage is None:
        return present
    extent = {
        "spatial": {"bbox": _boxes(coverage)},
        "temporal": {"interval": [[_told(coverage.start), _told(coverage.end)]]},
    }
    summaries: dict[str, Any] = {**present.get("summaries", {}), "proj:code": coverage.projections}
    if not coverage.projections:
        del summaries["proj:code"]
    return {**present, "extent": extent, **({"summaries": summaries} if summaries else {})}


def _boxes(coverage: Coverage) -> list[list[float]]:
    """Give the box of everything, and across the antimeridian then the two parts of it.

    The first of a collection's boxes is the one that is searched by, and there west may not be east.
    """
    west, south, east, north = _rounded(coverage.box)
    begin, _, end, _ = _rounded(coverage.shifted_box)
    crosses = begin < 180 - CLOSE and end > 180 + CLOSE
    if not crosses or end - begin > east - west - CLOSE:
        return [[west, south, east, north]]
    return [[west, south, east, north], [begin, south, 180.0, north], [-180.0, south, round(end - 360, 9), north]]


def _rounded(box: Sequence[float]) -> list[float]:
    return [round(each, 9) for each in box]


def _told(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
