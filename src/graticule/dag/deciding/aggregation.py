"""Many become one: what a fan-in makes of the outputs of a fan-out's children."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from graticule.core.states import NodeStatus
from graticule.dag.deciding.context import stored_output
from graticule.dag.deciding.failure import CannotRun
from graticule.dag.deciding.step import ENDED, Step
from graticule.dag.graph import Aggregation, NodeSpec
from graticule.dag.state import ChildOutcome, NeedsData, NodeState, NotLoaded


def gather(step: Step, spec: NodeSpec) -> dict[str, JsonValue]:
    """Give the output of a fan-in whose fan-out has ended."""
    outcomes = _outcomes(step, str(spec.fan_out))
    output = _AGGREGATIONS[spec.aggregation]([outcome for outcome in outcomes if outcome.completed])
    failed = [outcome for outcome in outcomes if not outcome.completed]
    if failed:
        output["failed"] = [_failure(outcome) for outcome in failed]
    return output


def _outcomes(step: Step, fan_out: str) -> Sequence[ChildOutcome]:
    """Give how every child ended, in index order: those that were read, and over them those of this very step."""
    total = step.node(fan_out).children_total
    if total == 0:
        return ()
    if fan_out not in step.job.children:
        raise NeedsData(children_of=frozenset({fan_out}))
    found = {outcome.index: outcome for outcome in step.job.children[fan_out]}
    missing = set()
    for child in step.children(fan_out):
        if child.status in ENDED and _overrides(child, found):
            found[child.fan_out_index or 0] = _outcome(child)
            missing |= {child.node_id} if _is_missing(child) else set()
    if missing:
        raise NeedsData(outputs=frozenset(missing), children_of=frozenset({fan_out}))
    if len(found) != total:
        raise ValueError(f"Fan-out {fan_out!r} has {total} children, and the outcomes of {len(found)} were given.")
    return [found[index] for index in sorted(found)]


def _overrides(child: NodeState, found: Mapping[int, ChildOutcome]) -> bool:
    """Prefer the node to what was read, unless its output was left out and what was read has it."""
    known = found.get(child.fan_out_index or 0)
    return not (_is_missing(child) and known is not None and known.completed)


def _is_missing(child: NodeState) -> bool:
    return isinstance(stored_output(child.output, child.output_ref), NotLoaded)


def _outcome(child: NodeState) -> ChildOutcome:
    return ChildOutcome(
        index=child.fan_out_index or 0,
        node_id=child.node_id,
        completed=child.status is NodeStatus.COMPLETED,
        output=None if isinstance(child.output, NotLoaded) else child.output,
        error_message=child.error_message,
        key=child.fan_out_key,
    )


def _failure(outcome: ChildOutcome) -> JsonValue:
    return {
        "index": outcome.index,
        "key": outcome.key,
        "node_id": outcome.node_id,
        "error": outcome.error_message,
    }


def _collect(outcomes: Sequence[ChildOutcome]) -> dict[str, JsonValue]:
    return {"results": [outcome.output for outcome in outcomes], "count": len(outcomes)}


def _concat(outcomes: Sequence[ChildOutcome]) -> dict[str, JsonValue]:
    results: list[JsonValue] = []
    for outcome in outcomes:
        if not isinstance(outcome.output, list):
            raise CannotRun(f"concat: the output of child {outcome.node_id} is not a list.")
        results += outcome.output
    return {"results": results, "count": len(results)}


def _sum(outcomes: Sequence[ChildOutcome]) -> dict[str, JsonValue]:
    return {"total": sum(_numbers(outcome.output) for outcome in outcomes), "count": len(outcomes)}


def _numbers(output: JsonValue) -> float:
    """Add up the numbers of one output: itself, or the values of a mapping."""
    values = output.values() if isinstance(output, dict) else (output,)
    return sum(value for value in values if isinstance(value, int | float) and not isinstance(value, bool))


def _first(outcomes: Sequence[ChildOutcome]) -> dict[str, JsonValue]:
    return {"result": outcomes[0].output if outcomes else None, "count": len(outcomes)}


def _last(outcomes: Sequence[ChildOutcome]) -> dict[str, JsonValue]:
    return {"result": outcomes[-1].output if outcomes else None, "count": len(outcomes)}


_AGGREGATIONS: Mapping[Aggregation, Callable[[Sequence[ChildOutcome]], dict[str, JsonValue]]] = {
    Aggregation.COLLECT: _collect,
    Aggregation.CONCAT: _concat,
    Aggregation.SUM: _sum,
    Aggregation.FIRST: _first,
    Aggregation.LAST: _last,
}
