"""Bicep files, read by a real parser (tree-sitter's grammar of Bicep) as far as can be told without Azure.

What a value is can be told where it is written down: literals, variables, and what `concat` or a choice makes of them.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

FOLDER = Path(__file__).parents[3] / "deploy" / "azure"
_PARSER = Parser(Language(tree_sitter_bicep.language()))
# A file of parameters says `param name = value`; the grammar knows only declarations, which have a type.
_UNTYPED = re.compile(rb"^(param \w+)(?= =)", re.MULTILINE)


class File:
    """One file: what it declares, and what it refers to."""

    def __init__(self, path: Path, text: bytes | None = None) -> None:
        self.path = path
        text = path.read_bytes() if text is None else text
        self.root = _PARSER.parse(_UNTYPED.sub(rb"\1 any", text) if path.suffix == ".bicepparam" else text).root_node

    def __repr__(self) -> str:
        return self.path.name

    @property
    def mistakes(self) -> list[str]:
        """Give what is no Bicep."""
        wrong = _mistakes(self.root)
        return [f"{self.path.name}:{node.start_point.row + 1}: {node.type} {text_of(node)[:80]}" for node in wrong]

    def declared(self, kind: str) -> dict[str, Node]:
        """Give the declarations of a kind (parameter, variable, resource, module, output) by name."""
        found = [node for node in descendants(self.root) if node.type == f"{kind}_declaration"]
        return {name_of(node): node for node in found}

    @cached_property
    def parameters(self) -> dict[str, bool]:
        """Give the parameters, and whether each has to be given."""
        return {name: value_of(node) is None for name, node in self.declared("parameter").items()}

    @cached_property
    def imported(self) -> dict[str, str]:
        """Give what is taken from other files: the name, and the file."""
        found = [node for node in self.root.named_children if node.type == "import_functionality"]
        return {text_of(name): literal(node.named_children[-1]) for node in found for name in node.named_children[:-1]}

    def undescribed(self) -> list[str]:
        """Name the parameters and outputs that nobody has explained."""
        before: Node | None = None
        found = []
        for node in self.root.named_children:
            is_told = before is not None and before.type == "decorators" and b"@description(" in (before.text or b"")
            if node.type in {"parameter_declaration", "output_declaration"} and not is_told:
                found.append(name_of(node))
            before = node
        return found

    def body(self, node: Node) -> Node:
        """Give the object of a declaration, also of one in a loop or under a condition."""
        return next(each for each in descendants(node) if each.type == "object")

    def module(self, name: str) -> "tuple[File, dict[str, Node]]":
        """Give the file of a module, and the parameters that it is given."""
        node = self.declared("module")[name]
        path = literal(next(each for each in node.named_children if each.type == "string"))
        given = entries(self.body(node)).get("params")
        return File(self.path.parent / path), {} if given is None else entries(given)

    def unknown(self) -> list[str]:
        """Name what is referred to and declared nowhere."""
        kinds = ("parameter", "variable", "resource", "module")
        known = {name for kind in kinds for name in self.declared(kind)} | set(self.imported) | {"az"}
        return [text_of(node) for node in _references(self.root) if text_of(node) not in known | _locals(node)]

    def outputs_asked(self) -> Iterator[tuple[str, str]]:
        """Give what is asked of modules: the name of the module, and that of its output."""
        for node in descendants(self.root):
            if node.type == "member_expression" and node.named_children[0].type == "member_expression":
                inner, wanted = node.named_children[:2]
                whose, what = inner.named_children[:2]
                if text_of(what) == "outputs":
                    yield text_of(whose), text_of(wanted)

    def items(self, node: Node) -> list[Node]:
        """Give the elements of an array, whichever way it is put together."""
        if node.type == "identifier":
            value = value_of(self.declared("variable")[text_of(node)])
            assert value is not None
            return self.items(value)
        if node.type == "call_expression":
            assert text_of(node.named_children[0]) == "concat", text_of(node)
            return [item for each in node.named_children[1].named_children for item in self.items(each)]
        if node.type == "ternary_expression":
            return [item for each in node.named_children[1:] for item in self.items(each)]
        assert node.type == "array", text_of(node)
        return node.named_children

    def known(self, node: Node) -> str:
        """Give a text: as it stands there, or the variable's."""
        if node.type == "identifier":
            value = value_of(self.declared("variable")[text_of(node)])
            assert value is not None
            return self.known(value)
        return literal(node)


def descendants(node: Node) -> Iterator[Node]:
    """Give a node and all below it."""
    yield node
    for child in node.named_children:
        yield from descendants(child)


def _mistakes(node: Node) -> Iterator[Node]:
    if node.type == "ERROR" or node.is_missing:
        yield node
    for child in node.children if node.has_error else ():
        yield from _mistakes(child)


def text_of(node: Node) -> str:
    """Give what is written."""
    return (node.text or b"").decode()


def name_of(node: Node) -> str:
    """Give the name of a declaration."""
    return text_of(node.named_children[0])


def value_of(node: Node) -> Node | None:
    """Give what is assigned in a declaration, if anything is."""
    last = node.named_children[-1]
    return None if last.type in {"type", "identifier"} and len(node.named_children) < 3 else last


def literal(node: Node) -> str:
    """Give a text that is no more than a text."""
    assert node.type == "string", text_of(node)
    assert all(each.type == "string_content" for each in node.named_children), text_of(node)
    return "".join(map(text_of, node.named_children))


def entries(node: Node) -> dict[str, Node]:
    """Give the properties of an object; resources in it are none."""
    assert node.type == "object", text_of(node)
    pairs = [each.named_children for each in node.named_children if each.type == "object_property"]
    return {text_of(pair[0]).strip("'"): pair[1] for pair in pairs if len(pair) == 2}


def _references(node: Node) -> Iterator[Node]:
    """Give the identifiers that stand for a value."""
    if node.type in {"type", "import_functionality", "decorators"}:
        return
    children = node.named_children
    if node.type.endswith("_declaration") or (node.type == "object_property" and len(children) == 2):
        children = children[1:]
    elif node.type == "call_expression" and children[0].type == "identifier":
        children = children[1:]  # a function of Bicep
    elif node.type in {"lambda_expression", "for_statement"}:
        children = children[1:]
    elif node.type == "resource_expression":
        children = children[:1]
    if node.type == "identifier":
        yield node
    for child in children:
        yield from _references(child)


def _locals(node: Node) -> set[str]:
    """Name what loops and functions around a node call their elements."""
    found: set[str] = set()
    around = node.parent
    while around is not None:
        if around.type in {"lambda_expression", "for_statement"}:
            found |= {text_of(each) for each in descendants(around.named_children[0])}
        around = around.parent
    return found
