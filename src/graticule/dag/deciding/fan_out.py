"""One node becomes many: a list is expanded to children, which are released as their number allows."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.models.engine import EventType
from graticule.core.states import NodeStatus
from graticule.dag.deciding.context import template_context
from graticule.dag.deciding.dispatch import dispatch, tell_of_children
from graticule.dag.deciding.failure import CannotRun
from graticule.dag.deciding.step import Step, child_id, new_child
from graticule.dag.graph import NodeSpec
from graticule.dag.state import NodeState
from graticule.dag.templates import ParamsTemplate, render_value

KEY_LENGTH = 255
MAX_NAMED_CHILDREN = 10_000  # in the output of a fan-out


def expand(step: Step, spec: NodeSpec) -> list[NodeState]:
    """Make the children of a ready fan-out, which are no part of the step yet."""
    parent = step.node(spec.node_id)
    context = template_context(step)
    items = _items(step, spec, context)
    params = ParamsTemplate(step.task_spec(parent).params).for_items(context)
    key = _key_of(spec, context)
    size, children = 0, []
    for index, item in enumerate(items):
        child = new_child(parent, index, key(item, index), params(item, index))
        size += _params_size(child)
        if size > step.policy.max_children_params_bytes:
            raise CannotRun(
                f"The parameters of {index + 1:,} of the {len(items):,} children of fan-out '{spec.node_id}' have "
                f"{size:,} bytes of JSON together; at most {step.policy.max_children_params_bytes:,} are allowed. "
                "Hand the children references to what is large, such as a path in the storage."
            )
        children.append(child)
    return children


def launch(step: Step, spec: NodeSpec, children: list[NodeState]) -> None:
    """Begin a fan-out with the children that were made for it, or go on with those that it has."""
    node = step.move(spec.node_id, NodeStatus.RUNNING)
    node.started_at = node.started_at or step.now
    if children:
        step.add_children(children)
        node.children_total = len(children)
    step.tell(EventType.NODE_RUNNING, spec.node_id, {"children": node.children_total})


def release(step: Step, spec: NodeSpec) -> None:
    """Dispatch the next children, in index order, as far as the state has them and `max_parallel` allows."""
    node = step.node(spec.node_id)
    first = node.children_started
    last = first + releasable(spec, node)
    index = first
    while index < last and step.find(child_id(spec.node_id, index)) is not None:
        index += 1
    if index == first:
        return
    step.edit(spec.node_id).children_started = index
    for number in range(first, index):
        dispatch(step, step.move(child_id(spec.node_id, number), NodeStatus.READY).node_id)
    tell_of_children(step, EventType.NODE_READY, spec.node_id, first, index - 1)
    tell_of_children(step, EventType.NODE_DISPATCHED, spec.node_id, first, index - 1)
    step.start_job()


def releasable(spec: NodeSpec, node: NodeState, finished: int = 0) -> int:
    """Tell how many children a fan-out may release, when so many more have finished: as many are to be read."""
    held_back = node.children_total - node.children_started
    if spec.max_parallel is None:
        return held_back
    under_way = node.children_started - node.children_done - node.children_failed - finished
    return max(0, min(held_back, spec.max_parallel - under_way))


def has_ended(node: NodeState) -> bool:
    """Tell whether every child of a fan-out has ended."""
    return node.children_done + node.children_failed == node.children_total


def complete_fan_out(step: Step, spec: NodeSpec) -> None:
    """Complete a fan-out whose children have ended, or that has none."""
    node = step.move(spec.node_id, NodeStatus.COMPLETED)
    node.output = output_of_fan_out(node)
    step.tell(
        EventType.NODE_COMPLETED,
        spec.node_id,
        {"children": node.children_total, "failed": node.children_failed},
    )


def output_of_fan_out(node: NodeState) -> dict[str, JsonValue]:
    """Return the counts, and what earlier workflows read: the number again, and the ids unless they are too many."""
    total = node.children_total
    output: dict[str, JsonValue] = {"count": total, "failed": node.children_failed, "fan_out_count": total}
    if total <= MAX_NAMED_CHILDREN:
        output["child_node_ids"] = [child_id(node.node_id, index) for index in range(total)]
    return output


def _items(step: Step, spec: NodeSpec, context: Mapping[str, Any]) -> list[JsonValue]:
    source = render_value(spec.source, context, where=f"node '{spec.node_id}', source")
    if isinstance(source, Mapping):
        source = [{"key": key, "value": value} for key, value in source.items()]
    if not isinstance(source, list | tuple):
        raise CannotRun(f"The source of fan-out '{spec.node_id}' is {_told(source)}; it must be a list or a mapping.")
    if len(source) > step.policy.max_children:
        raise CannotRun(
            f"The source of fan-out '{spec.node_id}' has {len(source)} items; "
            f"at most {step.policy.max_children} are allowed."
        )
    return list(source)


def _params_size(child: NodeState) -> int:
    try:
        return len(json_codec.encode(child.input_params))
    except TypeError as error:
        raise CannotRun(f"The parameters of child {child.node_id} cannot be written as JSON: {error}.") from error


def _told(value: object) -> str:
    names = {str: "a string", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _key_of(spec: NodeSpec, context: Mapping[str, Any]) -> Callable[[JsonValue, int], str | None]:
    if spec.key is None:
        return lambda item, index: None
    rendered = ParamsTemplate({"key": spec.key}).for_items(context)
    return lambda item, index: str(rendered(item, index)["key"])[:KEY_LENGTH]
