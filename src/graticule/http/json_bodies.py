"""JSON bodies say one thing to every reader: no name twice in an object, and no number that JSON does not have.

They also have no more values than can be read in a moment, since nobody else is served meanwhile.

Python's reader takes the last of two names and knows NaN, which becomes null further on: what is carried out would not
be what was sent, or what somebody before us has checked.
"""

import json
import math
from typing import Any, Final, Never

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Reports of workers of earlier releases have NaN where a number could not be computed; they are nobody's decision.
REPORTS: Final = "/api/v1/callbacks/"
TEXTS: Final = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
MAX_SHOWN: Final = 60
# How many bytes of the largest body there are for each value of any body, on average: at 1 MiB, 10,485 names and 52,428
# elements. A shape of 10,000 vertices has 20,000 elements.
BYTES_PER_NAME: Final = 100
BYTES_PER_ELEMENT: Final = 20
SMALL_LIMIT: Final = 1024 * 1024  # where bodies may have less than that, they may have as many values


class AmbiguousJson(HTTPException):
    """The body is JSON that readers take differently, or that only some of them take."""

    def __init__(self, detail: str) -> None:
        super().__init__(400, f"The body is not valid JSON: {detail}.")


class ElaborateJson(HTTPException):
    """The body has so many values that reading them would keep others waiting."""

    def __init__(self, names: int, elements: int) -> None:
        super().__init__(
            413,
            f"The JSON body has too many values: it may have at most {names} colons and {elements} commas here. "
            "Send less at once.",
        )


class JsonBodies:
    """Middleware that refuses such a body, or one of too many values, when its last byte is read."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its body looked at if it is JSON."""
        if scope["type"] == "http" and _is_json(scope) and not scope["path"].startswith(REPORTS):
            receive = _Body(receive, self.max_bytes).receive
        await self.app(scope, receive, send)


class _Body:
    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._read = bytearray()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += message.get("body", b"")
            if not message.get("more_body", False):
                check_size(self._read, self._max_bytes)
                check_json(bytes(self._read))
        return message


def check_size(body: bytes | bytearray, max_bytes: int) -> None:
    """Raise `ElaborateJson`; characters in texts count, too: to tell them apart takes as long as to read the body."""
    allowed = max(max_bytes, SMALL_LIMIT)
    names, elements = allowed // BYTES_PER_NAME, allowed // BYTES_PER_ELEMENT
    if body.count(b":") > names or body.count(b",") > elements:
        raise ElaborateJson(names, elements)


def check_json(body: bytes) -> None:
    """Raise `AmbiguousJson`; what is no JSON at all is left to those who read it."""
    try:
        json.loads(body, object_pairs_hook=_check_names, parse_constant=_refuse_constant, parse_float=_check_float)
    except ValueError:
        return
    except RecursionError:  # another reader may go deeper, and see what was not looked at
        raise AmbiguousJson("it is nested too deeply") from None


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise AmbiguousJson(f"an object has the name {name[:MAX_SHOWN]!a} twice")
        names.add(name)


def _refuse_constant(name: str) -> Never:
    raise AmbiguousJson(f'JSON has no number {name}; write the text "{TEXTS[name]}" or null')


def _check_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise AmbiguousJson(f"the number {text[:MAX_SHOWN]} is too large")
    return number


def _is_json(scope: Scope) -> bool:
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and kind.endswith(("/json", "+json"))
