"""Expressions and text templates: Jinja2's grammar, evaluated step by step within a budget.

Jinja2 parses; its generated code is not used. Each node of the parsed tree becomes a small function
over a `Run`, so nothing but JSON values, the filters, the tests and the methods listed here can be
reached, and every step that could grow is paid for.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from graticule.dag.language.filters import FILTERS, look_up
from graticule.dag.language.methods import FUNCTIONS, NAMES, method_of
from graticule.dag.language.operators import (
    COMPARISONS,
    Operator,
    add,
    divide,
    floor_divide,
    modulo,
    multiply,
    negate,
    positive,
    power,
    subtract,
)
from graticule.dag.language.tests import TESTS
from graticule.dag.language.values import (
    Kind,
    Missing,
    Refused,
    Run,
    kind,
    list_of_size,
    made_text,
    text_of_size,
    there,
    to_text,
)

MAX_SOURCE: Final = 64 << 10
MAX_DEPTH: Final = 100
RESERVED: Final = frozenset({"inputs", "nodes", "job", "env", "item", "index", "stages", "loop", *FUNCTIONS})

Evaluate = Callable[[Run], object]
Tree = TypeVar("Tree")

_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(keep_trailing_newline=True)

_BINARY: Final[Mapping[type[nodes.BinExpr], Operator]] = {
    nodes.Add: add,
    nodes.Sub: subtract,
    nodes.Mul: multiply,
    nodes.Div: divide,
    nodes.FloorDiv: floor_divide,
    nodes.Mod: modulo,
    nodes.Pow: power,
}
_UNARY: Final = {nodes.Neg: negate, nodes.Pos: positive}


def parse_template(source: str) -> nodes.Template:
    """Parse a text with `{{ }}` and `{% %}` in it."""
    return _parsed(source, lambda: _ENVIRONMENT.parse(source))


def parse_expression(source: str) -> nodes.Expr:
    """Parse a whole expression, written without braces."""

    def parse() -> nodes.Expr:
        parser = Parser(_ENVIRONMENT, source, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            raise Refused(f"it has {parser.stream.current.value!r} after its end")
        return expression

    return _parsed(source, parse)


def _parsed(source: str, parse: Callable[[], Tree]) -> Tree:
    if len(source) > MAX_SOURCE:
        raise Refused(f"it is longer than {MAX_SOURCE:,} characters")
    try:
        return parse()
    except TemplateSyntaxError as error:
        raise Refused(f"it cannot be read: {str(error.message).rstrip('.')}") from None
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError:
        raise Refused("it cannot be read: a number is too long") from None


def lex(source: str) -> list[tuple[str, str]]:
    """Give the tokens of a template, kind and text, in order."""
    return _parsed(source, lambda: [(token, text) for _, token, text in _ENVIRONMENT.lex(source)])


def lex_expression(source: str) -> list[tuple[str, str]]:
    """Give the tokens of an expression, kind and text, in order."""
    lexer = _ENVIRONMENT.lexer
    return _parsed(
        source, lambda: [(token, text) for _, token, text in lexer.tokeniter(source, None, state="variable")]
    )


def compile_expression(node: nodes.Node, depth: int = 0) -> Evaluate:
    """Turn a parsed expression into a function that evaluates it."""
    if depth > MAX_DEPTH:
        raise Refused("it is nested too deeply")
    build = _BUILDERS.get(type(node))
    if build is None:
        raise Refused(f"{_spelling(node)} is not allowed in a template")
    return build(node, depth + 1)


def describe(node: nodes.Node) -> str:
    """Write a reference such as `nodes.a.output` as the author did, for messages."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{describe(node.node)}.{node.attr}"
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return f"{describe(node.node)}[{node.arg.value!r}]"
    return "the value"


def _spelling(node: nodes.Node) -> str:
    name = type(node).__name__.lower()
    return f"{{% {name} %}}" if isinstance(node, nodes.Stmt) else f"'{name}'"


# One builder for each kind of node


def _constant(node: nodes.Const, depth: int) -> Evaluate:
    value = node.value
    return lambda run: value


def _name(node: nodes.Name, depth: int) -> Evaluate:
    name = node.name
    missing = Missing(f"{name!r} is not defined")

    def evaluate(run: Run) -> object:
        if name in run.names:
            return run.names[name]
        try:
            return run.context[name]
        except KeyError:
            return missing

    return evaluate


