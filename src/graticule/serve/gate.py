"""The gate before the data: it finds out what a request may reach, and lets it through to that and nothing else.

An application behind it is given what is served in `request.state.served`, and addresses relative to the asset. What
was answered before for the same revision and the same question is answered from memory, until a request finds that the
output cannot be read.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule import __version__
from graticule.core.errors import NotFound
from graticule.core.models.platform import DataType
from graticule.core.permissions import Deed
from graticule.http.callers import known_caller
from graticule.serve.answers import (
    AnswerCache,
    Collector,
    Headers,
    header_of,
    headers_of_all,
    is_known,
    send_not_modified,
    tag_of,
)
from graticule.serve.encodings import compressed, offered_encoding
from graticule.serve.parameters import VERSION
from graticule.serve.resolution import LATEST, Resolver
from graticule.serve.served import Served
from graticule.serve.unreadable import has_fault
from graticule.services.service_addresses import REVISION_HEADER, SERVICES

_ASSET: Final = re.compile(r"/(?P<asset_id>[0-9a-f]{32})(?=/|$)")
_VERSION_OF_ASSET: Final = re.compile(r"/(?P<asset_id>[0-9a-f]{32})/(?P<ordinal>0|[1-9][0-9]{0,8})(?=/|$)")
_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Reached:
    """What a request reaches, and the part of its path that leads there."""

    served: Served
    prefix: str


@dataclass(frozen=True, slots=True)
class Keeping:
    """How answers are kept: here, and by those who are given them."""

    cache: AnswerCache
    cache_control: str
    headers: Headers = field(init=False)

    def __post_init__(self) -> None:
        """Write down the headers that all answers have."""
        object.__setattr__(self, "headers", headers_of_all(self.cache_control))


class Gate(ABC):
    """Lets requests through to what they may reach."""

    def __init__(self, resolver: Resolver, keeping: Keeping) -> None:
        self._resolver = resolver
        self._keeping = keeping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of HTTP below the address where this is mounted."""
        if scope["type"] != "http":
            raise HTTPException(404)
        reached = await self._reach(scope, scope["path"].removeprefix(scope["root_path"]))
        await self._answer(self._application(reached.served), _inner(scope, reached), receive, send)

    @abstractmethod
    async def _reach(self, scope: Scope, path: str) -> Reached:
        """Find what the request reaches, or raise why it reaches nothing."""

    @abstractmethod
    def _application(self, served: Served) -> ASGIApp:
        """Give the application that shows this."""

    def _headers_of(self, _: Served) -> Headers:
        """Return the headers that say what is served; what is in service goes without."""
        return []

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        is_head = scope["method"] == "HEAD"
        if is_head:
            scope["method"] = "GET"
        scope["state"]["is_head"] = is_head
        if scope["method"] != "GET":
            await self._ask(app, scope, receive, send)
            return
        tag = _tag(scope)
        headers = [*self._keeping.headers, *self._headers_of(scope["state"]["served"]), (b"etag", tag.encode())]
        if is_known(tag, header_of(scope, b"if-none-match")):
            await send_not_modified(send, headers)
            return
        encoding = offered_encoding(scope)
        key = f"{tag} {encoding}"
        answer = self._keeping.cache.get(key)
        if answer is None:
            collector = Collector(send, headers, without_body=is_head)
            await self._ask(app, scope, receive, collector)
            answer = collector.answer
            if answer is None:
                return
            if answer.status == 200:
                answer = await compressed(answer, encoding)
                if not is_head:  # a body that nobody wanted may have been left out
                    self._keeping.cache.put(key, answer, scope["state"]["served"])
        await answer.send(send, headers if answer.status < 300 else [], without_body=is_head)

    async def _ask(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; where it cannot read the output, what was kept of it is forgotten."""
        await app(scope, receive, send)
        if has_fault(scope):
            self._keeping.cache.forget(scope["state"]["served"])


class ServiceGate(Gate):
    """Lets everyone through to one kind of data that is in service: the latest version, or the one that is named."""

    def __init__(self, resolver: Resolver, keeping: Keeping, data_type: DataType, app: ASGIApp) -> None:
        super().__init__(resolver, keeping)
        self._data_type = data_type
        self._app = app

    async def _reach(self, scope: Scope, path: str) -> Reached:
        found = _ASSET.match(path)
        if found is None:
            raise NotFound("There is nothing at this address.", hint="The id of an asset has 32 digits of 0-9 and a-f.")
        served = await self._resolver.served(found["asset_id"], _wanted_version(scope["query_string"]))
        if served.data_type is not self._data_type:
            raise NotFound(
                f"The asset {served.asset_id} is a {served.data_type}.",
                hint=f"It is served at /{SERVICES[served.data_type]}/{served.asset_id}.",
            )
        return Reached(served, found[0])

    def _application(self, _: Served) -> ASGIApp:
        return self._app


class PreviewGate(Gate):
    """Lets reviewers through to what waits for their decision; to all others it does not exist."""

    def __init__(self, resolver: Resolver, keeping: Keeping, apps: Mapping[DataType, ASGIApp]) -> None:
        super().__init__(resolver, keeping)
        self._apps = apps

    async def _reach(self, scope: Scope, path: str) -> Reached:
        caller = await known_caller(Request(scope))
        found = _VERSION_OF_ASSET.match(path)
        if found is None or not caller.may(Deed.REVIEW):
            raise NotFound("There is nothing at this address.", hint="Previews are at /preview/{asset_id}/{ordinal}.")
        if _named_versions(scope["query_string"]):
            raise HTTPException(400, "The version is part of the address here, and no parameter.")
        return Reached(await self._resolver.preview(found["asset_id"], int(found["ordinal"])), found[0])

    def _headers_of(self, served: Served) -> Headers:
        """Return the revision that is shown: a decision has to name it."""
        return [(REVISION_HEADER.lower().encode(), str(served.revision).encode())]

    def _application(self, served: Served) -> ASGIApp:
        return self._apps[served.data_type]


def _wanted_version(query: bytes) -> int | None:
    """Read which version is wanted: an ordinal, or None for the latest."""
    named = _named_versions(query)
    if not named or named == [LATEST]:
        return None
    if len(named) > 1 or _ORDINAL.fullmatch(named[0]) is None:
        raise HTTPException(400, "version: write `latest`, or the number of one version.")
    return int(named[0])


def _named_versions(query: bytes) -> list[str]:
    if b"version" not in query and b"%" not in query:  # a name may be written with escapes
        return []
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return [value for name, value in pairs if name == VERSION]


def _inner(scope: Scope, reached: Reached) -> Scope:
    """Give the request as the application behind the gate is to see it."""
    outer, root = scope["root_path"], scope["root_path"] + reached.prefix
    path = scope["path"] if len(scope["path"]) > len(root) else f"{root}/"
    state = {**scope.get("state", {}), "served": reached.served, "root": scope.get("app_root_path", outer)}
    inner = {**scope, "path": path, "root_path": root, "app_root_path": root, "state": state}
    del inner["router"]  # addresses of routes are looked up in the application's own
    return inner


def _tag(scope: Scope) -> str:
    """Give the tag of an answer, before it is made: all that it depends on is known."""
    return tag_of(
        __version__,
        scope["state"]["served"],
        scope["scheme"],
        header_of(scope, b"host"),
        scope["path"],
        scope["query_string"],
        header_of(scope, b"accept"),
    )
