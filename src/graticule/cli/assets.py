"""`graticule asset …`: send data, see what became of it, and decide who may see it."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asked import asked
from graticule.cli.asking import AsJson, Limit, ServerAddress, ask, ask_all, first, page_size, print_models, with_client
from graticule.cli.refs import RefOption, read_refs
from graticule.cli.seen_revision import (
    Deciding,
    RevisionOption,
    RevisionToConfirm,
    SeenRevision,
    confirm_revision,
    find_revision,
    is_interactive,
)
from graticule.core.models.platform import DataType, UrlMode
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState

if TYPE_CHECKING:
    from graticule.client import AsyncClient, Call
    from graticule.core.asset_views import StaffAsset
    from graticule.core.exchange import AssetChange, SubmissionReceipt
    from graticule.core.models import AssetRevision, AssetVersion

app = typer.Typer(no_args_is_help=True, help="Send data, see what became of it, and decide who may see it.")
MOST_VERSIONS = 500
URL_MODES = f"[{'|'.join(UrlMode)}]"


class Clearance(StrEnum):
    """Who may see an asset."""

    OUO = "ouo"
    PUBLIC = "public"


AssetArgument = Annotated[str, typer.Argument(metavar="ASSET", help="The asset's id.")]
Version = Annotated[
    int | None, typer.Option("--version", min=0, help="Our number of the version; by default the one that it suits.")
]
Expected = Annotated[
    int | None,
    typer.Option("--expect", min=1, help="The asset's `version` that you have seen; refused if it changed since."),
]
ReasonOption = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and partners see it.")]
NoteOption = Annotated[str | None, typer.Option("--note", help="What you add; it is kept, and partners see it.")]
ClearanceOption = Annotated[Clearance, typer.Option("--clearance", "-c", help="Who may see it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")]


@app.command()
def submit(
    *,
    platform: Annotated[str, typer.Option(help="The partner, as `ddh`.")],
    ref: RefOption = None,
    label: Annotated[str, typer.Option(help="The partner's name of the version.")],
    data_type: Annotated[DataType, typer.Option("--type", help="What kind of data it is.")],
    container: Annotated[str, typer.Option(help="The container of the file.")],
    file: Annotated[str, typer.Option(help="The path of the file in its container.")],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="KEY=VALUE", help="A processing option; may be repeated. JSON, or text."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="The label exists: make a new revision.")] = False,
    clearance: Annotated[Clearance | None, typer.Option(help="What is proposed to the reviewer.")] = None,
    callback_url: Annotated[str | None, typer.Option(help="Is told when processing ends.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=10, help="0 is normal, 10 most urgent.")] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="A second submission with the same key gives the first receipt.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the job until it ends.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Send a partner's data: a new version of a dataset, or with --overwrite a new revision of a version.

    Example:

      graticule asset submit --platform ddh --ref dataset_id=0038272 --ref resource_id=dem --label 2026-03 \\
      --type raster --container bronze --file ddh/dem/europe.tif --watch
    """
    from graticule.cli.submission import read_options
    from graticule.client import calls
    from graticule.core.exchange import PlatformSubmission

    given = {
        "platform_id": platform,
        "platform_refs": read_refs(ref),
        "version_label": label,
        "data_type": data_type,
        "container_name": container,
        "file_name": file,
        "processing_options": read_options(option) or None,
        "overwrite": overwrite or None,
        "clearance_level": clearance,
        "callback_url": callback_url,
        "priority": priority,
    }
    wanted = calls.submit_data(asked(PlatformSubmission, given), idempotency_key=key)
    _begun(ask(server, wanted), server, watch=watch, as_json=as_json)


def _begun(receipt: "SubmissionReceipt", server: str | None, *, watch: bool, as_json: bool) -> None:
    """Tell what a submission came to, and show its job if that is wanted and known."""
    from graticule.cli.console import done, out, warn
    from graticule.cli.jobs import watch as watch_job

    for warning in receipt.warnings:
        warn(warning)
    if as_json:
        print_models(receipt)
    else:
        version = f"Version {receipt.version_ordinal}, revision {receipt.revision}, of {receipt.asset_id}"
        done(f"{version} is {receipt.status}; `graticule asset status {receipt.request_id}` tells how it stands.")
        out.print(str(receipt.request_id))
    if watch and receipt.job_id and not as_json:
        watch_job(receipt.job_id, server)


