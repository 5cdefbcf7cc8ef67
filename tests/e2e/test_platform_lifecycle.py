"""The life of a dataset on a real installation: over HTTP through the gateway, with every answer, row and event."""

import json
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.e2e.alike import A_MOMENT, A_MOMENT_OR_NONE
from tests.e2e.asset_rows import AssetRows
from tests.e2e.conftest import FirstStart, copy_home, open_folder
from tests.e2e.dataset_story import (
    AN_ORCHESTRATOR,
    BBOX,
    DATASET,
    OF_JOBS,
    OPERATOR,
    PARTNER,
    REFS,
    REVIEWER,
    TOUCHED,
    Story,
    approved,
    blob,
    exported,
    hash_of,
    job,
    made,
    new_asset,
    new_request,
    new_version,
    processing,
    status_told,
    submitted,
    translated,
    urls,
)
from tests.e2e.eventually import eventually
from tests.e2e.internal_words import internal_words
from tests.e2e.running_platform import RunningPlatform, running_platform

from graticule.core.asset_names import asset_id_of
from graticule.services.asset_outcomes import OURS

# The first start of a run may fall to it, and others may run at the same time.
pytestmark = pytest.mark.timeout(300)

MISSING = "The file is not in its container."
WARNING = "The asset was public: its external copies are removed, and public addresses stop to work."
FIRST_ENTERS = "Version 0 (V1) enters the internal services at revision 1."
FIRST_LEAVES = "Version 0 (V1) leaves the internal services."
FIRST_LEAVES_ALL = [FIRST_LEAVES, "Version 0 (V1) leaves the public services."]
SECOND_ENTERS = [
    "Version 1 (V2) enters the internal services at revision 2.",
    "Version 1 (V2) enters the public services at revision 2.",
]
SECOND_LEAVES_THE_PUBLIC = "Version 1 (V2) leaves the public services."
SECOND_IS_REPLACED = [
    FIRST_ENTERS,
    "Version 1 (V2) leaves the internal services.",
    "Version 0 (V1) enters the public services at revision 1.",
    SECOND_LEAVES_THE_PUBLIC,
]

PARTNER_ASSET = (
    *("asset_id", "platform_id", "platform_refs", "data_type", "clearance_state", "url_mode"),
    *("latest_approved_version_ordinal", "deleted_at", "created_at", "updated_at"),
)
PARTNER_VERSION = (
    *("asset_id", "version_ordinal", "version_label", "revision", "approved_revision", "processing_state"),
    *("processing_started_at", "processing_completed_at", "approval_state", "reviewed_at", "rejection_reason"),
    *("revoked_at", "validation", "content_hash", "bbox", "deleted_at", "created_at", "updated_at"),
)
VERSION_IN_BRIEF = (
    *("version_ordinal", "version_label", "revision", "approved_revision", "processing_state", "approval_state"),
    *("bbox", "created_at", "updated_at"),
)
PARTNER_REVISION = (
    *("asset_id", "version_ordinal", "revision", "content_hash", "processing_state", "validation"),
    *("approval_state", "reviewed_at", "rejection_reason", "clearance_state", "created_at", "superseded_at"),
)
LOGGED = (
    *("reviewed_at", "rejection_reason", "revoked_at", "processing_state", "processing_started_at"),
    *("processing_completed_at", "last_error", "told_error", "validation"),
)
PARTNER_REQUEST = (
    *("request_id", "asset_id", "version_ordinal", "revision", "status", "retry_count", "created_at", "updated_at"),
)


@pytest.fixture(scope="module")
def platform(first_start: FirstStart) -> Iterator[RunningPlatform]:
    with open_folder() as made, running_platform(copy_home(first_start.home, made / "home")) as running:
        yield running


def test_the_whole_life_of_a_dataset(platform: RunningPlatform) -> None:
    reversed_early, unpublished_early = _withdraw_early(platform)
    asset_id = asset_id_of("ddh", REFS)
    story = Story(platform, platform.rows(asset_id), platform.webhook("ddh"))
    _first_version_is_sent(story)
    _first_version_is_processed(story)
    _first_version_is_approved(story)
    _second_version_is_rejected(story)
    _second_version_is_overwritten(story)
    _second_version_becomes_public_without_handlers(story)
    _withdrawals_failed_by_name(platform, reversed_early, unpublished_early)
    _handlers_are_installed_and_the_export_goes_on(story)
    _public_no_more(story)
    _public_again(story)
    _second_version_is_revoked(story)
    _second_version_is_deleted(story)
    _asset_is_unpublished(story)
    _asset_is_revived_and_fails(story)
    _failed_version_is_retried(story)
    _staff_read_the_whole_history(story)
    _partner_reads_what_concerns_it(story)
    _strangers_find_nothing(story)
    _partner_hears_nothing_of_our_own_faults(platform)
    _partner_was_told_nothing_internal(story)
    _each_end_was_told_once(story)


