"""What two servers could read as different requests is refused, and the connection with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from fastapi import Request
from tests.integration.gateway.front import served

from graticule.http.application import create_application

pytestmark = pytest.mark.timeout(30)

FOLLOWER = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"


def post(*lines: bytes, version: bytes = b"1.1", end: bytes = b"\r\n") -> bytes:
    return end.join([b"POST /echo HTTP/" + version, b"Host: x", *lines, b"", b""])


AMBIGUOUS = {
    "length and coding": post(b"Content-Length: 5", b"Transfer-Encoding: chunked") + CHUNKED,
    "coding and length": post(b"Transfer-Encoding: chunked", b"Content-Length: 5") + CHUNKED,
    "the same in capitals": post(b"TRANSFER-ENCODING: chunked", b"CONTENT-LENGTH: 5") + CHUNKED,
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6") + b"hello",
    "the same length twice": post(b"Content-Length: 5", b"Content-Length: 5") + b"hello",
    "a list of lengths": post(b"Content-Length: 5, 5") + b"hello",
    "a signed length": post(b"Content-Length: +5") + b"hello",
    "a negative length": post(b"Content-Length: -5") + b"hello",
    "a length in hexadecimal": post(b"Content-Length: 0x5") + b"hello",
    "an empty length": post(b"Content-Length:") + b"hello",
    "another coding": post(b"Transfer-Encoding: gzip") + CHUNKED,
    "codings": post(b"Transfer-Encoding: gzip, chunked") + CHUNKED,
    "identity": post(b"Transfer-Encoding: identity") + CHUNKED,
    "two codings": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked") + CHUNKED,
    "a coding with a parameter": post(b"Transfer-Encoding: chunked;q=1") + CHUNKED,
    "a coding in HTTP/1.0": post(b"Transfer-Encoding: chunked", version=b"1.0") + CHUNKED,
    "a folded header": post(b"X-Long: a", b" b", b"Content-Length: 5") + b"hello",
    "a folded coding": post(b"Transfer-Encoding:", b"\tchunked") + CHUNKED,
    "a space before the colon": post(b"Content-Length : 5") + b"hello",
    "a space before the colon of a coding": post(b"Transfer-Encoding : chunked") + CHUNKED,
    "line feeds alone": post(b"Content-Length: 5", end=b"\n") + b"hello",
    "one line feed alone": post(b"X-A: b\nContent-Length: 5") + b"hello",
    "a carriage return alone": post(b"X-A: b\rContent-Length: 5") + b"hello",
    "a null byte": post(b"X-A: b\0", b"Content-Length: 5") + b"hello",
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "an empty line first": b"\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    "no name": post(b": value", b"Content-Length: 5") + b"hello",
}
BROKEN_BODIES = {
    "a signed chunk": post(b"Transfer-Encoding: chunked") + b"+5\r\nhello\r\n0\r\n\r\n",
    "a chunk in hexadecimal notation": post(b"Transfer-Encoding: chunked") + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": post(b"Transfer-Encoding: chunked") + b"5\nhello\n0\n\n",
    "a chunk that is longer": post(b"Transfer-Encoding: chunked") + b"3\r\nhello\r\n0\r\n\r\n",
}
SOUND = {
    "a length": post(b"Content-Length: 5") + b"hello",
    "chunks": post(b"Transfer-Encoding: chunked") + CHUNKED,
    "chunks in capitals": post(b"transfer-encoding: CHUNKED") + CHUNKED,
    "no body": b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    "names like those": post(b"X-Content-Length: 7", b"X-Transfer-Encoding: chunked", b"Content-Length: 5") + b"hello",
    "a body like a head": post(b"Content-Length: 55")
    + b"\nContent-Length: 1\n\n Transfer-Encoding: chunked\r\n\r\nabcd",
}


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[int]:
    app = create_application(process="echo", title="Echo", checks={})

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    async with served(app) as address:
        yield int(address.rpartition(":")[2])


async def answers(port: int, said: bytes) -> bytes:
    """Send a request and one that follows it, and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said + FOLLOWER)
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65536):
                parts.append(part)
        return b"".join(parts)
    finally:
        writer.close()


async def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_answered() -> None:
    async with echo() as port:
        for name, said in AMBIGUOUS.items():
            answer = await answers(port, said)
            assert answer.startswith(b"HTTP/1.1 400 "), (name, answer)
            assert answer.count(b"HTTP/1.1 ") == 1, (name, answer)


async def test_nothing_is_answered_after_a_broken_body() -> None:
    async with echo() as port:
        for name, said in BROKEN_BODIES.items():
            answer = await answers(port, said)
            assert b"200 OK" not in answer, (name, answer)


async def test_sound_requests_and_those_after_them_are_answered() -> None:
    async with echo() as port:
        for name, said in SOUND.items():
            assert (await answers(port, said)).count(b"HTTP/1.1 200 OK") == 2, name


async def test_a_head_in_pieces_is_looked_at_as_a_whole() -> None:
    async with echo() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in AMBIGUOUS["length and coding"].removesuffix(CHUNKED):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
