"""Compile a workflow's text to a validated graph, or to all that is wrong with it at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graticule.dag.compiling.compatibility import translate_pipeline
from graticule.dag.compiling.declarations import KEYS, WORKFLOW_ID, node_maps, read_inputs, read_version
from graticule.dag.compiling.drafts import Draft, KnownHandler, read_node
from graticule.dag.compiling.fields import Fields
from graticule.dag.compiling.mentions import Mentions
from graticule.dag.compiling.stages import named_stages, read_stages
from graticule.dag.compiling.structure import check_ends, check_fan_ins, check_reachable, connect, in_topological_order
from graticule.dag.compiling.upstream import Upstream
from graticule.dag.compiling.yaml_source import YamlError, YamlMap, read_yaml
from graticule.dag.graph import Branch, Graph, InputSpec, NodeSpec
from graticule.dag.problems import Problem, Problems, Severity

__all__ = ["Compiled", "KnownHandler", "Problem", "Severity", "compile_workflow"]

MAX_NODE_ID: Final = 100
MAX_NODES: Final = 5_000
_NODE_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Compiled:
    """What became of a file: the graph, unless there is an error, and the problems in order of their lines."""

    graph: Graph | None
    problems: tuple[Problem, ...]
    workflow_id: str | None = None  # as it is written, of a file with errors too


def compile_workflow(text: str, *, file: str, handlers: Mapping[str, KnownHandler]) -> Compiled:
    """Compile the text of one file; `handlers` are those that are known in this process."""
    problems = Problems(file)
    try:
        document = read_yaml(text, lambda reason, line: problems.error("duplicate_key", reason, line))
    except YamlError as error:
        problems.error("bad_yaml", error.reason, error.line)
        return Compiled(None, problems.in_order)
    if not isinstance(document, YamlMap):
        problems.error("not_a_mapping", "A workflow is a mapping with 'workflow_id' and 'nodes'.", 1)
        return Compiled(None, problems.in_order)
    translate_pipeline(document, problems)
    return _Compilation(Fields(document, problems, None), problems, handlers).result()


class _Compilation:
    """The compilation of one document."""

    def __init__(self, fields: Fields, problems: Problems, handlers: Mapping[str, KnownHandler]) -> None:
        self._fields = fields
        self._problems = problems
        self._handlers = handlers
        self._workflow_id = self._read_id()

    def result(self) -> Compiled:
        """Read, check and build."""
        self._fields.only(KEYS)
        inputs = read_inputs(self._fields)
        header = self._header(inputs)
        drafts = self._drafts()
        order = self._check(drafts, inputs) if drafts else None
        graph = None
        if order is not None and not self._problems.has_errors:
            graph = Graph(**header, nodes={node_id: _spec(drafts[node_id]) for node_id in order})
        return Compiled(graph, self._problems.in_order, self._workflow_id)

    def _read_id(self) -> str | None:
        self._fields.required("workflow_id")
        expected = "small letters, digits and '_', a letter first"
        return self._fields.text("workflow_id", pattern=WORKFLOW_ID, most=64, expected=expected)

    def _header(self, inputs: dict[str, InputSpec]) -> dict[str, object]:
        job_id = self._fields.text("job_id", pattern="params", expected="'params'")
        return {
            "workflow_id": self._workflow_id,
            "name": self._fields.text("name", most=255) or self._workflow_id,
            "version": read_version(self._fields),
            "description": self._fields.text("description", most=10_000) or "",
            "inputs": inputs,
            "job_id": job_id,
        }

    def _drafts(self) -> dict[str, Draft]:
        has_nodes, has_stages = (self._fields.has(name) for name in ("nodes", "stages"))
        if has_nodes == has_stages:
            hint = None if has_nodes else "Write the nodes of the graph under 'nodes'."
            self._fields.error("wrong_value", "A workflow has either 'nodes' or 'stages'.", hint=hint)
            return {}
        drafts = self._from_nodes() if has_nodes else self._from_stages()
        if len(drafts) > MAX_NODES:
            self._fields.error("too_many_nodes", f"It has {len(drafts):,} nodes, and {MAX_NODES:,} are allowed.")
            return {}
        for draft in drafts.values():
            self._check_name(draft)
        return drafts

    def _from_nodes(self) -> dict[str, Draft]:
        drafts: dict[str, Draft] = {}
        for name, node in node_maps(self._fields).items():
            drafts[name] = read_node(name, Fields(node, self._problems, name), self._handlers)
        if not drafts:
            self._fields.error("missing_key", "There are no nodes.", "nodes")
        return drafts

    def _from_stages(self) -> dict[str, Draft]:
        line = self._fields.line("stages")
        stages = named_stages(self._fields.raw("stages"), self._problems, line)
        return read_stages(stages, self._handlers, self._problems, line) if stages else {}

    def _check_name(self, draft: Draft) -> None:
        name = draft.node_id
        if not _NODE_ID.fullmatch(name) or "__" in name or len(name) > MAX_NODE_ID:
            message = f"{name[:MAX_NODE_ID]!r} cannot be the name of a node."
            hint = f"Use letters, digits and '_', a letter first, no '__', at most {MAX_NODE_ID}."
            self._problems.error("bad_name", message, draft.line, name, hint)

    def _check(self, drafts: dict[str, Draft], inputs: Mapping[str, InputSpec]) -> list[str] | None:
        """Check how the nodes hang together, and what the templates mention; give the order, if there is one."""
        connect(drafts, self._problems)
        check_ends(drafts, self._problems, self._fields.line("nodes"))
        check_fan_ins(drafts, self._problems)
        check_reachable(drafts, self._problems)
        order = in_topological_order(drafts, self._problems)
        upstream = None if order is None else Upstream(drafts, order)
        stages = {draft.stage: draft.node_id for draft in drafts.values() if draft.stage is not None}
        Mentions(drafts, frozenset(inputs), stages, upstream, self._problems).check()
        return order


def _spec(draft: Draft) -> NodeSpec:
    return NodeSpec(
        node_id=draft.node_id,
        type=draft.type,
        next=tuple(target.name for target in draft.next),
        join=draft.join,
        task=draft.task,
        branches=tuple(
            Branch(condition=branch.condition, next=tuple(target.name for target in branch.targets))
            for branch in draft.branches
        ),
        source=draft.source,
        key=draft.key,
        max_parallel=draft.max_parallel,
        on_child_failure=draft.on_child_failure,
        aggregation=draft.aggregation,
        fan_out=draft.fan_out,
        stage=draft.stage,
    )
