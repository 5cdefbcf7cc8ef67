"""Many become one: what a fan-in makes of the outputs of a fan-out's children."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.states import NodeStatus
from graticule.dag.deciding.context import stored_output
from graticule.dag.deciding.failure import CannotRun
from graticule.dag.deciding.step import ENDED, Step
from graticule.dag.graph import Aggregation, NodeSpec
from graticule.dag.state import ChildOutcome, NeedsData, NodeState, NotLoaded

ERROR_LENGTH: Final = 500  # of a failed child's reason, which stands in full at the child
FRAME_BYTES: Final = 64  # around the outputs: the names, the brackets and the count
WHOLE_NUMBERS: Final = range(-(2**63), 2**64)  # that a row can hold


def gather(step: Step, spec: NodeSpec) -> dict[str, JsonValue]:
    """Give the output of a fan-in whose fan-out has ended."""
    outcomes = _outcomes(step, str(spec.fan_out))
    completed = [outcome for outcome in outcomes if outcome.completed]
    failed = [_failure(outcome) for outcome in outcomes if not outcome.completed]
    outputs = _outputs(step, spec, _wanted(spec.aggregation, completed), failed)
    output = _AGGREGATIONS[spec.aggregation](outputs, len(completed))
    if failed:
        output["failed"] = failed
    return output


def _outcomes(step: Step, fan_out: str) -> Sequence[ChildOutcome]:
    """Give how every child ended, in index order: those that were read, and over them those of this very step."""
    total = step.node(fan_out).children_total
    if total == 0:
        return ()
    if fan_out not in step.job.children:
        raise NeedsData(children_of=frozenset({fan_out}))
    found = {outcome.index: outcome for outcome in step.job.children[fan_out]}
    for child in step.children(fan_out):
        if child.status in ENDED and _overrides(child, found):
            found[child.fan_out_index or 0] = _outcome(child)
    if len(found) != total:
        raise ValueError(f"Fan-out {fan_out!r} has {total} children, and the outcomes of {len(found)} were given.")
    return [found[index] for index in sorted(found)]


def _overrides(child: NodeState, found: Mapping[int, ChildOutcome]) -> bool:
    """Prefer the node to what was read, unless its output was left out and what was read leads to it."""
    known = found.get(child.fan_out_index or 0)
    is_missing = isinstance(stored_output(child.output, child.output_ref), NotLoaded)
    return not (is_missing and known is not None and known.completed)


def _outcome(child: NodeState) -> ChildOutcome:
    return ChildOutcome(
        index=child.fan_out_index or 0,
        node_id=child.node_id,
        completed=child.status is NodeStatus.COMPLETED,
        output=stored_output(child.output, child.output_ref),
        error_message=child.error_message,
        key=child.fan_out_key,
    )


def _failure(outcome: ChildOutcome) -> JsonValue:
    error = outcome.error_message or ""
    return {
        "index": outcome.index,
        "key": outcome.key,
        "node_id": outcome.node_id,
        "error": error if len(error) <= ERROR_LENGTH else f"{error[:ERROR_LENGTH]}…",
    }


def _wanted(aggregation: Aggregation, completed: Sequence[ChildOutcome]) -> Sequence[ChildOutcome]:
    """Give the children whose outputs are needed."""
    if aggregation is Aggregation.FIRST:
        return completed[:1]
    return completed[-1:] if aggregation is Aggregation.LAST else completed


def _outputs(
    step: Step, spec: NodeSpec, wanted: Sequence[ChildOutcome], failed: Sequence[JsonValue]
) -> dict[str, JsonValue]:
    """Give the outputs by child, in order; they are not even asked for when they are known to be too large."""
    limit = step.policy.max_gathered_bytes
    beside = FRAME_BYTES + len(wanted)  # with commas
    beside += len(json_codec.encode(failed)) if failed else 0
    size = sum(outcome.size for outcome in wanted)
    if size + beside > limit:
        measured = sum(outcome.size > 0 for outcome in wanted) + len(failed)
        raise CannotRun(
            f"What {measured:,} of the {step.node(str(spec.fan_out)).children_total:,} children of fan-out "
            f"'{spec.fan_out}' gave has {size + beside:,} bytes of JSON together; at most {limit:,} are gathered. "
            "Let the children give less: write what is large to the storage and return references to it."
        )
    outputs = {each.node_id: each.output for each in wanted if not isinstance(each.output, NotLoaded)}
    if len(outputs) < len(wanted):
        missing = frozenset(outcome.node_id for outcome in wanted) - outputs.keys()
        raise NeedsData(outputs=missing, at_most=limit - beside)
    return outputs


Outputs = Mapping[str, JsonValue]


def _collect(outputs: Outputs, count: int) -> dict[str, JsonValue]:
    return {"results": [*outputs.values()], "count": count}


def _concat(outputs: Outputs, count: int) -> dict[str, JsonValue]:
    """Join lists; of outputs that are objects, join every list found in them, together and by key."""
    results: list[JsonValue] = []
    by_key: dict[str, JsonValue] = {}
    for node_id, output in outputs.items():
        for key, part in _lists(node_id, output):
            results += part
            if key is not None:
                joined = by_key.setdefault(key, [])
                joined += part  # type: ignore[operator]
    gathered: dict[str, JsonValue] = {"results": results, "count": len(results)}
    return gathered | {"by_key": by_key} if by_key else gathered


def _lists(node_id: str, output: JsonValue) -> list[tuple[str | None, list[JsonValue]]]:
    if isinstance(output, list):
        return [(None, output)]
    if isinstance(output, dict):
        return [(key, part) for key, part in sorted(output.items()) if isinstance(part, list)]
    raise CannotRun(f"concat: the output of child {node_id} is neither a list nor an object.")


def _sum(outputs: Outputs, count: int) -> dict[str, JsonValue]:
    try:
        return {"total": _total(_numbers(outputs.values())), "count": count}
    except OverflowError:
        raise CannotRun("sum: the total is too large a number.") from None


def _total(numbers: Iterable[int | float]) -> int | float:
    """Add numbers up; in any order they come to the same."""
    whole, floats = 0, []
    for number in numbers:
        if isinstance(number, int):
            whole += number
        else:
            floats.append(number)
    if floats:
        return math.fsum([whole, *floats])
    if whole not in WHOLE_NUMBERS:
        raise OverflowError
    return whole


def _numbers(values: Iterable[JsonValue]) -> Iterator[int | float]:
    """Find the numbers in values, at any depth, in no order. Neither a truth value nor what is not finite is one."""
    ahead = [*values]
    while ahead:
        value = ahead.pop()
        if isinstance(value, dict):
            ahead.extend(value.values())
        elif isinstance(value, list):
            ahead.extend(value)
        elif isinstance(value, float):
            if math.isfinite(value):
                yield value
        elif isinstance(value, int) and not isinstance(value, bool):
            yield value


def _one(outputs: Outputs, count: int) -> dict[str, JsonValue]:
    return {"result": next(iter(outputs.values()), None), "count": count}


_AGGREGATIONS: Mapping[Aggregation, Callable[[Outputs, int], dict[str, JsonValue]]] = {
    Aggregation.COLLECT: _collect,
    Aggregation.CONCAT: _concat,
    Aggregation.SUM: _sum,
    Aggregation.FIRST: _one,
    Aggregation.LAST: _one,
}
