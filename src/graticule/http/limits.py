"""How large the body of a request may be."""

from typing import Final

from fastapi import HTTPException, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.http.problems import answer_error

DEFAULT_MAX_BODY_BYTES: Final = 10 * 1024 * 1024


class ContentTooLarge(HTTPException):
    """The body is larger than this process takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"The body of a request may have at most {limit} bytes here.")


class BodyLimit:
    """Middleware that refuses a body by its announced length, and one without by counting."""

    def __init__(self, app: ASGIApp, *, max_bytes: int = DEFAULT_MAX_BODY_BYTES) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer 413 as soon as its body is known to be too large."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _announced(scope) > self.max_bytes:
            await self._refuse(scope, receive, send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(self.max_bytes, receive, send)
        try:
            await self.app(scope, body.receive, body.send)
        except ContentTooLarge:
            if body.answered:
                raise
        if body.too_large and not body.answered:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await answer_error(Request(scope), ContentTooLarge(self.max_bytes))
        await response(scope, receive, send)


class _Body:
    """Counts what is read, and holds back what the application makes of a body that was cut off."""

    def __init__(self, limit: int, receive: Receive, send: Send) -> None:
        self._limit = limit
        self._receive = receive
        self._send = send
        self._read = 0
        self.answered = False

    @property
    def too_large(self) -> bool:
        return self._read > self._limit

    async def receive(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self.too_large:
            raise ContentTooLarge(self._limit)
        return message

    async def send(self, message: Message) -> None:
        if self.too_large and not self.answered:
            return
        self.answered = True
        await self._send(message)


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isdecimal() and length.isascii() else 0
