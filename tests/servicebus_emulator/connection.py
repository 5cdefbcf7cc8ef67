"""A connection of a client: headers, SASL, frames, and the sessions on it."""

import asyncio
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from tests.servicebus_emulator.faults import Fate, Faults
from tests.servicebus_emulator.frames import (
    AMQP_HEADER,
    EMPTY,
    HEADER_SIZE,
    MAX_FRAME,
    SASL_HEADER,
    SMALLEST_MAX_FRAME,
    Frame,
    Performative,
    error,
    frame,
    parse_frame,
    symbols,
    take_frame,
)
from tests.servicebus_emulator.namespace import Namespace
from tests.servicebus_emulator.refusal import DECODE_ERROR
from tests.servicebus_emulator.session import Session, Wire
from tests.servicebus_emulator.tokens import Grants, Tokens
from tests.servicebus_emulator.types import Malformed, Symbol, UByte, UInt, UShort

_IDLE_MILLISECONDS: Final = 240_000
_MOST_CHANNELS: Final = 4999
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Broker:
    """What all connections share."""

    namespace: Namespace
    tokens: Tokens
    faults: Faults
    connections: "set[Connection]"


class Connection(asyncio.Protocol):
    """One connection. What is said in one turn of the loop is written at once, at its end."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._to_write: list[bytes] = []
        self._late: deque[bytes] = deque()
        self._late_until = 0.0
        self._awaits_header = True
        self._sessions: dict[int, Session] = {}
        self._grants = Grants(broker.tokens)
        self._max_frame = SMALLEST_MAX_FRAME
        self._heartbeat: asyncio.TimerHandle | None = None
        self._token_watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._broker.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Let go of everything; what was locked stays locked."""
        self._broker.connections.discard(self)
        for timer in (self._heartbeat, self._token_watch):
            if timer is not None:
                timer.cancel()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def data_received(self, data: bytes) -> None:
        """Heed what the client says."""
        self._received += data
        try:
            self._heed()
        except (Malformed, TypeError, ValueError) as malformed:
            self._write(frame(0, Performative.CLOSE, [error(DECODE_ERROR, str(malformed))]))
            self._close()
        self._flush()

    def detach(self, path: str) -> None:
        """Take the links of an entity that is gone from the client."""
        for session in self._sessions.values():
            session.detach(path)

    def cut(self) -> None:
        """End at once and without a word, as when the network fails."""
        if self._transport is not None:
            connection = self._transport.get_extra_info("socket")
            if connection is not None and connection.fileno() >= 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()

    def _heed(self) -> None:
        while True:
            if self._awaits_header:
                if len(self._received) < HEADER_SIZE:
                    return
                self._heed_header(bytes(self._received[:HEADER_SIZE]))
                del self._received[:HEADER_SIZE]
                continue
            taken = take_frame(self._received)
            if taken is None:
                return
            if taken[1] and not self._meets_fate(parse_frame(*taken)):
                return

    def _heed_header(self, header: bytes) -> None:
        if header not in (AMQP_HEADER, SASL_HEADER):
            raise Malformed("This is no AMQP 1.0.")
        self._write(header)
        self._awaits_header = False
        if header == SASL_HEADER:
            mechanisms = symbols("ANONYMOUS", "MSSBCBS", "EXTERNAL")
            self._write(frame(0, Performative.SASL_MECHANISMS, [mechanisms], is_sasl=True))

    def _meets_fate(self, arrived: Frame) -> bool:
        """Heed a frame, or let it be lost; tell whether the connection lives on."""
        fate = self._broker.faults.fate_of_frame()
        if fate is not Fate.LOST:
            self._heed_frame(arrived)
        if fate is not Fate.HEEDED:
            self._to_write.clear()
            self.cut()
        return fate is Fate.HEEDED

    def _heed_frame(self, arrived: Frame) -> None:
        if arrived.performative in (Performative.TRANSFER, Performative.DISPOSITION):  # nearly all of them
            self._session(arrived).heed(arrived)
        elif arrived.performative == Performative.SASL_INIT:
            self._write(frame(0, Performative.SASL_OUTCOME, [UByte(0), None], is_sasl=True))
            self._awaits_header = True
        elif arrived.performative == Performative.OPEN:
            self._open(arrived)
        elif arrived.performative == Performative.BEGIN:
            self._sessions[arrived.channel] = Session(self._wire(), arrived.channel)
        elif arrived.performative == Performative.END:
            self._session(arrived).close()
            del self._sessions[arrived.channel]
            self._write(frame(arrived.channel, Performative.END, [None]))
        elif arrived.performative == Performative.CLOSE:
            self._write(frame(0, Performative.CLOSE, [None]))
            self._close()
        else:
            self._session(arrived).heed(arrived)

    def _session(self, arrived: Frame) -> Session:
        session = self._sessions.get(arrived.channel)
        if session is None:
            raise Malformed("There is no session on this channel.")
        return session

    def _open(self, arrived: Frame) -> None:
        _, host, max_frame, _, idle, *_ = arrived.fields
        self._max_frame = max(SMALLEST_MAX_FRAME, min(max_frame or MAX_FRAME, MAX_FRAME))
        limits = [UInt(MAX_FRAME), UShort(_MOST_CHANNELS), UInt(_IDLE_MILLISECONDS)]
        product = {Symbol("product"): "Service Bus emulator"}
        self._write(frame(0, Performative.OPEN, ["emulator", host, *limits, None, None, None, None, product]))
        if idle:
            self._beat(idle / 2000)

    def _wire(self) -> Wire:
        broker = self._broker
        return Wire(self._write, broker.namespace, broker.faults, self._grants, self._watch_tokens, self._max_frame)

    def _beat(self, seconds: float) -> None:
        self._heartbeat = self._loop.call_later(seconds, self._beat, seconds)
        self._write(EMPTY)

    def _watch_tokens(self) -> None:
        """Look again when the next token ends."""
        if self._token_watch is not None:
            self._token_watch.cancel()
        end = self._grants.next_end()
        if end is not None:
            self._token_watch = self._loop.call_later(max(0, end - time.time()), self._check_tokens)

    def _check_tokens(self) -> None:
        for session in self._sessions.values():
            session.check_grants()
        self._watch_tokens()

    def _write(self, data: bytes) -> None:
        if not self._to_write:
            self._loop.call_soon(self._flush)
        self._to_write.append(data)

    def _flush(self) -> None:
        if not self._to_write or self._transport is None:
            return
        data = b"".join(self._to_write)
        self._to_write.clear()
        delay = self._broker.faults.delay_seconds
        if not delay and not self._late:
            self._transport.write(data)
            return
        self._late.append(data)
        self._late_until = max(self._late_until, self._loop.time() + delay)  # nothing overtakes what was said before
        self._loop.call_at(self._late_until, self._write_late)

    def _write_late(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._late.popleft())

    def _close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()
