"""Assets, versions and what happened to them, as lines of text."""

from collections.abc import Iterator, Sequence

from graticule.cli.asking import local_time, print_models
from graticule.cli.console import done, out, print_columns, say, warn
from graticule.cli.refs import told_refs
from graticule.core.asset_views import StaffAsset
from graticule.core.exchange import AssetChange, CopyState, PlatformStatus
from graticule.core.models import AssetVersion, Event
from graticule.core.states import ApprovalState, RequestStatus


def print_assets(assets: Sequence[StaffAsset], as_json: bool) -> None:
    """Print a list of assets, each with how its newest version stands."""
    if as_json:
        print_models(assets)
    elif not assets:
        say("There is no such asset.")
    else:
        heads = ("asset", "platform", "refs", "type", "clearance", "newest version", "processing", "approval")
        print_columns(heads, [_asset_row(asset) for asset in assets])


def _asset_row(asset: StaffAsset) -> tuple[str, ...]:
    newest = asset.newest_version
    states = (
        (f"{newest.version_ordinal} ({newest.version_label})", newest.processing_state, newest.approval_state)
        if newest
        else ("", "", "")
    )
    clearance = "unpublished" if asset.deleted_at else asset.clearance_state
    return asset.asset_id, asset.platform_id, told_refs(asset.platform_refs), asset.data_type, clearance, *states


def print_asset(asset: StaffAsset, versions: Sequence[AssetVersion]) -> None:
    """Print an asset and its versions."""
    out.print(f"{asset.asset_id}  {asset.data_type} of {asset.platform_id}: {told_refs(asset.platform_refs)}")
    latest = asset.latest_approved_version_ordinal
    served = "nothing is in service" if latest is None else f"version {latest} is the latest in service"
    gone = f"; unpublished {local_time(asset.deleted_at)} by {asset.deleted_by}" if asset.deleted_at else ""
    out.print(f"Clearance {asset.clearance_state}, {served}, addresses {asset.url_mode}{gone}.\n", soft_wrap=True)
    heads = ("version", "label", "revision", "processing", "approval", "reviewer", "job", "told")
    print_columns(heads, [_version_row(version) for version in versions])


def _version_row(version: AssetVersion) -> tuple[str, ...]:
    approval = "deleted" if version.deleted_at else "revoked" if version.revoked_at else str(version.approval_state)
    return (
        str(version.version_ordinal),
        version.version_label,
        str(version.revision),
        version.processing_state,
        approval,
        version.reviewer or "",
        version.current_job_id or "",
        version.last_error or version.rejection_reason or "",
    )


def print_history(events: Sequence[Event]) -> None:
    """Print what happened to an asset: when, what, to which version, by whom."""
    heads = ("when", "what", "version", "who", "details")
    print_columns(heads, [_event_row(event) for event in events])


def _event_row(event: Event) -> tuple[str, ...]:
    version = "" if event.version_ordinal is None else str(event.version_ordinal)
    details = ", ".join(f"{name}: {value}" for name, value in event.data.items() if value is not None)
    return local_time(event.created_at), event.event_type, version, event.actor or "", details


def tell_change(change: AssetChange, as_json: bool) -> None:
    """Tell how an asset stands after a change, and what there is to look at."""
    if as_json:
        print_models(change)
        return
    standing = f"the asset is {change.asset.clearance_state}"
    if change.asset.deleted_at is not None:
        standing = "the asset is unpublished"
    if change.version is not None:
        version = change.version
        state = "deleted" if version.deleted_at else version.approval_state
        name = f"version {version.version_ordinal} ({version.version_label}){_describe_revision(version)}"
        standing = f"{name} is {state}, {standing}"
    if not change.changed:
        say(f"It was so already: {standing}.")
    elif change.dry_run:
        say(f"Nothing was changed. It would be so: {standing}.")
    else:
        done(f"Done: {standing}.")
    for effect in change.effects:
        out.print(effect, soft_wrap=True)
    if change.warning:
        warn(change.warning)
    if change.job_id:
        say(f"`graticule watch {change.job_id}` shows how the services follow.")


def _describe_revision(version: AssetVersion) -> str:
    """Return which revision a review has decided on; what was revoked or deleted has none that counts."""
    is_decided = version.deleted_at is None and version.revoked_at is None
    revision = version.approved_revision if version.approval_state is ApprovalState.APPROVED else version.revision
    return f", revision {revision}," if is_decided else ""


def _status_details(status: PlatformStatus) -> Iterator[str]:
    if status.superseded_by:
        following = status.superseded_by
        yield f"Superseded by revision {following.revision}, request {following.request_id}."
    if status.decision:
        decision = status.decision
        who = f" by {decision.by}" if decision.by else ""
        when = f" {local_time(decision.at)}" if decision.at else ""
        yield f"{decision.state.value.capitalize()}{who}{when}." + (f" Note: {decision.note}" if decision.note else "")
    if status.clearance_requested and status.decision is None:
        yield f"The submission proposes the clearance {status.clearance_requested}."
    if status.export.state is not CopyState.NONE:
        yield f"Copy for the public: {status.export.state}."
    if status.in_service:
        served = status.in_service
        yield f"In service: version {served.ordinal} ({served.label}), revision {served.revision}."


def print_status(status: PlatformStatus) -> None:
    """Print how a request stands."""
    version = status.version
    out.print(f"Request {status.request_id} is {status.status}, {status.progress:.0f} %.", soft_wrap=True)
    states = dict.fromkeys((str(status.processing_state), str(status.approval_state), str(status.clearance_state)))
    subject = f"Version {version.ordinal} ({version.label}), revision {version.revision}, of {status.asset_id}"
    out.print(f"{subject}: {', '.join(states)}.", soft_wrap=True)
    for line in _status_details(status):
        out.print(line, soft_wrap=True)
    if status.eta:
        out.print(f"It will probably be done at {local_time(status.eta)}.")
    for name, address in status.service_urls.items():
        out.print(f"{name}: {address}", soft_wrap=True)
    if status.state_reason or status.error:
        out.print(status.error or status.state_reason, soft_wrap=True)
    if status.status is RequestStatus.FAILED and status.superseded_by is None and status.removed_at is None:
        retry = f"graticule asset retry {status.asset_id} --version {version.ordinal}"
        out.print(f"To process it again as it is: {retry}", soft_wrap=True)
        out.print("To send a corrected file: graticule asset submit … --overwrite", soft_wrap=True)
