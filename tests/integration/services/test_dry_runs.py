"""A dry run of a decision says what the decision then does, or why it is refused, and leaves every row as it was."""

from collections.abc import Awaitable, Callable

import pytest
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import Refused
from graticule.core.exchange import AssetChange

Decide = Callable[..., Awaitable[AssetChange]]


async def public_with_a_second_waiting(desk: Desk) -> str:
    """Return an asset whose first version the public sees, while the second awaits its decision."""
    asset_id = await desk.exported("V1")
    await desk.process(await desk.submit("V2"), "b")
    return asset_id


DECISIONS: dict[str, tuple[Callable[[Desk, str], Decide], list[str]]] = {
    "approve for the public": (
        lambda desk, asset_id: lambda **more: desk.approve(asset_id, "public", **more),
        [
            "Version 0 (V1) leaves the internal services.",
            "Version 1 (V2) enters the internal services at revision 1.",
            "Version 0 (V1) leaves the public services.",
            "Version 1 (V2) enters the public services at revision 1.",
        ],
    ),
    "approve for us": (
        lambda desk, asset_id: lambda **more: desk.approve(asset_id, "ouo", **more),
        [
            "Version 0 (V1) leaves the internal services.",
            "Version 1 (V2) enters the internal services at revision 1.",
            "Version 0 (V1) leaves the public services.",
        ],
    ),
    "reject": (lambda desk, asset_id: lambda **more: desk.reject(asset_id, **more), []),
    "revoke": (
        lambda desk, asset_id: lambda **more: desk.revoke(asset_id, **more),
        ["Version 0 (V1) leaves the internal services.", "Version 0 (V1) leaves the public services."],
    ),
    "clearance": (
        lambda desk, asset_id: lambda **more: desk.clear(asset_id, "ouo", **more),
        ["Version 0 (V1) leaves the public services."],
    ),
    "url mode": (lambda desk, asset_id: lambda **more: desk.set_url_mode(asset_id, "all_versions", **more), []),
    "unpublish": (
        lambda desk, asset_id: lambda **more: desk.unpublish(asset_id, **more),
        ["Version 0 (V1) leaves the internal services.", "Version 0 (V1) leaves the public services."],
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
async def test_a_dry_run_says_what_the_decision_does_and_changes_nothing(desk: Desk, name: str) -> None:
    make, effects = DECISIONS[name]
    asset_id = await public_with_a_second_waiting(desk)
    decide, before = make(desk, asset_id), await desk.snapshot()
    tried = await decide(dry_run=True)
    assert await desk.snapshot() == before
    assert (tried.dry_run, tried.job_id, tried.effects) == (True, None, effects)
    done = await decide()
    assert await desk.snapshot() != before
    assert (done.dry_run, done.effects, done.warning) == (False, effects, tried.warning)
    assert done.asset.clearance_state is tried.asset.clearance_state
    assert done.asset.latest_approved_version_ordinal == tried.asset.latest_approved_version_ordinal
    assert (done.version and done.version.approval_state) == (tried.version and tried.version.approval_state)


async def test_a_dry_run_is_refused_as_the_decision_would_be(desk: Desk) -> None:
    asset_id = await public_with_a_second_waiting(desk)
    codes = []
    for dry_run in (True, False):
        with pytest.raises(Refused) as refused:
            await desk.approve(asset_id, "public", 1, revision=7, dry_run=dry_run)
        codes.append(code_of(refused.value))
    assert codes == ["revision_changed", "revision_changed"]


async def test_versions_that_stay_reachable_are_not_said_to_leave(desk: Desk) -> None:
    asset_id = await public_with_a_second_waiting(desk)
    await desk.set_url_mode(asset_id, "all_versions")
    tried = await desk.approve(asset_id, "public", dry_run=True)
    assert tried.effects == [
        "Version 1 (V2) enters the internal services at revision 1.",
        "Version 1 (V2) enters the public services at revision 1.",
    ]


async def test_the_note_of_a_clearance_is_kept_in_the_history(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.clear(asset_id, "public", note="Agreed with the owner.")
    (event,) = [each for each in await desk.events(asset_id) if each.event_type == "asset_clearance_changed"]
    assert event.data["note"] == "Agreed with the owner."
