"""Submit a job as the command line was told to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from graticule.cli.asked import asked
from graticule.cli.console import done, out, say, warn
from graticule.cli.inputs import read_inputs_file, split_pairs, typed_inputs
from graticule.client import AsyncClient, Document, calls, document
from graticule.core.states import JobStatus
from graticule.services.jobs import Submission


@dataclass(frozen=True, slots=True)
class Wanted:
    """The job that someone wants."""

    workflow_id: str
    pairs: Sequence[str]
    inputs_file: str | None = None
    key: str | None = None
    priority: int = 0
    resubmit: bool = False


async def submit_job(client: AsyncClient, wanted: Wanted, *, watch: bool, as_json: bool) -> Document:
    """Submit the job, show it if asked to, and give it as it is then."""
    message = {
        "workflow_id": wanted.workflow_id,
        "input_params": await _inputs(client, wanted),
        "idempotency_key": wanted.key,
        "priority": wanted.priority,
    }
    given = {name: value for name, value in message.items() if value is not None}
    call = calls.submit_job(asked(Submission, given), resubmit=wanted.resubmit)
    job, created = await client.send(call.read_as(_as_submitted))
    if not created:
        go_on = " --resubmit lets it go on." if job["status"] in {JobStatus.FAILED, JobStatus.CANCELLED} else ""
        say(f"An earlier submission made this job already; it is {job['status']}.{go_on}")
    for warning in job.get("warnings", ()):
        warn(warning)
    if watch:
        job = await _watched(client, job, as_json)
    _tell(job, watch=watch, as_json=as_json)
    return job


def _as_submitted(response: httpx.Response) -> tuple[Document, bool]:
    """Give the job as it came, and whether it was made just now."""
    job: Document = response.json()
    return job, response.status_code == httpx.codes.CREATED


async def _inputs(client: AsyncClient, wanted: Wanted) -> dict[str, Any]:
    """Read a file's inputs as they are, and those of the command line by their declared types; these win."""
    given = read_inputs_file(wanted.inputs_file) if wanted.inputs_file else {}
    pairs = split_pairs(wanted.pairs)
    if not pairs:
        return given
    workflow = await client.send(document(calls.get_workflow(wanted.workflow_id)))
    return given | typed_inputs(pairs, workflow["inputs"])


async def _watched(client: AsyncClient, job: Document, as_json: bool) -> Document:
    from graticule.cli.watch import NoView, watch_job

    return (await watch_job(client, job["job_id"], NoView() if as_json else None)).job


def _tell(job: Document, *, watch: bool, as_json: bool) -> None:
    from graticule.cli.asking import print_json

    if as_json:
        print_json(job)
    elif not watch:
        done(f"Job of {job['workflow_id']}; `graticule watch {job['job_id']}` shows it.")
        out.print(job["job_id"], soft_wrap=True)


def read_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Read processing options: what is JSON counts as such, and all else is text."""
    return {name: _json_or_text(value) for name, value in split_pairs(pairs or []).items()}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
