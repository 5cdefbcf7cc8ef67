"""Text templates: text, `{{ }}`, and the statements `if`, `for` and `set`, written into a bounded output."""

from collections.abc import Callable, Sequence
from typing import Final

from jinja2 import nodes

from graticule.dag.language.expressions import MAX_DEPTH, RESERVED, Evaluate, compile_expression
from graticule.dag.language.values import MAX_TEXT, Refused, Run, as_list, there, to_text

STEPS_OF_A_TURN: Final = 5  # of a loop, beside those of its body


class Writer:
    """Gathers the text of one template."""

    __slots__ = ("left", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.left = MAX_TEXT

    def write(self, text: str) -> None:
        """Add to the output, which is bounded."""
        self.left -= len(text)
        if self.left < 0:
            raise Refused(f"it makes a text of more than {MAX_TEXT:,} characters")
        self.parts.append(text)


Step = Callable[[Run, Writer], None]


def compile_text(template: nodes.Template) -> Evaluate:
    """Turn a parsed template into a function that gives its text."""
    steps = _steps(template.body, 0)

    def evaluate(run: Run) -> str:
        writer, outer = Writer(), run.names
        run.names = outer.copy()
        for step in steps:
            step(run, writer)
        run.names = outer  # what one text sets, the next does not see
        return "".join(writer.parts)

    return evaluate


def weight(node: nodes.Node) -> int:
    """Tell how many steps the parts of a template are, each once."""
    return 1 + sum(1 for _ in node.find_all(nodes.Node))


def _steps(body: Sequence[nodes.Node], depth: int) -> list[Step]:
    if depth > MAX_DEPTH:
        raise Refused("it is nested too deeply")
    return [step for node in body for step in _compiled(node, depth + 1)]


def _compiled(node: nodes.Node, depth: int) -> list[Step]:
    if isinstance(node, nodes.Output):
        return [_output(part) for part in node.nodes]
    if isinstance(node, nodes.If):
        return [_if(node, depth)]
    if isinstance(node, nodes.For):
        return [_for(node, depth)]
    if isinstance(node, nodes.Assign):
        return [_set(node)]
    raise Refused(f"{{% {type(node).__name__.lower()} %}} is not allowed in a template")


def _output(node: nodes.Node) -> Step:
    if isinstance(node, nodes.TemplateData):
        text = node.data
        return lambda run, writer: writer.write(text)
    value = compile_expression(node)
    return lambda run, writer: writer.write(to_text(run, there(value(run))))


def _if(node: nodes.If, depth: int) -> Step:
    branches = [(compile_expression(each.test), _steps(each.body, depth)) for each in (node, *node.elif_)]
    otherwise = _steps(node.else_, depth)

    def execute(run: Run, writer: Writer) -> None:
        chosen = next((steps for test, steps in branches if there(test(run))), otherwise)
        for step in chosen:
            step(run, writer)

    return execute


def _set(node: nodes.Assign) -> Step:
    name, value = _target(node.target), compile_expression(node.node)

    def execute(run: Run, writer: Writer) -> None:
        run.names[name] = there(value(run))

    return execute


def _target(node: nodes.Node) -> str:
    if not isinstance(node, nodes.Name):
        raise Refused("only a single name can be set")
    return _free(node.name)


def _free(name: str) -> str:
    if name in RESERVED or name.startswith("_"):
        raise Refused(f"the name {name!r} cannot be set")
    return name


def _for(node: nodes.For, depth: int) -> Step:
    if node.recursive:
        raise Refused("a recursive loop is not allowed in a template")
    source, names = compile_expression(node.iter), _targets(node.target)
    test = compile_expression(node.test) if node.test else None
    body, otherwise = _steps(node.body, depth), _steps(node.else_, depth)
    cost = STEPS_OF_A_TURN + sum(map(weight, [*node.body, *([node.test] if node.test else [])]))

    def execute(run: Run, writer: Writer) -> None:
        outer, items = run.names, as_list(run, source(run), "for")
        run.budget.spend(cost * len(items))
        items = [each for each in items if test is None or _kept(run, names, each, test)]
        for place, item in enumerate(items):
            run.names = {**outer, **_bound(names, item), "loop": _loop(place, len(items))}
            for step in body:
                step(run, writer)
        run.names = outer
        for step in otherwise if not items else ():
            step(run, writer)

    return execute


def _targets(node: nodes.Node) -> list[str]:
    return [_target(each) for each in node.items] if isinstance(node, nodes.Tuple) else [_target(node)]


def _bound(names: list[str], item: object) -> dict[str, object]:
    if len(names) == 1:
        return {names[0]: item}
    if not isinstance(item, list | tuple) or len(item) != len(names):
        raise Refused(f"an item of the loop does not have {len(names)} parts")
    return dict(zip(names, item, strict=True))


def _kept(run: Run, names: list[str], item: object, test: Evaluate) -> bool:
    outer, run.names = run.names, {**run.names, **_bound(names, item)}
    kept = bool(there(test(run)))
    run.names = outer
    return kept


def _loop(place: int, length: int) -> dict[str, object]:
    return {
        "index": place + 1,
        "index0": place,
        "revindex": length - place,
        "revindex0": length - place - 1,
        "first": place == 0,
        "last": place == length - 1,
        "length": length,
    }
