"""The commands for data, partners, clients, callbacks and numbers: what they send, print and refuse."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from tests.unit.cli.api import JOB_ID, FakeApi, event, job, page, problem, watched
from tests.unit.cli.conftest import Result, assert_told_in_two_lines, run

from graticule.core.asset_views import StaffAsset, VersionSummary
from graticule.core.exchange import (
    AssetChange,
    CopyState,
    DecisionState,
    PlatformStatus,
    PublicCopy,
    ReviewOutcome,
    SubmissionReceipt,
    VersionInBrief,
)
from graticule.core.models import AssetRevision, AssetVersion, Event, Platform
from graticule.core.models.engine import EventType
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.core.worker_command import missing_worker

NOW = datetime(2026, 3, 14, 15, tzinfo=UTC)
TIMES = {"created_at": NOW, "updated_at": NOW}
ASSET_ID = "0123456789abcdef0123456789abcdef"
REQUEST_ID = UUID(int=7)
KEY = "gtc_the-new-key"
VERSION = AssetVersion(
    asset_id=ASSET_ID,
    version_ordinal=0,
    version_label="2026-03",
    processing_state=ProcessingState.COMPLETED,
    **TIMES,
)
ASSET = StaffAsset(
    asset_id=ASSET_ID,
    platform_id="ddh",
    platform_refs={"dataset_id": "0038272", "resource_id": "[dem]"},
    data_type=DataType.RASTER,
    newest_version=VersionSummary.model_validate(VERSION, from_attributes=True),
    **TIMES,
)
RECEIPT = SubmissionReceipt(request_id=REQUEST_ID, asset_id=ASSET_ID, version_ordinal=0, revision=1, job_id=JOB_ID)
PLATFORM = Platform(platform_id="ddh", display_name="Hub", required_refs=["dataset_id"], version_ref="v", **TIMES)
CLIENT = {"client_id": "anna", "display_name": "Anna", "roles": ["reviewer"], "platform_id": None, "is_active": True}
CLIENT |= {"last_used_at": None, "created_at": NOW.isoformat(), "updated_at": NOW.isoformat()}
SUBMIT = (
    *("asset", "submit", "--platform", "ddh", "--ref", "dataset_id=0038272", "--ref", "layer:=7", "--label", "2026-03"),
    *("--type", "raster", "--container", "bronze", "--file", "ddh/dem/europe.tif"),
)


def shown(model: Any) -> Any:
    return json.loads(model.model_dump_json())


def graticule(api: FakeApi, *arguments: str, **variables: str) -> Result:
    with api.served():
        return run(*arguments, variables={"GRATICULE_HOME": "/nowhere", **variables})


def answers(method: str, path: str, answer: Any) -> FakeApi:
    return FakeApi({f"{method} {path}": answer})


# clients


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (("client", "add", "anna", "--role", "reviewer", "--role", "operator"), "/api/v1/clients"),
        (("client", "rotate", "anna"), "/api/v1/clients/anna/rotate"),
    ],
)
def test_a_new_key_alone_is_printed_and_how_to_use_it_is_told_beside_it(command: tuple[str, ...], path: str) -> None:
    api = answers("POST", path, httpx.Response(201, json={**CLIENT, "key": KEY}))
    result = graticule(api, *command)
    assert (result.code, result.out) == (0, f"{KEY}\n")
    assert "X-API-Key" in result.err
    assert "GRATICULE_API_KEY" in result.err
    assert KEY not in result.err
    assert json.loads(graticule(api, *command, "--json").out)["key"] == KEY


def test_a_client_is_sent_with_its_roles_and_its_platform() -> None:
    api = answers("POST", "/api/v1/clients", httpx.Response(201, json={**CLIENT, "key": KEY}))
    graticule(api, "client", "add", "ddh-portal", "--role", "submitter", "--platform", "ddh")
    assert api.body() == {
        "client_id": "ddh-portal",
        "display_name": "ddh-portal",
        "roles": ["submitter"],
        "platform_id": "ddh",
    }


def test_a_client_needs_a_role_that_exists() -> None:
    assert graticule(FakeApi(), "client", "add", "anna").code == 2
    assert graticule(FakeApi(), "client", "add", "anna", "--role", "king").code == 2


def test_clients_are_listed_disabled_and_enabled() -> None:
    api = FakeApi(
        {
            "GET /api/v1/clients": page(CLIENT),
            "POST /api/v1/clients/anna/disable": CLIENT,
            "POST /api/v1/clients/anna/enable": CLIENT,
        }
    )
    listed = graticule(api, "client", "list")
    assert listed.out.splitlines()[1].split() == ["anna", "reviewer", "yes", "never", "Anna"]
    assert graticule(api, "client", "disable", "anna").code == 0
    assert graticule(api, "client", "enable", "anna").code == 0
    assert "client add" in graticule(answers("GET", "/api/v1/clients", page()), "client", "list").err


def test_the_key_of_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("the-admin-key\n")
    api = answers("GET", "/api/v1/clients", page())
    graticule(api, "client", "list", GRATICULE_HOME=str(tmp_path))
    graticule(api, "client", "list", GRATICULE_HOME=str(tmp_path), GRATICULE_API_KEY=KEY)
    assert [request.headers["X-API-Key"] for request in api.asked] == ["the-admin-key", KEY]


def test_a_credential_that_can_be_none_is_told_without_it() -> None:
    result = graticule(FakeApi(), "client", "list", GRATICULE_API_KEY="two words")
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "two words" not in result.err


# platforms


def test_a_platform_is_added_with_its_fields() -> None:
    api = answers("POST", "/api/v1/platforms", httpx.Response(201, json=shown(PLATFORM)))
    command = ("platform", "add", "ddh", "--name", "Hub", "--required-ref", "a", "--required-ref", "b")
    result = graticule(api, *command, "--version-ref", "v")
    assert result.code == 0, result.err
    assert api.body() == {
        "platform_id": "ddh",
        "display_name": "Hub",
        "description": None,
        "required_refs": ["a", "b"],
        "optional_refs": [],
        "version_ref": "v",
    }


def test_of_a_platform_only_what_is_named_is_changed() -> None:
    api = answers("PATCH", "/api/v1/platforms/ddh", shown(PLATFORM))
    assert graticule(api, "platform", "change", "ddh", "--inactive").code == 0
    assert api.body() == {"is_active": False}
    graticule(api, "platform", "change", "ddh", "--name", "Hub", "--optional-ref", "a")
    assert api.body() == {"display_name": "Hub", "optional_refs": ["a"]}
    assert_told_in_two_lines(graticule(api, "platform", "change", "ddh"))


def test_sources_of_a_platform_are_named_one_by_one() -> None:
    api = FakeApi(
        {
            "POST /api/v1/platforms": httpx.Response(201, json=shown(PLATFORM)),
            "PATCH /api/v1/platforms/ddh": shown(PLATFORM),
        }
    )
    sources = ("--source", "maps", "--source", "bronze/ddh/")
    graticule(api, "platform", "add", "ddh", "--name", "Hub", "--required-ref", "a", "--version-ref", "v", *sources)
    assert api.body()["source_containers"] == ["maps", "bronze/ddh/"]
    graticule(api, "platform", "change", "ddh", *sources)
    assert api.body() == {"source_containers": ["maps", "bronze/ddh/"]}


def test_platforms_are_listed_and_shown_and_their_secret_is_printed_alone() -> None:
    api = FakeApi(
        {
            "GET /api/v1/platforms": page(shown(PLATFORM)),
            "GET /api/v1/platforms/ddh": shown(PLATFORM),
            "GET /api/v1/platforms/ddh/webhook-secret": {"recipient": "ddh", "secret": "whsec_x"},
        }
    )
    assert "ddh" in graticule(api, "platform", "list", "--inactive").out
    assert dict(api.asked[-1].url.params) == {"inactive": "true"}
    assert json.loads(graticule(api, "platform", "list", "--json").out) == [shown(PLATFORM)]
    assert "required refs  dataset_id" in graticule(api, "platform", "show", "ddh").out
    assert graticule(api, "platform", "webhook-secret", "ddh").out == "whsec_x\n"


# assets


def test_a_submission_is_sent_as_it_was_told() -> None:
    api = answers("POST", "/api/v1/submit", httpx.Response(202, json=shown(RECEIPT)))
    more = ("--option", "tile_size=512", "-o", "name=007", "--overwrite", "--clearance", "ouo", "--key", "k-1")
    result = graticule(api, *SUBMIT, *more)
    assert (result.code, result.out) == (0, f"{REQUEST_ID}\n"), result.err
    assert api.body() == {
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": "0038272", "layer": 7},
        "version_label": "2026-03",
        "data_type": "raster",
        "container_name": "bronze",
        "file_name": "ddh/dem/europe.tif",
        "processing_options": {"tile_size": 512, "name": "007"},
        "overwrite": True,
        "clearance_level": "ouo",
    }
    assert api.asked[0].headers["Idempotency-Key"] == "k-1"
    assert json.loads(graticule(api, *SUBMIT, "--json").out) == shown(RECEIPT)


def test_a_submission_warns_of_queues_without_a_worker() -> None:
    receipt = RECEIPT.model_copy(update={"warnings": [missing_worker("gpu")]})
    api = answers("POST", "/api/v1/submit", httpx.Response(202, json=shown(receipt)))
    result = graticule(api, *SUBMIT)
    assert (result.code, result.out) == (0, f"{REQUEST_ID}\n")
    assert f"! {missing_worker('gpu')}" in result.err.splitlines()


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1)])
def test_a_submission_that_is_watched_ends_with_the_status_of_its_job(status: str, code: int) -> None:
    api = watched(job(status), event(1, "job_created"))
    api.answers["POST /api/v1/submit"] = httpx.Response(202, json=shown(RECEIPT))
    result = graticule(api, *SUBMIT, "--watch")
    assert result.code == code
    assert f"{JOB_ID}  {status}" in result.out


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("--file", "../x"), "file_name"),
        (("--container", "a/b"), "container_name"),
        (("--ref", "layer:=seven"), "'seven' is not a whole number"),
        (("--ref", "nonsense"), "not an input"),
        (("--callback-url", "x" * 600), "callback_url"),
    ],
)
def test_what_can_never_be_sent_is_refused_here(changed: tuple[str, ...], told: str) -> None:
    api = FakeApi()
    arguments = [*SUBMIT]
    if changed[0] == "--ref":
        arguments[arguments.index("layer:=7")] = changed[1]
        changed = ()
    result = graticule(api, *arguments, *changed)
    assert result.code == 1
    assert "Traceback" not in result.err
    assert told in result.err
    assert api.asked == []


CHANGED = AssetChange(asset=ASSET, version=VERSION)
SEEN = ("--version", "0", "--revision", "2", "--expect", "3")
CHANGES: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("approve", ASSET_ID, "--clearance", "public", *SEEN), "POST approve", {"clearance_level": "public"}),
    (("reject", ASSET_ID, "--reason", "blurred", *SEEN), "POST reject", {"reason": "blurred"}),
    (("revoke", ASSET_ID, "--reason", "wrong", *SEEN), "POST revoke", {"reason": "wrong"}),
    (("clearance", ASSET_ID, "ouo", "--revision", "2", "--expect", "3"), "POST clearance", {"clearance_level": "ouo"}),
    (("unpublish", ASSET_ID, "--yes", "--reason", "x", "--expect", "3"), "POST unpublish", {"reason": "x"}),
    (("url-mode", ASSET_ID, "all_versions", "--expect", "3"), "PATCH ", {"url_mode": "all_versions"}),
]


@pytest.mark.parametrize(("command", "route", "body"), CHANGES, ids=[command[0] for command, *_ in CHANGES])
def test_a_change_is_asked_of_the_version_and_the_state_that_were_named(
    command: tuple[str, ...], route: str, body: dict[str, Any]
) -> None:
    method, _, deed = route.partition(" ")
    path = f"/api/v1/assets/{ASSET_ID}" + (f"/{deed}" if deed else "")
    api = answers(method, path, shown(CHANGED))
    result = graticule(api, "asset", *command)
    assert result.code == 0, result.err
    version = {"version_ordinal": 0} if "--version" in command else {}
    revision = {"revision": 2} if "--revision" in command else {}
    assert api.body() == {**body, **version, **revision, "expected_version": 3}
    assert json.loads(graticule(api, "asset", *command, "--json").out) == shown(CHANGED)


@pytest.mark.parametrize("mode", ["latest-only", "latest_only", "LATEST-ONLY"])
def test_url_mode_accepts_hyphens(mode: str) -> None:
    api = answers("PATCH", f"/api/v1/assets/{ASSET_ID}", shown(CHANGED))
    assert graticule(api, "asset", "url-mode", ASSET_ID, mode).code == 0
    assert api.body() == {"url_mode": "latest_only"}


def test_an_unknown_url_mode_names_those_that_exist() -> None:
    result = graticule(FakeApi(), "asset", "url-mode", ASSET_ID, "newest")
    assert result.code == 2
    assert "'newest' is neither latest_only nor all_versions." in " ".join(result.err.replace("│", " ").split())


def test_what_is_not_named_is_not_sent() -> None:
    api = answers("POST", f"/api/v1/assets/{ASSET_ID}/approve", shown(CHANGED))
    graticule(api, "asset", "approve", ASSET_ID, "-c", "ouo")
    assert api.body() == {"clearance_level": "ouo"}
    assert graticule(api, "asset", "approve", ASSET_ID).code == 2  # nobody approves without saying for whom


OVERWRITTEN = VERSION.model_copy(
    update={"revision": 3, "approved_revision": 1, "processing_completed_at": NOW, "output_hash": "c" * 64}
)
SINGLE = VERSION.model_copy(update={"approved_revision": 1})
SUCCEEDED = [
    AssetRevision(
        asset_id=ASSET_ID,
        version_ordinal=0,
        revision=revision,
        approval_state=ApprovalState.APPROVED,
        clearance_state=ClearanceState.OUO,
        processing_completed_at=datetime(2026, 3, revision, 15, tzinfo=UTC),
        output_hash=f"{revision}" * 64,
        created_at=NOW,
        superseded_at=NOW,
    )
    for revision in (2, 1)
]
DECISIONS = (("approve", "-c", "ouo"), ("reject", "-r", "x"), ("revoke", "-r", "x"), ("clearance", "ouo"))


def decide_at_terminal(
    monkeypatch: pytest.MonkeyPatch, version: AssetVersion, decision: tuple[str, ...], typed: str, *others: AssetVersion
) -> tuple[FakeApi, Result]:
    monkeypatch.setattr("graticule.cli.assets.is_interactive", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    path = f"/api/v1/assets/{ASSET_ID}"
    found = {
        f"GET {path}": shown(ASSET),
        f"GET {path}/versions": page(*map(shown, [version, *others])),
        f"GET {path}/revisions": page(*map(shown, SUCCEEDED)),
    }
    api = FakeApi({**found, f"POST {path}/{decision[0]}": shown(CHANGED)})
    return api, graticule(api, "asset", decision[0], ASSET_ID, *decision[1:])


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda each: each[0])
def test_at_a_terminal_a_decision_is_on_the_revision_that_was_shown(
    monkeypatch: pytest.MonkeyPatch, decision: tuple[str, ...]
) -> None:
    is_served = decision[0] in {"revoke", "clearance"}
    revision, made, output_hash = (
        (1, datetime(2026, 3, 1, 15, tzinfo=UTC), "1" * 64) if is_served else (3, NOW, "c" * 64)
    )
    api, result = decide_at_terminal(monkeypatch, OVERWRITTEN, decision, "y\n")
    told = " ".join(result.err.split())
    assert f"revision {revision} of version 0 (2026-03)" in told
    assert f"processed {made.astimezone():%Y-%m-%d %H:%M:%S}, outputs {output_hash}." in told
    assert (api.body()["version_ordinal"], api.body()["revision"]) == (0, revision)
    api, result = decide_at_terminal(monkeypatch, OVERWRITTEN, decision, "n\n")
    assert result.code == 1
    assert {request.method for request in api.asked} == {"GET"}
    api, result = decide_at_terminal(monkeypatch, SINGLE, decision, "")
    assert (result.code, api.body()["revision"]) == (0, 1), "nothing to be asked"


def test_where_nothing_waits_an_approval_asks_about_what_is_in_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reviewer may have rejected what was looked at; to approve would change the clearance of version 0."""
    served = SINGLE.model_copy(update={"approval_state": ApprovalState.APPROVED, "processing_completed_at": NOW})
    rejected = VERSION.model_copy(update={"version_ordinal": 1, "approval_state": ApprovalState.REJECTED})
    approve = ("approve", "-c", "public")
    api, result = decide_at_terminal(monkeypatch, served, approve, "n\n", rejected)
    assert "revision 1 of version 0 (2026-03), in service" in " ".join(result.err.split())
    assert (result.code, [request.method for request in api.asked]) == (1, ["GET", "GET"])
    api, result = decide_at_terminal(monkeypatch, served, approve, "y\n", rejected)
    assert api.body() == {"clearance_level": "public", "version_ordinal": 0, "revision": 1}


