"""`/api/v1/stats/…`: the questions that are asked of the platform as a whole, one call each. For operators."""

from collections.abc import Mapping

from graticule.client.call import Call, get
from graticule.client.models import Page
from graticule.core.asset_views import StaffAsset
from graticule.repositories.operations import Durations
from graticule.repositories.platform_statistics import FailedVersion, StuckVersion, TriedVersion, WorkflowLoad


def list_stuck(*, minutes: int = 60, limit: int | None = None) -> Call[Page[StuckVersion]]:
    """List the versions that have been processing for so long, longest first."""
    return get(Page[StuckVersion], "/api/v1/stats/stuck", {"minutes": minutes, "limit": limit})


def list_failed(*, limit: int | None = None) -> Call[Page[FailedVersion]]:
    """List the versions that failed and need attention, newest first."""
    return get(Page[FailedVersion], "/api/v1/stats/failed", {"limit": limit})


def list_durations(*, days: int = 7) -> Call[Page[Durations]]:
    """Give the median and the 95th percentile of the processing time of the last days, by workflow."""
    return get(Page[Durations], "/api/v1/stats/durations", {"days": days})


def list_attempts(*, at_least: int = 3, limit: int | None = None) -> Call[Page[TriedVersion]]:
    """List the versions that took so many jobs, most first."""
    return get(Page[TriedVersion], "/api/v1/stats/attempts", {"at_least": at_least, "limit": limit})


def list_load() -> Call[Page[WorkflowLoad]]:
    """Give the jobs of each workflow: under way now, and ended in the last 24 hours."""
    return get(Page[WorkflowLoad], "/api/v1/stats/load")


def list_dataset(refs: Mapping[str, str | int], *, limit: int | None = None) -> Call[Page[StaffAsset]]:
    """List all assets of a dataset, whatever the resource and the partner, newest first."""
    return get(Page[StaffAsset], "/api/v1/stats/datasets", {"refs": refs, "limit": limit})
