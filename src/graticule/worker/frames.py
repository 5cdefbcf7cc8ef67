"""How a worker and its child processes talk: frames of a small JSON header and a body of bytes, over a socket."""

import asyncio
import socket
import struct
from typing import Any, Final

from graticule.core import json_codec
from graticule.worker.outcome import MAX_OUTPUT_BYTES

MAX_HEADER_BYTES: Final = 16 * 1024 * 1024
_LENGTHS: Final = struct.Struct("!II")


class BrokenFrame(Exception):
    """What came is not a frame: someone else wrote into the socket."""


def encoded(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Write a frame."""
    return _head(header, len(body)) + body


def send_frame(connection: socket.socket, header: dict[str, Any], body: bytes | memoryview = b"") -> None:
    """Send a frame and wait until it is on its way; the body is not copied."""
    connection.sendall(_head(header, len(body)))
    connection.sendall(body)


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """Read a frame; `IncompleteReadError` when the other side has ended."""
    head_length, body_length = _checked(await reader.readexactly(_LENGTHS.size))
    return _header(await reader.readexactly(head_length)), await reader.readexactly(body_length)


def receive_frame(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Read a frame and wait for it; `EOFError` when the other side has ended."""
    head_length, body_length = _checked(_receive(connection, _LENGTHS.size))
    return _header(_receive(connection, head_length)), _receive(connection, body_length)


def _head(header: dict[str, Any], body_length: int) -> bytes:
    head = json_codec.encode(header)
    return _LENGTHS.pack(len(head), body_length) + head


def _checked(lengths: bytes) -> tuple[int, int]:
    head_length, body_length = _LENGTHS.unpack(lengths)
    if head_length > MAX_HEADER_BYTES or body_length > MAX_OUTPUT_BYTES:
        raise BrokenFrame
    return head_length, body_length


def _header(data: bytes) -> dict[str, Any]:
    try:
        header = json_codec.decode(data)
    except ValueError:
        raise BrokenFrame from None
    if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
        raise BrokenFrame
    return header


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