def test_of_what_is_not_there_to_be_decided_on_the_server_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = VERSION.model_copy(update={"deleted_at": NOW, "deleted_by": "anna"})
    api, _ = decide_at_terminal(monkeypatch, deleted, DECISIONS[0], "")
    assert "revision" not in api.body()


def test_a_version_is_deleted_by_its_number() -> None:
    api = answers("DELETE", f"/api/v1/assets/{ASSET_ID}/versions/0", shown(CHANGED))
    assert graticule(api, "asset", "delete-version", ASSET_ID, "0", "--expect", "3").code == 0
    assert dict(api.asked[0].url.params) == {"expected_version": "3"}


def test_a_change_tells_the_warning_the_job_and_that_nothing_was_to_be_done() -> None:
    path = f"/api/v1/assets/{ASSET_ID}/clearance"
    warned = CHANGED.model_copy(update={"warning": "Copies [may] remain.", "job_id": JOB_ID})
    result = graticule(answers("POST", path, shown(warned)), "asset", "clearance", ASSET_ID, "ouo")
    assert "Copies [may] remain." in result.err
    assert f"graticule watch {JOB_ID}" in result.err
    same = CHANGED.model_copy(update={"changed": False})
    result = graticule(answers("POST", path, shown(same)), "asset", "clearance", ASSET_ID, "ouo")
    assert "It was so already" in result.err


