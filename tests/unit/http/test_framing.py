"""What two servers could read as different requests is refused, and the connection with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import h11
import pytest
from fastapi import Request
from tests.integration.gateway.front import served

from graticule.http import connections
from graticule.http.application import create_application
from graticule.http.framing import EVENTS_PER_TURN, MAX_HEADER_LINES, StrictConnection

pytestmark = pytest.mark.timeout(30)

FOLLOWER = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNK = b"40\r\n" + b"a" * 64 + b"\r\n"
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
    "too many headers": post(*[b"a:"] * (MAX_HEADER_LINES - 1), b"Content-Length: 5") + b"hello",
    "no name": post(b": value", b"Content-Length: 5") + b"hello",
}
BROKEN_BODIES = {
    "a signed chunk": post(b"Transfer-Encoding: chunked") + b"+5\r\nhello\r\n0\r\n\r\n",
    "a chunk in hexadecimal notation": post(b"Transfer-Encoding: chunked") + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": post(b"Transfer-Encoding: chunked") + b"5\nhello\n0\n\n",
    "a chunk that is longer": post(b"Transfer-Encoding: chunked") + b"3\r\nhello\r\n0\r\n\r\n",
    "a chunk extension with a carriage return": post(b"Transfer-Encoding: chunked") + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "a chunk extension with a control character": post(b"Transfer-Encoding: chunked") + b"5;\1\r\nhello\r\n0\r\n\r\n",
    "a chunk extension after a tab": post(b"Transfer-Encoding: chunked") + b"5\t;a\r\nhello\r\n0\r\n\r\n",
    "crumbs": post(b"Transfer-Encoding: chunked") + b"1\r\na\r\n" * 200 + b"0\r\n\r\n",
}
TRAILERS = {
    "a trailer": b"0\r\nX: a\r\n\r\n",
    "a length": b"0\r\nContent-Length: 4\r\n\r\n",
    "a trailer that ends with a line feed": b"0\r\nX: a\n\r\n",
    "line feeds alone": b"0\r\nX: a\n\n",
    "an end that is a line feed": b"0\r\n\n",
    "a folded trailer": b"0\r\nX: a\r\n b\r\n\r\n",
    "many trailers": b"0\r\n" + b"a:\r\n" * 15_900 + b"\r\n",
}
SOUND = {
    "a length": post(b"Content-Length: 5") + b"hello",
    "chunks": post(b"Transfer-Encoding: chunked") + CHUNKED,
    "chunks in capitals": post(b"transfer-encoding: CHUNKED") + CHUNKED,
    "chunks with extensions": post(b"Transfer-Encoding: chunked") + b'5;a="b"\r\nhello\r\n0;c\r\n\r\n',
    "small chunks": post(b"Transfer-Encoding: chunked") + b"1\r\na\r\n" * 99 + b"0\r\n\r\n",
    "many chunks": post(b"Transfer-Encoding: chunked") + CHUNK * 2000 + b"0\r\n\r\n",
    "many headers": post(*[b"a:"] * (MAX_HEADER_LINES - 2), b"Content-Length: 5") + b"hello",
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


async def test_trailers_are_refused() -> None:
    async with echo() as port:
        for name, trailer in TRAILERS.items():
            answer = await answers(port, post(b"Transfer-Encoding: chunked") + b"5\r\nhello\r\n" + trailer)
            assert answer.startswith(b"HTTP/1.1 400 "), (name, answer)
            assert answer.count(b"HTTP/1.1 ") == 1, (name, answer)


async def test_nothing_is_answered_after_a_broken_rest_of_a_request_that_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with echo() as port:
        for name, trailer in TRAILERS.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 "), name
            writer.write(trailer + FOLLOWER)
            with contextlib.suppress(ConnectionError):
                assert b"HTTP/1.1" not in await reader.read(), name
            writer.close()
    assert "Traceback" not in caplog.text


async def test_the_application_does_not_answer_a_request_that_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with echo() as port:
        for said in BROKEN_BODIES.values():
            await answers(port, said)
            await answers(port, said.replace(b"POST /echo", b"GET /livez"))
    assert "Exception in ASGI application" not in caplog.text


async def test_the_rest_of_a_body_is_read_up_to_a_bound_once_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_DRAINED", 2**20)
    async with echo() as port:
        for size, is_followed in ((2**19, True), (2**22, False)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.write(b"x" * size + FOLLOWER)
            rest = b""
            with contextlib.suppress(ConnectionError):
                while part := await reader.read(65536):
                    rest += part
            assert (b"HTTP/1.1 200 " in rest) is is_followed
            writer.close()


def test_only_so_many_chunks_are_parsed_in_a_turn() -> None:
    connection = StrictConnection()
    connection.receive_data(post(b"Transfer-Encoding: chunked") + CHUNK * 1000 + b"0\r\n\r\n")
    turns, read = 0, 0
    while connection.their_state is not h11.DONE:
        connection.begin_turn()
        turns += 1
        for _ in range(EVENTS_PER_TURN):
            event = connection.next_event()
            read += len(event.data) if isinstance(event, h11.Data) else 0
        assert connection.next_event() in (h11.NEED_DATA, h11.PAUSED)
    assert (read, turns) == (64_000, 11)


async def test_others_get_their_turn_while_bodies_of_many_chunks_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three clients send more than one turn's events at once: no turn of the loop has more than one share of each."""
    events, most = 0, 0
    parse = h11.Connection.next_event

    def counting(self: h11.Connection) -> object:
        nonlocal events
        events += 1
        return parse(self)

    def tick() -> None:
        nonlocal events, most
        most, events = max(most, events), 0
        asyncio.get_running_loop().call_soon(tick)

    monkeypatch.setattr(h11.Connection, "next_event", counting)
    async with echo() as port:
        tick()
        said = post(b"Transfer-Encoding: chunked") + CHUNK * 3000 + b"0\r\n\r\n"
        for answer in await asyncio.gather(*(answers(port, said) for _ in range(3))):
            assert answer.count(b"HTTP/1.1 200 OK") == 2
            assert b"192000" in answer
    assert EVENTS_PER_TURN <= most <= 4 * (EVENTS_PER_TURN + 1)


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
