"""The frames of AMQP 1.0: what they are called, and how they are cut out of a stream and put into it."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tests.servicebus_emulator.types import Array, Described, Malformed, Symbol, ULong, decode, encode

HEADER_SIZE: Final = 8
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
MAX_FRAME: Final = 65_536
SMALLEST_MAX_FRAME: Final = 512  # what every peer must take
EMPTY: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"

_PREFIX: Final = struct.Struct(">IBBH")
_MOST_FIELDS: Final = 14


class Performative(IntEnum):
    """What a frame does."""

    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_OUTCOME = 0x44


class Outcome(IntEnum):
    """What became of a delivery."""

    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


ERROR: Final = 0x1D
SOURCE: Final = 0x28
TARGET: Final = 0x29


@dataclass(frozen=True)
class Frame:
    """A frame that has arrived; fields that were left out are None."""

    channel: int
    performative: int
    fields: list[Any]
    payload: bytes


def described(code: int, value: Any) -> Described:
    """Give a value with one of the descriptors of AMQP."""
    return Described(ULong(code), value)


def error(condition: str, text: str) -> Described:
    """Give an error as AMQP tells it."""
    return described(ERROR, [Symbol(condition), text, None])


def frame(channel: int, performative: int, fields: list[Any], payload: bytes = b"", *, is_sasl: bool = False) -> bytes:
    """Give the bytes of a frame."""
    body = encode(described(performative, fields))
    return _PREFIX.pack(HEADER_SIZE + len(body) + len(payload), 2, int(is_sasl), channel) + body + payload


def padded(fields: list[Any], count: int) -> list[Any]:
    """Give fields with those that were left out at their end."""
    return fields + [None] * (count - len(fields))


def take_frame(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take a whole frame off a buffer: its channel and its body; a body that is empty only says that the peer lives."""
    if len(buffer) < HEADER_SIZE:
        return None
    size, offset, _, channel = _PREFIX.unpack_from(buffer)
    if not HEADER_SIZE <= offset * 4 <= size <= MAX_FRAME:
        raise Malformed("A frame is too large, or has no sound header.")
    if len(buffer) < size:
        return None
    body = bytes(buffer[offset * 4 : size])
    del buffer[:size]
    return channel, body


def parse_frame(channel: int, body: bytes) -> Frame:
    """Give the frame that a body is."""
    performative, end = decode(body)
    if not isinstance(performative, Described) or not isinstance(performative.value, list):
        raise Malformed("A frame begins with no performative.")
    return Frame(channel, int(performative.descriptor), padded(performative.value, _MOST_FIELDS), body[end:])


def symbols(*names: str) -> Array:
    """Give an array of symbols."""
    return Array(0xB3, list(names))
