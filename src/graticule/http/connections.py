"""How long a client may take, how many connections there may be, and which of them go first when there are too many.

A connection waits for a head, is idle, sends a body, reads an answer too slowly, or is answered. All but the last have
deadlines. A newcomer that finds all places taken gets that of the connection that has waited longest without getting
anything done: a half-sent head first, then an idle one, a body that is still coming, an answer that is not read. The
address that holds most gives first. A head that has just begun goes last: it may be a probe among many newcomers. Only
when every place is being answered is the newcomer one too many: then only probes are answered, and others get 503.
"""

import asyncio
import math
import resource
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import h11
import prometheus_client
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from graticule.config import Settings
from graticule.core.errors import Unavailable
from graticule.http.forwarded import TrustedProxies
from graticule.http.framing import StrictConnection
from graticule.http.problems import ProblemResponse, problem_of
from graticule.http.rate_limits import party_of
from graticule.http.turns import HeldFlow, Turns
from graticule.logs import get_logger

PROBES: Final = frozenset({"/livez", "/readyz", "/api/livez", "/api/readyz"})
MAX_SURPLUS: Final = 64  # connections beyond the limit, of which only probes are answered
MAX_DESCRIPTORS: Final = 8192
NEWCOMER_SECONDS: Final = 2.0  # in which a head is not given up for another newcomer, if anything else can be
FAIR_SHARE: Final = 16  # connections of an address, which are as good as those of others: browsers open six
MAX_UNSENT: Final = 256 * 1024 * 1024  # bytes of answers that clients have not read yet
MIN_BODY_RATE: Final = 1024  # bytes per second, once the time for a body is used up
MAX_DRAINED: Final = 16 * 1024 * 1024  # bytes after an answer: whose body was too large is still told so
READ_SECONDS: Final = 60.0  # in which a client has to read what fills the buffer of its connection
RETRY_SECONDS: Final = 5
LOG_SECONDS: Final = 30.0

_REQUEST_TIMEOUT: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 39\r\n\r\nThe head of the request came too slowly"
)

_log = get_logger(__name__)


class Phase(Enum):
    """What a connection is waiting for, in the order in which connections are given up."""

    HEAD = "head"
    IDLE = "idle"
    BODY = "body"
    STALLED = "stalled"
    ANSWERING = "answering"


_SHED_ORDER: Final = (Phase.HEAD, Phase.IDLE, Phase.BODY, Phase.STALLED)


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """The limits of one process."""

    max_connections: int = 1024
    max_per_address: int = 256
    head_seconds: float = 20.0
    body_seconds: float = 30.0
    max_unsent_bytes: int = MAX_UNSENT
    proxies: TrustedProxies = field(default_factory=TrustedProxies)

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionPolicy":
        """Read the limits from the settings."""
        return cls(
            max_connections=settings.http_max_connections,
            max_per_address=settings.http_max_connections_per_address,
            head_seconds=settings.http_head_seconds,
            body_seconds=settings.http_body_seconds,
            proxies=TrustedProxies(settings.trusted_proxies),
        )


