"""A dataset of a partner on its way, and how its rows and the answers about it must look."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import pytest
from standardwebhooks import Webhook, WebhookVerificationError
from tests.e2e.alike import A_MOMENT, A_SIZE, text_like
from tests.e2e.asset_rows import AssetRows
from tests.e2e.running_platform import CLIENTS, SERVE_URL, HttpCaller, RunningPlatform

PARTNER, STRANGER, REVIEWER, OPERATOR = CLIENTS
DATASET = "0038272"
REFS = {"dataset_id": DATASET, "resource_id": "dem"}
BBOX = [5.5, 45.5, 10.5, 47.5]
AN_ORCHESTRATOR = text_like(r"[\w.-]+-\d+-[0-9a-f]{8}")
TOUCHED = {"updated_at": A_MOMENT}
ALL_DONE = {"total": 3, "completed": 3, "failed": 0, "current_node": None}
OF_JOBS = ("current_job_id", "node_summary", "export_run_id")  # what reviewers are not shown of a version


@dataclass(frozen=True)
class Story:
    """A dataset of the partner on its way."""

    platform: RunningPlatform
    rows: AssetRows
    webhook: Webhook

    @property
    def asset_id(self) -> str:
        return self.rows.asset_id

    def submission(self, label: str, file: str, **more: Any) -> dict[str, Any]:
        return self.platform.submission(DATASET, label, file, callback_url=self.platform.callbacks.url, **more)

    def submit(self, label: str, file: str, **more: Any) -> Any:
        return self.platform.partner.post("/api/platform/submit", 202, **self.submission(label, file, **more))

    def refused(self, code: str, label: str, **more: Any) -> Any:
        """Send what is refused, and give the problem; nothing has changed by it."""
        problem = self.platform.partner.post("/api/platform/submit", 409, **self.submission(label, "ddh/a.tif", **more))
        return self.unchanged(code, problem, "/api/platform/submit")

    def review_refused(self, code: str, deed: str, **body: Any) -> None:
        path = f"/api/platform/{deed}"
        self.unchanged(code, self.platform.reviewer.post(path, 409, asset_id=self.asset_id, **body), path)

    def unchanged(self, code: str, problem: Any, path: str) -> Any:
        assert self.rows.news() == {}
        assert problem == {
            "type": f"urn:graticule:problem:{code}",
            "title": code.replace("_", " ").capitalize(),
            "status": 409,
            "detail": problem["detail"],
            "code": code,
            **({"hint": problem["hint"]} if "hint" in problem else {}),
            **({"current": self.standing()} if code != "idempotency_key_reused" else {}),
            "request_id": text_like("[0-9a-f]{32}"),
            "instance": path,
        }
        return problem

    def standing(self) -> dict[str, Any]:
        """Tell how the asset stands, in the words of a refusal."""
        asset, versions = self.rows.seen["asset"]["it"], self.rows.seen["versions"].values()
        shown = (
            *("version_ordinal", "version_label", "revision", "approved_revision"),
            *("processing_state", "approval_state"),
        )
        return {
            "asset_id": self.asset_id,
            "version": asset["version"],
            "clearance_state": asset["clearance_state"],
            "latest_approved_version_ordinal": asset["latest_approved_version_ordinal"],
            "deleted": asset["deleted_at"] is not None,
            "versions": [
                {name: each[name] for name in shown} | ({"approval_state": "failed"} if _has_failed(each) else {})
                for each in versions
                if each["deleted_at"] is None
            ],
        }

    def receipt(self, request: str, ordinal: int, revision: int = 1) -> dict[str, Any]:
        return {
            "request_id": request,
            "asset_id": self.asset_id,
            "version_ordinal": ordinal,
            "revision": revision,
            "status": "accepted",
            "priority": 0,
            "monitor_url": f"{self.platform.url}/api/platform/status/{request}",
        }

    def status(self, request: str | None = None) -> Any:
        """Ask as the partner how a request stands; without one, by the asset. Its times are not compared."""
        key = self.asset_id if request is None else self.rows.id_of(request)
        found = self.platform.partner.get(f"/api/platform/status/{key}")
        return self.rows.named({name: value for name, value in found.items() if name in STATUS})

    def listed(self, caller: HttpCaller, what: str) -> Any:
        """Give what a caller is shown of the asset's versions, revisions or history: all of it."""
        found = caller.get(f"/api/assets/{self.asset_id}/{what}", limit=200)
        assert found["next"] is None
        return self.rows.named(found["items"])

    def change(
        self, asset: dict[str, Any], ordinal: int | None = None, version: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Give the answer to a change: the rows as last seen, with what the change made of them."""
        told = None if ordinal is None else {**self.rows.seen["versions"][ordinal], **(version or {})}
        return {
            "asset": {**self.rows.seen["asset"]["it"], **asset},
            "version": told,
            "changed": True,
            "dry_run": False,
            "effects": [],
            "warning": None,
            "job_id": None,
            **more,
        }

    def change_for_reviewer(self, asset: dict[str, Any], ordinal: int, version: dict[str, Any], **more: Any) -> Any:
        return self.change(asset, ordinal, {**version, **dict.fromkeys(OF_JOBS)}, **more)

    def until_done(self, *names: str) -> None:
        for name in names:
            self.platform.until_job(self.rows, name, "completed")

    def told_of(self, request: str, status: str) -> None:
        """See that the next callback is the partner's, about this, and signed with its secret."""
        received = self.platform.callbacks.next()
        assert received.path == "/graticule"
        assert received.headers["Content-Type"] == "application/json"
        body = self.rows.named(self.webhook.verify(received.body, received.headers))
        assert body == {
            "request_id": request,
            "status": status,
            "result_url": f"{self.platform.url}/api/platform/status/{request}",
        }
        with pytest.raises(WebhookVerificationError):
            self.platform.webhook("arcgis").verify(received.body, received.headers)


def new_asset(story: Story) -> dict[str, Any]:
    return {
        "asset_id": story.asset_id,
        "short_id": story.asset_id[:8],
        "platform_id": "ddh",
        "platform_refs": REFS,
        "data_type": "raster",
        "clearance_state": "uncleared",
        "cleared_at": None,
        "cleared_by": None,
        "made_public_at": None,
        "made_public_by": None,
        "clearance_changed_at": None,
        "clearance_changed_by": None,
        "url_mode": "latest_only",
        "latest_approved_version_ordinal": None,
        "deleted_at": None,
        "deleted_by": None,
        "version": 1,  # it was made together with its first version
        "created_at": A_MOMENT,
        "updated_at": A_MOMENT,
    }


def new_version(story: Story, ordinal: int, label: str, request: str, job: str) -> dict[str, Any]:
    """Give a version whose processing is under way."""
    empty = (
        *("reviewer", "reviewed_at", "rejection_reason", "revoked_at", "approved_revision", "processing_completed_at"),
        *(
            "last_error",
            "told_error",
            "validation",
            "content_hash",
            "output_hash",
            "blob_path",
            "table_name",
            "stac_item_id",
        ),
        *("stac_collection_id", "item_hash", "bbox"),
        *("external_blob_path", "external_item_hash", "export_run_id", "exported_revision"),
        *("first_approved_at", "first_exported_at"),
        *("endorsed_revision", "endorsed_by", "endorsed_at", "approved_by", "seconded_by"),
        *("deleted_at", "deleted_by"),
    )
    return {
        **dict.fromkeys(empty),
        "asset_id": story.asset_id,
        "version_ordinal": ordinal,
        "version_label": label,
        "approval_state": "pending_review",
        "processing_state": "processing",
        "processing_started_at": A_MOMENT,
        "estimated_completion_at": A_MOMENT,  # other datasets were processed before
        "node_summary": {"total": 3, "completed": 1, "failed": 0, "current_node": "convert_source"},
        "current_job_id": job,
        "job_count": 1,
        "workflow_id": "raster_ingest",
        "workflow_version": "1",
        "last_request_id": request,
        "priority": 0,
        "revision": 1,
        "created_at": A_MOMENT,
        "updated_at": A_MOMENT,
    }


def made(story: Story, ordinal: int, revision: int, content: str) -> dict[str, Any]:
    """Give what processing has made of a version."""
    return {
        "processing_state": "completed",
        "processing_completed_at": A_MOMENT,
        "node_summary": ALL_DONE,
        "content_hash": hash_of(content),
        "blob_path": blob(story, ordinal, revision),
        "bbox": BBOX,
        **TOUCHED,
    }


def exported(story: Story, ordinal: int, revision: int, *, first: bool = True) -> dict[str, Any]:
    return {
        **({"first_exported_at": A_MOMENT} if first else {}),
        "external_blob_path": blob(story, ordinal, revision).replace("silver", "external", 1),
        "export_run_id": f"run_{ordinal}_{revision}",
        "exported_revision": revision,
        **TOUCHED,
    }


def approved(revision: int) -> dict[str, Any]:
    return {
        "first_approved_at": A_MOMENT,
        "approval_state": "approved",
        "approved_revision": revision,
        "reviewer": REVIEWER,
        "reviewed_at": A_MOMENT,
        "approved_by": REVIEWER,
        **TOUCHED,
    }


def new_request(story: Story, name: str, sent: dict[str, Any], **more: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"overwrite": False, "clearance_level": None, "priority": 0, "processing_options": {}}
    return {
        "request_id": name,
        "platform_id": "ddh",
        "asset_id": story.asset_id,
        "version_ordinal": 0,
        "revision": 1,
        "request_body": {"submission": {"platform_id": "ddh", **defaults, **translated(sent)}},
        "status": "processing",
        "job_id": name.replace("request", "process"),
        "retry_count": 0,
        "last_error": None,
        "submitted_by": PARTNER,
        "idempotency_key": None,
        "created_at": A_MOMENT,
        "updated_at": A_MOMENT,
        **more,
    }


def translated(sent: dict[str, Any]) -> dict[str, Any]:
    """Give the partner's flat form in the domain's words."""
    if "platform_refs" in sent:
        return sent
    rest = {name: value for name, value in sent.items() if name not in {*REFS, "version_id"}}
    return {**rest, "platform_refs": {name: sent[name] for name in REFS}, "version_label": sent["version_id"]}


def job(name: str, workflow: str, ordinal: int, actor: str, **more: Any) -> dict[str, Any]:
    return {
        "job_id": name,
        "workflow_id": workflow,
        "version_ordinal": ordinal,
        "status": "completed",
        "submitted_by": actor,
        "error_message": None,
        **more,
    }


def submitted(event: str, ordinal: int, label: str, request: str, revision: int = 1) -> tuple[Any, ...]:
    data = {"version_label": label, "revision": revision, "request_id": request, "source_bytes": A_SIZE}
    return f"asset_version_{event}", ordinal, PARTNER, data


def processing(end: str, ordinal: int, request: str, revision: int = 1, **more: Any) -> tuple[Any, ...]:
    approval = "failed" if end == "failed" else "pending_review"
    data = {"revision": revision, "approval_state": approval, "request_id": request, **more}
    return f"asset_processing_{end}", ordinal, AN_ORCHESTRATOR, data


def _has_failed(version: dict[str, Any]) -> bool:
    """Return whether a version is `failed` when it is read; the row says `pending_review`."""
    return (version["processing_state"], version["approval_state"]) == ("failed", "pending_review")


STATUS: Final = (
    *("request_id", "asset_id", "status", "state_reason", "progress", "eta", "version", "superseded_by"),
    *("processing_state", "approval_state", "clearance_state", "service_urls", "removed_at", "error", "validation"),
)


def status_told(story: Story, request: str, ordinal: int, label: str, **more: Any) -> dict[str, Any]:
    revision = more.pop("revision", 1)
    return {
        "request_id": request,
        "asset_id": story.asset_id,
        "status": "completed",
        "state_reason": None,
        "progress": 100.0,
        "eta": None,
        "version": {"ordinal": ordinal, "label": label, "revision": revision},
        "superseded_by": None,
        "processing_state": "completed",
        "approval_state": "pending_review",
        "clearance_state": "uncleared",
        "service_urls": {},
        "removed_at": None,
        "error": None,
        "validation": None,
        **more,
    }


def urls(story: Story) -> dict[str, str]:
    return {"tiles": f"{SERVE_URL}/tiles/{story.asset_id}"}


def blob(story: Story, ordinal: int, revision: int) -> str:
    return f"silver/ddh/{DATASET}_dem/{story.asset_id[:8]}/v{ordinal}/r{revision}/cog.tif"


def hash_of(content: str) -> str:
    return sha256(content.encode()).hexdigest()
