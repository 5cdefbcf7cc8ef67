"""What earlier callers of the platform send to `/platform/…`: their scale of priorities, and jobs by their workflow."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, JsonValue, ValidationError

from graticule.core.errors import InvalidInput
from graticule.core.ids import JobId, WorkflowId
from graticule.services.jobs import JobReceipt, Submission

PREFIX: Final = "/platform"  # the same addresses without /api

# Theirs go from 1, the most urgent, to 10, with 5 as the default; ours from 0, the default, to 10, the most urgent.
PRIORITIES: Final[Mapping[int, int]] = {1: 10, 2: 8, 3: 5, 4: 3, **dict.fromkeys(range(5, 11), 0)}


class QueuedJob(BaseModel):
    """What the submission of a job by its workflow came to."""

    message_id: str
    workflow_id: WorkflowId
    submitted_at: datetime
    status: Literal["queued"] = "queued"
    job_id: JobId
    warnings: list[str]

    @classmethod
    def of(cls, job: JobReceipt) -> "QueuedJob":
        """Return the answer for a job. No message is sent, so its id is that of the job, which finds its status."""
        return cls(
            message_id=job.job_id,
            workflow_id=job.workflow_id,
            submitted_at=job.created_at,
            job_id=JobId(job.job_id),
            warnings=job.warnings,
        )


def is_job(form: Mapping[str, JsonValue]) -> bool:
    """Whether a form is a job by its workflow, and not data of a partner."""
    return "workflow_id" in form and "platform_id" not in form


def read_job(form: Mapping[str, JsonValue]) -> Submission:
    """Read a job by its workflow, or raise what is wrong with the body."""
    try:
        return Submission.model_validate(form)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from error


def convert_priority(form: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a submission with its priority on our scale."""
    priority = form.get("priority")
    if priority is None:
        return dict(form)
    if not isinstance(priority, int) or isinstance(priority, bool) or priority not in PRIORITIES:
        raise InvalidInput(
            f"`priority` is a number from 1, the most urgent, to 10 at {PREFIX}/submit.",
            hint="Leave it out for the normal one. At /api/platform/submit 0 is normal, and 10 the most urgent.",
        )
    return {**form, "priority": PRIORITIES[priority]}