def _partner_hears_nothing_of_our_own_faults(platform: RunningPlatform) -> None:
    """A handler that is missing is our fault: the operator reads which one, the partner only that it is ours."""
    refs = {"dataset_id": "roads", "resource_id": "all"}
    file = platform.package.announce("roads.gpkg")
    vector = {"version_id": "V1", "data_type": "vector", "container_name": "bronze", "file_name": file}
    receipt = platform.partner.post("/api/platform/submit", 202, **refs, **vector)
    platform.until_ended(receipt["request_id"])
    path = f"/api/platform/status/{receipt['request_id']}"
    assert platform.partner.get(path)["error"] == OURS
    assert "no handler 'lifecycle.load'" in platform.operator.get(path)["error"]
    refused = platform.partner.post(
        "/api/platform/submit", 422, **{**refs, "resource_id": "some"}, **vector, processing_options={"colour": "red"}
    )
    assert "colour is not an option of this pipeline" in refused["detail"]


def _withdraw_early(platform: RunningPlatform) -> tuple[AssetRows, AssetRows]:
    """Withdraw two other datasets while no worker can do it: they are tried, and fail, while the story goes on."""
    reversed_early = platform.rows(platform.processed("withdrawn"))
    unpublished_early = platform.rows(platform.processed("removed"))
    platform.reviewer.post("/api/platform/approve", asset_id=reversed_early.asset_id, clearance_level="public")
    platform.reviewer.post(f"/api/assets/{reversed_early.asset_id}/clearance", clearance_level="ouo")
    platform.operator.post("/api/platform/unpublish", asset_id=unpublished_early.asset_id)
    return reversed_early, unpublished_early


def _first_version_is_sent(story: Story) -> None:
    """The file is still being written, so that processing begins and does not end."""
    partner, rows = story.platform.partner, story.rows
    sent = story.submission("V1", story.platform.package.upload("a.tif", ""))
    keyed: dict[str, Any] = {"json": sent, "headers": {"Idempotency-Key": "first"}}
    receipt = partner.ask("POST", "/api/platform/submit", 202, **keyed)
    assert rows.named(receipt) == story.receipt("request 1", 0)
    eventually(lambda: story.status()["status"] == "processing", "processing")
    assert rows.news() == {
        "asset": {"it": new_asset(story)},
        "versions": {0: new_version(story, 0, "V1", "request 1", "process 1")},
        "requests": {"request 1": new_request(story, "request 1", sent, idempotency_key="first")},
        "jobs": {"process 1": job("process 1", "raster_ingest", 0, PARTNER, status="running")},
        "events": [
            ("asset_created", None, PARTNER, {"platform_refs": REFS}),
            submitted("added", 0, "V1", "request 1"),
            processing("started", 0, "request 1"),
        ],
    }
    assert partner.ask("POST", "/api/platform/submit", 202, **keyed) == receipt
    assert rows.news() == {}
    keyed["json"] = sent | {"version_id": "V2"}
    story.unchanged(
        "idempotency_key_reused",
        partner.ask("POST", "/api/platform/submit", 409, **keyed),
        "/api/platform/submit",
    )
    under_way = status_told(
        story, "request 1", 0, "V1", status="processing", processing_state="processing", progress=33.3
    )
    assert story.status() == story.status("request 1") == under_way | {"eta": A_MOMENT_OR_NONE}
    problem = story.refused("version_unresolved", "V2")
    assert problem["detail"] == "Version 0 is unresolved. Approve, delete, or resubmit before adding a new version."
    story.refused("version_processing", "V1", overwrite=True)
    story.review_refused("not_processed", "approve", clearance_level="ouo")
    story.review_refused("version_processing", "reject", reason="too slow")


def _first_version_is_processed(story: Story) -> None:
    story.platform.package.upload("a.tif", "height")
    story.platform.until_ended(story.asset_id)
    assert story.rows.news() == {
        "versions": {0: made(story, 0, 1, "height")},
        "requests": {"request 1": {"status": "completed", **TOUCHED}},
        "jobs": {"process 1": {"status": "completed"}},
        "events": [processing("completed", 0, "request 1")],
    }
    assert story.status() == status_told(story, "request 1", 0, "V1")
    story.told_of("request 1", "completed")
    story.refused("version_unresolved", "V2")
    story.refused("version_exists", "V1")


def _first_version_is_approved(story: Story) -> None:
    approval = {"asset_id": story.asset_id, "clearance_level": "ouo"}
    for caller in (story.platform.partner, story.platform.operator):
        assert caller.post("/api/platform/approve", 403, **approval)["code"] == "permission_denied"
    assert story.rows.news() == {}
    answer = story.rows.named(story.platform.reviewer.post("/api/platform/approve", **approval))
    asset = {
        "clearance_state": "ouo",
        "cleared_at": A_MOMENT,
        "cleared_by": REVIEWER,
        "clearance_changed_at": A_MOMENT,
        "clearance_changed_by": REVIEWER,
        "latest_approved_version_ordinal": 0,
        "version": 2,
        **TOUCHED,
    }
    version = approved(1)
    assert answer == story.change_for_reviewer(asset, 0, version, effects=[FIRST_ENTERS])
    assert story.rows.news() == {
        "asset": {"it": asset},
        "versions": {0: version},
        "events": [
            (
                *("asset_approved", 0, REVIEWER),
                {"revision": 1, "clearance_before": "uncleared", "clearance_state": "ouo"},
            )
        ],
    }
    assert story.status() == status_told(
        story, "request 1", 0, "V1", approval_state="approved", clearance_state="ouo", service_urls=urls(story)
    )


