"""What templates see of a job; nothing is read before a template asks for it."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus
from graticule.dag.deciding.step import Step
from graticule.dag.state import NOT_LOADED, NeedsData, NotLoaded


def template_context(step: Step) -> dict[str, Any]:
    """Give the names that every template of the job may use."""
    return {
        "inputs": step.job.input_params,
        "nodes": _Nodes(step),
        "job": {"job_id": step.job.job_id, "workflow_id": step.graph.workflow_id},
        "env": step.policy.environment,
        "stages": _Stages(step),
    }


def output_of(step: Step, node_id: str) -> JsonValue:
    """Give the output of a node, or raise `NeedsData` when it was not read."""
    node = step.node(node_id)
    output = stored_output(node.output, node.output_ref)
    if isinstance(output, NotLoaded):
        raise NeedsData(outputs=frozenset({node_id}))
    return output


def stored_output(output: JsonValue | NotLoaded, output_ref: str | None) -> JsonValue | NotLoaded:
    """Give an output as far as it was read: one that is stored elsewhere is not known to be null."""
    return NOT_LOADED if output is None and output_ref is not None else output


class _Nodes(Mapping[str, Mapping[str, Any]]):
    """`nodes`: the static nodes by name."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __getitem__(self, node_id: str) -> Mapping[str, Any]:
        if node_id not in self._step.graph.nodes:
            raise KeyError(node_id)
        return _Node(self._step, node_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._step.graph.nodes)

    def __len__(self) -> int:
        return len(self._step.graph.nodes)


class _Node(Mapping[str, Any]):
    """`nodes.x`: its status, and its output once it completed; what was skipped has none, not even null."""

    def __init__(self, step: Step, node_id: str) -> None:
        self._step = step
        self._node_id = node_id

    def __getitem__(self, name: str) -> Any:
        if name == "output" and self._completed():
            return output_of(self._step, self._node_id)
        if name == "status":
            return str(self._step.node(self._node_id).status)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("output", "status") if self._completed() else ("status",))

    def __len__(self) -> int:
        return 2 if self._completed() else 1

    def _completed(self) -> bool:
        return self._step.node(self._node_id).status is NodeStatus.COMPLETED


class _Stages(Mapping[str, Mapping[str, Any]]):
    """`stages`: those that have a node which gives their results."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._nodes = {
            spec.stage: spec.node_id
            for spec in step.graph.nodes.values()
            if spec.stage is not None and spec.type in (NodeType.TASK, NodeType.FAN_IN)
        }

    def __getitem__(self, stage: str) -> Mapping[str, Any]:
        return _Stage(self._step, self._nodes[stage])

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class _Stage(Mapping[str, Any]):
    """`stages.x`: the results of its tasks, in order."""

    def __init__(self, step: Step, node_id: str) -> None:
        self._step = step
        self._node_id = node_id

    def __getitem__(self, name: str) -> Any:
        if name != "results":
            raise KeyError(name)
        output = output_of(self._step, self._node_id)
        if self._step.graph.nodes[self._node_id].type is NodeType.FAN_IN:
            return _in_places(output) if isinstance(output, dict) else output
        return [output]

    def __iter__(self) -> Iterator[str]:
        return iter(("results",))

    def __len__(self) -> int:
        return 1


def _in_places(output: dict[str, Any]) -> list[Any]:
    """Give the results with null where a task failed, so that task 5 of the next stage gets the result of task 5."""
    failed = {child["index"] for child in output.get("failed", ())}
    results = iter(output["results"])
    return [None if index in failed else next(results) for index in range(len(output["results"]) + len(failed))]
