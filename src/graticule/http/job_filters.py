"""The filters of lists of jobs, as both HTTP processes read them from the query of an address."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Query
from pydantic import AwareDatetime, StringConstraints

from graticule.core.ids import JobId, WorkflowId
from graticule.core.models.fields import JobKey, Short
from graticule.core.states import JobStatus
from graticule.http.paging import Cursors
from graticule.repositories.job_views import JobFilter

Sought = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=64, pattern=r"^[^\x00]*$"),
    Query(
        description="The beginning of a job's id (4 characters or more); or exactly its asset, request, correlation id,"
        " idempotency key, submitter or workflow.",
        examples=["01a1def4"],
    ),
]


async def job_filter(
    *,
    status: JobStatus | None = None,
    workflow_id: Short | None = None,
    correlation_id: Short | None = None,
    submitted_by: Short | None = None,
    created_after: Annotated[AwareDatetime | None, Query(description="Created at this time or later.")] = None,
    created_before: Annotated[AwareDatetime | None, Query(description="Created before this time.")] = None,
    q: Sought | None = None,
) -> JobFilter:
    """Read the filters of a list of jobs."""
    return JobFilter(
        status=status,
        workflow_id=None if workflow_id is None else WorkflowId(workflow_id),
        correlation_id=correlation_id,
        submitted_by=submitted_by,
        created_after=created_after,
        created_before=created_before,
        text=q,
    )


WantedJobs = Annotated[JobFilter, Depends(job_filter)]

# The cursors of lists of jobs.
JOBS: Final[Cursors[tuple[datetime, JobId]]] = Cursors(tuple[AwareDatetime, JobKey])
