"""The template language of workflows: parameters, sources, keys and conditions.

It is Jinja2's language over JSON values. A string that is exactly one `{{ expression }}` gives the
value itself, with its type (one line break after it, as a YAML block leaves, changes nothing); any
other string is rendered as text. A value that is only referred to may have any size; a text that a
template makes has at most 1 MiB, and the whole rendering a budget of steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from jinja2 import nodes
from pydantic import JsonValue

from graticule.core.errors import GraticuleError
from graticule.dag.language.expressions import Evaluate, compile_expression, parse_expression, parse_template
from graticule.dag.language.references import Reference, References, is_reference, references_of
from graticule.dag.language.statements import compile_text, weight
from graticule.dag.language.values import MAX_STEPS, Budget, Refused, Run, kind, plain, referred, there

__all__ = [
    "ParamsTemplate",
    "References",
    "TemplateError",
    "condition_references",
    "evaluate_condition",
    "references",
    "render_value",
]

MAX_NESTING: Final = 64
STEPS_OF_A_FAN_OUT: Final = 10 * MAX_STEPS  # for all its children together
SHOWN: Final = 200

_PER_ITEM: Final = frozenset({"item", "index"})


class TemplateError(GraticuleError):
    """A template or condition that cannot be read or evaluated."""

    code = "template_error"

    def __init__(
        self, expression: str, reason: str = "it is not valid", where: str = "", *, detail: str | None = None
    ) -> None:
        shown = expression if len(expression) <= SHOWN else f"{expression[:SHOWN]}…"
        place = f" in {where}" if where else ""
        super().__init__(f"The expression `{shown}`{place} cannot be evaluated: {reason}.", detail=detail)
        self.expression = expression
        self.reason = reason
        self.where = where


@dataclass(frozen=True, slots=True)
class _Compiled:
    """One string of a workflow, ready to be evaluated any number of times."""

    source: str
    evaluate: Evaluate
    finish: Callable[[object], JsonValue]
    references: frozenset[Reference]
    weight: int = 1
    name: str | None = None  # of a template that is nothing but one name

    def render(self, run: Run, where: str) -> JsonValue:
        """Evaluate it to a JSON value."""
        try:
            run.budget.spend(self.weight)
            return self.finish(self.evaluate(run))
        except Refused as error:
            raise TemplateError(self.source, str(error), where) from None
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise TemplateError(self.source, f"{type(error).__name__}: {error}", where) from error


@lru_cache(maxsize=4096)
def _compiled(source: str) -> _Compiled:
    """Compile a string with templates in it; raises `Refused`."""
    tree = parse_template(source)
    expression = _only_expression(tree)
    if expression is None:
        evaluate = compile_text(tree)  # first of all: it refuses what is nested too deeply
        return _Compiled(source, evaluate, _as_it_is, references_of(tree), weight(tree))
    evaluate = compile_expression(expression)
    name = expression.name if isinstance(expression, nodes.Name) else None
    finish = referred if is_reference(expression) else plain
    return _Compiled(source, evaluate, finish, references_of(tree), weight(tree), name)


def _as_it_is(text: object) -> JsonValue:
    return text  # type: ignore[return-value]


def _only_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Give the expression of a template that is exactly one `{{ expression }}`."""
    parts = [part for node in tree.body for part in (node.nodes if isinstance(node, nodes.Output) else [node])]
    if parts and isinstance(parts[-1], nodes.TemplateData) and parts[-1].data == "\n":
        parts.pop()
    if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData) or not isinstance(parts[0], nodes.Expr):
        return None
    return parts[0]


@lru_cache(maxsize=4096)
def _compiled_condition(expression: str) -> _Compiled:
    tree = parse_expression(expression)
    evaluate = compile_expression(tree)
    finish = _decided if isinstance(tree, nodes.And | nodes.Or) else _decision
    return _Compiled(expression, evaluate, finish, references_of(tree), weight(tree))


def _decided(value: object) -> JsonValue:
    return bool(there(value))


def _decision(value: object) -> JsonValue:
    if not isinstance(value, bool):
        raise Refused(f"a condition must be true or false, and it is {kind(value)}; compare it with something")
    return value


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _compile(source: str, where: str) -> _Compiled:
    try:
        return _compiled(source)
    except Refused as error:
        raise TemplateError(source, str(error), where) from None


class _Rendered(NamedTuple):
    """A template inside a value, and the place where it stands."""

    compiled: _Compiled
    where: str


class _Nested(NamedTuple):
    """A list or mapping that has templates somewhere in it."""

    parts: dict[str, "_Part"] | list["_Part"]
    names: frozenset[str]


class _Constant(NamedTuple):
    """A value without any template: shared by all that is rendered."""

    value: JsonValue


_Part = _Rendered | _Nested | _Constant


