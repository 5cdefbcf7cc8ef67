"""The conditions of a conditional, turned from how they are written into whole expressions.

`"{{ x }} > 100"` becomes `(x) > 100`, and so does `"> 100"` after the field `"{{ x }}"`.
"""

import re

from graticule.dag.language.expressions import lex, lex_expression, parse_expression
from graticule.dag.language.values import Refused
from graticule.dag.templates import TemplateError

_OPERATOR = re.compile(r"\s*(?:<=|>=|==|!=|<|>|(?:in|not\s+in|is)\b)")
_PLACEHOLDER = "template_part_{}"


def expression_of(text: str) -> str:
    """Give the expression that a text with `{{ }}` in it stands for."""
    try:
        return _expression_of(text).strip()
    except Refused as error:
        raise TemplateError(text, str(error)) from None


def condition_field(text: str) -> str:
    """Give the expression of a `condition_field`, to be put between brackets."""
    expression = expression_of(text)
    _, parts = _split(text)
    return parts[0].strip() if parts and expression == f"({parts[0].strip()})" else expression


def branch_expression(field: str | None, condition: str) -> str:
    """Give the expression of one branch: what follows the field, or a whole expression of its own."""
    if _OPERATOR.match(condition):
        if field is None:
            raise TemplateError(condition, "it begins with an operator, and there is no 'condition_field' to compare")
        return f"({field}) {expression_of(condition)}"
    if field is not None and "{{" not in condition:
        raise TemplateError(condition, "after a 'condition_field' it must begin with an operator, such as \"< 100\"")
    return expression_of(condition)


def _expression_of(text: str) -> str:
    written, parts = _split(text)
    _check_outside_quotes(written, len(parts))
    for place, part in enumerate(parts):
        parse_expression(part)
        written = written.replace(_PLACEHOLDER.format(place) + " ", f"({part.strip()})")
    return written


def _split(text: str) -> tuple[str, list[str]]:
    """Put a placeholder where each `{{ }}` was, and give what was between the braces."""
    written, parts = "", list[str]()
    inside: str | None = None
    for sort, piece in lex(text):
        if sort == "variable_begin":
            inside = ""
        elif sort == "variable_end":
            written += _PLACEHOLDER.format(len(parts)) + " "
            parts.append(inside or "")
            inside = None
        elif inside is not None:
            inside += piece
        elif sort == "data":
            written += piece
        else:
            raise Refused("a condition is one expression, without {% %} and {# #}")
    return written, parts


def _check_outside_quotes(written: str, parts: int) -> None:
    """Refuse `'{{ x }}' == 'y'`: the quotes would make a text of the expression's own letters."""
    names = {piece for sort, piece in lex_expression(written) if sort == "name"}
    if any(_PLACEHOLDER.format(place) not in names for place in range(parts)):
        raise Refused("the braces stand between quotes; leave the quotes out, the value is compared as it is")
