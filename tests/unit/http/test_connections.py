"""Slow and many clients against a real process: it goes on answering probes and everybody else."""

import asyncio
import contextlib
import json
import resource
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

import httpx
import pytest
from prometheus_client import CollectorRegistry

from graticule.http import connections
from graticule.http.connections import (
    MAX_SURPLUS,
    BoundedProtocol,
    ConnectionMetrics,
    ConnectionPolicy,
    ConnectionTable,
    Phase,
)

CHILD = """
import asyncio, resource, sys
from ipaddress import ip_network
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from graticule.core.log_format import LogFormat
from graticule.http.application import create_application
from graticule.http.connections import BoundedProtocol, ConnectionPolicy
from graticule.http.forwarded import TrustedProxies
from graticule.http.server import serve
from graticule.logs import configure_logging, get_logger

hard = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
configure_logging("INFO", LogFormat.JSON, "child")
say = get_logger("child").info
app = create_application(process="child", title="Child", checks={})

@app.get("/hello")
async def hello():
    return "hello"

@app.get("/stuck")
async def stuck():
    say("entered")
    await app.state.stopping.wait()

@app.get("/endless")
async def endless():
    async def chunks():
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)
    return StreamingResponse(chunks())

@app.get("/large")
async def large():
    return Response(b"x" * 8 * 1024 * 1024)

@app.post("/body")
async def body(request: Request):
    return len(await request.body())

if len(sys.argv) > 3:
    BoundedProtocol.timeout_keep_alive = property(lambda _: float(sys.argv[3]), lambda *_: None)
asyncio.run(serve(app, "127.0.0.1", 0, policy=eval("ConnectionPolicy(" + sys.argv[2] + ")")))
"""
HALF_A_HEAD = b"GET /hello HTTP/1.1\r\nHost: x\r\nX-Slow: "
HALF_A_BODY = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nab"
ENDLESS = b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"
STUCK = b"GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n"
MANY = 2000
MEBIBYTE = 1024 * 1024

pytestmark = pytest.mark.timeout(60)