def _attribute(node: nodes.Getattr, depth: int) -> Evaluate:
    if node.attr.startswith("_"):
        raise Refused(f"'{node.attr}' begins with '_', and such names cannot be reached")
    return _lookup(node.node, node.attr, depth)


def _item(node: nodes.Getitem, depth: int) -> Evaluate:
    if isinstance(node.arg, nodes.Slice):
        return _slice(node.node, node.arg, depth)
    if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str | int):
        return _lookup(node.node, node.arg.value, depth)
    of, key, described = compile_expression(node.node, depth), compile_expression(node.arg, depth), describe(node.node)
    return lambda run: _found(of(run), there(key(run)), described)


def _lookup(node: nodes.Node, name: object, depth: int) -> Evaluate:
    of, described = compile_expression(node, depth), describe(node)
    return lambda run: _found(of(run), name, described)


def _found(value: object, name: object, described: str) -> object:
    """Look a name up; what is missing stays missing however far the expression goes on."""
    if type(value) is dict and name in value:
        return value[name]
    if isinstance(value, Missing):
        return value
    if kind(value) is Kind.NULL:
        return Missing(f"{described} is null, and has no {name!r}")
    found = look_up(value, name)
    return Missing(f"{described} ({kind(value)}) has no {name!r}") if isinstance(found, Missing) else found


def _slice(node: nodes.Node, part: nodes.Slice, depth: int) -> Evaluate:
    of = compile_expression(node, depth)
    bounds = [compile_expression(each or nodes.Const(None), depth) for each in (part.start, part.stop, part.step)]

    def evaluate(run: Run) -> object:
        value = of(run)
        if kind(value) not in {Kind.LIST, Kind.TEXT}:
            raise Refused(f"only a list or text can be sliced, and it is {kind(value)}")
        cut = value[slice(*(there(bound(run)) for bound in bounds))]  # type: ignore[index]
        return made_text(run, cut) if isinstance(cut, str) else _paid(run, list(cut))

    return evaluate


def _paid(run: Run, made: list[object]) -> list[object]:
    list_of_size(run, len(made))
    return made


def _list(node: nodes.List | nodes.Tuple, depth: int) -> Evaluate:
    parts = [compile_expression(each, depth) for each in node.items]
    return lambda run: [there(part(run)) for part in parts]


def _dict(node: nodes.Dict, depth: int) -> Evaluate:
    pairs = [(compile_expression(pair.key, depth), compile_expression(pair.value, depth)) for pair in node.items]

    def evaluate(run: Run) -> object:
        made: dict[str, object] = {}
        for key, value in pairs:
            name = there(key(run))
            if not isinstance(name, str):
                raise Refused(f"the key of a mapping must be text, and it is {kind(name)}")
            made[name] = there(value(run))
        return made

    return evaluate


def _binary(node: nodes.BinExpr, depth: int) -> Evaluate:
    left, right = compile_expression(node.left, depth), compile_expression(node.right, depth)
    operate = _BINARY[type(node)]
    if operate is power and isinstance(node.left, nodes.Pow):
        raise Refused("'**' after '**' is read from the left by some and from the right by others; use one only")
    return lambda run: operate(run, left(run), right(run))


def _unary(node: nodes.UnaryExpr, depth: int) -> Evaluate:
    value, operate = compile_expression(node.node, depth), _UNARY[type(node)]
    return lambda run: operate(run, value(run))


def _not(node: nodes.Not, depth: int) -> Evaluate:
    value = compile_expression(node.node, depth)
    return lambda run: not there(value(run))


def _and(node: nodes.And, depth: int) -> Evaluate:
    left, right = compile_expression(node.left, depth), compile_expression(node.right, depth)
    return lambda run: there(left(run)) and there(right(run))


def _or(node: nodes.Or, depth: int) -> Evaluate:
    left, right = compile_expression(node.left, depth), compile_expression(node.right, depth)
    return lambda run: there(left(run)) or there(right(run))


def _compare(node: nodes.Compare, depth: int) -> Evaluate:
    first = compile_expression(node.expr, depth)
    rest = [(COMPARISONS[each.op], compile_expression(each.expr, depth)) for each in node.ops]

    def evaluate(run: Run) -> object:
        left = first(run)
        for compare, expression in rest:
            right = expression(run)
            if not compare(run, left, right):
                return False
            left = right
        return True

    return evaluate


def _choice(node: nodes.CondExpr, depth: int) -> Evaluate:
    test, then = compile_expression(node.test, depth), compile_expression(node.expr1, depth)
    otherwise = compile_expression(node.expr2, depth) if node.expr2 else None
    missing = Missing("the condition is not met and there is no 'else'")

    def evaluate(run: Run) -> object:
        if there(test(run)):
            return then(run)
        return otherwise(run) if otherwise else missing

    return evaluate


