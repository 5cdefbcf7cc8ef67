"""A call is a value: what to ask of a server, and what its answer becomes. Who sends it is another matter."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter

from graticule.client.models import Page
from graticule.core.errors import InvalidInput

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
T_co = TypeVar("T_co", covariant=True)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Document = dict[str, Any]
Body = BaseModel | Mapping[str, Any] | bytes
QueryValue = str | int | float | bool | datetime | Mapping[str, Any] | Sequence[str] | None

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_PART: Final = re.compile(r"{(\w+)}")
_HEADER_TEXT: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """What is asked of a server, and how its answer becomes a `T`."""

    method: Method
    route: str  # the template of the path, as the OpenAPI document has it
    answer: Callable[[httpx.Response], T_co] = field(repr=False)
    parts: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, QueryValue] = field(default_factory=dict)
    body: Body | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False

    @property
    def path(self) -> str:
        """The path, in which each part stays one part, whatever characters it has."""
        return _PART.sub(lambda found: _quoted(found[1], str(self.parts[found[1]])), self.route)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query as it goes over the wire; what is None is left out."""
        return [pair for name, value in self.query.items() for pair in _pairs(name, value)]

    @property
    def content(self) -> bytes | None:
        """The body as it goes over the wire; fields that nobody set are left to the server."""
        match self.body:
            case None | bytes():
                return self.body
            case BaseModel():
                return self.body.model_dump_json(exclude_unset=True).encode()
        return json.dumps(self.body).encode()

    def read_as(self, answer: Callable[[httpx.Response], T]) -> "Call[T]":
        """Give the same call with another reading of its answer."""
        call: Call[Any] = self
        return replace(call, answer=answer)


def get(answer: type[T], route: str, query: Mapping[str, QueryValue] | None = None, **parts: str | int) -> Call[T]:
    """Ask for something; it may be repeated at will."""
    return Call("GET", route, Parsed(answer), parts, query or {}, repeatable=True)


def change(method: Method, answer: type[T], route: str, body: Body | None = None, **parts: str | int) -> Call[T]:
    """Ask for a change; it is sent once, for nobody knows whether a lost one was done."""
    return Call(method, route, Parsed(answer), parts, body=body)


def either(one: type[A], other: type[B]) -> type[A | B]:
    """Let an answer be the one or the other: the one that has more of its fields, else the first."""
    return cast("type[A | B]", one | other)


def with_key(call: Call[T], key: str | None) -> Call[T]:
    """Let a call carry a key by which the server knows a second one: then it may be repeated."""
    if key is None:
        return call
    if not _HEADER_TEXT.fullmatch(key):
        raise InvalidInput("An idempotency key has printable ASCII characters, and no spaces.")
    return replace(call, headers={**call.headers, IDEMPOTENCY_KEY: key}, repeatable=True)


def document(call: Call[Any]) -> Call[Document]:
    """Give the same call with its answer as it came, as a plain document."""
    return call.read_as(Parsed(Document))


def documents(call: Call[Page[Any]]) -> Call[Page[Document]]:
    """Give the same call of a list with plain documents as its items."""
    return call.read_as(Parsed(Page[Document]))


def following(call: Call[Page[T]], page: Page[T]) -> Call[Page[T]] | None:
    """Give the call of the next page; None after the last."""
    return None if page.next is None else replace(call, query={**call.query, "cursor": page.next})


@dataclass(frozen=True)
class Parsed(Generic[T_co]):
    """Reads the JSON of an answer as a type; fields that a newer server adds are passed over."""

    kind: Any

    def __call__(self, response: httpx.Response) -> T_co:
        """Give what the answer holds."""
        found: T_co = _adapter(self.kind).validate_json(response.content, extra="ignore")
        return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _quoted(name: str, value: str) -> str:
    if value in {"", ".", ".."}:  # these would change which address it is
        raise InvalidInput(f"{value!r} is no {name.replace('_', ' ')}.")
    return quote(value, safe="")


def _pairs(name: str, value: QueryValue) -> list[tuple[str, str]]:
    match value:
        case None:
            return []
        case bool():
            return [(name, "true" if value else "false")]
        case datetime():
            return [(name, value.isoformat())]
        case Mapping():
            return [(name, json.dumps(dict(value), sort_keys=True))] if value else []
        case str() | int() | float():
            return [(name, str(value))]
    return [(name, str(each)) for each in value]
