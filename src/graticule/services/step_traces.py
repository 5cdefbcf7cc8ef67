"""Jobs and their steps in a trace: the steps hang below what asked for the job, and its tasks below the steps."""

from collections.abc import Iterable

from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.core.trace_context import TraceContext, current_trace, parse_traceparent
from graticule.services.decided_jobs import DecidedJob
from graticule.telemetry import Span, begun


def trace_of_new_job(given: str | None, workflow_id: str, job_id: JobId) -> str | None:
    """Give the trace of a job: the one that its submission names, or the request's that brought it, or a new one."""
    place = parse_traceparent(given) or current_trace()
    submitting = begun(f"submit {workflow_id}", place, attributes={"job_id": job_id})
    submitting.end()
    return _traceparent(submitting.place or place)


def begun_step(job_id: JobId, traceparent: str | None, start_ns: int | None = None) -> Span:
    """Begin the step of a job: `end_steps` ends it when it is written. One that never is, is not recorded."""
    parent = parse_traceparent(traceparent) or current_trace()
    return begun("step", parent, start_ns=start_ns, attributes={"job_id": job_id})


def end_steps(decided: Iterable[DecidedJob]) -> None:
    """End the steps of jobs that were written; those that changed nothing are not worth a span."""
    for job in decided:
        if not job.writes:
            continue
        status = job.decision.job_status
        job.step.set(
            {
                "graticule.workflow": job.graph.workflow_id,
                "graticule.job_status": status.value,
                "graticule.results": len(job.results),
                "graticule.tasks": len(job.decision.tasks),
            }
        )
        if job.ends and status is JobStatus.FAILED:
            job.step.fail(job.decision.error_message or "the job failed")
        job.step.end()


def _traceparent(place: TraceContext | None) -> str | None:
    return None if place is None else place.traceparent