def _concatenation(node: nodes.Concat, depth: int) -> Evaluate:
    parts = [compile_expression(each, depth) for each in node.nodes]

    def evaluate(run: Run) -> object:
        texts = [to_text(run, part(run)) for part in parts]
        text_of_size(run, sum(map(len, texts)))
        return "".join(texts)

    return evaluate


def _arguments(
    node: nodes.Filter | nodes.Test | nodes.Call, depth: int
) -> Callable[[Run], tuple[list[object], dict[str, object]]]:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise Refused("'*' and '**' arguments are not allowed in a template")
    plain = [compile_expression(each, depth) for each in node.args]
    named = [(str(each.key), compile_expression(each.value, depth)) for each in node.kwargs]
    return lambda run: ([there(each(run)) for each in plain], {key: there(each(run)) for key, each in named})


def _applied(
    name: str, function: Callable[..., object], arguments: tuple[list[object], dict[str, object]], *of: object
) -> object:
    try:
        return function(*of, *arguments[0], **arguments[1])
    except TypeError:
        raise Refused(f"{name!r} cannot be used with these arguments") from None


def _filter(node: nodes.Filter, depth: int) -> Evaluate:
    if node.node is None:
        raise Refused("{% filter %} is not allowed in a template")
    value, arguments, name = compile_expression(node.node, depth), _arguments(node, depth), node.name
    if name in {"default", "d"}:
        return lambda run: _default(value(run), *_default_arguments(*arguments(run)))
    if name not in FILTERS:
        raise Refused(f"there is no filter {name!r}")
    function = FILTERS[name]
    return lambda run: _applied(name, function, arguments(run), run, there(value(run)))


def _default_arguments(plain: list[object], named: dict[str, object]) -> tuple[object, bool]:
    known = dict(zip(("default_value", "boolean"), plain, strict=False)) | named
    if len(plain) > 2 or not known.keys() <= {"default_value", "boolean"}:
        raise Refused("'default' takes a value, and whether it also stands for what is empty")
    return known.get("default_value", ""), bool(known.get("boolean", False))


def _default(value: object, otherwise: object, for_empty: bool) -> object:
    if isinstance(value, Missing) or (for_empty and not value):
        return otherwise
    return value


def _test(node: nodes.Test, depth: int) -> Evaluate:
    value, arguments, name = compile_expression(node.node, depth), _arguments(node, depth), node.name
    if name not in TESTS:
        raise Refused(f"there is no test {name!r}")
    function, may_miss = TESTS[name], name in {"defined", "undefined"}

    def evaluate(run: Run) -> object:
        tested = value(run)
        return _applied(name, function, arguments(run), run, tested if may_miss else there(tested))

    return evaluate


def _call(node: nodes.Call, depth: int) -> Evaluate:
    arguments = _arguments(node, depth)
    if isinstance(node.node, nodes.Name) and node.node.name in FUNCTIONS:
        name, function = node.node.name, FUNCTIONS[node.node.name]
        return lambda run: _applied(name, function, arguments(run), run)
    if isinstance(node.node, nodes.Getattr) and node.node.attr in NAMES:
        return _method(node.node, arguments, depth)
    raise Refused(f"{describe(node.node)} cannot be called")


def _method(
    node: nodes.Getattr, arguments: Callable[[Run], tuple[list[object], dict[str, object]]], depth: int
) -> Evaluate:
    of, name, described = compile_expression(node.node, depth), node.attr, describe(node.node)

    def evaluate(run: Run) -> object:
        value = there(of(run))
        method = method_of(value, name)
        if method is None:
            raise Refused(f"{described} is {kind(value)}, and has no {name}()")
        return _applied(name, method, arguments(run), run, value)

    return evaluate


_BUILDERS: Final[dict[type[nodes.Node], Callable[..., Evaluate]]] = {
    nodes.Const: _constant,
    nodes.Name: _name,
    nodes.Getattr: _attribute,
    nodes.Getitem: _item,
    nodes.List: _list,
    nodes.Tuple: _list,
    nodes.Dict: _dict,
    nodes.Not: _not,
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Compare: _compare,
    nodes.CondExpr: _choice,
    nodes.Concat: _concatenation,
    nodes.Filter: _filter,
    nodes.Test: _test,
    nodes.Call: _call,
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_UNARY, _unary),
}