def test_to_unpublish_wants_a_yes() -> None:
    api = answers("POST", f"/api/v1/assets/{ASSET_ID}/unpublish", shown(CHANGED))
    assert graticule(api, "asset", "unpublish", ASSET_ID).code == 1  # nobody is there to say it
    assert api.asked == []


@pytest.mark.parametrize(
    ("command", "body"), [(("retry",), {}), (("reprocess", "--reason", "x"), {"reason": "x"})], ids=str
)
def test_processing_again_tells_the_request(command: tuple[str, ...], body: dict[str, Any]) -> None:
    api = answers("POST", f"/api/v1/assets/{ASSET_ID}/{command[0]}", httpx.Response(202, json=shown(RECEIPT)))
    result = graticule(api, "asset", command[0], ASSET_ID, *command[1:])
    assert (result.code, result.out, api.body()) == (0, f"{REQUEST_ID}\n", body)


def test_assets_are_listed_by_what_was_asked() -> None:
    api = answers("GET", "/api/v1/assets", page(shown(ASSET)))
    command = ("asset", "list", "--platform", "ddh", "--ref", "dataset_id=0038272", "--approval", "pending_review")
    result = graticule(api, *command, "--text", "dem", "--limit", "7")
    assert dict(api.asked[0].url.params) == {
        "platform": "ddh",
        "refs": '{"dataset_id": "0038272"}',
        "approval_state": "pending_review",
        "q": "dem",
        "deleted": "false",
        "limit": "7",
    }
    assert "dataset_id=0038272 resource_id=[dem]" in result.out
    assert json.loads(graticule(api, *command, "--json").out) == [shown(ASSET)]
    assert "no such asset" in graticule(answers("GET", "/api/v1/assets", page()), "asset", "list").err