def _second_version_is_rejected(story: Story) -> None:
    """It comes in the domain's words this time."""
    rows = story.rows
    sent = translated(story.submission("V2", story.platform.package.upload("b.tif", "clouds")))
    receipt = story.platform.partner.post("/api/platform/submit", 202, **sent)
    assert rows.named(receipt) == story.receipt("request 2", 1)
    story.platform.until_ended(receipt["request_id"])
    assert rows.news() == {
        "asset": {"it": {"version": 3, **TOUCHED}},
        "versions": {
            1: new_version(story, 1, "V2", "request 2", "process 2") | made(story, 1, 1, "clouds"),
        },
        "requests": {"request 2": new_request(story, "request 2", sent, version_ordinal=1, status="completed")},
        "jobs": {"process 2": job("process 2", "raster_ingest", 1, PARTNER)},
        "events": [
            submitted("added", 1, "V2", "request 2"),
            processing("started", 1, "request 2"),
            processing("completed", 1, "request 2"),
        ],
    }
    story.told_of("request 2", "completed")
    rejection = {"request_id": receipt["request_id"], "reason": "Clouds."}
    assert story.platform.partner.post("/api/platform/reject", 403, **rejection)["code"] == "permission_denied"
    answer = rows.named(story.platform.reviewer.post("/api/platform/reject", **rejection))
    asset = {"version": 4, **TOUCHED}
    version = {
        "approval_state": "rejected",
        "reviewer": REVIEWER,
        "reviewed_at": A_MOMENT,
        "rejection_reason": "Clouds.",
        **TOUCHED,
    }
    assert answer == story.change_for_reviewer(asset, 1, version)
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {1: version},
        "events": [("asset_rejected", 1, REVIEWER, {"revision": 1, "reason": "Clouds."})],
    }
    rejected = {"approval_state": "rejected", "state_reason": "Rejected: Clouds.", "clearance_state": "ouo"}
    assert story.status("request 2") == status_told(story, "request 2", 1, "V2", **rejected)
    in_service = {"service_urls": urls(story)}  # of the first version
    assert story.status() == status_told(story, "request 2", 1, "V2", **rejected, **in_service)
    story.refused("version_unresolved", "V3")
    story.refused("version_exists", "V2")
    story.review_refused("version_rejected", "approve", clearance_level="ouo", version_ordinal=1)


def _second_version_is_overwritten(story: Story) -> None:
    rows = story.rows
    before = rows.seen["versions"][1]
    sent = story.submission("V2", story.platform.package.upload("c.tif", "clear"), overwrite=True)
    receipt = story.platform.partner.post("/api/platform/submit", 202, **sent)
    assert rows.named(receipt) == story.receipt("request 3", 1, revision=2)
    story.platform.until_ended(receipt["request_id"])
    made_anew = {name: value for name, value in made(story, 1, 2, "clear").items() if before[name] != value}
    assert rows.news() == {
        "asset": {"it": {"version": 5, **TOUCHED}},
        "versions": {
            1: {
                **made_anew,
                "revision": 2,
                "approval_state": "pending_review",
                "reviewer": None,
                "reviewed_at": None,
                "rejection_reason": None,
                "processing_started_at": A_MOMENT,
                "processing_completed_at": A_MOMENT,
                "estimated_completion_at": A_MOMENT,
                "current_job_id": "process 3",
                "job_count": 2,
                "last_request_id": "request 3",
                **TOUCHED,
            }
        },
        "revisions": {
            "1/1": {
                "asset_id": story.asset_id,
                "version_ordinal": 1,
                "revision": 1,
                "job_id": "process 2",
                "content_hash": hash_of("clouds"),
                "output_hash": None,
                "outputs": {"blob_path": blob(story, 1, 1), "bbox": BBOX},
                "approval_state": "rejected",
                "clearance_state": "ouo",
                "reviewer": REVIEWER,
                **{name: before[name] for name in LOGGED},
                "created_at": before["processing_started_at"],
                "superseded_at": A_MOMENT,
            }
        },
        "requests": {
            "request 3": new_request(story, "request 3", sent, version_ordinal=1, revision=2, status="completed")
        },
        "jobs": {"process 3": job("process 3", "raster_ingest", 1, PARTNER)},
        "events": [
            submitted("overwritten", 1, "V2", "request 3", 2),
            processing("started", 1, "request 3", revision=2),
            processing("completed", 1, "request 3", revision=2),
        ],
    }
    story.told_of("request 3", "completed")
    assert story.status("request 3") == status_told(story, "request 3", 1, "V2", revision=2, clearance_state="ouo")
    assert story.status("request 2") == status_told(
        *(story, "request 2", 1, "V2"),
        approval_state="rejected",
        state_reason="Rejected: Clouds.",
        clearance_state="ouo",
        superseded_by={"request_id": "request 3", "revision": 2},
    )
    old = rows.seen["revisions"]["1/1"]
    told = {name: old[name] for name in PARTNER_REVISION} | {"error": None}
    assert story.listed(story.platform.partner, "revisions") == [told]
    assert story.listed(story.platform.reviewer, "revisions") == [old | {"job_id": None}]
    assert story.listed(story.platform.operator, "revisions") == [old]