class ConnectionMetrics:
    """How many connections there are, and how many were given up."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = prometheus_client.Gauge(
            "graticule_http_connections", "Connections that clients have open.", registry=registry
        )
        self.dropped = prometheus_client.Counter(
            "graticule_http_connections_dropped_total",
            "Connections given up: too slow in sending a head or a body or in reading, shed for newcomers, or refused.",
            ["reason"],
            registry=registry,
        )


class _Queues:
    """Connections by what they wait for, the oldest first."""

    def __init__(self) -> None:
        self._phases: dict[Phase, OrderedDict[BoundedProtocol, None]] = {phase: OrderedDict() for phase in Phase}

    def __len__(self) -> int:
        return sum(map(len, self._phases.values()))

    def __contains__(self, connection: "BoundedProtocol") -> bool:
        return connection in self._phases[connection.phase]

    def of(self, phase: Phase) -> "list[BoundedProtocol]":
        return list(self._phases[phase])

    def add(self, connection: "BoundedProtocol") -> None:
        self._phases[connection.phase][connection] = None

    def remove(self, connection: "BoundedProtocol") -> None:
        del self._phases[connection.phase][connection]

    def find_victim(self, now: float) -> "BoundedProtocol | None":
        """Return the connection to give up; no newcomer that sends its head."""
        for phase in _SHED_ORDER:
            oldest = next(iter(self._phases[phase]), None)
            if oldest is not None and not (phase is Phase.HEAD and now - oldest.since < NEWCOMER_SECONDS):
                return oldest
        return None

    def find_newcomer(self) -> "BoundedProtocol | None":
        """Return the oldest connection that sends its head."""
        return next(iter(self._phases[Phase.HEAD]), None)


class ConnectionTable:
    """All connections of a process by what they wait for, the oldest first."""

    def __init__(self, policy: ConnectionPolicy, metrics: ConnectionMetrics) -> None:
        self.policy = policy
        self.turns = Turns()
        # The other half is for the database, files, child processes, and what is accepted before it is counted.
        self._max_connections = min(policy.max_connections, descriptor_limit() // 2)
        self._metrics = metrics
        self._all = _Queues()
        self._by_party: dict[str, _Queues] = {}
        self._sizes: Counter[str] = Counter()  # connections of each party
        self._proxies: set[str] = set()  # parties that hold connections for many
        self._surplus = 0
        self._unsent = 0  # bytes, as they were when their connections stalled
        self._dropped: Counter[str] = Counter()
        self._logged_at = -math.inf

    def __len__(self) -> int:
        return len(self._all)

    def admit(self, newcomer: "BoundedProtocol") -> None:
        """Find a place for a connection, at the cost of another one if need be."""
        is_crowding = self._sizes[newcomer.party] >= self.policy.max_per_address and not newcomer.is_from_proxy
        if is_crowding or len(self._all) - self._surplus >= self._max_connections:
            victim = self._find_victim(newcomer, is_crowding=is_crowding)
            newcomer.is_surplus = victim is None or victim.is_surplus
            if victim is not None:
                self.drop(victim, "shed")
        self._add(newcomer)
        if self._surplus > MAX_SURPLUS:
            self.drop(newcomer, "refused")

    def _find_victim(self, newcomer: "BoundedProtocol", *, is_crowding: bool) -> "BoundedProtocol | None":
        queues = [self._by_party[newcomer.party]] if is_crowding else [*self._heaviest(), self._all]
        for each in queues:
            if (victim := each.find_victim(newcomer.since)) is not None:
                return victim
        for each in queues:
            if (victim := each.find_newcomer()) is not None:
                # Newcomers that are too many need not make room for each other yet: one of them may be a probe.
                return None if victim.is_surplus and self._surplus < MAX_SURPLUS else victim
        return None

    def _heaviest(self) -> list[_Queues]:
        """Return the connections of the party that holds most, if that is more than its share."""
        parties = self._sizes.keys() - self._proxies
        party = max(parties, key=self._sizes.__getitem__, default="")
        return [self._by_party[party]] if self._sizes[party] > FAIR_SHARE else []

    def _add(self, connection: "BoundedProtocol") -> None:
        self._all.add(connection)
        self._by_party.setdefault(connection.party, _Queues()).add(connection)
        self._sizes[connection.party] += 1
        if connection.is_from_proxy:
            self._proxies.add(connection.party)
        self._surplus += connection.is_surplus
        self._metrics.open.set(len(self._all))

    def move(self, connection: "BoundedProtocol", phase: Phase) -> bool:
        """Note what a connection waits for now; false when that is what it waited for before."""
        if phase is connection.phase or connection not in self._all:
            return False
        queues = (self._all, self._by_party[connection.party])
        for each in queues:
            each.remove(connection)
        connection.phase = phase
        for each in queues:
            each.add(connection)
        return True

    def remove(self, connection: "BoundedProtocol") -> None:
        """Forget a connection; one that was dropped is forgotten already."""
        if connection not in self._all:
            return
        self.note_unsent(connection, 0)
        party = connection.party
        self._all.remove(connection)
        self._by_party[party].remove(connection)
        self._surplus -= connection.is_surplus
        self._sizes[party] -= 1
        if not self._sizes[party]:
            del self._sizes[party], self._by_party[party]
            self._proxies.discard(party)
        self._metrics.open.set(len(self._all))

    def note_unsent(self, connection: "BoundedProtocol", size: int) -> None:
        """Count what a client has not read; when all of them leave too much, close those that leave most."""
        if connection not in self._all:
            return
        self._unsent += size - connection.unsent
        connection.unsent = size
        if size and self._unsent > self.policy.max_unsent_bytes:
            self._shed_unread()

    def _shed_unread(self) -> None:
        stalled = self._all.of(Phase.STALLED)
        of_party: Counter[str] = Counter()
        for each in stalled:
            each.unsent = each.transport.get_write_buffer_size()  # some have read since
            of_party[each.party] += each.unsent
        self._unsent = of_party.total()
        while self._unsent > self.policy.max_unsent_bytes:
            victim = max(stalled, key=lambda each: (of_party[each.party], each.unsent))
            stalled.remove(victim)
            of_party[victim.party] -= victim.unsent
            self.drop(victim, "unread")

    def drop(self, connection: "BoundedProtocol", reason: str) -> None:
        """Close a connection without waiting for its client."""
        self.remove(connection)
        self.count_drop(reason)
        connection.transport.abort()

    def count_drop(self, reason: str) -> None:
        """Count a connection that was given up, for the metric and for the next line of the log."""
        self._metrics.dropped.labels(reason).inc()
        self._dropped[reason] += 1

    def close_expired(self, now: float) -> None:
        """Close all whose time is over; the server calls it about once a second."""
        for phase in _SHED_ORDER:
            for connection in self._all.of(phase):
                if connection.deadline <= now:
                    connection.expire(now)
        if self._dropped and now - self._logged_at >= LOG_SECONDS:
            _log.warning("connections dropped", open=len(self), **self._dropped)
            self._dropped.clear()
            self._logged_at = now


class ConnectionState(ServerState):
    """What all connections of a server share."""

    def __init__(self, table: ConnectionTable) -> None:
        super().__init__()
        self.table = table


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, held to a policy; idle connections have uvicorn's own deadline."""

    def __init__(
        self,
        config: Config,
        server_state: ConnectionState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn: StrictConnection = StrictConnection()
        self.table = server_state.table
        self.phase = Phase.HEAD
        self.unsent = 0
        self.since = 0.0
        self.deadline = math.inf
        self.party = ""
        self.is_from_proxy = False
        self._is_surplus = False
        self._has_turn = False
        self._drained = 0

    @property
    def is_surplus(self) -> bool:
        """Whether only probes are answered, since there are too many connections."""
        return self._is_surplus

    @is_surplus.setter
    def is_surplus(self, value: bool) -> None:
        self._is_surplus = value
        self.app = ProbesOnly(self.config.loaded_app) if value else self.config.loaded_app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, with the time that a head may take."""
        super().connection_made(transport)
        self.flow: HeldFlow = HeldFlow(transport)
        host = self.client[0] if self.client else ""
        self.party = party_of(host)
        self.is_from_proxy = host in self.table.policy.proxies
        self.since = self.loop.time()
        self.deadline = self.since + self.table.policy.head_seconds
        self.table.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self.table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Let a body that comes fast enough take longer, and read no more than so much of one that nobody waits for."""
        if self._is_answered() and self.conn.their_state is h11.SEND_BODY:
            self._drained += len(data)
            if self._drained > MAX_DRAINED:
                self.transport.close()
                self._update_phase()
                return
        super().data_received(data)
        if self.phase is Phase.BODY:
            latest = self.loop.time() + self.table.policy.body_seconds
            self.deadline = min(latest, self.deadline + len(data) / MIN_BODY_RATE)

    def handle_events(self) -> None:
        """Follow what the client has sent, for one turn; what is left then waits for another, and nothing is read."""
        self.conn.begin_turn()
        super().handle_events()
        if self.conn.is_interrupted and not self.transport.is_closing():
            self.flow.hold()
            if not self._has_turn:
                self._has_turn = True
                self.table.turns.add(self._proceed)
        elif not self._has_turn:
            self.flow.release()
        self._update_phase()

    def _proceed(self) -> None:
        self._has_turn = False
        if not self.transport.is_closing():
            self.handle_events()

    def send_400_response(self, msg: str) -> None:
        """Refuse what has come; after the begin of another answer, all that can be done is to close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
            cycle: RequestResponseCycle | None = self.cycle
            if cycle is not None and not cycle.response_complete:  # nobody is left whom the application could answer
                cycle.disconnected = True
                cycle.message_event.set()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        self._update_phase()
        self.table.note_unsent(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._update_phase()
        self.table.note_unsent(self, 0)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the rest of this one."""
        self._drained = 0
        super().on_response_complete()
        self._update_phase()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, which may have an answer left that its client does not read."""
        super().timeout_keep_alive_handler()
        self._update_phase()

    def expire(self, now: float) -> None:
        """Close the connection if it is still as slow as it seemed."""
        if self.phase is Phase.BODY and self._waits_for_application():
            self.deadline = now + self.table.policy.body_seconds
        elif self.phase is Phase.STALLED and self._phase() is not Phase.STALLED:
            self._update_phase()
        elif self.phase is Phase.HEAD and self.conn.trailing_data[0]:
            self.table.remove(self)
            self.table.count_drop("head")
            self.transport.write(_REQUEST_TIMEOUT)
            self.transport.close()
        else:
            self.table.drop(self, self.phase.value)

    def _waits_for_application(self) -> bool:
        """Whether the client cannot send more of its body before the application reads it."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        return self.flow.read_paused or self.flow.is_held or cycle.waiting_for_100_continue

    def _update_phase(self) -> None:
        if self.table.move(self, self._phase()):
            self.since = self.loop.time()
            self.deadline = self.since + self._seconds()
            if self.phase is Phase.IDLE and self.timeout_keep_alive_task is None:
                # uvicorn sets its deadline when an answer is complete, and takes it back when the rest of a body comes.
                handler = self.timeout_keep_alive_handler
                self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, handler)

    def _phase(self) -> Phase:
        if self.flow.write_paused or (self._is_done() and self.transport.get_write_buffer_size() > 0):
            return Phase.STALLED
        if self.conn.their_state is h11.IDLE:
            return Phase.HEAD if self.conn.trailing_data[0] else Phase.IDLE
        return Phase.BODY if self.conn.their_state is h11.SEND_BODY else Phase.ANSWERING

    def _is_done(self) -> bool:
        """Whether only what is left in the buffer has to be sent."""
        return self.transport.is_closing() or self._is_answered()

    def _is_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and cycle.response_complete

    def _seconds(self) -> float:
        match self.phase:
            case Phase.HEAD:
                return self.table.policy.head_seconds
            case Phase.BODY:
                return self.table.policy.body_seconds
            case Phase.STALLED:
                return READ_SECONDS
        return math.inf


class ProbesOnly:
    """The application of a connection that is one too many: it answers probes, and says so to others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and let the connection end with that."""

        async def send_last(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), (b"connection", b"close")]}
            await send(message)

        app = self._app if scope["path"] in PROBES else _refuse
        await app(scope, receive, send_last)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    problem = problem_of(
        Unavailable("This process has as many connections as it can serve.", hint=f"Try again in {RETRY_SECONDS} s.")
    )
    document = problem.model_dump(mode="json", exclude_none=True)
    await ProblemResponse(document, problem.status, {"Retry-After": str(RETRY_SECONDS)})(scope, receive, send)


def descriptor_limit() -> int:
    """Return how many files and connections this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as the system lets it have, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < highest:
        with suppress(ValueError, OSError):  # macOS names a limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