def test_an_asset_is_shown_with_its_versions_and_its_history() -> None:
    path = f"/api/v1/assets/{ASSET_ID}"
    approved = Event(
        event_id=1,
        event_type=EventType.ASSET_APPROVED,
        asset_id=ASSET_ID,
        version_ordinal=0,
        actor="anna",
        data={"clearance_state": "ouo"},
        created_at=NOW,
    )
    api = FakeApi(
        {
            f"GET {path}": shown(ASSET),
            f"GET {path}/versions": page(shown(VERSION)),
            f"GET {path}/history": page(shown(approved)),
        }
    )
    result = graticule(api, "asset", "show", ASSET_ID)
    assert "nothing is in service" in result.out
    assert result.out.splitlines()[-1].split()[:2] == ["0", "2026-03"]
    told = json.loads(graticule(api, "asset", "show", ASSET_ID, "--json").out)
    assert told == {**shown(ASSET), "versions": [shown(VERSION)]}
    line = graticule(api, "asset", "history", ASSET_ID).out.splitlines()[1]
    assert line.split()[2:] == ["asset_approved", "0", "anna", "clearance_state:", "ouo"]


@pytest.mark.parametrize(("status", "code"), [(RequestStatus.COMPLETED, 0), (RequestStatus.FAILED, 1)])
def test_a_status_is_told_and_a_failed_one_ends_with_1(status: RequestStatus, code: int) -> None:
    told = PlatformStatus(
        request_id=REQUEST_ID,
        asset_id=ASSET_ID,
        data_type=DataType.RASTER,
        status=status,
        progress=100,
        version=VersionInBrief(ordinal=0, label="2026-03", revision=1),
        processing_state=ProcessingState.COMPLETED,
        approval_state=ApprovalState.APPROVED,
        clearance_state=ClearanceState.OUO,
        decision=ReviewOutcome(state=DecisionState.APPROVED, by="rita", at=NOW, note="mind the [gap]"),
        export=PublicCopy(state=CopyState.FAILED, error="no copy", at=NOW),
        in_service=VersionInBrief(ordinal=0, label="2026-03", revision=1),
        service_urls={"tiles": "https://maps.example.org/t"},
        accepted_at=NOW,
        error="it [broke]",
    )
    result = graticule(answers("GET", "/api/v1/status/x", shown(told)), "asset", "status", "x")
    assert result.code == code
    assert "tiles: https://maps.example.org/t" in result.out
    assert "it [broke]" in result.out
    assert "Approved by rita" in result.out
    assert "mind the [gap]" in result.out
    assert "Copy for the public: failed." in result.out
    assert "In service: version 0 (2026-03), revision 1." in result.out
    assert (f"graticule asset retry {ASSET_ID} --version 0" in result.out) is (status is RequestStatus.FAILED)


