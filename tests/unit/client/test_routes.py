"""Every call names a route that exists, sends what it takes, and reads what it answers: by the OpenAPI documents."""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, get_args
from uuid import UUID

import pytest
from pydantic import BaseModel
from tests.openapi import documents

from graticule.client import Call, calls
from graticule.client.call import Parsed
from graticule.client.calls.assets import AssetFilters
from graticule.core.exchange import (
    Approval,
    ClearanceChange,
    PlatformSubmission,
    Rejection,
    Removal,
    Reprocessing,
    Retrial,
    Revocation,
    UrlModeChange,
)
from graticule.core.models.engine import EventType
from graticule.core.models.platform import ClientRole, DataType, UrlMode
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.services.dead_letters import LetterKind
from graticule.services.jobs import JobReceipt, Submission

SEEN = {"expected_version": 1}
SUBMISSION = PlatformSubmission(
    platform_id="ddh",
    platform_refs={"dataset_id": "1", "resource_id": "2"},
    version_label="1",
    data_type=DataType.RASTER,
    container_name="bronze",
    file_name="ddh/a.tif",
)
# By the name of the parameter; that of one function only by both names.
SAMPLES: dict[str, Any] = {
    **dict.fromkeys(("asset_id", "client_id", "job_id", "node_id", "workflow_id", "letter_id", "key"), "x"),
    **dict.fromkeys(
        ("parent", "correlation_id", "submitted_by", "platform", "q", "text", "queue", "display_name"), "x"
    ),
    **dict.fromkeys(("platform_id", "description", "version_ref", "idempotency_key", "name"), "x"),
    **dict.fromkeys(("limit", "after", "ordinal", "version_ordinal", "minutes", "days", "at_least", "callback_id"), 1),
    **dict.fromkeys(("resubmit", "stopped", "inactive", "deleted", "with_deleted", "is_active"), True),
    **{name: ["a"] for name in ("required_refs", "optional_refs")},
    "approval": Approval(clearance_level=ClearanceState.OUO, version_ordinal=0, **SEEN),
    "approval_state": ApprovalState.APPROVED,
    "bbox": (-10.5, 35.0, 1e-5, 60.0),
    "clearance": ClearanceChange(clearance_level=ClearanceState.PUBLIC, **SEEN),
    "clearance_state": ClearanceState.OUO,
    "created_after": None,
    "created_before": None,
    "data_type": DataType.RASTER,
    "describe_layer.description": {"title": "x", "keywords": ["y"]},
    "event_type": [EventType.JOB_CREATED, EventType.JOB_FAILED],
    "expected_version": 1,
    "four_eyes": True,
    "kind": LetterKind.TASK,
    "parameters": {"asset_id": "x"},
    "processing_state": ProcessingState.QUEUED,
    "refs": {"dataset_id": "1"},
    "rejection": Rejection(reason="x", version_ordinal=0, **SEEN),
    "removal": Removal(reason="x", **SEEN),
    "reprocessing": Reprocessing(reason="x", version_ordinal=0, **SEEN),
    "request_id": UUID(int=1),
    "retrial": Retrial(version_ordinal=0, **SEEN),
    "revocation": Revocation(reason="x", version_ordinal=0, **SEEN),
    "roles": [ClientRole.OPERATOR],
    "source_containers": ["bronze/ddh/"],
    "state": "waiting",
    "status": "completed",
    "submission": SUBMISSION,
    "submit_job.submission": Submission(workflow_id="echo_test", idempotency_key="x", priority=1),
    "url_mode": UrlModeChange(url_mode=UrlMode.LATEST_ONLY, **SEEN),
    "validate_workflow.text": "workflow_id: x",
}


def functions() -> dict[str, Callable[..., Call[Any]]]:
    """Give the functions of `calls` and of `calls.gateway`, by name."""
    found = {name: getattr(calls, name) for name in calls.__all__ if name != "gateway"}
    own = inspect.getmembers(calls.gateway, inspect.isfunction)
    gateway = {name: each for name, each in own if each.__module__ == calls.gateway.__name__ and name[0] != "_"}
    return found | {f"gateway.{name}": each for name, each in gateway.items()}


FUNCTIONS = functions()


