"""Random workflows: chains, conditionals, parallel ways that join, and fan-outs with their fan-ins, as YAML files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

POISON_ID: Final = "chaos_poison"
RETRY_ID: Final = "chaos_retry"
LATE_ID: Final = "chaos_late"
MANY_ID: Final = "chaos_many"  # a long series of tasks, for those who watch jobs go on
ONE_ID: Final = "chaos_one"  # a single task

Node = dict[str, Any]


@dataclass(frozen=True)
class ChaosWorkflow:
    """A workflow, and whether its jobs may come to fail."""

    workflow_id: str
    nodes: dict[str, Node]
    inputs: dict[str, Node] = field(default_factory=dict)
    may_fail: bool = False

    @property
    def text(self) -> str:
        """Give the content of its file."""
        content = {"workflow_id": self.workflow_id, "version": 1, "inputs": self.inputs, "nodes": self.nodes}
        return str(yaml.safe_dump(content, sort_keys=False))


def write_workflows(workflows: Sequence[ChaosWorkflow], folder: Path) -> None:
    """Write the files that orchestrators load."""
    folder.mkdir(parents=True, exist_ok=True)
    for workflow in workflows:
        (folder / f"{workflow.workflow_id}.yaml").write_text(workflow.text, encoding="utf-8")


def random_workflows(rng: Random, count: int) -> list[ChaosWorkflow]:
    """Draw so many workflows."""
    return [_Drawing(rng).draw(f"chaos_{number:02}") for number in range(count)]


def poison_workflow() -> ChaosWorkflow:
    """Give a workflow whose task ends every worker that runs it."""
    nodes = {"start": {"next": "poison"}, "poison": {"handler": "chaos.poison", "next": "end"}, "end": {}}
    return ChaosWorkflow(POISON_ID, nodes, may_fail=True)


def one_workflow() -> ChaosWorkflow:
    """Give a workflow of one task that takes as long as its job is told."""
    task = {"handler": "chaos.wait", "params": {"seconds": "{{ inputs.seconds }}"}, "next": "end"}
    return ChaosWorkflow(
        ONE_ID, {"start": {"next": "task"}, "task": task, "end": {}}, {"seconds": {"type": "number", "default": 0.1}}
    )


def retry_workflow() -> ChaosWorkflow:
    """Give a workflow whose task fails twice before it succeeds."""
    retry = {"max_attempts": 3, "backoff": "fixed", "initial_delay_seconds": 0.2}
    task = {"handler": "chaos.wait", "params": {"fails": 2}, "retry": retry, "next": "end"}
    return ChaosWorkflow(RETRY_ID, {"start": {"next": "task"}, "task": task, "end": {}})


def late_workflow() -> ChaosWorkflow:
    """Give a workflow whose task takes longer than it may."""
    task = {
        "handler": "chaos.wait",
        "params": {"seconds": 30},
        "timeout_seconds": 1,
        "retry": {"max_attempts": 1, "backoff": "fixed", "initial_delay_seconds": 0.1},
        "next": "end",
    }
    return ChaosWorkflow(LATE_ID, {"start": {"next": "task"}, "task": task, "end": {}}, may_fail=True)


def many_workflow() -> ChaosWorkflow:
    """Give a workflow of many tasks, some at a time: its jobs have something to tell all the while."""
    split = {
        "type": "fan_out",
        "source": "{{ range(inputs.tasks) | list }}",
        "max_parallel": 2,
        "task": {"handler": "chaos.wait", "params": {"seconds": "{{ inputs.seconds }}"}},
        "next": "gather",
    }
    nodes: dict[str, Node] = {
        "start": {"next": "split"},
        "split": split,
        "gather": {"type": "fan_in", "next": "end"},
        "end": {},
    }
    inputs = {"tasks": {"type": "integer", "default": 20}, "seconds": {"type": "number", "default": 0.2}}
    return ChaosWorkflow(MANY_ID, nodes, inputs)


class _Drawing:
    """A workflow that grows from its start, section by section."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._nodes: dict[str, Node] = {"start": {"type": "start"}}
        self._last = "start"  # what the next section follows
        self._giver: str | None = None  # a task that always runs before the next section
        self._may_fail = False

    def draw(self, workflow_id: str) -> ChaosWorkflow:
        sections = (self._task_section, self._ways, self._branches, self._fan_out)
        for _ in range(self._rng.randint(1, 4)):
            self._rng.choices(sections, (4, 2, 3, 4))[0]()
        self._nodes["end"] = {"type": "end", "depends_on": [self._last]}
        inputs = {"value": {"type": "integer", "default": 0}}
        return ChaosWorkflow(workflow_id, self._nodes, inputs, self._may_fail)

    def _add(self, kind: str, node: Node, *, after: Sequence[str], any_of: bool = False) -> str:
        name = f"{kind}_{len(self._nodes)}"
        depends: Any = {"any_of": [*after]} if any_of else [*after]
        self._nodes[name] = {**node, "depends_on": depends}
        return name

    def _task_section(self) -> None:
        """Put a task, or a few, after each other."""
        for _ in range(self._rng.randint(1, 3)):
            self._last = self._giver = self._add("task", self._task(), after=[self._last])

    def _ways(self) -> None:
        """Let tasks run side by side, and join them."""
        ways = [self._add("way", self._task(), after=[self._last]) for _ in range(self._rng.randint(2, 3))]
        any_of = self._rng.random() < 0.3
        self._last = self._giver = self._add("join", self._task(), after=ways, any_of=any_of)

    def _branches(self) -> None:
        """Choose one of two ways."""
        rng = self._rng
        value = f"nodes.{self._giver}.output.value" if self._giver and rng.random() < 0.5 else "inputs.value"
        choice = self._add(
            "choice", {"type": "conditional", "condition_field": f"{{{{ {value} }}}}"}, after=[self._last]
        )
        yes, no = (self._add("way", self._task(), after=[choice]) for _ in range(2))
        self._nodes[choice]["branches"] = [
            {"condition": f"< {rng.choice((2, 5, 8))}", "next": yes},
            {"default": True, "next": no},
        ]
        self._last = self._giver = self._add("join", self._task(), after=[yes, no], any_of=rng.random() < 0.5)

    def _fan_out(self) -> None:
        """Make a list, a child for each of its items, and gather what they give."""
        rng = self._rng
        source: Any = [*range(rng.choice((0, 1, 3, 5)))]
        if rng.random() < 0.7:
            giver = self._add("list", self._task(items=rng.choice((0, 2, 4, 8, 12))), after=[self._last])
            self._last = self._giver = giver
            source = f"{{{{ nodes.{giver}.output['items'] }}}}"
        goes_on = rng.random() < 0.3
        fan_out = {
            "type": "fan_out",
            "source": source,
            "on_child_failure": "continue" if goes_on else "fail",
            "task": self._task(is_child=True, may_fail_freely=goes_on),
        }
        if rng.random() < 0.5:
            fan_out["max_parallel"] = rng.choice((2, 3, 4))
        split = self._add("split", fan_out, after=[self._last])
        aggregation = rng.choices(("collect", "sum", "first", "last"), (5, 3, 1, 1))[0]
        self._last = self._add("gather", {"type": "fan_in", "aggregation": aggregation}, after=[split])

    def _task(self, items: int = 0, *, is_child: bool = False, may_fail_freely: bool = False) -> Node:
        rng = self._rng
        attempts = rng.choice((1, 2) if is_child else (1, 2, 3))
        fails = rng.choices((0, rng.randint(1, attempts), attempts + 1), (8, 2, 0.15))[0]
        self._may_fail |= fails > attempts and not may_fail_freely
        return {
            "handler": "chaos.work" if rng.random() < 0.2 else "chaos.wait",
            "params": {
                "seconds": rng.choice((0, 0.05, 0.1, 0.2, 0.5) if is_child else (0, 0.05, 0.1, 0.3, 0.6, 1.4)),
                "fails": fails,
                "items": items,
                "value": "{{ index }}" if is_child else rng.randint(0, 9),
            },
            "retry": {
                "max_attempts": attempts,
                "backoff": rng.choice(("fixed", "linear", "exponential")),
                "initial_delay_seconds": rng.choice((0.1, 0.2, 0.3)),
                "max_delay_seconds": 0.5,
            },
        }