# callbacks, commands, numbers

DELIVERY = {
    "callback_id": 12,
    "state": "given_up",
    "job_id": JOB_ID,
    "url": "https://example.org/hook",
    "recipient": "ddh",
    "webhook_id": "msg_12",
    "payload": {},
    "attempt_count": 10,
    "next_attempt_at": None,
    "last_error": "status 500",
    "delivered_at": None,
    "given_up_at": NOW.isoformat(),
    "created_at": NOW.isoformat(),
}


def test_callbacks_are_listed_and_sent_anew() -> None:
    api = FakeApi({"GET /api/v1/deliveries": page(DELIVERY), "POST /api/v1/deliveries/12/redeliver": DELIVERY})
    assert "status 500" in graticule(api, "callbacks", "list", "--state", "given_up").out
    assert dict(api.asked[0].url.params) == {"state": "given_up", "limit": "50"}
    assert graticule(api, "callbacks", "redeliver", "12").code == 0
    assert graticule(api, "callbacks", "redeliver", "0").code == 2


COMMAND = {
    "name": "metadata.publish",
    "summary": "Show it.",
    "deed": "operate",
    "parameters": {"properties": {"asset_id": {"type": "string"}, "version_ordinal": {"type": "integer"}}},
}


@pytest.mark.parametrize(("outcome", "told"), [("changed", "is done"), ("unchanged", "so already")])
def test_a_command_is_sent_with_the_types_that_it_declares(outcome: str, told: str) -> None:
    done = {"command": "metadata.publish", "outcome": outcome, "details": {}}
    api = FakeApi({"GET /api/v1/commands": page(COMMAND), "POST /api/v1/commands/metadata.publish": done})
    result = graticule(api, "command", "run", "metadata.publish", "asset_id=007", "version_ordinal=0")
    assert result.code == 0, result.err
    assert api.body() == {"asset_id": "007", "version_ordinal": 0}
    assert told in result.err
    assert "asset_id, version_ordinal" in graticule(api, "command", "list").out