def made(name: str) -> Call[Any]:
    """Make a call with all that the function takes."""
    function = FUNCTIONS[name]
    parameters = [*inspect.signature(function).parameters]
    if "filters" in parameters:
        parameters[parameters.index("filters") :] = AssetFilters.__annotations__
    given = {each: SAMPLES.get(f"{name}.{each}", SAMPLES.get(each)) for each in parameters}
    missing = [each for each in parameters if each not in SAMPLES and f"{name}.{each}" not in SAMPLES]
    assert missing == [], f"{name} takes something of which there is no sample"
    return function(**given)


def plain(route: str) -> str:
    return re.sub(r"{[^}]+}", "{}", route)


def process_of(call: Call[Any]) -> str:
    return "orchestrator" if call.route.startswith("/api/v1/") else "gateway"


def operation(call: Call[Any]) -> dict[str, Any]:
    paths = documents()[process_of(call)]["paths"]
    found = [item for path, item in paths.items() if plain(path) == plain(call.route) and call.method.lower() in item]
    assert found, f"{call.method} {call.route} is no route of the {process_of(call)}"
    described: dict[str, Any] = found[0][call.method.lower()]
    return described


def resolved(process: str, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the objects that a schema describes: one, or one for each choice."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return resolved(process, documents()[process]["components"]["schemas"][name])
    if "anyOf" in schema:
        return [each for choice in schema["anyOf"] for each in resolved(process, choice)]
    return [schema]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_route_exists_and_takes_what_is_asked(name: str) -> None:
    call = made(name)
    described = operation(call)
    declared = [each for each in described.get("parameters", []) if each["in"] == "query"]
    assert {each for each, _ in call.parameters} <= {each["name"] for each in declared}
    required = {each["name"] for each in declared if each.get("required")}
    assert required <= {each for each, _ in call.parameters}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if made(name).body is not None])
def test_the_body_is_one_that_the_route_takes(name: str) -> None:
    call = made(name)
    content = operation(call)["requestBody"]["content"]
    assert list(content) == [call.content_type]
    if call.content_type != "application/json":
        return
    sent = json.loads(call.content or b"")
    choices = resolved(process_of(call), content["application/json"]["schema"])
    assert any(_takes(choice, sent) for choice in choices), sent


def _takes(schema: dict[str, Any], sent: dict[str, Any]) -> bool:
    if schema.get("additionalProperties"):
        return True
    return sent.keys() <= schema.get("properties", {}).keys() and {*schema.get("required", [])} <= sent.keys()


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "follow" not in name])
def test_the_answer_is_read_as_what_the_route_says(name: str) -> None:
    """A field that the server does not send would fail, and one that the client does not know would be lost."""
    call = made(name)
    good = [each for status, each in operation(call)["responses"].items() if status.startswith("2")]
    schemas = [each["content"]["application/json"]["schema"] for each in good]
    known = {frozenset(_shown(kind)) for kind in kinds(call)}
    for schema in schemas:
        for told in resolved(process_of(call), schema):
            assert frozenset(told["properties"]) in known, (name, told.get("title"))


def kinds(call: Call[Any]) -> Iterator[type[BaseModel]]:
    """Give the models as which the answer to a call may be read."""
    kind = call.answer.kind if isinstance(call.answer, Parsed) else JobReceipt  # as a submission is read
    choices = get_args(kind) if isinstance(kind, UnionType) else [kind]
    yield from choices


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "list_" in name])
def test_the_items_of_a_list_are_read_as_what_the_route_says(name: str) -> None:
    call = made(name)
    (page,) = kinds(call)
    item = page.model_fields["items"].annotation
    (kind,) = get_args(item)
    known = {frozenset(_shown(each)) for each in (get_args(kind) if isinstance(kind, UnionType) else [kind])}
    schema = operation(call)["responses"]["200"]["content"]["application/json"]["schema"]
    process = process_of(call)
    for told in resolved(process, schema):
        for each in resolved(process, told["properties"]["items"]["items"]):
            assert frozenset(each["properties"]) in known, (name, each.get("title"))


def _shown(model: type[BaseModel]) -> list[str]:
    return [*(name for name, field in model.model_fields.items() if not field.exclude), *model.model_computed_fields]


def test_every_call_may_be_repeated_only_if_that_does_no_harm() -> None:
    harmless = {"run_command", "validate_workflow", "submit_job", "submit_data", "gateway.submit"}  # these with a key
    for name in FUNCTIONS:
        call = made(name)
        assert call.repeatable is (call.method == "GET" or name in harmless), name