def _second_version_becomes_public_without_handlers(story: Story) -> None:
    """The decision stands, and the export fails by name: nobody pretends."""
    rows = story.rows
    answer = story.platform.reviewer.post(
        "/api/platform/approve", asset_id=story.asset_id, clearance_level="public", version_ordinal=1, revision=2
    )
    asset = {
        "clearance_state": "public",
        "clearance_changed_at": A_MOMENT,
        "made_public_at": A_MOMENT,
        "made_public_by": REVIEWER,
        "latest_approved_version_ordinal": 1,
        "version": 6,
        **TOUCHED,
    }
    version = approved(2)
    assert rows.named(answer) == story.change_for_reviewer(asset, 1, version, effects=[FIRST_LEAVES, *SECOND_ENTERS])
    story.platform.until_job(rows, "export 1", "failed")
    reason = "This worker has no handler 'lifecycle.export'; another one may have it."
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {1: version},
        "jobs": {
            "export 1": job(
                *("export 1", "adf_export", 1, REVIEWER),
                status="failed",
                error_message=f"node 'export' failed: {reason}",
            )
        },
        "events": [
            (
                *("asset_approved", 1, REVIEWER),
                {"revision": 2, "clearance_before": "ouo", "clearance_state": "public"},
            ),
            ("asset_export_failed", 1, AN_ORCHESTRATOR, {"revision": 2, "error": reason}),
        ],
    }
    shown = story.platform.operator.get(f"/api/status/job/{rows.id_of('export 1')}")
    assert (shown["status"], shown["error_message"]) == ("failed", f"node 'export' failed: {reason}")
    assert story.status() == status_told(
        *(story, "request 3", 1, "V2"),
        revision=2,
        approval_state="approved",
        clearance_state="public",
        state_reason="The copy for the public could not be made, for a reason of ours; the operators see it.",
        service_urls=urls(story),
    )


def _withdrawals_failed_by_name(platform: RunningPlatform, reversed_early: AssetRows, unpublished: AssetRows) -> None:
    platform.until_job(reversed_early, "reversal 1", "failed")
    platform.until_job(unpublished, "unpublish 1", "failed")
    for rows, event, handler in (
        (reversed_early, "asset_reversal_failed", "lifecycle.reverse"),
        (unpublished, "asset_unpublish_failed", "lifecycle.unpublish"),
    ):
        error = f"This worker has no handler '{handler}'; another one may have it."
        assert rows.events()[-1] == (event, 0, AN_ORCHESTRATOR, {"error": error})
        told = platform.partner.get(f"/api/assets/{rows.asset_id}/history")["items"]
        assert event not in [each["event"] for each in told]
    assert reversed_early.current("jobs")["export 1"]["status"] == "cancelled"
    assert (
        "asset_export_failed",
        0,
        AN_ORCHESTRATOR,
        {"revision": 1, "error": "Processing was cancelled."},
    ) in reversed_early.events()


def _handlers_are_installed_and_the_export_goes_on(story: Story) -> None:
    platform, rows = story.platform, story.rows
    platform.package.install_publishing()
    platform.up.child("worker").kill(signal.SIGTERM)  # the supervisor starts another one, which finds the package
    platform.operator.ask("POST", f"/api/proxy/orchestrator/api/v1/jobs/{rows.id_of('export 1')}/retry")
    story.until_done("export 1")
    assert rows.news() == {
        "versions": {1: exported(story, 1, 2)},
        "jobs": {"export 1": {"status": "completed", "error_message": None}},
        "events": [("asset_export_completed", 1, AN_ORCHESTRATOR, {"revision": 2})],
    }
    assert platform.package.public_copies() == {"run_1_2": blob(story, 1, 2)}


def _public_no_more(story: Story) -> None:
    rows = story.rows
    answer = story.platform.reviewer.post(
        f"/api/assets/{story.asset_id}/clearance", clearance_level="ouo", version_ordinal=1, revision=2
    )
    asset = {
        "clearance_state": "ouo",
        "clearance_changed_at": A_MOMENT,
        "version": 7,
        **TOUCHED,
    }
    version = {"exported_revision": None, **TOUCHED}
    assert rows.named(answer) == story.change_for_reviewer(
        asset, 1, version, warning=WARNING, effects=[SECOND_LEAVES_THE_PUBLIC]
    )
    story.until_done("reversal 1")
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {1: version | {"external_blob_path": None, "export_run_id": None}},
        "jobs": {"reversal 1": job("reversal 1", "adf_reversal", 1, REVIEWER)},
        "events": [
            ("asset_clearance_changed", None, REVIEWER, {"before": "public", "clearance_state": "ouo"}),
            ("asset_reversal_completed", 1, AN_ORCHESTRATOR, {}),
        ],
    }
    assert story.platform.package.public_copies() == {}
    answer = story.platform.reviewer.post(
        f"/api/assets/{story.asset_id}/clearance", clearance_level="ouo", version_ordinal=1, revision=2
    )
    assert rows.named(answer) == story.change_for_reviewer({}, 1, {}, changed=False)
    assert rows.news() == {}