class Child:
    """The process, and how often it has logged what."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.port = 0
        self._events: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def read_log(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            fields = json.loads(line)
            async with self._changed:
                self._events[fields["event"]] += 1
                self.port = fields.get("port", self.port)
                self._changed.notify_all()

    async def logs(self, event: str, count: int = 1) -> None:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: self._events[event] >= count)


@asynccontextmanager
async def serving(policy: str = "", *, hard_limit: int | None = None, keep_alive: float = 75) -> AsyncIterator[Child]:
    """Serve in a process of its own."""
    hard = hard_limit or resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    arguments = ["-c", CHILD, str(hard), policy, str(keep_alive)]
    child = Child(await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=PIPE))
    reading = asyncio.create_task(child.read_log())
    try:
        await child.logs("serving")
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.process.kill()
        await child.process.wait()
        await reading


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.fail(f"this test needs {wanted} descriptors: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted) if soft > 0 else soft, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def clients(
    port: int, said: bytes, count: int, addresses: Sequence[str] = ("127.0.0.1",)
) -> Iterator[list[socket.socket]]:
    """Connect so many clients of these addresses, each of which says this and no more."""
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            client = socket.socket()
            opened.append(client)
            client.settimeout(20)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.bind((addresses[number % len(addresses)], 0))
            client.connect(("127.0.0.1", port))
            with contextlib.suppress(ConnectionError):  # closed already
                client.sendall(said)
        yield opened
    finally:
        for client in opened:
            client.close()


@asynccontextmanager
async def caller(port: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False) as client:
        yield client


async def said_by_server(client: socket.socket) -> bytes:
    """Read all that comes until the server closes."""
    loop, parts = asyncio.get_running_loop(), []
    client.setblocking(False)
    with contextlib.suppress(ConnectionError):
        while part := await loop.sock_recv(client, 65536):
            parts.append(part)
    return b"".join(parts)


MANY_ADDRESSES = tuple(f"127.0.{number // 250}.{number % 250 + 1}" for number in range(MANY))


@pytest.mark.parametrize(
    ("addresses", "hard_limit"),
    [(("127.0.0.1",), None), (MANY_ADDRESSES, None), (MANY_ADDRESSES, 1024)],
    ids=["one address", "many addresses", "a limit of 1024 descriptors"],
)
@pytest.mark.parametrize("said", [HALF_A_HEAD, HALF_A_BODY, b""], ids=["half a head", "half a body", "nothing"])
async def test_two_thousand_slow_clients_leave_others_served(
    said: bytes, addresses: Sequence[str], hard_limit: int | None
) -> None:
    async with serving(hard_limit=hard_limit) as child:
        with clients(child.port, said, MANY, addresses):
            async with caller(child.port) as client:
                for path in ("/livez", "/readyz", "/hello"):
                    assert (await client.get(path)).status_code == 200
                assert 'graticule_http_connections_dropped_total{reason="shed"}' in (await client.get("/metrics")).text


async def test_the_client_that_has_waited_longest_makes_room() -> None:
    async with serving("max_connections=2") as child:
        with clients(child.port, HALF_A_HEAD, 1) as (first,), clients(child.port, HALF_A_HEAD, 1) as (second,):
            async with caller(child.port) as client:
                assert (await client.get("/hello")).status_code == 200
            assert await said_by_server(first) == b""
            second.sendall(b"\r\n\r\n")
            assert second.recv(100).startswith(b"HTTP/1.1 ")


async def test_clients_that_do_not_read_make_room_for_others() -> None:
    async with serving("max_connections=16") as child:
        with clients(child.port, ENDLESS, 40):
            async with caller(child.port) as client:
                while (answer := await client.get("/hello")).status_code == 503:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # what fits into the buffers of the system is still written
                assert answer.json() == "hello"


@pytest.mark.parametrize(
    ("policy", "said", "answer"),
    [
        ("head_seconds=0.5", b"", b""),
        ("head_seconds=0.5", HALF_A_HEAD, b"HTTP/1.1 408 Request Timeout\r\n"),
        ("head_seconds=0.5", b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n" + HALF_A_HEAD, b"HTTP/1.1 200 OK\r\n"),
        ("body_seconds=0.5", HALF_A_BODY, b""),
        ("body_seconds=0.5", HALF_A_BODY.replace(b"/body", b"/hello"), b"HTTP/1.1 405 "),
    ],
    ids=["nothing", "half a head", "half a second head", "half a body", "half a body that nobody wants"],
)
async def test_a_client_that_stops_sending_is_disconnected(policy: str, said: bytes, answer: bytes) -> None:
    async with serving(policy) as child:
        with clients(child.port, said, 1) as (client,):
            async with asyncio.timeout(20):
                assert (await said_by_server(client)).startswith(answer)


async def test_a_connection_is_closed_some_time_after_a_body_that_came_later_than_the_answer() -> None:
    async with serving(keep_alive=0.5) as child:
        with clients(child.port, b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", 1) as (client,):
            assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
            client.sendall(b"hello")
            async with asyncio.timeout(20):
                await said_by_server(client)


async def test_a_head_that_comes_byte_by_byte_gets_no_more_time() -> None:
    async with serving("head_seconds=1") as child:
        with clients(child.port, HALF_A_HEAD, 1) as (client,):
            reading = asyncio.create_task(said_by_server(client))
            async with asyncio.timeout(20):
                while not reading.done():
                    with contextlib.suppress(ConnectionError):
                        client.send(b"x")
                    await asyncio.sleep(0.05)
            assert b"408 Request Timeout" in reading.result()


@pytest.mark.parametrize(("size", "status"), [(60_000, b"200"), (70_000, b"400")])
async def test_a_head_has_64_kib_at_most(size: int, status: bytes) -> None:
    head = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: " + b"x" * size + b"\r\n\r\n"
    async with serving() as child:
        with clients(child.port, head, 1) as (client,):
            async with asyncio.timeout(20):
                assert (await said_by_server(client)).startswith(b"HTTP/1.1 " + status)


async def test_a_body_that_comes_byte_by_byte_gets_no_more_time() -> None:
    async with serving("body_seconds=1") as child:
        with clients(child.port, HALF_A_BODY, 1) as (client,):
            reading = asyncio.create_task(said_by_server(client))
            async with asyncio.timeout(20):
                while not reading.done():
                    with contextlib.suppress(ConnectionError):
                        client.send(b"x")
                    await asyncio.sleep(0.05)


async def test_a_body_that_comes_steadily_may_take_longer_than_the_pause() -> None:
    async with serving("body_seconds=1") as child, caller(child.port) as client:

        async def steadily() -> AsyncIterator[bytes]:
            for _ in range(15):
                yield b"x" * 4096
                await asyncio.sleep(0.2)

        assert (await client.post("/body", content=steadily())).json() == 15 * 4096


async def test_when_all_places_are_being_answered_only_probes_are() -> None:
    async with serving("max_connections=20") as child:
        with clients(child.port, STUCK, 20) as busy:
            await child.logs("entered", len(busy))
            async with caller(child.port) as client:
                refused = await client.get("/hello")
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
                assert refused.headers["content-type"] == "application/problem+json"
                assert refused.json()["code"] == "unavailable"
                assert (await client.get("/livez")).status_code == 200
                assert (await client.get("/readyz")).status_code == 200
            busy.pop().close()
            async with caller(child.port) as client:
                while (await client.get("/hello")).status_code == 503:  # noqa: ASYNC110 - the server sees it a moment later
                    await asyncio.sleep(0.01)


async def test_a_soft_limit_of_descriptors_is_raised() -> None:
    """Half of the descriptors are for connections, and the process begins with 1024."""
    async with serving("max_connections=600, max_per_address=600") as child:
        with clients(child.port, STUCK, 520):
            await child.logs("entered", 512)
            async with caller(child.port) as client:
                assert (await client.get("/hello")).status_code == 200


async def test_an_address_takes_no_more_than_its_share() -> None:
    async with serving("max_connections=40, max_per_address=10") as child:
        with clients(child.port, STUCK, 10, ["127.0.0.2"]) as busy:
            await child.logs("entered", len(busy))
            with clients(
                child.port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 1, ["127.0.0.2"]
            ) as (one,):
                assert (await said_by_server(one)).startswith(b"HTTP/1.1 503 ")
            async with caller(child.port) as client:
                assert (await client.get("/hello")).status_code == 200


async def test_a_trusted_proxy_may_have_all_connections() -> None:
    policy = "max_connections=40, max_per_address=10, proxies=TrustedProxies([ip_network('127.0.0.2')])"
    async with serving(policy) as child:
        with clients(child.port, STUCK, 10, ["127.0.0.2"]) as busy:
            await child.logs("entered", len(busy))
            with clients(
                child.port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 1, ["127.0.0.2"]
            ) as (one,):
                assert (await said_by_server(one)).startswith(b"HTTP/1.1 200 ")


class Connection:
    """What the table knows of a connection."""

    def __init__(self, party: str, phase: Phase, since: float) -> None:
        self.party, self.phase, self.since = party, phase, since
        self.is_from_proxy = party == "proxy"
        self.is_surplus = False
        self.is_open = True
        self.unsent = self.size = 0
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.is_open = False


class Connections:
    """A table with places for sixteen."""

    def __init__(self) -> None:
        policy = ConnectionPolicy(max_connections=16, max_unsent_bytes=100)
        self.table = ConnectionTable(policy, ConnectionMetrics(CollectorRegistry()))

    def open(self, count: int, party: str, phase: Phase = Phase.HEAD, since: float = 100.0) -> list[Connection]:
        """Let so many connect and come to a phase, which they have been in since then."""
        opened = []
        for _ in range(count):
            connection = Connection(party, Phase.HEAD, since)
            self.table.admit(cast(BoundedProtocol, connection))
            self.table.move(cast(BoundedProtocol, connection), phase)
            opened.append(connection)
        return opened


def still_open(connections: Sequence[Connection]) -> int:
    return sum(connection.is_open for connection in connections)


def leave_unread(table: Connections, party: str, size: int) -> Connection:
    (connection,) = table.open(1, party, Phase.STALLED)
    connection.size = size
    table.table.note_unsent(cast(BoundedProtocol, connection), size)
    return connection


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.BODY, Phase.STALLED])
def test_newcomers_do_not_make_room_for_each_other_while_anyone_else_can(phase: Phase) -> None:
    table = Connections()
    held = table.open(16, "10.0.0.1", phase, since=99.9)
    (probe,) = table.open(1, "10.9.9.9")
    newcomers = table.open(14, "10.0.0.2", since=100.1)
    assert probe.is_open
    assert (still_open(held), still_open(newcomers)) == (1, 14)


def test_the_head_that_has_waited_longest_makes_room_when_all_are_new() -> None:
    table = Connections()
    newcomers = table.open(20, "10.0.0.2")
    assert [connection.is_open for connection in newcomers] == [False] * 4 + [True] * 16
    assert not any(connection.is_surplus for connection in newcomers)


def test_heads_that_wait_for_long_make_room_before_bodies() -> None:
    table = Connections()
    bodies, heads = table.open(8, "10.0.0.1", Phase.BODY, since=50.0), table.open(8, "10.0.0.2", since=97.0)
    table.open(8, "10.0.0.3")
    assert (still_open(bodies), still_open(heads)) == (8, 0)


def test_the_address_that_holds_most_makes_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FAIR_SHARE", 4)
    table = Connections()
    few, many = table.open(4, "10.0.0.1", since=10.0), table.open(12, "10.0.0.2", Phase.BODY, since=90.0)
    for number in range(8):
        table.open(1, f"10.0.1.{number}")
    assert (still_open(few), still_open(many)) == (4, 4)
    table.open(1, "10.0.2.1")
    assert (still_open(few), still_open(many)) == (3, 4)


def test_a_proxy_does_not_count_as_the_address_that_holds_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FAIR_SHARE", 4)
    table = Connections()
    proxy, others = table.open(10, "proxy", Phase.IDLE, since=10.0), table.open(6, "10.0.0.2", Phase.IDLE, since=90.0)
    table.open(2, "10.0.0.3")
    assert (still_open(proxy), still_open(others)) == (10, 4)


def test_newcomers_that_are_too_many_leave_a_probe_among_them_time_to_ask() -> None:
    table = Connections()
    answered = table.open(16, "10.0.0.1", Phase.ANSWERING)
    (probe,) = table.open(1, "10.9.9.9")
    newcomers = table.open(MAX_SURPLUS - 1, "10.0.0.2")
    assert (probe.is_open, probe.is_surplus) == (True, True)
    assert still_open(newcomers) == MAX_SURPLUS - 1
    table.open(1, "10.0.0.2")
    assert still_open([probe, *newcomers]) == MAX_SURPLUS - 1
    assert still_open(answered) == 16


def test_the_address_that_leaves_most_unread_is_closed_when_all_leave_too_much() -> None:
    table = Connections()
    large, *others = [
        leave_unread(table, "10.0.0.1", 50),
        leave_unread(table, "10.0.0.2", 30),
        leave_unread(table, "10.0.0.2", 10),
    ]
    assert still_open([large, *others]) == 3
    other = leave_unread(table, "10.0.0.2", 20)
    assert [each.is_open for each in (large, *others, other)] == [True, False, True, True]
    large.size = 10  # its client has read
    assert leave_unread(table, "10.0.0.3", 60).is_open
    assert still_open([large, *others, other]) == 3


def test_what_was_read_or_closed_does_not_count_as_unread() -> None:
    table = Connections()
    for _ in range(4):
        one = leave_unread(table, "10.0.0.1", 90)
        table.table.note_unsent(cast(BoundedProtocol, one), 0)
        other = leave_unread(table, "10.0.0.1", 90)
        table.table.remove(cast(BoundedProtocol, other))
        assert (one.is_open, other.is_open) == (True, True)


def most_memory_of(child: Child) -> int:
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    highest = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(highest.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_answers_that_nobody_reads_take_no_more_than_their_share_of_memory() -> None:
    async with serving(f"max_unsent_bytes={32 * MEBIBYTE}") as child:
        with clients(child.port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", 60):
            await child.logs("request", 60)
            async with caller(child.port) as client:
                metrics = (await client.get("/metrics")).text
        assert 'graticule_http_connections_dropped_total{reason="unread"} 5' in metrics  # of 60, those of 50 to 59
        assert most_memory_of(child) < 300 * MEBIBYTE
