"""A compiled workflow: what the evaluator walks, what a job pins, what the API shows.

A graph is immutable and is its own JSON document: `Graph.model_validate(graph.model_dump(mode="json"))`
gives it back, and `graph.content_hash` identifies it.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from graticule.core.models.engine import NodeType

DEFAULT_TIMEOUT_SECONDS = 3600


class Frozen(BaseModel):
    """A value of a graph."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Backoff(StrEnum):
    """How the wait before a retry grows."""

    FIXED = "fixed"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class Join(StrEnum):
    """Which incoming edges a node waits for."""

    ALL_OF = "all_of"
    ANY_OF = "any_of"


class Aggregation(StrEnum):
    """What a fan-in makes of its children's outputs."""

    COLLECT = "collect"
    CONCAT = "concat"
    SUM = "sum"
    FIRST = "first"
    LAST = "last"


class ChildFailure(StrEnum):
    """What a child that failed for good does to its fan-out."""

    FAIL = "fail"
    CONTINUE = "continue"


class InputType(StrEnum):
    """The types that an input can have."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"


class InputSpec(Frozen):
    """One declared input of a workflow."""

    type: InputType
    required: bool = False
    default: JsonValue = None
    description: str | None = None
    enum: tuple[JsonValue, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None


class RetryPolicy(Frozen):
    """How often a task is tried again after its first try, and how long each retry waits."""

    max_attempts: int = Field(3, ge=0, le=1000)
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_seconds: float = Field(1, ge=0, le=86_400)
    max_delay_seconds: float = Field(60, ge=0, le=86_400)
    jitter: bool = True


class TaskSpec(Frozen):
    """What is sent to a queue: of a task node itself, or of each child of a fan-out."""

    handler: str
    queue: str
    params: dict[str, JsonValue] = Field(default_factory=dict)
    timeout_seconds: int = Field(DEFAULT_TIMEOUT_SECONDS, ge=1, le=7 * 86_400)
    retry: RetryPolicy = RetryPolicy()


class Branch(Frozen):
    """One way out of a conditional; the one without a condition is the default, and stands last."""

    condition: str | None  # a whole expression of the template language, without braces
    next: tuple[str, ...]


class NodeSpec(Frozen):
    """One static node."""

    node_id: str
    type: NodeType
    next: tuple[str, ...] = ()  # every target, the conditional's of all branches
    join: Join = Join.ALL_OF
    task: TaskSpec | None = None  # of a task, or of each child of a fan-out
    branches: tuple[Branch, ...] = ()  # of a conditional
    source: JsonValue = None  # of a fan-out: a template, or a list written out
    key: str | None = None
    max_parallel: int | None = Field(None, ge=1)
    on_child_failure: ChildFailure = ChildFailure.FAIL
    aggregation: Aggregation = Aggregation.COLLECT  # of a fan-in
    fan_out: str | None = None  # of a fan-in: the fan-out whose children it gathers
    stage: str | None = None  # the stage that it was written as


class Graph(Frozen):
    """A validated workflow. Nodes stand in topological order."""

    workflow_id: str
    name: str
    version: str
    description: str = ""
    inputs: dict[str, InputSpec] = Field(default_factory=dict)
    job_id: Literal["params"] | None = None  # "params": identical inputs are one job
    nodes: dict[str, NodeSpec]

    @cached_property
    def content_hash(self) -> str:
        """Identify the content: equal graphs have equal hashes."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def incoming(self) -> Mapping[str, tuple[str, ...]]:
        """Give the sources of each node's incoming edges."""
        found: dict[str, list[str]] = {node_id: [] for node_id in self.nodes}
        for node in self.nodes.values():
            for target in dict.fromkeys(node.next):
                found[target].append(node.node_id)
        return {node_id: tuple(sources) for node_id, sources in found.items()}

    @cached_property
    def start(self) -> str:
        """Give the one start node."""
        return next(node.node_id for node in self.nodes.values() if node.type is NodeType.START)

    def downstream(self, node_id: str) -> frozenset[str]:
        """Give every node that can be reached from this one, without itself."""
        found: set[str] = set()
        ahead = list(self.nodes[node_id].next)
        while ahead:
            current = ahead.pop()
            if current not in found:
                found.add(current)
                ahead.extend(self.nodes[current].next)
        return frozenset(found)
