"""`graticule prune`: what ended long ago leaves the database and the storage."""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from graticule.cli.console import done, say, story
from graticule.cli.settings import load_settings
from graticule.core.errors import InvalidInput

if TYPE_CHECKING:
    from graticule.services.retention import Removed, RetentionService

QUIET_SECONDS: Final = 5.0
UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def prune(
    older_than: Annotated[str, typer.Option(metavar="TIME", help="How long ago a job must have ended: 90d, 12h, 4w.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Jobs that one transaction removes.")] = 200,
    yes: Annotated[bool, typer.Option("--yes", help="Needed for 0d, which removes every job that has ended.")] = False,
) -> None:
    """Remove jobs that ended long ago with all that belongs to them: nodes, tasks, results, events, stored files.

    Active jobs stay, and so does the current job of each asset version. Empty months of the event table are dropped,
    and those of the coming months are made. It works on the database itself, while everything runs or without.

    Examples:

      graticule prune --older-than 90d --dry-run

      graticule prune --older-than 90d
    """
    age = parse_age(older_than)
    if not age and not yes:
        raise InvalidInput("0 removes every job that has ended.", hint="If that is meant, say so with --yes.")
    asyncio.run(_prune(datetime.now(UTC) - age, batch, dry_run=dry_run))


def parse_age(text: str) -> timedelta:
    """Read an age such as 90d, 12h or 4w."""
    found = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip())
    if found is None:
        raise InvalidInput(f"{text!r} is not an age.", hint="Write a number of hours, days or weeks: 12h, 90d, 4w.")
    age = timedelta(**{UNITS[found[2]]: int(found[1])})
    if age > timedelta(days=365 * 100):
        raise InvalidInput(f"{text!r} is more than a hundred years.", hint="Write a number that some job can reach.")
    return age


async def _prune(before: datetime, batch: int, *, dry_run: bool) -> None:
    from graticule.cli.connection import owner_connection
    from graticule.core.table import DatabaseRole
    from graticule.repositories.database import Database
    from graticule.services.retention import RetentionService
    from graticule.storage.place import storage_of

    settings = load_settings()
    async with owner_connection(settings) as owner:
        external = settings.external_database
        url = owner if external is None else external.get_secret_value()
        async with (
            Database(url, DatabaseRole.ORCHESTRATOR, pool_size=1, name="graticule prune") as database,
            Database(owner, DatabaseRole.OWNER, pool_size=1, name="graticule prune") as owned,
        ):
            service = RetentionService(database, owned, storage_of(settings))
            if dry_run:
                _tell_what_would_go(await service.count(before), before)
            else:
                _tell_what_went(await _with_progress(service, before, batch))


async def _with_progress(service: "RetentionService", before: datetime, batch: int) -> "Removed":
    """Show how far it is: in place in a terminal, and elsewhere by a line now and then."""
    with story.status("Removing…") as status:
        told_at = time.monotonic()

        def tell(removed: "Removed") -> None:
            nonlocal told_at
            sentence = f"{removed.rows.jobs:,} jobs are removed so far."
            if story.is_terminal:
                status.update(sentence)
            elif time.monotonic() - told_at > QUIET_SECONDS:
                told_at = time.monotonic()
                say(sentence)

        return await service.prune(before, batch=batch, tell=tell)


def _tell_what_would_go(found: "Removed", before: datetime) -> None:
    say(f"What ended before {before:%Y-%m-%d %H:%M} UTC would be removed: {_rows(found)}. Nothing was changed.")


def _tell_what_went(removed: "Removed") -> None:
    done(f"Removed {_rows(removed)}.")
    others = {
        "stored outputs of so many jobs": removed.outputs,
        "working folders of jobs": removed.scratch,
        "files that were never finished": removed.unfinished,
        "tables that jobs began to fill": ", ".join(removed.tables),
        "former contents of workflows": removed.workflows,
        "job messages that were dealt with": removed.messages,
        "processes that stopped long ago": removed.processes,
        "empty months of the events": ", ".join(removed.partitions),
        "made for the coming months": ", ".join(removed.partitions_made),
    }
    for name, value in others.items():
        if value:
            say(f"{name}: {value}")


def _rows(removed: "Removed") -> str:
    rows = removed.rows
    counts = (f"{rows.jobs:,} jobs", f"{rows.nodes:,} nodes", f"{rows.tasks:,} tasks", f"{rows.results:,} results")
    return f"{', '.join(counts)} and {rows.events:,} events"
