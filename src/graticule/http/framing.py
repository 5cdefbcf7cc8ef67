"""Refuses heads that two servers could read differently (RFC 9112) or that are too large, where h11 forgives them."""

import re
from typing import Final

import h11

MAX_HEAD_BYTES: Final = 64 * 1024

_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_BARE_LINE_FEED: Final = re.compile(rb"(?<!\r)\n")
_FOLDED_LINE: Final = re.compile(rb"\n[ \t]")
_CONTENT_LENGTH: Final = re.compile(rb"\ncontent-length:([^\r\n]*)", re.IGNORECASE)
_TRANSFER_ENCODING: Final = re.compile(rb"\ntransfer-encoding:", re.IGNORECASE)
_HTTP_1_0: Final = re.compile(rb"[^\r\n]* HTTP/1\.0\r")


class StrictConnection(h11.Connection):
    """A server's connection that looks at the bytes of each head before h11 normalizes them."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event, or raise `RemoteProtocolError` for an ambiguous or too large head."""
        if self.their_state is h11.IDLE:
            received = self.trailing_data[0]
            end = _END_OF_HEAD.search(received)
            if end is not None:
                if end.end() > MAX_HEAD_BYTES:  # h11 bounds only what it has to wait for
                    raise h11.RemoteProtocolError(f"a head of more than {MAX_HEAD_BYTES} bytes")
                ensure_unambiguous(received[: end.end()])
        return super().next_event()


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