AT_HAND = {
    "asset_id": ASSET_ID,
    "platform_id": "ddh",
    "platform_refs": {"a": "b"},
    "version_ordinal": 0,
    "revision": 1,
    "version_label": "x",
    "workflow_id": "w",
    "current_job_id": JOB_ID,
    "job_count": 4,
}
MOMENT = NOW.isoformat()
NUMBERS: list[tuple[str, dict[str, Any], str]] = [
    (
        "stuck",
        {
            **AT_HAND,
            "processing_started_at": MOMENT,
            "estimated_completion_at": None,
            "node_summary": None,
            "seconds": 7384,
        },
        "2 h 03 min",
    ),
    (
        "failed",
        {
            **AT_HAND,
            "purpose": "export",
            "job_id": "j7",
            "failed_at": MOMENT,
            "error": "it [broke]",
            "retry_count": 0,
        },
        "it [broke]",
    ),
    ("durations", {"workflow_id": "w", "jobs": 7, "p50_seconds": 1.5, "p95_seconds": 150}, "2 min 30 s"),
    ("attempts", {**AT_HAND, "processing_state": "failed", "error": None}, "4     failed"),
    (
        "load",
        {"workflow_id": "w", "pending": 1, "running": 2, "completed_24h": 3, "failed_24h": 4, "cancelled_24h": 5},
        "w         1        2        3               4            5",
    ),
]