@app.command()
def status(
    key: Annotated[str, typer.Argument(metavar="ID", help="A request, an asset (its newest request), or a job.")],
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Tell how a request stands: progress, review, and where it is served. Exits with 1 when it has failed."""
    from graticule.cli.asset_lines import print_status
    from graticule.client import calls
    from graticule.core.errors import NotFound
    from graticule.core.exchange import PlatformStatus
    from graticule.core.states import RequestStatus

    found = ask(server, calls.get_status(key))
    if not isinstance(found, PlatformStatus):
        raise NotFound(f"The job {key} belongs to no request.", hint=f"Look at it with `graticule watch {key}`.")
    if as_json:
        print_models(found)
    else:
        print_status(found)
    if found.status is RequestStatus.FAILED:
        raise typer.Exit(1)


@app.command("list")
def list_assets(
    *,
    platform: Annotated[str | None, typer.Option(help="Only this partner's.")] = None,
    ref: RefOption = None,
    data_type: Annotated[DataType | None, typer.Option("--type", help="Only this kind of data.")] = None,
    clearance: Annotated[ClearanceState | None, typer.Option(help="Only assets with this clearance.")] = None,
    approval: Annotated[ApprovalState | None, typer.Option(help="With a version that stands there.")] = None,
    processing: Annotated[ProcessingState | None, typer.Option(help="With a version that stands there.")] = None,
    text: Annotated[str | None, typer.Option(help="Words of the refs, the title or the description.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also those that were unpublished.")] = False,
    limit: Limit = 20,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List assets, newest first, with how the newest version of each stands.

    Examples:

      graticule asset list --approval pending_review

      graticule asset list --platform ddh --ref dataset_id=0038272
    """
    from graticule.cli.asset_lines import print_assets
    from graticule.client import calls
    from graticule.client.calls.assets import AssetFilters

    asked_for: AssetFilters = {
        "platform": platform,
        "refs": read_refs(ref),
        "data_type": data_type,
        "clearance_state": clearance,
        "approval_state": approval,
        "processing_state": processing,
        "q": text,
        "deleted": deleted,
    }
    wanted = calls.list_assets(limit=page_size(limit), **asked_for)
    print_assets(ask_all(server, wanted, limit), as_json)


@app.command()
def show(asset: AssetArgument, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Show an asset with all its versions, the deleted ones too."""
    from graticule.cli.asking import print_json
    from graticule.cli.asset_lines import print_asset

    found, versions = with_client(server, lambda client: _asset(client, asset))
    if as_json:
        told = [version.model_dump(mode="json") for version in versions]
        print_json({**found.model_dump(mode="json"), "versions": told})
    else:
        print_asset(found, versions)


async def _asset(client: "AsyncClient", asset_id: str) -> "tuple[StaffAsset, list[AssetVersion]]":
    from graticule.client import calls

    versions = calls.list_asset_versions(asset_id, limit=MOST_VERSIONS)
    return await client.send(calls.get_asset(asset_id)), await first(client, versions, MOST_VERSIONS)


@app.command()
def history(asset: AssetArgument, limit: Limit = 500, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Print what happened to an asset in order, and who did it."""
    from graticule.cli.asset_lines import print_history
    from graticule.client import calls

    found = ask_all(server, calls.list_asset_history(asset, limit=page_size(limit)), limit)
    if as_json:
        print_models(found)
    else:
        print_history(found)


@app.command()
def approve(
    asset: AssetArgument,
    *,
    clearance: ClearanceOption,
    version: Version = None,
    revision: RevisionOption = None,
    note: NoteOption = None,
    expected: Expected = None,
    dry_run: DryRun = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Let a version be seen: by us (ouo), or by everyone (public), which starts the export."""
    from graticule.client import calls
    from graticule.core.exchange import Approval

    seen = _find_revision(server, asset, version, revision, Deciding.PENDING, Deciding.SERVED)
    given = {
        "clearance_level": clearance,
        **asdict(seen),
        "note": note,
        "expected_version": expected,
        "dry_run": dry_run or None,
    }
    _change(server, calls.approve(asset, asked(Approval, given)), as_json)


@app.command()
def reject(
    asset: AssetArgument,
    *,
    reason: ReasonOption,
    version: Version = None,
    revision: RevisionOption = None,
    note: NoteOption = None,
    expected: Expected = None,
    dry_run: DryRun = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Refuse a version, with the reason; the partner may overwrite it."""
    from graticule.client import calls
    from graticule.core.exchange import Rejection

    seen = _find_revision(server, asset, version, revision, Deciding.PENDING)
    given = {"reason": reason, **asdict(seen), "note": note, "expected_version": expected, "dry_run": dry_run or None}
    _change(server, calls.reject(asset, asked(Rejection, given)), as_json)


@app.command()
def revoke(
    asset: AssetArgument,
    *,
    reason: ReasonOption,
    version: Version = None,
    revision: RevisionOption = None,
    note: NoteOption = None,
    expected: Expected = None,
    dry_run: DryRun = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Take an approved version out of service, with the reason; the one before it is the latest again."""
    from graticule.client import calls
    from graticule.core.exchange import Revocation

    seen = _find_revision(server, asset, version, revision, Deciding.SERVED)
    given = {"reason": reason, **asdict(seen), "note": note, "expected_version": expected, "dry_run": dry_run or None}
    _change(server, calls.revoke(asset, asked(Revocation, given)), as_json)


@app.command()
def clearance(
    asset: AssetArgument,
    level: Annotated[Clearance, typer.Argument(help="Who may see it.")],
    *,
    version: Version = None,
    revision: RevisionOption = None,
    note: NoteOption = None,
    expected: Expected = None,
    dry_run: DryRun = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Say who may see an asset. From public back to ouo, the copies outside are removed."""
    from graticule.client import calls
    from graticule.core.exchange import ClearanceChange

    seen = _find_revision(server, asset, version, revision, Deciding.SERVED)
    given = {
        "clearance_level": level,
        **asdict(seen),
        "note": note,
        "expected_version": expected,
        "dry_run": dry_run or None,
    }
    _change(server, calls.change_clearance(asset, asked(ClearanceChange, given)), as_json)


def _parse_url_mode(text: str) -> UrlMode:
    try:
        return UrlMode(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither {' nor '.join(UrlMode)}.") from None


@app.command("url-mode")
def url_mode(
    asset: AssetArgument,
    mode: Annotated[
        UrlMode, typer.Argument(parser=_parse_url_mode, metavar=URL_MODES, help="Which versions its addresses reach.")
    ],
    *,
    expected: Expected = None,
    dry_run: DryRun = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Say which versions the service addresses of an asset reach."""
    from graticule.client import calls
    from graticule.core.exchange import UrlModeChange

    given = {"url_mode": mode, "expected_version": expected, "dry_run": dry_run or None}
    _change(server, calls.change_url_mode(asset, asked(UrlModeChange, given)), as_json)


@app.command("delete-version")
def delete_version(
    asset: AssetArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=0, help="Our number of the version.")],
    *,
    expected: Expected = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Delete a version that is not in service: it is resolved then, and a new one can be sent."""
    from graticule.client import calls

    _change(server, calls.delete_version(asset, version, expected_version=expected), as_json)


@app.command()
def unpublish(
    asset: AssetArgument,
    *,
    reason: Annotated[str | None, typer.Option("--reason", "-r", help="Why; it is kept, and partners see it.")] = None,
    expected: Expected = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Remove an asset from all services. Its rows stay, and a new submission revives it."""
    from graticule.client import calls
    from graticule.core.exchange import Removal

    if not (yes or dry_run):
        typer.confirm(f"Remove {asset} from all services?", abort=True, err=True)
    given = {"reason": reason, "expected_version": expected, "dry_run": dry_run or None}
    _change(server, calls.unpublish(asset, asked(Removal, given)), as_json)


@app.command()
def reprocess(
    asset: AssetArgument,
    *,
    reason: ReasonOption,
    version: Version = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the job until it ends.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Process a version again from the same source, as a new revision."""
    from graticule.client import calls
    from graticule.core.exchange import Reprocessing

    wanted = calls.reprocess(asset, asked(Reprocessing, {"reason": reason, "version_ordinal": version}))
    _begun(ask(server, wanted), server, watch=watch, as_json=as_json)


@app.command()
def retry(
    asset: AssetArgument,
    *,
    version: Version = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the job until it ends.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Process a version again that failed: the same request, a new job."""
    from graticule.client import calls
    from graticule.core.exchange import Retrial

    wanted = calls.retry(asset, asked(Retrial, {"version_ordinal": version}))
    _begun(ask(server, wanted), server, watch=watch, as_json=as_json)


def _find_revision(
    server: str | None, asset: str, ordinal: int | None, named: int | None, *decisions: Deciding
) -> SeenRevision:
    """Return what was named, or at a terminal what is shown there."""
    if named is not None or not is_interactive():
        return SeenRevision(ordinal, named)
    found, made = with_client(server, lambda client: _read_revision(client, asset, ordinal, *decisions))
    return SeenRevision(ordinal, None) if found is None else confirm_revision(found, made)


async def _read_revision(
    client: "AsyncClient", asset: str, ordinal: int | None, *decisions: Deciding
) -> "tuple[RevisionToConfirm | None, AssetVersion | AssetRevision | None]":
    """Read what would be decided on, and how it was made: of what was succeeded, that is kept elsewhere."""
    from graticule.client import calls

    _, versions = await _asset(client, asset)
    found = find_revision(versions, ordinal, *decisions)
    if found is None or not found.successors:
        return found, None if found is None else found.version
    limit = found.successors  # newest first
    kept = calls.list_asset_revisions(asset, version_ordinal=found.version.version_ordinal, limit=page_size(limit))
    made = [each for each in await first(client, kept, limit) if each.revision == found.revision]
    return found, made[0] if made else None


def _change(server: str | None, call: "Call[AssetChange]", as_json: bool) -> None:
    """Ask for a change of an asset, and tell how it stands then."""
    from graticule.cli.asset_lines import tell_change

    tell_change(ask(server, call), as_json)
