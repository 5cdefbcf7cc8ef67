"""CQL2 as text, read into its form as JSON; what that may hold each service checks for itself.

The reader is our own: that of the library `cql2` takes exponential time for open parentheses, ends the process by a
stack overflow for a long row of signs, and makes floats of all integers. This one looks at each token once.
"""

import re
from collections.abc import Callable
from typing import Any, Final

Node = Any  # JSON: the form of CQL2 that programs write

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<word>(?:[^\W\d]|:)[\w:.\u0300-\u036f]*)
    | (?P<sign><>|<=|>=|[-+*/%^=<>(),])
    )""",
    re.VERBOSE,
)
_COMPARISONS: Final = frozenset({"=", "<>", "<", ">", "<=", ">="})
_WKT: Final = {
    "POINT": "Point",
    "LINESTRING": "LineString",
    "POLYGON": "Polygon",
    "MULTIPOINT": "MultiPoint",
    "MULTILINESTRING": "MultiLineString",
    "MULTIPOLYGON": "MultiPolygon",
}
_INSTANTS: Final = frozenset({"DATE", "TIMESTAMP"})
_OF_ARRAYS: Final = frozenset({"A_EQUALS", "A_CONTAINS", "A_CONTAINEDBY", "A_OVERLAPS"})
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "LIKE", "BETWEEN", "IN", "IS", "NULL", "DIV"})


class UnreadableFilter(ValueError):
    """A text that is not CQL2, or is nested too deep; the message is for the caller."""


def parse(text: str, *, most_depth: int) -> Node:
    """Read a filter; each bracket, sign, negation and call within another one is a step deeper."""
    return _Reader(text, most_depth).whole()


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise UnreadableFilter(f"The filter cannot be read from {text[at : at + 20].strip()!r} on.")
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return tokens


class _Reader:
    def __init__(self, text: str, most_depth: int) -> None:
        self._tokens = _tokens(text)
        self._most_depth = most_depth
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._either()
        if self._at < len(self._tokens):
            raise self._unexpected()
        return node

    # Tokens

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "")

    def _is(self, wanted: str, ahead: int = 0) -> bool:
        kind, token = self._peek(ahead)
        return kind in {"word", "sign"} and token.upper() == wanted

    def _take(self, wanted: str) -> bool:
        taken = self._is(wanted)
        self._at += taken
        return taken

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._unexpected(wanted)

    def _next(self, kind: str) -> str:
        found, token = self._peek()
        if found != kind:
            raise self._unexpected(f"a {kind}")
        self._at += 1
        return token

    def _unexpected(self, wanted: str | None = None) -> UnreadableFilter:
        kind, token = self._peek()
        found = "The filter ends too early" if kind == "end" else f"The filter has {token[:20]!r} at a wrong place"
        return UnreadableFilter(f"{found}; {wanted} is expected." if wanted else f"{found}.")

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > self._most_depth:
            raise UnreadableFilter(f"The filter is nested more than {self._most_depth} times.")
        node = read()
        self._depth -= 1
        return node

    # Conditions

    def _either(self) -> Node:
        return self._joined("OR", self._both)

    def _both(self) -> Node:
        return self._joined("AND", self._negation)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else {"op": word.lower(), "args": parts}

    def _negation(self) -> Node:
        if self._take("NOT"):
            return _not(self._deeper(self._negation))
        return self._predicate()

    def _predicate(self) -> Node:
        left = self._sum()
        if self._peek()[1] in _COMPARISONS and self._peek()[0] == "sign":
            return {"op": self._next("sign"), "args": [left, self._sum()]}
        if self._take("IS"):
            negative = self._take("NOT")
            self._expect("NULL")
            test = {"op": "isNull", "args": [left]}
            return _not(test) if negative else test
        negative = self._take("NOT")
        test = self._test(left, negative)
        return _not(test) if negative else test

    def _test(self, left: Node, negative: bool) -> Node:
        if self._take("LIKE"):
            return {"op": "like", "args": [left, self._sum()]}
        if self._take("BETWEEN"):
            low = self._sum()
            self._expect("AND")
            return {"op": "between", "args": [left, low, self._sum()]}
        if self._take("IN"):
            return {"op": "in", "args": [left, self._arguments()]}
        if negative:
            raise self._unexpected("LIKE, BETWEEN or IN")
        return left

    # Values

    def _sum(self) -> Node:
        return self._chained(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chained(("*", "/", "%", "DIV"), self._power)

    def _chained(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        node = part()
        while sign := next((sign for sign in signs if self._take(sign)), None):
            node = {"op": sign.lower(), "args": [node, part()]}
        return node

    def _power(self) -> Node:
        base = self._signed()
        return {"op": "^", "args": [base, self._deeper(self._power)]} if self._take("^") else base

    def _signed(self) -> Node:
        if self._take("+"):
            return _number(self._next("number"))
        if not self._take("-"):
            return self._value()
        value = self._deeper(self._signed)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return -value if is_number else {"op": "*", "args": [-1, value]}

    def _value(self) -> Node:
        kind, token = self._peek()
        match kind:
            case "number":
                self._at += 1
                return _number(token)
            case "text":
                return self._text()
            case "quoted":
                self._at += 1
                return {"property": token[1:-1].replace('""', '"')}
            case "word":
                return self._named(token)
        self._expect("(")
        node = self._deeper(self._either)
        self._expect(")")
        return node

    def _text(self) -> str:
        return self._next("text")[1:-1].replace("''", "'")

    def _named(self, word: str) -> Node:
        upper = word.upper()
        if upper in _KEYWORDS:
            raise self._unexpected("a value")
        self._at += 1
        if upper in {"TRUE", "FALSE"}:
            return upper == "TRUE"
        if (kind := _WKT.get(upper.removesuffix("Z"))) and (self._is("(") or self._is("Z")):
            return self._geometry(kind)
        if not self._is("("):
            return {"property": word}
        return self._called(word)

    def _called(self, word: str) -> Node:
        upper = word.upper()
        if upper in _INSTANTS:
            self._expect("(")
            instant = {upper.lower(): self._text()}
            self._expect(")")
            return instant
        arguments = self._deeper(self._arrays if upper in _OF_ARRAYS else self._arguments)
        match upper:
            case "BBOX":
                return {"bbox": arguments}
            case "INTERVAL":
                return {"interval": arguments}
            case "GEOMETRYCOLLECTION":
                return {"type": "GeometryCollection", "geometries": arguments}
        return {"op": word.lower(), "args": arguments}

    def _arguments(self) -> list[Node]:
        return self._listed(self._either)

    def _arrays(self) -> list[Node]:
        return self._listed(self._array)

    def _array(self) -> Node:
        """Read a value where brackets, also those around a single value, make an array."""
        return self._arrays() if self._is("(") else self._either()

    def _listed(self, part: Callable[[], Node]) -> list[Node]:
        self._expect("(")
        found = [self._deeper(part)]
        while self._take(","):
            found.append(self._deeper(part))
        self._expect(")")
        return found

    # Geometries

    def _geometry(self, kind: str) -> Node:
        self._take("Z")
        found = self._deeper(self._coordinates)
        if kind == "Point" and len(found) > 1:
            raise UnreadableFilter("A point has one position.")
        if kind == "MultiPoint":
            found = [each[0] if isinstance(each[0], list) else each for each in found]
        return {"type": kind, "coordinates": found[0] if kind == "Point" else found}

    def _coordinates(self) -> list[Any]:
        self._expect("(")
        found = [self._coordinate()]
        while self._take(","):
            found.append(self._coordinate())
        self._expect(")")
        return found

    def _coordinate(self) -> Any:
        return self._deeper(self._coordinates) if self._is("(") else self._position()

    def _position(self) -> list[float]:
        position = []
        while self._is("-") or self._is("+") or self._peek()[0] == "number":
            sign = -1 if self._take("-") else 1
            self._take("+")
            position.append(sign * _number(self._next("number")))
        if not position:
            raise self._unexpected("a position")
        return position


def _not(node: Node) -> Node:
    return {"op": "not", "args": [node]}


def _number(token: str) -> int | float:
    try:
        return int(token) if token.isdigit() else float(token)
    except ValueError:  # more digits than Python reads
        raise UnreadableFilter(f"The number {token[:20]}… is too long.") from None
