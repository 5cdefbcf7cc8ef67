"""Which nodes have certainly completed when another becomes ready.

A node runs under a guard: the branches of conditionals of which at least one must have been chosen.
`nodes.x` may be read without a default only if x has ended by then, and runs whenever the reader does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from graticule.core.models.engine import NodeType
from graticule.dag.compiling.drafts import Draft
from graticule.dag.compiling.structure import incoming
from graticule.dag.graph import Join


@dataclass(frozen=True, slots=True)
class Chosen:
    """A conditional chose one of these branches."""

    conditional: str
    branches: frozenset[int]


Guard = frozenset[Chosen] | None  # None: it always runs; otherwise one of the choices is enough


class Upstream:
    """Answers for a graph without cycles whose nodes stand in topological order."""

    def __init__(self, drafts: Mapping[str, Draft], order: Iterable[str]) -> None:
        self._drafts = drafts
        self._before = incoming(drafts)
        self._bits = {node_id: 1 << place for place, node_id in enumerate(drafts)}
        self._guards: dict[str, Guard] = {}
        self._ancestors: dict[str, int] = {}  # sets of nodes, a bit for each: they are many and large
        self._ended: dict[str, int] = {}
        for node_id in order:
            self._add(node_id)

    def may_precede(self, node_id: str, reader: str) -> bool:
        """Tell whether a node can have run before the reader does."""
        return bool(self._bits[node_id] & self._ancestors[reader])

    def always_precedes(self, node_id: str, reader: str) -> bool:
        """Tell whether a node has completed whenever the reader becomes ready."""
        has_ended = bool(self._bits[node_id] & self._ended[reader])
        return has_ended and self._implies(self._guards[reader], self._guards[node_id])

    def _add(self, node_id: str) -> None:
        before = self._before[node_id]
        self._ancestors[node_id] = reduce(or_, (self._ancestors[source] | self._bits[source] for source in before), 0)
        join = and_ if self._drafts[node_id].join is Join.ANY_OF else or_
        ended = [self._ended[source] | self._bits[source] for source in before]
        self._ended[node_id] = reduce(join, ended) if ended else 0
        self._guards[node_id] = self._either([self._edge(source, node_id) for source in before])

    def _edge(self, source: str, target: str) -> Guard:
        """Give the guard under which an edge is live."""
        draft = self._drafts[source]
        if draft.type is not NodeType.CONDITIONAL:
            return self._guards[source]
        leading = (any(each.name == target for each in branch.targets) for branch in draft.branches)
        return frozenset({Chosen(source, frozenset(place for place, leads in enumerate(leading) if leads))})

    def _either(self, guards: list[Guard]) -> Guard:
        """Join guards of which one is enough; all branches of a conditional together are its own guard."""
        choices: dict[str, frozenset[int]] = {}
        pending = guards or [None]
        while pending:
            guard = pending.pop()
            if guard is None:
                return None
            for choice in guard:
                branches = choices.pop(choice.conditional, frozenset()) | choice.branches
                if len(branches) == len(self._drafts[choice.conditional].branches):
                    pending.append(self._guards[choice.conditional])
                else:
                    choices[choice.conditional] = branches
        return frozenset(Chosen(conditional, branches) for conditional, branches in choices.items())

    def _implies(self, guard: Guard, other: Guard) -> bool:
        """Tell whether one guard can hold only when the other does."""
        if guard is None or other is None:
            return other is None
        pending, seen = list(guard), set(guard)
        while pending:
            choice = pending.pop()
            if _covered(choice, other):
                continue
            above = self._guards[choice.conditional]
            if above is None:
                return False
            pending += above - seen
            seen |= above
        return True


def _covered(choice: Chosen, guard: frozenset[Chosen]) -> bool:
    return any(choice.conditional == each.conditional and choice.branches <= each.branches for each in guard)