def _public_again(story: Story) -> None:
    """A second approval only raises the clearance."""
    rows = story.rows
    answer = story.platform.reviewer.post(
        "/api/platform/approve", asset_id=story.asset_id, clearance_level="public", revision=2, expected_version=7
    )
    asset = {
        "clearance_state": "public",
        "clearance_changed_at": A_MOMENT,
        "version": 8,
        **TOUCHED,
    }
    version: dict[str, Any] = {**TOUCHED}
    assert rows.named(answer) == story.change_for_reviewer(asset, 1, version, effects=[SECOND_ENTERS[1]])
    story.until_done("export 2")
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {1: version | exported(story, 1, 2, first=False)},
        "jobs": {"export 2": job("export 2", "adf_export", 1, REVIEWER)},
        "events": [
            ("asset_clearance_changed", None, REVIEWER, {"before": "ouo", "clearance_state": "public"}),
            ("asset_export_completed", 1, AN_ORCHESTRATOR, {"revision": 2}),
        ],
    }
    story.review_refused("stale_version", "revoke", reason="late", expected_version=7)


def _second_version_is_revoked(story: Story) -> None:
    """The first one takes its place, for the public, too."""
    rows = story.rows
    story.review_refused("revision_required", "revoke", reason="Wrong place.")
    story.review_refused("revision_changed", "revoke", reason="Wrong place.", revision=1)
    answer = story.platform.reviewer.post(
        "/api/platform/revoke", asset_id=story.asset_id, version_ordinal=1, revision=2, reason="Wrong place."
    )
    asset = {"latest_approved_version_ordinal": 0, "version": 9, **TOUCHED}
    version = {
        "approval_state": "rejected",
        "approved_revision": None,
        "approved_by": None,
        "reviewed_at": A_MOMENT,
        "rejection_reason": "Wrong place.",
        "revoked_at": A_MOMENT,
        "exported_revision": None,
        **TOUCHED,
    }
    assert rows.named(answer) == story.change_for_reviewer(asset, 1, version, effects=SECOND_IS_REPLACED)
    story.until_done("reversal 2", "export 3")
    news = rows.news()
    ends = sorted(news["events"][1:], reverse=True)  # either job may be the first to end
    assert ends == [
        ("asset_reversal_completed", 1, AN_ORCHESTRATOR, {}),
        ("asset_export_completed", 0, AN_ORCHESTRATOR, {"revision": 1}),
    ]
    assert news == {
        "asset": {"it": asset},
        "versions": {
            0: exported(story, 0, 1),
            1: version | {"external_blob_path": None, "export_run_id": None},
        },
        "jobs": {
            "reversal 2": job("reversal 2", "adf_reversal", 1, REVIEWER),
            "export 3": job("export 3", "adf_export", 0, REVIEWER),
        },
        "events": [
            ("asset_revoked", 1, REVIEWER, {"revision": 2, "reason": "Wrong place."}),
            *news["events"][1:],
        ],
    }
    assert story.platform.package.public_copies() == {"run_0_1": blob(story, 0, 1)}
    served = {"approval_state": "approved", "clearance_state": "public", "service_urls": urls(story)}
    assert story.status("request 1") == status_told(story, "request 1", 0, "V1", **served)
    revoked: dict[str, Any] = {"revision": 2, "approval_state": "rejected", "state_reason": "Revoked: Wrong place."}
    assert story.status("request 3") == status_told(*(story, "request 3", 1, "V2"), **revoked, clearance_state="public")
    story.review_refused("not_approved", "revoke", reason="again", version_ordinal=1)


def _second_version_is_deleted(story: Story) -> None:
    rows, path = story.rows, f"/api/assets/{story.asset_id}/versions/1"
    assert story.platform.partner.ask("DELETE", path, 403)["code"] == "permission_denied"
    answer = rows.named(story.platform.operator.ask("DELETE", path, params={"expected_version": 9}))
    asset = {"version": 10, **TOUCHED}
    version = {"deleted_at": A_MOMENT, "deleted_by": OPERATOR, **TOUCHED}
    assert answer == story.change(asset, 1, version)
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {1: version},
        "events": [("asset_version_deleted", 1, OPERATOR, {"version_label": "V2"})],
    }
    story.review_refused("version_deleted", "approve", clearance_level="ouo", version_ordinal=1)