def numbers(question: str, answer: Any, *queues: dict[str, Any]) -> FakeApi:
    return FakeApi({f"GET /api/v1/stats/{question}": answer, "GET /api/v1/queues": page(*queues)})


@pytest.mark.parametrize(("question", "row", "told"), NUMBERS, ids=[name for name, *_ in NUMBERS])
def test_each_question_is_one_command(question: str, row: dict[str, Any], told: str) -> None:
    api = numbers(question, page(row))
    result = graticule(api, "stats", question)
    assert result.code == 0, result.err
    assert told in result.out
    assert len(json.loads(graticule(api, "stats", question, "--json").out)) == 1
    empty = graticule(numbers(question, page()), "stats", question)
    assert (empty.code, empty.out) == (0, "")
    assert len(empty.err.splitlines()) == 1


def test_queues_without_a_worker_are_stuck() -> None:
    counts = {"queued": 3, "delayed": 0, "leased": 0, "dead": 0, "workers": 0, "oldest_seconds": 825.0}
    served = {**counts, "queue": "served", "workers": 1, "unserved": 0}
    api = numbers("stuck", page(), {**counts, "queue": "dag-worker-tasks", "unserved": 3}, served)
    result = graticule(api, "stats", "stuck")
    told = "! 3 tasks wait, the oldest for 13 min 45 s. No live worker serves the queue 'dag-worker-tasks'."
    assert f"{told} Start one with: graticule worker --queues dag-worker-tasks" in result.err
    assert "served'" not in result.err
    assert "Nothing is stuck" not in result.err


def test_all_assets_of_a_dataset_are_found_by_its_refs() -> None:
    api = answers("GET", "/api/v1/stats/datasets", page(shown(ASSET)))
    assert ASSET_ID in graticule(api, "stats", "dataset", "--ref", "dataset_id=0038272").out
    assert api.asked[0].url.params["refs"] == '{"dataset_id": "0038272"}'
    assert_told_in_two_lines(graticule(api, "stats", "dataset"))


def test_the_numbers_of_today() -> None:
    told = {
        "jobs": {"running": 3, "failed": 1},
        "counted_up_to": 100000,
        "completed_24h": 7,
        "failed_24h": 1,
        "cancelled_24h": 0,
        "jobs_per_hour": 0.3,
        "hours": [],
        "durations_7d": [],
    }
    result = graticule(answers("GET", "/api/v1/stats", told), "stats")
    assert "7 completed, 1 failed, 0 cancelled" in result.out


# refusals


@pytest.mark.parametrize("group", ["stats", "dead-letters"])
def test_a_group_without_a_command_talks_to_the_same_server(group: str) -> None:
    api = FakeApi()
    graticule(api, group, GRATICULE_API_URL="http://there:1234")
    assert [request.url.netloc for request in api.asked] == [b"there:1234"]


@pytest.mark.parametrize(
    "command",
    [
        ("client", "list"),
        ("platform", "show", "ddh"),
        SUBMIT,
        ("asset", "approve", ASSET_ID, "-c", "ouo"),
        ("asset", "show", ASSET_ID),
        ("callbacks", "list"),
        ("command", "run", "x"),
        ("stats", "stuck"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_refusal_is_told_with_its_hint_and_without_a_traceback(command: tuple[str, ...]) -> None:
    class Everything(dict[str, Any]):
        def get(self, _: str, __: Any = None) -> Any:
            return problem(409, "Version 0 is [unresolved].", hint="Approve it.", code="version_unresolved")

    told = assert_told_in_two_lines(graticule(FakeApi(Everything()), *command))
    assert told == ("✗ Version 0 is [unresolved].", "  Approve it.")
