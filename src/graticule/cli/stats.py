"""`graticule stats …`: the questions that are asked of the platform as a whole."""

from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import (
    AsJson,
    Limit,
    ServerAddress,
    as_typed,
    ask,
    ask_all,
    local_time,
    page_size,
    print_models,
)
from graticule.cli.console import out, print_columns, say, warn
from graticule.cli.refs import RefOption, read_refs, told_refs
from graticule.core.errors import InvalidInput

if TYPE_CHECKING:
    from graticule.repositories.platform_statistics import VersionAtHand
    from graticule.services.statistics import Statistics

app = typer.Typer()


@app.callback(invoke_without_command=True)
def stats(context: typer.Context) -> None:
    """What is stuck, what failed, how long things take, and the load. Without a command: the numbers of today."""
    if context.invoked_subcommand is None:
        as_typed(context, "today")


@app.command()
def today(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Count the jobs by status, and those that ended in the last 24 hours."""
    from graticule.client import calls

    found = ask(server, calls.get_statistics())
    if as_json:
        print_models(found)
    else:
        _tell_today(found)


def _tell_today(found: "Statistics") -> None:
    for status, count in found.jobs.items():
        more = "+" if count >= found.counted_up_to else ""
        out.print(f"{count:>8}{more} {status}")
    ended = f"{found.completed_24h} completed, {found.failed_24h} failed, {found.cancelled_24h} cancelled"
    out.print(f"In the last 24 hours: {ended}.", soft_wrap=True)


@app.command()
def stuck(
    minutes: Annotated[int, typer.Option(min=0, help="Processing for longer than this.")] = 60,
    limit: Limit = 50,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List versions that have been processing for over an hour, longest first, and queues without a worker."""
    from graticule.cli.job_picture import told_seconds
    from graticule.cli.unserved_queues import unserved_queue
    from graticule.client import calls

    found = ask_all(server, calls.list_stuck(minutes=minutes, limit=page_size(limit)), limit)
    unserved = [queue for queue in ask(server, calls.list_queues()).items if queue.unserved]
    for queue in unserved:
        warn(unserved_queue(queue))
    if as_json:
        print_models(found)
    elif not found:
        say("No version is stuck." if unserved else "Nothing is stuck.")
    else:
        heads = (*VERSION, "for", "job")
        print_columns(heads, [(*_version(each), told_seconds(each.seconds), _job(each)) for each in found])


@app.command()
def failed(limit: Limit = 50, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """List versions that need attention, newest first: processing, an export or a withdrawal failed.

    `graticule asset retry` processes a version again; `graticule retry` continues an export or a withdrawal.
    """
    from graticule.client import calls

    found = ask_all(server, calls.list_failed(limit=page_size(limit)), limit)
    if as_json:
        print_models(found)
    elif not found:
        say("Nothing has failed.")
    else:
        heads = (*VERSION, "what", "failed", "job", "error")
        rows = [
            (*_version(each), each.purpose, local_time(each.failed_at), each.job_id or "", each.error or "")
            for each in found
        ]
        print_columns(heads, rows)


@app.command()
def durations(
    days: Annotated[int, typer.Option(min=1, max=365, help="Of the last so many days.")] = 7,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Give the median and the 95th percentile of the processing time, by workflow."""
    from graticule.cli.job_picture import told_seconds
    from graticule.client import calls

    found = ask(server, calls.list_durations(days=days)).items
    if as_json:
        print_models(found)
    elif not found:
        say("No job has completed in this time.")
    else:
        rows = [
            (each.workflow_id, str(each.jobs), told_seconds(each.p50_seconds), told_seconds(each.p95_seconds))
            for each in found
        ]
        print_columns(("workflow", "jobs", "median", "95 %"), rows)


@app.command()
def attempts(
    at_least: Annotated[int, typer.Option(min=2, help="So many jobs, or more.")] = 3,
    limit: Limit = 50,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List versions that took many jobs, most first."""
    from graticule.client import calls

    found = ask_all(server, calls.list_attempts(at_least=at_least, limit=page_size(limit)), limit)
    if as_json:
        print_models(found)
    elif not found:
        say("No version took so many jobs.")
    else:
        heads = (*VERSION, "jobs", "state", "error")
        rows = [(*_version(each), str(each.job_count), each.processing_state, each.error or "") for each in found]
        print_columns(heads, rows)


@app.command()
def load(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Give the jobs of each workflow: under way now, and ended in the last 24 hours."""
    from graticule.client import calls

    found = ask(server, calls.list_load()).items
    if as_json:
        print_models(found)
    elif not found:
        say("There was no job in the last 24 hours.")
    else:
        heads = ("workflow", "pending", "running", "completed 24 h", "failed 24 h", "cancelled 24 h")
        print_columns(heads, [tuple(str(value) for value in each.model_dump().values()) for each in found])


@app.command()
def dataset(ref: RefOption = None, limit: Limit = 50, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """List all assets of a dataset, whatever the resource.

    Example:

      graticule stats dataset --ref dataset_id=0038272
    """
    from graticule.cli.asset_lines import print_assets
    from graticule.client import calls

    refs = read_refs(ref)
    if not refs:
        raise InvalidInput("Which dataset?", hint="Name it as --ref dataset_id=0038272.")
    print_assets(ask_all(server, calls.list_dataset(refs, limit=page_size(limit)), limit), as_json)


VERSION = ("asset", "version", "platform", "refs")


def _version(each: "VersionAtHand") -> tuple[str, ...]:
    version = f"{each.version_ordinal} ({each.version_label})"
    return each.asset_id, version, each.platform_id, told_refs(each.platform_refs)


def _job(each: "VersionAtHand") -> str:
    return each.current_job_id or ""
