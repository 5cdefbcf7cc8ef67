"""What an expression mentions: `nodes.a`, `inputs.b`, and whether it can do without."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from jinja2 import nodes

from graticule.dag.language.methods import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Reference:
    """One mention of a name of the context: `nodes.a.output.x` has the root `nodes`, key `a`, field `output`."""

    root: str
    key: str | None = None  # None: the whole of it, or a key that is only known when the template is rendered
    field: str | None = None
    optional: bool = False  # `default` or `is defined` is applied to it


@dataclass(frozen=True)
class References:
    """All that a template, or a nested value with templates in it, mentions."""

    found: frozenset[Reference] = frozenset()

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes that are mentioned, `nodes.<id>`."""
        return self._keys("nodes")

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The inputs that are mentioned, `inputs.<name>`."""
        return self._keys("inputs")

    @cached_property
    def stages(self) -> frozenset[str]:
        """The stages that are mentioned, `stages.<name>`."""
        return self._keys("stages")

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the context that are mentioned: `nodes`, `inputs`, `item`, …"""
        return frozenset(reference.root for reference in self.found)

    def _keys(self, root: str) -> frozenset[str]:
        return frozenset(each.key for each in self.found if each.root == root and each.key is not None)


def references_of(tree: nodes.Node) -> frozenset[Reference]:
    """Find every mention in a parsed template or expression."""
    own = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"} | set(FUNCTIONS)
    if tree.find(nodes.For):
        own.add("loop")
    return frozenset(reference for reference in _walk(tree, optional=False) if reference.root not in own)


def is_reference(node: nodes.Node) -> bool:
    """Tell whether an expression only refers to something that exists, and makes nothing."""
    return _path(node) is not None


def _walk(node: nodes.Node, *, optional: bool) -> Iterator[Reference]:
    path = _path(node)
    if path is not None:
        root, key, field, *_ = (*path, None, None)
        yield Reference(str(root), _name(key), _name(field), optional)
        return
    if isinstance(node, nodes.Filter | nodes.Test) and node.name in {"default", "d", "defined", "undefined"}:
        for child in node.iter_child_nodes():
            yield from _walk(child, optional=child is node.node and _is_lookup(child))
        return
    for child in node.iter_child_nodes():
        # Of `(nodes.a.output[inputs.k]) | default(1)` the object is optional too, its key is not.
        yield from _walk(child, optional=optional and _is_lookup(node) and child is node.node)  # type: ignore[attr-defined]


def _is_lookup(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem)


def _path(node: nodes.Node) -> list[object] | None:
    """Give the parts of `a.b['c']`, or nothing when it is another kind of expression."""
    if isinstance(node, nodes.Name):
        return [node.name] if node.ctx == "load" else None
    if isinstance(node, nodes.Getattr):
        before = _path(node.node)
        return None if before is None else [*before, node.attr]
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        before = _path(node.node)
        return None if before is None else [*before, node.arg.value]
    return None


def _name(part: object) -> str | None:
    return part if isinstance(part, str) else None
