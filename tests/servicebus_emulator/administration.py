"""The administration API: queues are made, changed, listed and removed over HTTP."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET

from tests.servicebus_emulator.descriptions import entry_of, error_of, feed_of, options_of
from tests.servicebus_emulator.namespace import Namespace
from tests.servicebus_emulator.queue import QueueOptions
from tests.servicebus_emulator.refusal import Refusal
from tests.servicebus_emulator.tokens import Tokens

HEAD_LIMIT: Final = 65_536
_BODY_LIMIT: Final = 262_144
_LIST: Final = "$Resources/queues"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?")
_BEARER: Final = "Bearer "


@dataclass(frozen=True)
class HttpRequest:
    """A request of HTTP."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """Give the path that is asked for."""
        return unquote(urlsplit(self.target).path).strip("/")

    def number(self, name: str, otherwise: int) -> int:
        """Give a number of the query."""
        return int(parse_qs(urlsplit(self.target).query).get(name, [str(otherwise)])[0])


class HttpError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class Administration:
    """Answers requests about the queues of a namespace."""

    namespace: Namespace
    tokens: Tokens
    address: str
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, one after the other."""
        self._writers.add(writer)
        try:
            while (request := await _read(reader)) is not None:
                writer.write(self._answer(request))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that has gone, or that speaks no HTTP
        finally:
            self._writers.discard(writer)
            writer.close()

    def close(self) -> None:
        """End all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    def _answer(self, request: HttpRequest) -> bytes:
        try:
            self._authorize(request)
            status, body = self._do(request)
        except HttpError as error:
            status, body = error.status, error_of(error.status, error.detail)
        except Refusal as refusal:
            status, body = HTTPStatus(refusal.status), error_of(refusal.status, refusal.text)
        content = ET.tostring(body, encoding="utf-8", xml_declaration=True) if body is not None else b""
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/atom+xml;charset=utf-8\r\n"
        return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content

    def _authorize(self, request: HttpRequest) -> None:
        token = request.headers.get("authorization", "").removeprefix(_BEARER)
        self.tokens.check(token, f"{self.address}/{request.path}")

    def _do(self, request: HttpRequest) -> tuple[HTTPStatus, ET.Element | None]:
        if request.method == "GET" and request.path.lower() == _LIST.lower():
            return HTTPStatus.OK, self._page(request)
        match request.method:
            case "GET":
                return HTTPStatus.OK, self._get(request.path)
            case "PUT" if "if-match" in request.headers:
                return HTTPStatus.OK, self._update(request)
            case "PUT":
                return HTTPStatus.CREATED, self._create(request)
            case "DELETE":
                self.namespace.remove(request.path)
                return HTTPStatus.OK, None
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not possible here.")

    def _page(self, request: HttpRequest) -> ET.Element:
        skip, top = request.number("$skip", 0), request.number("$top", 100)
        queues = list(self.namespace.queues.values())
        address = f"{self.address}/{_LIST}"
        following = f"{address}?$skip={skip + top}&$top={top}" if skip + top < len(queues) else None
        return feed_of((entry_of(queue, self.address) for queue in queues[skip : skip + top]), address, following)

    def _get(self, name: str) -> ET.Element:
        if not self.namespace.has(name):
            return feed_of([], f"{self.address}/{name}")  # the service answers so, and not with "not found"
        return entry_of(self.namespace.find(name), self.address)

    def _create(self, request: HttpRequest) -> ET.Element:
        if not _NAME.fullmatch(request.path):
            raise HttpError(HTTPStatus.BAD_REQUEST, "This is no name of a queue.")
        if self.namespace.has(request.path):
            raise HttpError(HTTPStatus.CONFLICT, f"SubCode=40900. The queue {request.path} exists already.")
        return entry_of(self.namespace.create(request.path, _options(request)), self.address)

    def _update(self, request: HttpRequest) -> ET.Element:
        queue = self.namespace.find(request.path)
        queue.change(_options(request))
        return entry_of(queue, self.address)


def _options(request: HttpRequest) -> QueueOptions:
    try:
        return options_of(request.body)
    except ValueError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"SubCode=40000. {error}") from error


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Read a request; None when the client has closed the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if length > _BODY_LIMIT:
        raise ValueError("The body is too large.")
    return HttpRequest(method, target, headers, await reader.readexactly(length))
