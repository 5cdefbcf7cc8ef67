"""Submit a job as the command line was told to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graticule.cli.client import ApiClient, Document
from graticule.cli.console import done, out, say
from graticule.cli.inputs import read_inputs_file, split_pairs, typed_inputs
from graticule.core.states import JobStatus


@dataclass(frozen=True, slots=True)
class Wanted:
    """The job that someone wants."""

    workflow_id: str
    pairs: Sequence[str]
    inputs_file: str | None = None
    key: str | None = None
    priority: int = 0
    resubmit: bool = False


async def submit_job(client: ApiClient, wanted: Wanted, *, watch: bool, as_json: bool) -> Document:
    """Submit the job, show it if asked to, and give it as it is then."""
    message = {
        "workflow_id": wanted.workflow_id,
        "input_params": await _inputs(client, wanted),
        "idempotency_key": wanted.key,
        "priority": wanted.priority,
    }
    given = {name: value for name, value in message.items() if value is not None}
    job, created = await client.submit(given, resubmit=wanted.resubmit)
    if not created:
        go_on = " --resubmit lets it go on." if job["status"] == JobStatus.FAILED else ""
        say(f"An earlier submission made this job already; it is {job['status']}.{go_on}")
    if watch:
        job = await _watched(client, job, as_json)
    _tell(job, watch=watch, as_json=as_json)
    return job


async def _inputs(client: ApiClient, wanted: Wanted) -> dict[str, Any]:
    """Read a file's inputs as they are, and those of the command line by their declared types; these win."""
    given = read_inputs_file(wanted.inputs_file) if wanted.inputs_file else {}
    pairs = split_pairs(wanted.pairs)
    if not pairs:
        return given
    workflow = await client.workflow(wanted.workflow_id)
    return given | typed_inputs(pairs, workflow["inputs"])


async def _watched(client: ApiClient, job: Document, as_json: bool) -> Document:
    from graticule.cli.watch import NoView, watch_job

    return (await watch_job(client, job["job_id"], NoView() if as_json else None)).job


def _tell(job: Document, *, watch: bool, as_json: bool) -> None:
    from graticule.cli.jobs import print_json

    if as_json:
        print_json(job)
    elif not watch:
        done(f"Job of {job['workflow_id']}; `graticule watch {job['job_id']}` shows it.")
        out.print(job["job_id"], soft_wrap=True)
