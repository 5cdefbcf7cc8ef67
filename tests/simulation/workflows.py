"""Random workflows: tasks, conditionals and fan-outs, joined in every way that the language allows."""

from random import Random

from graticule.core.models.engine import NodeType
from graticule.dag.graph import (
    Aggregation,
    Backoff,
    Branch,
    ChildFailure,
    Graph,
    Join,
    NodeSpec,
    RetryPolicy,
    TaskSpec,
)

TYPES = (NodeType.TASK, NodeType.CONDITIONAL, NodeType.FAN_OUT, NodeType.FAN_IN)
WEIGHTS = (11, 3, 4, 4)


def random_workflow(rng: Random) -> Graph:
    """Draw a graph: each node follows some of those before it, and whatever is left over leads to an end."""
    return _Drawing(rng).draw()


class _Drawing:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._types: dict[str, NodeType] = {"start": NodeType.START}
        self._sources: dict[str, list[str]] = {"start": []}
        self._fan_out_of: dict[str, str] = {}

    def draw(self) -> Graph:
        for number in range(self._rng.randint(1, 9)):
            self._add(f"n{number}")
        self._add_ends()
        specs = {name: self._spec(name) for name in self._types}
        return Graph(workflow_id="random", name="Random", version="1", nodes=specs)

    def _add(self, name: str) -> None:
        rng = self._rng
        kind = rng.choices(TYPES, WEIGHTS)[0]
        gathered = [node for node in self._types if self._types[node] is NodeType.FAN_OUT]
        sources = self._some_sources()
        if kind is NodeType.FAN_IN:
            if not gathered:
                kind = NodeType.TASK
            else:
                self._fan_out_of[name] = rng.choice(gathered)
                sources = list(dict.fromkeys([self._fan_out_of[name], *(sources if rng.random() < 0.3 else [])]))
        self._types[name], self._sources[name] = kind, sources

    def _some_sources(self) -> list[str]:
        """Prefer nodes that nothing follows yet, so that most graphs are deep rather than wide."""
        names = list(self._types)
        loose = self._loose() or names
        count = self._rng.choices((1, 2, 3), (6, 3, 1))[0]
        chosen = [self._rng.choice(loose if self._rng.random() < 0.7 else names) for _ in range(count)]
        return list(dict.fromkeys(chosen))

    def _loose(self) -> list[str]:
        followed = {source for sources in self._sources.values() for source in sources}
        return [name for name in self._types if name not in followed]

    def _add_ends(self) -> None:
        loose = self._loose()
        self._rng.shuffle(loose)
        cut = self._rng.randint(1, len(loose)) if self._rng.random() < 0.3 else len(loose)
        for number, sources in enumerate((loose[:cut], loose[cut:])):
            if sources:
                self._types[f"end{number}"], self._sources[f"end{number}"] = NodeType.END, sources

    def _spec(self, name: str) -> NodeSpec:
        rng, kind = self._rng, self._types[name]
        targets = tuple(node for node, sources in self._sources.items() if name in sources)
        join = Join.ANY_OF if len(self._sources[name]) > 1 and rng.random() < 0.35 else Join.ALL_OF
        match kind:
            case NodeType.TASK:
                return NodeSpec(node_id=name, type=kind, next=targets, join=join, task=self._task(name))
            case NodeType.CONDITIONAL:
                branches = self._branches(name, targets)
                return NodeSpec(node_id=name, type=kind, next=targets, join=join, branches=branches)
            case NodeType.FAN_OUT:
                return self._fan_out(name, targets, join)
            case NodeType.FAN_IN:
                aggregation = rng.choices(list(Aggregation), (6, 1, 1, 1, 1))[0]
                gathered = self._fan_out_of[name]
                return NodeSpec(
                    node_id=name, type=kind, next=targets, join=join, aggregation=aggregation, fan_out=gathered
                )
            case _:
                return NodeSpec(node_id=name, type=kind, next=targets, join=join)

    def _fan_out(self, name: str, targets: tuple[str, ...], join: Join) -> NodeSpec:
        rng = self._rng
        upstream = self._upstream_task(name)
        written = [{"id": number} for number in range(rng.choice((0, 1, 2, 3, 4, 7)))]
        source = f"{{{{ nodes.{upstream}.output.items | default([]) }}}}" if upstream else written
        return NodeSpec(
            node_id=name,
            type=NodeType.FAN_OUT,
            next=targets,
            join=join,
            source=source,
            key="k{{ index }}" if rng.random() < 0.5 else None,
            max_parallel=rng.choice((None, None, 1, 2, 3)),
            on_child_failure=rng.choice(list(ChildFailure)),
            task=self._task(None),
        )

    def _task(self, name: str | None) -> TaskSpec:
        rng = self._rng
        params = {"item": "{{ item }}", "index": "{{ index }}"} if name is None else {"of": name}
        upstream = self._upstream_task(name) if name is not None else None
        if upstream is not None and rng.random() < 0.3:
            params["value"] = f"{{{{ nodes.{upstream}.output.value | default(0) }}}}"
        return TaskSpec(
            handler="random",
            queue=rng.choice(("light", "heavy")),
            params=params,
            timeout_seconds=rng.choice((5, 60, 600)),
            retry=RetryPolicy(
                max_attempts=rng.choice((0, 1, 2, 3)),
                backoff=rng.choice(list(Backoff)),
                initial_delay_seconds=rng.choice((0, 1, 5)),
                max_delay_seconds=rng.choice((1, 30)),
                jitter=rng.random() < 0.5,
            ),
        )

    def _branches(self, name: str, targets: tuple[str, ...]) -> tuple[Branch, ...]:
        """Send each target to one branch or to several; a branch may lead nowhere."""
        upstream = self._upstream_task(name)
        value = f"(nodes.{upstream}.output.value | default(0))" if upstream else "inputs.value"
        conditions = [f"{value} < {self._rng.choice((2, 5, 8))}", *([f"{value} == 9"] * self._rng.randint(0, 1)), None]
        chosen: list[list[str]] = [[] for _ in conditions]
        for target in targets:
            for branch in self._rng.sample(chosen, self._rng.choice((1, 1, 2))):
                branch.append(target)
        return tuple(
            Branch(condition=condition, next=tuple(branch))
            for condition, branch in zip(conditions, chosen, strict=True)
        )

    def _upstream_task(self, name: str) -> str | None:
        """Choose a task from which an edge or several lead here."""
        found: set[str] = set()
        ahead = list(self._sources[name])
        while ahead:
            source = ahead.pop()
            if source not in found:
                found.add(source)
                ahead += self._sources[source]
        tasks = sorted(node for node in found if self._types[node] is NodeType.TASK)
        return self._rng.choice(tasks) if tasks else None
