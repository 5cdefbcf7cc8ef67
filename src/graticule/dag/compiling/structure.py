"""How the nodes of a workflow hang together: the edges, and the rules that every graph keeps."""

from collections.abc import Iterator, Mapping

from graticule.core.models.engine import NodeType
from graticule.dag.compiling.drafts import Draft
from graticule.dag.compiling.fields import Target
from graticule.dag.problems import Problems, did_you_mean

END = "end"


def connect(drafts: dict[str, Draft], problems: Problems) -> None:
    """Make `next` of every draft its outgoing edges: those it names, and those that name it in `depends_on`."""
    for draft in list(drafts.values()):
        draft.next = _resolved(draft, draft.next, drafts, problems)
        for branch in draft.branches:
            branch.targets = _resolved(draft, branch.targets, drafts, problems)
    for draft in list(drafts.values()):
        for source in _resolved(draft, draft.depends_on, drafts, problems):
            _depend(draft, source, drafts, problems)


def _resolved(draft: Draft, targets: list[Target], drafts: dict[str, Draft], problems: Problems) -> list[Target]:
    """Keep the targets that exist; an end that is not declared is added."""
    found: dict[str, Target] = {}
    for target in targets:
        name = _existing(target, drafts)
        if name is None:
            draft.names_unknown = True
            message = f"It names {target.name!r}, and there is no such node."
            problems.error("unknown_node", message, target.line, draft.node_id, did_you_mean(target.name, drafts))
        else:
            found[name] = Target(name, target.line)
    return list(found.values())


def _existing(target: Target, drafts: dict[str, Draft]) -> str | None:
    if target.name in drafts:
        return target.name
    if target.name.lower() != END:
        return None
    declared = next((each.node_id for each in drafts.values() if each.node_id.lower() == END), None)
    if declared is None:
        drafts[END] = Draft(END, target.line, NodeType.END)
    return declared or END


def _depend(draft: Draft, source: Target, drafts: dict[str, Draft], problems: Problems) -> None:
    origin = drafts[source.name]
    if any(target.name == draft.node_id for target in origin.next):
        return
    if origin.type is NodeType.CONDITIONAL:
        message = f"It depends on the conditional {source.name!r}, of which no branch leads to it."
        hint = f"Name it in 'next' of a branch of {source.name!r}."
        problems.error("no_branch", message, source.line, draft.node_id, hint)
        return
    origin.next.append(Target(draft.node_id, source.line))


def incoming(drafts: Mapping[str, Draft]) -> dict[str, list[str]]:
    """Give the nodes before each node."""
    found: dict[str, list[str]] = {node_id: [] for node_id in drafts}
    for draft in drafts.values():
        for target in draft.next:
            found[target.name].append(draft.node_id)
    return found


def check_ends(drafts: Mapping[str, Draft], problems: Problems, line: int) -> None:
    """Check that there is one start, at least one end, and a way on from every other node."""
    starts = [draft for draft in drafts.values() if draft.type is NodeType.START]
    if not starts:
        problems.error("no_start", "There is no start node.", line, hint="Add start: {type: start, next: …}.")
    for extra in starts[1:]:
        message = f"There is a second start node; the first is {starts[0].node_id!r}."
        problems.error("second_start", message, extra.line, extra.node_id)
    if not any(draft.type is NodeType.END for draft in drafts.values()):
        problems.error("no_end", "There is no end node.", line, hint="Write 'next: end' at the last node.")
    before = incoming(drafts)
    for draft in drafts.values():
        _check_way_on(draft, before[draft.node_id], problems)


def _check_way_on(draft: Draft, before: list[str], problems: Problems) -> None:
    if draft.type is NodeType.START and before:
        message = f"Nothing may lead to the start node, and {before[0]!r} does."
        problems.error("before_start", message, draft.line, draft.node_id)
    if draft.type is NodeType.END and draft.next:
        message = f"Nothing may follow an end node, and {draft.next[0].name!r} does."
        problems.error("after_end", message, draft.next[0].line, draft.node_id)
    if draft.type not in {NodeType.END, NodeType.CONDITIONAL} and not (draft.next or draft.names_unknown):
        problems.error(
            "dead_end", "Nothing follows it.", draft.line, draft.node_id, "Write 'next: end' if it is the last."
        )


def check_fan_ins(drafts: Mapping[str, Draft], problems: Problems) -> None:
    """Give each fan-in its fan-out: the one node right before it."""
    for node_id, before in incoming(drafts).items():
        draft = drafts[node_id]
        if draft.type is not NodeType.FAN_IN:
            continue
        fan_outs = [source for source in before if drafts[source].type is NodeType.FAN_OUT]
        if len(fan_outs) == 1 and len(before) == 1:
            draft.fan_out = fan_outs[0]
            continue
        found = ", ".join(repr(source) for source in before) or "nothing"
        message = f"Right before a fan_in stands exactly one fan_out and nothing else, and here it is {found}."
        problems.error("fan_in", message, draft.line, node_id)


def check_reachable(drafts: Mapping[str, Draft], problems: Problems) -> None:
    """Check that the start leads to every node."""
    start = next((draft.node_id for draft in drafts.values() if draft.type is NodeType.START), None)
    if start is None:
        return
    found, ahead = {start}, [start]
    while ahead:
        for target in drafts[ahead.pop()].next:
            if target.name not in found:
                found.add(target.name)
                ahead.append(target.name)
    for draft in drafts.values():
        if draft.node_id not in found:
            problems.error("unreachable", "Nothing leads to it from the start.", draft.line, draft.node_id)


def in_topological_order(drafts: Mapping[str, Draft], problems: Problems) -> list[str] | None:
    """Put the nodes in an order in which each stands after all that lead to it; a cycle is a problem."""
    waiting = {node_id: len(before) for node_id, before in incoming(drafts).items()}
    order = [node_id for node_id, count in waiting.items() if count == 0]
    for node_id in order:  # grows while it is walked
        for target in drafts[node_id].next:
            waiting[target.name] -= 1
            if waiting[target.name] == 0:
                order.append(target.name)
    left = {node_id: drafts[node_id] for node_id in drafts if waiting[node_id] > 0}
    for cycle in _cycles(left):
        way = " → ".join([*cycle, cycle[0]])
        problems.error("cycle", f"It leads back to itself: {way}.", drafts[cycle[0]].line, cycle[0])
    return None if left else order


def _cycles(drafts: dict[str, Draft]) -> Iterator[list[str]]:
    """Find cycles that have no node in common."""
    left = dict(drafts)
    while left:
        path = _walk(next(iter(left)), left)
        if path is None:
            left.pop(next(iter(left)))
            continue
        yield path
        for node_id in path:
            del left[node_id]


def _walk(start: str, drafts: Mapping[str, Draft]) -> list[str] | None:
    """Search for a cycle that can be reached from a node, depth first, without recursion."""
    done: set[str] = set()
    path, ways = [start], [iter(drafts[start].next)]
    while path:
        target = next(ways[-1], None)
        if target is None:
            done.add(path.pop())
            ways.pop()
        elif target.name in path:
            return path[path.index(target.name) :]
        elif target.name in drafts and target.name not in done:
            path.append(target.name)
            ways.append(iter(drafts[target.name].next))
    return None