def _asset_is_unpublished(story: Story) -> None:
    rows = story.rows
    removal = {"asset_id": story.asset_id, "reason": "Withdrawn by its owner."}
    assert story.platform.partner.post("/api/platform/unpublish", 403, **removal)["code"] == "permission_denied"
    answer = rows.named(story.platform.operator.post("/api/platform/unpublish", **removal))
    asset = {
        "deleted_at": A_MOMENT,
        "deleted_by": OPERATOR,
        "latest_approved_version_ordinal": None,
        "version": 11,
        **TOUCHED,
    }
    assert answer == story.change(asset, job_id="unpublish 1", effects=FIRST_LEAVES_ALL)
    story.until_done("unpublish 1")
    nothing = {"external_blob_path": None, "export_run_id": None, "exported_revision": None}
    assert rows.news() == {
        "asset": {"it": asset},
        "versions": {0: {"deleted_at": A_MOMENT, "deleted_by": OPERATOR, **nothing, **TOUCHED}, 1: TOUCHED},
        "jobs": {"unpublish 1": job("unpublish 1", "unpublish", 1, OPERATOR)},
        "events": [
            ("asset_unpublished", None, OPERATOR, {"reason": "Withdrawn by its owner."}),
            ("asset_unpublish_completed", 1, AN_ORCHESTRATOR, {}),
        ],
    }
    assert story.platform.package.public_copies() == {}
    story.review_refused("asset_deleted", "approve", clearance_level="ouo")
    assert story.status("request 1") == status_told(
        *(story, "request 1", 0, "V1"),
        approval_state="approved",
        clearance_state="public",
        state_reason="The asset was unpublished.",
        removed_at=A_MOMENT,
    )


def _asset_is_revived_and_fails(story: Story) -> None:
    """The label is free again, and the ordinal is not: the file is missing, so that processing fails."""
    rows = story.rows
    sent = story.submission("V1", story.platform.package.announce("late.tif"))
    receipt = story.platform.partner.post("/api/platform/submit", 202, **sent)
    assert rows.named(receipt) == story.receipt("request 4", 2)
    story.platform.until_ended(receipt["request_id"])
    error = MISSING
    deleted = dict.fromkeys(("deleted_at", "deleted_by"))
    cleared = {"clearance_state": "uncleared", "clearance_changed_at": A_MOMENT, "clearance_changed_by": PARTNER}
    failed = {"processing_state": "failed", "processing_completed_at": A_MOMENT}
    failed |= {"last_error": error, "told_error": error}
    failed["node_summary"] = {"total": 3, "completed": 1, "failed": 1, "current_node": "convert_source"}
    assert rows.news() == {
        "asset": {"it": {**cleared, **deleted, "version": 13, **TOUCHED}},
        "versions": {2: new_version(story, 2, "V1", "request 4", "process 4") | failed},
        "requests": {
            "request 4": new_request(story, "request 4", sent, version_ordinal=2, status="failed", last_error=error)
        },
        "jobs": {
            "process 4": job(
                *("process 4", "raster_ingest", 2, PARTNER),
                status="failed",
                error_message=f"node 'convert_source' failed: {error}",
            )
        },
        "events": [
            ("asset_revived", None, PARTNER, {}),
            submitted("added", 2, "V1", "request 4"),
            processing("started", 2, "request 4"),
            processing("failed", 2, "request 4", error=error, reason=error),
        ],
    }
    story.told_of("request 4", "failed")
    assert story.status() == status_told(
        *(story, "request 4", 2, "V1"),
        status="failed",
        state_reason=error,
        processing_state="failed",
        approval_state="failed",
        progress=66.7,
        error=error,
    )
    story.review_refused("not_processed", "approve", clearance_level="ouo")


def _failed_version_is_retried(story: Story) -> None:
    rows = story.rows
    request_id = rows.id_of("request 4")
    story.platform.package.upload("late.tif", "late")
    receipt = story.platform.partner.post("/api/platform/retry", 202, request_id=request_id)
    assert rows.named(receipt) == story.receipt("request 4", 2)
    story.platform.until_ended(request_id)
    assert rows.news() == {
        "asset": {"it": {"version": 14, **TOUCHED}},
        "versions": {
            2: {
                **made(story, 2, 1, "late"),
                "processing_started_at": A_MOMENT,
                "estimated_completion_at": A_MOMENT,
                "last_error": None,
                "told_error": None,
                "current_job_id": "process 5",
                "job_count": 2,
            }
        },
        "requests": {
            "request 4": {
                "status": "completed",
                "job_id": "process 5",
                "retry_count": 1,
                "last_error": None,
                **TOUCHED,
            }
        },
        "jobs": {"process 5": job("process 5", "raster_ingest", 2, PARTNER)},
        "events": [
            submitted("retried", 2, "V1", "request 4"),
            processing("started", 2, "request 4"),
            processing("completed", 2, "request 4"),
        ],
    }
    story.told_of("request 4", "completed")
    assert story.status() == status_told(story, "request 4", 2, "V1")
    problem = story.platform.partner.post("/api/platform/retry", 409, request_id=request_id)
    story.unchanged("not_failed", problem, "/api/platform/retry")


def _staff_read_the_whole_history(story: Story) -> None:
    rows = story.rows
    for caller in (story.platform.reviewer, story.platform.operator):
        told = story.listed(caller, "history")
        shown = [(each["event_type"], each["version_ordinal"], each["actor"], each["data"]) for each in told]
        assert [each for each in shown if each[0].startswith("asset_")] == rows.events()
    versions = [*reversed(rows.seen["versions"].values())]
    assert story.listed(story.platform.operator, "versions") == versions
    assert story.listed(story.platform.reviewer, "versions") == [
        {**version, **dict.fromkeys(OF_JOBS)} for version in versions
    ]