def _prepare(value: JsonValue, where: str, depth: int = 0) -> _Part:
    if depth > MAX_NESTING:
        raise TemplateError("…", f"it is nested more than {MAX_NESTING} levels deep", where)
    if isinstance(value, str):
        return _Rendered(_compile(value, where), where) if _is_template(value) else _Constant(value)
    if isinstance(value, dict):
        inner = {key: _prepare(part, f"{where}.{key}" if where else key, depth + 1) for key, part in value.items()}
        return _nested(value, inner, list(inner.values()))
    if isinstance(value, list):
        listed = [_prepare(part, f"{where}[{place}]", depth + 1) for place, part in enumerate(value)]
        return _nested(value, listed, listed)
    return _Constant(value)


def _nested(value: JsonValue, parts: dict[str, _Part] | list[_Part], all_parts: list[_Part]) -> _Part:
    if all(isinstance(part, _Constant) for part in all_parts):
        return _Constant(value)
    return _Nested(parts, frozenset().union(*map(_names, all_parts)))


def _names(part: _Part) -> frozenset[str]:
    """Give the names of the context on which a part depends."""
    if isinstance(part, _Rendered):
        return frozenset(reference.root for reference in part.compiled.references)
    return part.names if isinstance(part, _Nested) else frozenset()


def _render(part: _Part, run: Run) -> JsonValue:
    if isinstance(part, _Rendered):
        return part.compiled.render(run, part.where)
    if isinstance(part, _Constant):
        return part.value
    if isinstance(part.parts, dict):
        return {key: _render(inner, run) for key, inner in part.parts.items()}
    return [_render(inner, run) for inner in part.parts]


class ParamsTemplate:
    """The parameters of a task as the workflow writes them."""

    def __init__(self, params: Mapping[str, JsonValue]) -> None:
        self._parts = {name: _prepare(value, f"params.{name}") for name, value in params.items()}

    def render(self, context: Mapping[str, object]) -> dict[str, JsonValue]:
        """Give the parameters of one task."""
        run = Run(context)
        return {name: _render(part, run) for name, part in self._parts.items()}

    def for_items(self, context: Mapping[str, object]) -> Callable[[JsonValue, int], dict[str, JsonValue]]:
        """Give a function that makes the parameters of one child of a fan-out.

        What does not depend on `item` or `index` is rendered once and shared by all children.
        """
        shared, per_item = Run(context), Run(context, Budget(STEPS_OF_A_FAN_OUT))
        common: dict[str, JsonValue] = {}
        own: list[tuple[str, _Part]] = []
        for name, part in self._parts.items():
            varies = bool(_names(part) & _PER_ITEM)
            common[name] = None if varies else _render(part, shared)
            if varies:
                own.append((name, part))
        items, indexes, others = _by_use(own)

        def render(item: JsonValue, index: int) -> dict[str, JsonValue]:
            params = common.copy()
            for name in items:
                params[name] = item
            for name in indexes:
                params[name] = index
            if others:
                per_item.names = {"item": item, "index": index}
                for name, part in others:
                    params[name] = _render(part, per_item)
            return params

        return render


def _by_use(parts: list[tuple[str, _Part]]) -> tuple[list[str], list[str], list[tuple[str, _Part]]]:
    """Tell the parameters that are the item or the index itself from those that must be rendered."""
    simple = {name: part.compiled.name for name, part in parts if isinstance(part, _Rendered)}
    items = [name for name, _ in parts if simple.get(name) == "item"]
    indexes = [name for name, _ in parts if simple.get(name) == "index"]
    return items, indexes, [(name, part) for name, part in parts if simple.get(name) not in _PER_ITEM]


def render_value(value: JsonValue, context: Mapping[str, object], where: str = "") -> JsonValue:
    """Render one value: a string, or lists and mappings with strings in them."""
    return _render(_prepare(value, where), Run(context))


def evaluate_condition(expression: str, context: Mapping[str, object]) -> bool:
    """Decide a condition, written without braces; what is neither true nor false is an error."""
    try:
        compiled = _compiled_condition(expression)
    except Refused as error:
        raise TemplateError(expression, str(error)) from None
    return bool(compiled.render(Run(context), ""))


def references(value: JsonValue) -> References:
    """Find what the templates in a value mention."""
    return References(frozenset(_mentions(_prepare(value, ""))))


def condition_references(expression: str) -> References:
    """Find what a condition, written without braces, mentions."""
    try:
        return References(_compiled_condition(expression).references)
    except Refused as error:
        raise TemplateError(expression, str(error)) from None


def _mentions(part: _Part) -> frozenset[Reference]:
    if isinstance(part, _Rendered):
        return part.compiled.references
    if isinstance(part, _Constant):
        return frozenset()
    inner = part.parts.values() if isinstance(part.parts, dict) else part.parts
    return frozenset().union(*map(_mentions, inner))
