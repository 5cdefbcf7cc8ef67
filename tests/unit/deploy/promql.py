"""Queries of Prometheus, taken apart: which samples they read, and which labels they ask of them."""

from collections.abc import Iterator
from typing import Any

from promql_parser import (
    AggModifierType,
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatrixSelector,
    ParenExpr,
    SubqueryExpr,
    UnaryExpr,
    VectorSelector,
    parse,
)

TARGET = frozenset({"job", "instance"})  # what Prometheus adds to every sample


def asked(query: str) -> list[tuple[str, frozenset[str]]]:
    """Give the samples that a query reads, each with the labels that it needs."""
    return [*_asked(parse(query.replace("$__rate_interval", "5m")), frozenset())]


def _asked(expression: Expr, wanted: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(expression, MatrixSelector):
        expression = expression.vector_selector
    if isinstance(expression, VectorSelector):
        named = {matcher.name for matcher in expression.matchers.matchers}
        yield str(expression.name), frozenset(wanted | named) - TARGET
    if isinstance(expression, AggregateExpr) and expression.modifier is not None:
        assert expression.modifier.type == AggModifierType.By, "say what is left, not what goes"
        wanted |= frozenset(expression.modifier.labels)
    for part in _parts(expression):
        yield from _asked(part, wanted)


def _parts(expression: Any) -> list[Expr]:
    if isinstance(expression, BinaryExpr):
        return [expression.lhs, expression.rhs]
    if isinstance(expression, AggregateExpr | ParenExpr | UnaryExpr | SubqueryExpr):
        return [expression.expr]
    return expression.args if isinstance(expression, Call) else []
