"""`graticule verify`: whether every output in service is there, and is what was made."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from graticule.cli.console import done, fail, out, say, story, warn
from graticule.cli.settings import load_settings
from graticule.core import json_codec
from graticule.core.errors import GraticuleError

if TYPE_CHECKING:
    from graticule.config import Settings
    from graticule.services.output_verification import OutputVerification, VerifiedOutput

FAULTS, NOT_RUN = 1, 2  # exit codes
QUIET_SECONDS: Final = 10.0
MIB: Final = 1024 * 1024


def verify(
    asset: Annotated[str | None, typer.Option(metavar="ID", help="Only the outputs of this asset.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Check existence, sizes and etags; leave the contents out.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document per line: each fault, and then a summary.")
    ] = False,
) -> None:
    """Check every output that is served: tables, files and catalog items, and their copies for the public.

    Each fault is one line, with the command that fixes it; a backup may be restored instead. The results stay in the
    database, where the orchestrators' metrics show them. It only reads outputs, while everything runs or without.

    Exit codes: 0 no faults, 1 faults, 2 at least one output could not be checked.

    Examples:

      graticule verify

      graticule verify --quick

      graticule verify --asset 0af3e9c1d2b44c0f9e8d7c6b5a493827
    """
    report = _Report(as_json=as_json)
    try:
        asyncio.run(_verify(load_settings(), report, asset, is_quick=quick))
    except GraticuleError as error:
        fail(error.message, error.hint)
        raise typer.Exit(NOT_RUN) from None
    report.summarize()
    if report.counts["errors"]:
        raise typer.Exit(NOT_RUN)
    if report.counts["damaged"]:
        raise typer.Exit(FAULTS)


async def _verify(settings: "Settings", report: "_Report", asset: str | None, *, is_quick: bool) -> None:
    from graticule.services.output_verification import OutputVerification
    from graticule.storage.place import storage_of

    async with _database(settings) as database:
        with story.status("Checking…") as status:
            progress = _Progress(status)
            run = OutputVerification(database, storage_of(settings), is_quick=is_quick, on_read=progress.read)
            await _follow(run, report, progress, asset)


async def _follow(run: "OutputVerification", report: "_Report", progress: "_Progress", asset: str | None) -> None:
    progress.total = await run.count(asset)
    async for verified in run.run(asset):
        report.add(verified)
        progress.advance()


@asynccontextmanager
async def _database(settings: "Settings") -> AsyncIterator[Any]:
    """Open the database of an installation, whose server is started if it is embedded and does not run."""
    from graticule.cli.connection import owner_connection
    from graticule.core.table import DatabaseRole
    from graticule.repositories.database import Database

    async with owner_connection(settings) as owner:
        external = settings.external_database
        url = owner if external is None else external.get_secret_value()
        async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=1, name="graticule verify") as database:
            yield database


class _Report:
    """Prints what is found as it is found."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.counts = Counter(checked=0, damaged=0, faults=0, errors=0, without_hash=0)

    def add(self, verified: "VerifiedOutput") -> None:
        """Print the faults of an output, one line each."""
        self.counts["checked"] += verified.error is None
        self.counts["damaged"] += bool(verified.faults)
        self.counts["faults"] += len(verified.faults)
        self.counts["errors"] += verified.error is not None
        self.counts["without_hash"] += bool(verified.unhashed)
        self._print_faults(verified)
        output = verified.output
        version = f"Asset {output.asset_id}, version {output.version_ordinal}, {output.audience}"
        if verified.error is not None:
            fail(f"{version}: it could not be checked. {verified.error}")
        elif verified.unhashed:
            say(f"{version}: no hash recorded for {', '.join(verified.unhashed)}; only its existence was checked.")

    def _print_faults(self, verified: "VerifiedOutput") -> None:
        from graticule.services.output_verification import fix_of

        output = verified.output
        for fault in verified.faults:
            fix = fix_of(output, fault)
            if self._as_json:
                revision = {"revision": output.revision}
                self._print_json({**output.key, **revision, **fault.model_dump(mode="json"), "fix": fix})
            else:
                version = f"{output.asset_id} version {output.version_ordinal} {output.audience}"
                out.print(f"{version}: {fault.message} Fix: {fix}", soft_wrap=True)

    def summarize(self) -> None:
        """Print how the run ended."""
        if self._as_json:
            self._print_json(dict(self.counts))
            return
        counts = self.counts
        if counts["without_hash"]:
            say(f"Outputs without a recorded hash: {counts['without_hash']:,}.")
            say("Reprocessing records one where an earlier release made the output.")
        if counts["errors"]:
            warn(f"Outputs that could not be checked: {counts['errors']:,}.")
        if counts["damaged"]:
            warn(f"Outputs checked: {counts['checked']:,}. Damaged: {counts['damaged']:,}. Restore them or fix them.")
        else:
            done(f"Outputs checked: {counts['checked']:,}. No faults.")

    def _print_json(self, document: dict[str, Any]) -> None:
        out.print(json_codec.encode(document).decode(), soft_wrap=True)


class _Progress:
    """Shows how far the run is: in place in a terminal, and elsewhere by a line now and then."""

    def __init__(self, status: Any) -> None:
        self._status = status
        self._checked = self._bytes = 0
        self._shown_at = time.monotonic()
        self.total = 0

    def read(self, count: int) -> None:
        """Count bytes that were read."""
        self._bytes += count
        self._show()

    def advance(self) -> None:
        """Count an output that was checked."""
        self._checked += 1
        self._show()

    def _show(self) -> None:
        if time.monotonic() - self._shown_at < (0.2 if story.is_terminal else QUIET_SECONDS):
            return
        self._shown_at = time.monotonic()
        sentence = f"{self._checked:,} of {self.total:,} outputs checked, {self._bytes / MIB:,.0f} MiB read"
        if story.is_terminal:
            self._status.update(sentence)
        else:
            say(f"{sentence}.")
