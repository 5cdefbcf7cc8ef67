"""`graticule submit`, `jobs`, `watch`, `events`, `cancel`, `retry`: jobs from the command line."""

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import (
    MOST_ITEMS,
    AsJson,
    ServerAddress,
    ask,
    ask_all,
    page_size,
    print_json,
    with_client,
)
from graticule.cli.console import done, out, print_columns, say
from graticule.core.states import JobStatus

if TYPE_CHECKING:
    from graticule.client import AsyncClient, Document

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]


def submit(
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="The workflow's id, as `demo`.")],
    *,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="An input; may be repeated. Arrays: JSON, or @FILE."),
    ] = None,
    params_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Inputs as a JSON object; `-` reads standard input.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="A second submission with the same key gives the first job.")
    ] = None,
    resubmit: Annotated[
        bool,
        typer.Option(
            "--resubmit", help="If the job of this key, or of the same inputs, failed or was cancelled, let it go on."
        ),
    ] = False,
    priority: Annotated[int, typer.Option(min=0, max=10, help="0 is normal, 10 most urgent.")] = 0,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the job until it ends.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job and print its id. A value becomes what the workflow declares: text stays text.

    With --watch it exits with 0 when the job completed, and with 1 when it failed or was cancelled.

    Examples:

      graticule submit demo --watch

      graticule submit demo -p size_mb=50 -p chunks=4 --priority 5

      graticule submit demo --params-file inputs.json --key import-2026-03 --resubmit
    """
    from graticule.cli.submission import Wanted, submit_job

    wanted = Wanted(workflow, param or [], params_file, key, priority, resubmit)
    with _watching() if watch else contextlib.nullcontext():
        _finish(with_client(server, lambda client: submit_job(client, wanted, watch=watch, as_json=as_json)), watch)


def _finish(job: "Document", watched: bool) -> None:
    """End with the status of a job that was watched."""
    if watched and job["status"] != JobStatus.COMPLETED:
        raise typer.Exit(1)


@contextlib.contextmanager
def _watching() -> Iterator[None]:
    """An interrupt ends the watching, not the job."""
    try:
        yield
    except KeyboardInterrupt:
        say("The job goes on; `graticule watch` shows it again, `graticule cancel` ends it.")
        raise typer.Exit(130) from None


def watch(job: JobArgument, server: ServerAddress = None) -> None:
    """Show a job live until it ends: its nodes, fan-outs with their progress, retries and times.

    Exits with 0 when the job completed, and with 1 when it failed or was cancelled.
    """

    async def show(client: "AsyncClient") -> "Document":
        from graticule.cli.watch import watch_job

        return (await watch_job(client, job)).job

    with _watching():
        _finish(with_client(server, show), watched=True)


def jobs(
    *,
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs that stand there.")] = None,
    workflow: Annotated[str | None, typer.Option(help="Only jobs of this workflow.")] = None,
    search: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="The beginning of a job's id; or its asset, request, key, submitter…"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first.

    Examples:

      graticule jobs --status failed --workflow demo

      graticule jobs --search 01a1def4
    """
    from graticule.client import calls, documents

    wanted = calls.list_jobs(status=status, workflow_id=workflow, q=search, limit=page_size(limit))
    found = ask_all(server, documents(wanted), limit)
    if as_json:
        print_json(found)
        return
    if not found:
        is_any = status is None and workflow is None and search is None
        say("There is no job yet: `graticule submit demo --watch`." if is_any else "There is no such job.")
        return
    print_columns(("job", "workflow", "status", "created", "took", "error"), [_row(job) for job in found])


def _row(job: "Document") -> tuple[str, ...]:
    from graticule.cli.job_picture import seconds_between, told_seconds
    from graticule.cli.job_tree import SIGNS

    status = f"{SIGNS[job['status']][0]} {job['status']}"
    created = datetime.fromisoformat(job["created_at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    took = told_seconds(seconds_between(job["created_at"], job["ended_at"]))
    return job["job_id"], job["workflow_id"], status, created, took, job["error_message"] or ""


def events(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    server: ServerAddress = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document per line.")] = False,
) -> None:
    """Print the events of a job in order: when, what, to which node.

    Example:

      graticule events 019c5c1e3fd07e0c1d4b2a990f1c6a55 --follow
    """

    from graticule.client import calls, document, documents

    async def tell(client: "AsyncClient") -> None:
        from graticule.cli.event_lines import event_line

        past, live = calls.list_job_events(job, limit=MOST_ITEMS), calls.follow_job_events(job)
        began: datetime | None = None
        async for event in client.stream(document(live)) if follow else client.pages(documents(past)):
            began = began or datetime.fromisoformat(event["created_at"])
            line = json.dumps(event, ensure_ascii=False) if as_json else event_line(event, began)
            out.print(line, soft_wrap=True)

    with _watching():
        with_client(server, tell)


def cancel(job: JobArgument, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """End a job: queued tasks are withdrawn, running ones are told to stop."""
    from graticule.client import calls, document

    found = ask(server, document(calls.cancel_job(job)))
    if as_json:
        print_json(found)
    elif found["status"] == JobStatus.CANCELLED:
        done(f"Job {job} is cancelled.")
    elif found["ended_at"]:
        say(f"Job {job} has ended already: it is {found['status']}.")
    else:
        done(f"Job {job} will be cancelled by its orchestrator within moments.")


def retry(
    job: JobArgument,
    node: Annotated[
        str | None, typer.Option(help="Go on from this node and all that is downstream, not from what failed.")
    ] = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Let a failed job go on: what failed is tried again, what completed is kept.

    Example:

      graticule retry 019c5c1e3fd07e0c1d4b2a990f1c6a55 --node split
    """
    from graticule.client import calls, document

    found = ask(server, document(calls.retry_job(job, node)))
    if as_json:
        print_json(found)
    else:
        done(f"Job {job} is {found['status']} again; `graticule watch {job}` shows it.")
