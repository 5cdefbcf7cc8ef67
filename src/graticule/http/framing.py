"""Refuses heads and chunks that two servers could read differently (RFC 9112) or that cost too much to parse."""

import re
from typing import Final

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADER_LINES: Final = 128
EVENTS_PER_TURN: Final = 100  # what h11 parses for a connection before others get their turn: about a millisecond
FREE_CHUNKS: Final = 100
MIN_CHUNK_BYTES: Final = 64  # on average, once there are more than that many

_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_BARE_LINE_FEED: Final = re.compile(rb"(?<!\r)\n")
_FOLDED_LINE: Final = re.compile(rb"\n[ \t]")
_CONTENT_LENGTH: Final = re.compile(rb"\ncontent-length:([^\r\n]*)", re.IGNORECASE)
_TRANSFER_ENCODING: Final = re.compile(rb"\ntransfer-encoding:", re.IGNORECASE)
_HTTP_1_0: Final = re.compile(rb"[^\r\n]* HTTP/1\.0\r")
_CHUNK_HEADER: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*|[ \t]*)\r\n")


class StrictConnection(h11.Connection):
    """A server's connection that looks at the bytes of each head and chunk before h11 normalizes them.

    It parses so many events in a turn, and then asks for more data as if it had none: see `is_interrupted`.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._events_left = EVENTS_PER_TURN

    @property
    def is_interrupted(self) -> bool:
        """Whether there may be more to parse in another turn."""
        return self._events_left == 0

    def begin_turn(self) -> None:
        """Allow the next events."""
        self._events_left = EVENTS_PER_TURN

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event, or raise `RemoteProtocolError` for an ambiguous or too large head."""
        if self.is_interrupted:
            return h11.NEED_DATA
        self._check_head()
        event = super().next_event()
        if event is not h11.NEED_DATA and event is not h11.PAUSED:
            self._events_left -= 1
            if isinstance(self._reader, ChunkedReader):  # h11 offers no way to look at chunks before they are parsed
                self._reader = StrictChunkedReader()
        return event

    def _check_head(self) -> None:
        if self.their_state is h11.IDLE:
            received = self.trailing_data[0]
            end = _END_OF_HEAD.search(received)
            if end is not None:
                if end.end() > MAX_HEAD_BYTES:  # h11 bounds only what it has to wait for
                    raise h11.RemoteProtocolError(f"a head of more than {MAX_HEAD_BYTES} bytes")
                if received.count(b"\n", 0, end.end()) > MAX_HEADER_LINES + 2:  # the request line and the empty one
                    raise h11.RemoteProtocolError(f"more than {MAX_HEADER_LINES} header lines")
                ensure_unambiguous(received[: end.end()])


class StrictChunkedReader:
    """Reads a chunked body for h11, without trailers, and not in crumbs: each chunk costs h11 as much as a header."""

    def __init__(self) -> None:
        self._chunks = 0
        self._announced = 0  # bytes
        self._left = 0  # of the present chunk
        self._is_line_end_due = False
        self._is_last = False

    def __call__(self, buffer: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        """Return the next event, or None until there is more data."""
        if self._is_line_end_due and not self._read_line_end(buffer):
            return None
        if not self._left and not self._is_last:
            self._read_header(buffer)
        if self._is_last:
            return h11.EndOfMessage() if self._read_line_end(buffer) else None
        data = buffer.maybe_extract_at_most(self._left)
        if data is None:
            return None
        self._left -= len(data)
        self._is_line_end_due = self._left == 0
        return h11.Data(data=bytes(data))

    def _read_line_end(self, buffer: ReceiveBuffer) -> bool:
        if len(buffer) < 2:
            return False
        if buffer.maybe_extract_at_most(2) != bytearray(b"\r\n"):
            raise h11.RemoteProtocolError("a chunk of another length, or a trailer")
        self._is_line_end_due = False
        return True

    def _read_header(self, buffer: ReceiveBuffer) -> None:
        line = buffer.maybe_extract_next_line()
        if line is None:
            return
        found = _CHUNK_HEADER.fullmatch(line)
        if found is None:
            raise h11.RemoteProtocolError("a chunk without a proper length")
        self._left = int(found[1], 16)
        self._is_last = self._left == 0
        self._chunks += 1
        self._announced += self._left
        if self._announced < MIN_CHUNK_BYTES * (self._chunks - FREE_CHUNKS):
            raise h11.RemoteProtocolError(f"too many chunks of less than {MIN_CHUNK_BYTES} bytes")

    def read_eof(self) -> None:
        """Raise: the client has closed the connection before its body was complete."""
        raise h11.RemoteProtocolError("the connection was closed within a chunked body")


def ensure_unambiguous(head: bytes) -> None:
    """Raise `RemoteProtocolError` when the head of a request leaves open where the request ends."""
    if _BARE_LINE_FEED.search(head):
        raise h11.RemoteProtocolError("a line that does not end with CR LF")
    if _FOLDED_LINE.search(head):
        raise h11.RemoteProtocolError("a folded header line")
    lengths = _CONTENT_LENGTH.findall(head)
    if len(lengths) > 1 or b"," in b"".join(lengths):
        raise h11.RemoteProtocolError("more than one Content-Length")
    if _TRANSFER_ENCODING.search(head) and (lengths or _HTTP_1_0.match(head)):
        raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
