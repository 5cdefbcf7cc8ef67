"""The stages form of a workflow: a linear pipeline, written as a list, compiled to the same nodes.

A single stage `x` is the task node `x`. A parallel stage `x` is the fan_out `x` and, after it, the
fan_in `x_results`, which collects; when a stage has that name already, a number is added to it. The
node that has the results of a stage carries the stage's name.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from graticule.core.models.engine import NodeType
from graticule.dag.compiling.drafts import MAX_TIMEOUT_SECONDS, Draft, KnownHandler, read_expansion, read_task
from graticule.dag.compiling.fields import Fields, Target
from graticule.dag.compiling.yaml_source import YamlMap, YamlValue
from graticule.dag.problems import Problems

START: Final = "start"
END: Final = "end"
_COMMON: Final = ("name", "description", "task_type", "parallelism", "params", "queue", "retry", "timeout_minutes")
_PARALLEL: Final = ("source", "key", "max_parallel_tasks", "on_child_failure")


class Parallelism(StrEnum):
    """How many tasks a stage is."""

    SINGLE = "single"
    FAN_OUT = "fan_out"


def read_stages(
    stages: Collection[tuple[str, int, YamlMap]], handlers: Mapping[str, KnownHandler], problems: Problems, line: int
) -> dict[str, Draft]:
    """Give the nodes of a pipeline: a start, each stage after the other, an end."""
    taken = {START, END, *(name for name, _, _ in stages)}
    drafts = {START: Draft(START, line, NodeType.START)}
    last = drafts[START]
    for name, _, source in stages:
        first, results = _read_stage(name, Fields(source, problems, name), handlers, taken)
        last.next = [Target(name, source.line)]
        drafts |= {draft.node_id: draft for draft in (first, results)}
        last = results
    last.next = [Target(END, last.line)]
    return drafts | {END: Draft(END, last.line, NodeType.END)}


def _read_stage(
    name: str, fields: Fields, handlers: Mapping[str, KnownHandler], taken: set[str]
) -> tuple[Draft, Draft]:
    """Read one stage: the node that begins it, and the node that has its results."""
    is_parallel = fields.choice("parallelism", Parallelism) is Parallelism.FAN_OUT
    fields.only((*_COMMON, *_PARALLEL) if is_parallel else _COMMON)
    draft = Draft(name, fields.line(), NodeType.FAN_OUT if is_parallel else NodeType.TASK)
    draft.task = read_task(draft, fields, handlers, "params", handler_key="task_type")
    minutes = fields.number("timeout_minutes", 1 / 60, MAX_TIMEOUT_SECONDS / 60)
    if draft.task is not None and minutes is not None:
        draft.task = draft.task.model_copy(update={"timeout_seconds": max(1, round(minutes * 60))})
    if not is_parallel:
        draft.stage = name
        return draft, draft
    read_expansion(draft, fields, "max_parallel_tasks")
    results = Draft(_free_name(f"{name}_results", taken), fields.line(), NodeType.FAN_IN, stage=name)
    draft.next = [Target(results.node_id, fields.line())]
    return draft, results


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    taken.add(name)
    return name


def named_stages(value: YamlValue, problems: Problems, line: int) -> list[tuple[str, int, YamlMap]]:
    """Give the stages that have a name of their own."""
    if not isinstance(value, list) or not value:
        problems.error("wrong_value", "'stages' must be a list of stages.", line)
        return []
    found: dict[str, tuple[str, int, YamlMap]] = {}
    for stage, at in zip(value, value.lines, strict=True):
        if not isinstance(stage, YamlMap) or not isinstance(stage.get("name"), str):
            problems.error("wrong_value", "A stage must be a mapping with a 'name'.", at)
            continue
        name = str(stage["name"])
        if name in found or name.lower() in {START, END}:
            reason = "is taken by the graph" if name not in found else f"was used in line {found[name][1]} already"
            problems.error("duplicate_name", f"The name {name!r} {reason}.", at, name)
            continue
        found[name] = (name, at, stage)
    return list(found.values())
