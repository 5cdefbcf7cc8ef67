"""Answers that only the client needs a model of: the servers make them from what is not here."""

from datetime import datetime
from typing import Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field

from graticule.core.ids import JobId
from graticule.core.models.fields import JsonObject, Priority
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Deed
from graticule.core.states import RequestStatus
from graticule.dag.graph import InputSpec
from graticule.dag.problems import Problem
from graticule.repositories.callbacks import DeliveryState

T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    """One page of a list; `next` is the cursor of the page after it."""

    items: list[T]
    next: str | None = None


class WorkflowSummary(BaseModel):
    """A workflow that can be submitted."""

    workflow_id: str
    name: str
    version: str
    description: str
    inputs: dict[str, InputSpec]
    workflow_hash: str
    file: str | None
    source: str | None = None
    announced_by: str | None = None
    announced_at: datetime | None = None
    reloaded_by: str | None = None


class WorkflowDetail(WorkflowSummary):
    """A workflow with its compiled graph."""

    graph: JsonObject


class InstanceProblems(BaseModel):
    """What is wrong with the files of another orchestrator."""

    owner_id: str
    hostname: str
    problems: list[str]


class WorkflowPage(Page[WorkflowSummary]):
    """The workflows, and the problems of files: those with an error did not load."""

    problems: list[Problem]
    other_problems: list[InstanceProblems] = Field(default_factory=list)


class Validation(BaseModel):
    """What became of a workflow's text; the graph is None when there is an error."""

    valid: bool
    problems: list[Problem]
    graph: JsonObject | None


class Settled(BaseModel):
    """What was done with a dead letter."""

    id: str
    done: str


class PlatformReceipt(BaseModel):
    """What a submission to the gateway came to."""

    request_id: UUID
    asset_id: str
    version_ordinal: int
    revision: int
    status: RequestStatus
    priority: Priority = 0
    monitor_url: str


class OperatorReceipt(PlatformReceipt):
    """What a submission to the gateway came to, for operators."""

    job_id: JobId | None
    warnings: list[str] = Field(default_factory=list)


class ClientView(BaseModel):
    """Someone who may call."""

    client_id: str
    display_name: str
    roles: list[ClientRole]
    platform_id: str | None
    is_active: bool
    last_used_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ClientWithKey(ClientView):
    """A client and its new key, which is shown this once."""

    key: str = Field(repr=False)


class WebhookSecret(BaseModel):
    """What a recipient verifies callbacks with."""

    recipient: str
    secret: str = Field(repr=False)


class Delivery(BaseModel):
    """A callback out, as operators see it."""

    callback_id: int
    state: DeliveryState
    job_id: JobId
    url: str
    webhook_id: str
    recipient: str
    payload: JsonObject
    attempt_count: int
    next_attempt_at: datetime | None
    last_error: str | None
    delivered_at: datetime | None
    given_up_at: datetime | None
    created_at: datetime


class CommandListItem(BaseModel):
    """A direct command: who may give it, and the JSON schema of what it takes."""

    name: str
    summary: str
    deed: Deed
    parameters: JsonObject


class CommandResult(BaseModel):
    """What a direct command has done: it `changed` something, or found it `unchanged`."""

    command: str
    outcome: Literal["changed", "unchanged"]
    details: JsonObject