def _partner_reads_what_concerns_it(story: Story) -> None:
    rows, partner = story.rows, story.platform.partner
    asset, versions = rows.seen["asset"]["it"], rows.seen["versions"]
    newest = {name: versions[2][name] for name in VERSION_IN_BRIEF}
    shown = {name: asset[name] for name in PARTNER_ASSET} | {"newest_version": newest}
    assert rows.named(partner.get(f"/api/assets/{story.asset_id}")) == shown
    assert rows.named(partner.get("/api/assets", platform_id="ddh", ref=f"dataset_id={DATASET}")["items"])[:1] == [
        shown
    ]
    of_versions = [
        {name: version[name] for name in PARTNER_VERSION} | {"error": version["told_error"]}
        for version in reversed(versions.values())
    ]
    assert story.listed(story.platform.partner, "versions") == of_versions
    requests = rows.named(partner.get("/api/platform/requests", asset_id=story.asset_id))["items"]
    assert requests == [
        {name: request[name] for name in PARTNER_REQUEST} | {"error": request["last_error"]}
        for request in reversed(rows.seen["requests"].values())
    ]
    history = story.listed(partner, "history")
    ends: list[tuple[Any, ...]] = [
        (event, ordinal, {})
        for event, ordinal, *_ in rows.events()
        if (event, ordinal) in {("asset_reversal_completed", 1), ("asset_export_completed", 0)}
    ][1:]  # of the revocation, in the order in which they came
    assert history == [
        {"event": event, "version_ordinal": ordinal, "details": details, "happened_at": A_MOMENT}
        for event, ordinal, details in _told_to_the_partner(ends)
    ]


def _told_to_the_partner(
    withdrawn: list[tuple[str, int, dict[str, Any]]],
) -> Iterator[tuple[str, int | None, dict[str, Any]]]:
    def processed(ordinal: int, request: str, revision: int = 1) -> Iterator[tuple[str, int, dict[str, Any]]]:
        for end in ("started", "completed"):
            yield f"asset_processing_{end}", ordinal, {"revision": revision, "request_id": request}

    yield "asset_created", None, {}
    yield "asset_version_added", 0, {"version_label": "V1", "revision": 1}
    yield from processed(0, "request 1")
    yield "asset_approved", 0, {"revision": 1, "clearance_state": "ouo"}
    yield "asset_version_added", 1, {"version_label": "V2", "revision": 1}
    yield from processed(1, "request 2")
    yield "asset_rejected", 1, {"revision": 1, "reason": "Clouds."}
    yield "asset_version_overwritten", 1, {"version_label": "V2", "revision": 2}
    yield from processed(1, "request 3", 2)
    yield "asset_approved", 1, {"revision": 2, "clearance_state": "public"}
    yield "asset_export_completed", 1, {}
    yield "asset_clearance_changed", None, {"clearance_state": "ouo"}
    yield "asset_reversal_completed", 1, {}
    yield "asset_clearance_changed", None, {"clearance_state": "public"}
    yield "asset_export_completed", 1, {}
    yield "asset_revoked", 1, {"revision": 2, "reason": "Wrong place."}
    yield from withdrawn
    yield "asset_version_deleted", 1, {"version_label": "V2"}
    yield "asset_unpublished", None, {"reason": "Withdrawn by its owner."}
    yield "asset_unpublish_completed", 1, {}
    yield "asset_revived", None, {}
    yield "asset_version_added", 2, {"version_label": "V1", "revision": 1}
    started, completed = processed(2, "request 4")
    yield started
    yield "asset_processing_failed", 2, {"revision": 1, "request_id": "request 4", "reason": MISSING}
    yield "asset_version_retried", 2, {"version_label": "V1", "revision": 1}
    yield started
    yield completed


def _strangers_find_nothing(story: Story) -> None:
    """Another partner cannot tell this one's data from what does not exist."""
    stranger, asset_id = story.platform.stranger, story.asset_id
    request_id = story.rows.id_of("request 4")
    for path in ("", "/versions", "/revisions", "/history"):
        _not_there(stranger.get(f"/api/assets/{asset_id}{path}", 404))
    for key in (asset_id, request_id, story.rows.id_of("process 1")):
        _not_there(stranger.get(f"/api/platform/status/{key}", 404))
    _not_there(stranger.get("/api/platforms/ddh", 404))
    sent = story.submission("V9", "ddh/a.tif", overwrite=True)
    _not_there(stranger.post("/api/platform/submit", 404, platform_id="ddh", **sent))
    for named in ({"asset_id": asset_id}, {"request_id": request_id}):
        _not_there(stranger.post("/api/platform/retry", 404, **named))
    for filters in ({}, {"platform": "ddh"}, {"refs": json.dumps({"dataset_id": DATASET})}, {"q": DATASET}):
        assert stranger.get("/api/assets", deleted=True, **filters) == {"items": [], "next": None}
    for filters in ({}, {"platform_id": "ddh"}, {"asset_id": asset_id}):
        assert stranger.get("/api/platform/requests", **filters) == {"items": [], "next": None}
    assert [each["platform_id"] for each in stranger.get("/api/platforms")["items"]] == ["arcgis"]
    assert story.rows.news() == {}


