"""What each caller sees: a partner its own views, staff the rows, and only operators the ids of jobs in them."""

from typing import Any, TypeVar

from graticule.core.exchange import AssetChange
from graticule.core.permissions import Caller, Deed
from graticule.core.table import Row

R = TypeVar("R", bound=Row)

# Where rows tell of jobs; whoever cannot look at a job has no use for its id.
OF_JOBS = ("current_job_id", "job_id", "node_id", "node_summary", "owner_epoch", "task_id", "export_run_id")


def for_staff(row: R, caller: Caller) -> R:
    """Give a row to one of staff: as it is to operators, to others without what belongs to jobs."""
    if caller.may(Deed.OPERATE):
        return row
    hidden: dict[str, Any] = {name: None for name in OF_JOBS if name in type(row).model_fields}
    return row.model_copy(update=hidden)


def change_for(change: AssetChange, caller: Caller) -> AssetChange:
    """Give the outcome of a change to one of staff."""
    if caller.may(Deed.OPERATE):
        return change
    version = None if change.version is None else for_staff(change.version, caller)
    return change.model_copy(update={"job_id": None, "version": version})
