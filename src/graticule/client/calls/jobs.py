"""`/api/v1/jobs` and `/api/v1/workflows` of the orchestrator: for operators."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import httpx

from graticule.client.call import Call, Parsed, change, get
from graticule.client.models import Page, Validation, WorkflowDetail, WorkflowPage
from graticule.core.models import Event, Job
from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus, NodeStatus
from graticule.repositories.job_views import JobListItem, NodeListItem
from graticule.services.job_reading import JobDetail, NodeDetail, Timeline
from graticule.services.jobs import JobReceipt, Submission, SubmittedJob


def submit_job(submission: Submission, *, resubmit: bool = False) -> Call[SubmittedJob]:
    """Submit a job; with an idempotency key the call may be repeated. `resubmit` lets one that failed go on."""
    return Call(
        "POST",
        "/api/v1/jobs",
        _submitted,
        query={"resubmit": True} if resubmit else {},
        body=submission,
        repeatable=submission.idempotency_key is not None,
    )


def _submitted(response: httpx.Response) -> SubmittedJob:
    receipt = Parsed[JobReceipt](JobReceipt)(response)
    created = response.status_code == httpx.codes.CREATED
    return SubmittedJob(receipt, created, warnings=tuple(receipt.warnings))


def get_job(job_id: str) -> Call[JobDetail]:
    """Give one job with its progress and its result."""
    return get(JobDetail, "/api/v1/jobs/{job_id}", job_id=job_id)


def list_jobs(
    *,
    status: JobStatus | None = None,
    workflow_id: str | None = None,
    correlation_id: str | None = None,
    submitted_by: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    q: str | None = None,
    limit: int | None = None,
) -> Call[Page[JobListItem]]:
    """List jobs, newest first, without their results; `q` is a word by which one is known, as the start of its id."""
    query = {
        "status": status,
        "workflow_id": workflow_id,
        "correlation_id": correlation_id,
        "submitted_by": submitted_by,
        "created_after": created_after,
        "created_before": created_before,
        "q": q,
        "limit": limit,
    }
    return get(Page[JobListItem], "/api/v1/jobs", query)


def list_job_nodes(
    job_id: str, *, parent: str | None = None, status: NodeStatus | None = None, limit: int | None = None
) -> Call[Page[NodeListItem]]:
    """List the nodes of a job's workflow in graph order, or the children of one fan-out by index."""
    query = {"parent": parent, "status": status, "limit": limit}
    return get(Page[NodeListItem], "/api/v1/jobs/{job_id}/nodes", query, job_id=job_id)


def get_job_node(job_id: str, node_id: str) -> Call[NodeDetail]:
    """Give one node with its output, its attempts and its checkpoint."""
    return get(NodeDetail, "/api/v1/jobs/{job_id}/nodes/{node_id}", job_id=job_id, node_id=node_id)


def list_job_events(
    job_id: str, *, after: int | None = None, event_type: Sequence[EventType] = (), limit: int | None = None
) -> Call[Page[Event]]:
    """List the events of a job in order, up to now."""
    query = {"after": after, "event_type": event_type, "limit": limit}
    return get(Page[Event], "/api/v1/jobs/{job_id}/events", query, job_id=job_id)


def follow_job_events(job_id: str) -> Call[Event]:
    """Stream the events of a job to its end: for `stream`, not for `send`."""
    return get(Event, "/api/v1/jobs/{job_id}/events/stream", job_id=job_id)


def follow_events() -> Call[Event]:
    """Stream the events of all jobs, without an end: for `stream`, not for `send`."""
    return get(Event, "/api/v1/events/stream")


def get_job_timeline(job_id: str) -> Call[Timeline]:
    """Give when each node was ready, dispatched, started and ended."""
    return get(Timeline, "/api/v1/jobs/{job_id}/timeline", job_id=job_id)


def cancel_job(job_id: str) -> Call[Job]:
    """End a job; one that has ended stays as it is."""
    return change("POST", Job, "/api/v1/jobs/{job_id}/cancel", job_id=job_id)


def retry_job(job_id: str, node_id: str | None = None) -> Call[Job]:
    """Let a failed job go on from what failed, or from one node and all that is downstream of it."""
    return change("POST", Job, "/api/v1/jobs/{job_id}/retry", {"node_id": node_id}, job_id=job_id)


def list_workflows() -> Call[WorkflowPage]:
    """List the workflows that can be submitted, and the problems of files."""
    return get(WorkflowPage, "/api/v1/workflows")


def get_workflow(workflow_id: str) -> Call[WorkflowDetail]:
    """Give one workflow with its compiled graph."""
    return get(WorkflowDetail, "/api/v1/workflows/{workflow_id}", workflow_id=workflow_id)


def validate_workflow(text: str) -> Call[Validation]:
    """Compile a workflow's YAML and tell all that is wrong with it; nothing is kept."""
    call = change("POST", Validation, "/api/v1/workflows/validate", text.encode())
    return replace(call, content_type="application/yaml", repeatable=True)


def reload_workflows() -> Call[WorkflowPage]:
    """Read the files of all workflows anew."""
    return change("POST", WorkflowPage, "/api/v1/workflows/reload")