def _not_there(problem: Any) -> None:
    assert problem["code"] == "not_found"
    assert problem.keys() <= {"type", "title", "status", "detail", "code", "hint", "request_id", "instance"}


def _partner_was_told_nothing_internal(story: Story) -> None:
    answers = story.platform.partner.answers
    assert {answer.status_code for answer in answers} == {200, 202, 403, 409, 422}
    internal = internal_words(story.platform.database)
    assert internal.in_document({"a": [{"job_id": None}, "by rita-of-review"]}) == ["a.0.job_id", "a.1"]
    assert [found for answer in answers for found in internal.in_answer(answer)] == []


def _each_end_was_told_once(story: Story) -> None:
    platform = story.platform

    def delivered() -> Any:
        found = platform.operator.get("/api/proxy/orchestrator/api/v1/deliveries", limit=100)["items"]
        return found if all(each["state"] == "delivered" for each in found) else None

    found = eventually(delivered, "all delivered")
    assert platform.callbacks.arrived.empty()
    received = [each.headers["webhook-id"] for each in platform.callbacks.taken]
    assert [each["webhook_id"] for each in reversed(found)] == received
    assert len(set(received)) == 5
    assert {(each["recipient"], each["attempt_count"], each["url"]) for each in found} == {
        ("ddh", 1, platform.callbacks.url)
    }
    jobs = [story.rows.named(each["job_id"]) for each in reversed(found)]
    assert jobs == [f"process {number}" for number in range(1, 6)]


def test_reads_go_on_and_changes_wait_while_the_orchestrator_is_down(platform: RunningPlatform) -> None:
    asset_id = platform.processed("unattended")
    rows = platform.rows(asset_id)
    rows.news()
    job_id = rows.id_of("process 1")
    with platform.up.child_down("orchestrator"):
        _all_can_be_read(platform, asset_id, job_id)
        _nothing_can_be_changed(platform, asset_id)
        assert rows.news() == {}
    approval = {"asset_id": asset_id, "clearance_level": "ouo"}
    approve = partial(platform.reviewer.client.post, "/api/platform/approve", json=approval)
    eventually(lambda: approve().status_code != 503, lambda: f"the orchestrator; {platform.up.errors}", 60)
    changed = platform.reviewer.post("/api/platform/approve", **approval)
    assert (changed["changed"], changed["version"]["approval_state"]) == (False, "approved")
    assert [event for event, *_ in rows.news()["events"]] == ["asset_approved"]
    assert platform.processed("unattended", "V2") == asset_id


def _all_can_be_read(platform: RunningPlatform, asset_id: str, job_id: str) -> None:
    for path in (f"/api/assets/{asset_id}{part}" for part in ("", "/versions", "/revisions", "/history")):
        for caller in (platform.partner, platform.reviewer, platform.operator):
            caller.get(path)
    for path in (f"/api/platform/status/{asset_id}", "/api/platform/requests", "/api/assets", "/api/platforms"):
        platform.partner.get(path)
    for path in (
        f"/api/status/job/{job_id}",
        f"/api/status/job/{job_id}/nodes",
        "/api/status/jobs",
        "/api/status/stats",
    ):
        platform.operator.get(path)
    assert platform.up.status("/readyz") == 200


def _nothing_can_be_changed(platform: RunningPlatform, asset_id: str) -> None:
    file = platform.package.upload("unattended.tif", "more")
    named = {"asset_id": asset_id}
    path = f"/api/assets/{asset_id}"
    for caller, method, at, body in (
        (platform.partner, "POST", "/api/platform/submit", platform.submission("unattended", "V2", file)),
        (platform.partner, "POST", "/api/platform/retry", named),
        (platform.reviewer, "POST", "/api/platform/approve", named | {"clearance_level": "ouo"}),
        (platform.reviewer, "POST", "/api/platform/reject", named | {"reason": "no"}),
        (platform.reviewer, "POST", "/api/platform/revoke", named | {"reason": "no"}),
        (platform.operator, "POST", "/api/platform/unpublish", named),
        (platform.operator, "POST", "/api/platform/reprocess", named | {"reason": "again"}),
        (platform.reviewer, "POST", f"{path}/clearance", {"clearance_level": "ouo"}),
        (platform.reviewer, "PATCH", path, {"url_mode": "all_versions"}),
        (platform.operator, "DELETE", f"{path}/versions/0", None),
        (platform.operator, "POST", "/api/gateway/submit", {"workflow_id": "echo_test"}),
        (platform.operator, "GET", "/api/proxy/orchestrator/api/v1/queues", None),
    ):
        assert caller.ask(method, at, 503, json=body)["code"] == "unavailable"
        assert int(caller.answers[-1].headers["Retry-After"]) > 0
