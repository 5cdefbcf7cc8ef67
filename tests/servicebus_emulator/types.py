"""The types of AMQP 1.0 and their encoding.

Python's own types stand for the AMQP types that they resemble most: `None` null, `bool` boolean, `int` long, `float`
double, `str` string, `bytes` binary, `UUID` uuid, `list` list, `dict` map. The others have types of their own here, so
that whatever was decoded can be encoded again as it was.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

_MOST_NESTED: Final = 32
_MOST_ITEMS: Final = 65_536


class Malformed(ValueError):
    """These bytes are no AMQP."""


class Symbol(str):
    """A name from a known set."""

    __slots__ = ()


class UByte(int):
    """An unsigned number of one byte."""


class UShort(int):
    """An unsigned number of two bytes."""


class UInt(int):
    """An unsigned number of four bytes."""


class ULong(int):
    """An unsigned number of eight bytes."""


class Byte(int):
    """A number of one byte."""


class Short(int):
    """A number of two bytes."""


class Int(int):
    """A number of four bytes."""


class Timestamp(int):
    """Milliseconds since 1970."""


class Float(float):
    """A number of single precision."""


@dataclass(frozen=True)
class Opaque:
    """A value of fixed width that nobody here looks into: a character or a decimal number."""

    constructor: int
    content: bytes


@dataclass(frozen=True)
class Described:
    """A value whose descriptor tells what it means."""

    descriptor: Any
    value: Any


@dataclass(frozen=True)
class Array:
    """Values that are all encoded alike; the constructor tells how."""

    constructor: int
    items: list[Any]


_NULL, _TRUE, _FALSE = b"\x40", b"\x41", b"\x42"
_UUID, _BINARY, _STRING, _SYMBOL = 0x98, 0xB0, 0xB1, 0xB3
_LIST, _MAP, _ARRAY = 0xD0, 0xD1, 0xF0
_NARROW: Final = 0x10  # the bit that tells a wide variable encoding (four bytes of length) from a narrow one (one byte)

TIMESTAMPS, LONGS, SYMBOLS = 0x83, 0x81, _SYMBOL  # constructors of arrays

_FIXED: Final[dict[type, tuple[int, struct.Struct]]] = {
    UByte: (0x50, struct.Struct(">B")),
    Byte: (0x51, struct.Struct(">b")),
    UShort: (0x60, struct.Struct(">H")),
    Short: (0x61, struct.Struct(">h")),
    UInt: (0x70, struct.Struct(">I")),
    Int: (0x71, struct.Struct(">i")),
    Float: (0x72, struct.Struct(">f")),
    ULong: (0x80, struct.Struct(">Q")),
    int: (0x81, struct.Struct(">q")),
    float: (0x82, struct.Struct(">d")),
    Timestamp: (0x83, struct.Struct(">q")),
}
_SMALL: Final[dict[int, tuple[type, struct.Struct]]] = {
    0x52: (UInt, struct.Struct(">B")),
    0x53: (ULong, struct.Struct(">B")),
    0x54: (Int, struct.Struct(">b")),
    0x55: (int, struct.Struct(">b")),
}
_OF_CONSTRUCTOR: Final = {constructor: (kind, form) for kind, (constructor, form) in _FIXED.items()} | _SMALL
_CONSTANT: Final[dict[int, Any]] = {0x40: None, 0x41: True, 0x42: False, 0x43: UInt(0), 0x44: ULong(0)}
_OPAQUE_WIDTHS: Final = {0x73: 4, 0x74: 4, 0x84: 8, 0x94: 16}
_SIZE: Final = struct.Struct(">I")
_SIZE_AND_COUNT: Final = struct.Struct(">II")


def encode(value: Any) -> bytes:
    """Give a value with its constructor."""
    return _ENCODERS[type(value)](value)


def _encode_fixed(kind: type) -> Callable[[Any], bytes]:
    constructor, form = _FIXED[kind]
    pack = struct.Struct(">B" + form.format[1:]).pack
    return lambda value: pack(constructor, value)


_encode_wide_ulong = _encode_fixed(ULong)


def _encode_ulong(value: int) -> bytes:
    # Clients look for descriptors in the small form only.
    return bytes((0x53, value)) if value < 256 else _encode_wide_ulong(value)


def _encode_variable(constructor: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes((constructor ^ _NARROW, len(content))) + content
    return bytes((constructor,)) + _SIZE.pack(len(content)) + content


def _encode_compound(constructor: int, count: int, content: bytes) -> bytes:
    if len(content) < 255 and count < 256:
        return bytes((constructor ^ _NARROW, len(content) + 1, count)) + content
    return bytes((constructor,)) + _SIZE_AND_COUNT.pack(len(content) + 4, count) + content


def _encode_list(items: list[Any]) -> bytes:
    encoders = _ENCODERS
    return _encode_compound(_LIST, len(items), b"".join([encoders[type(item)](item) for item in items]))


def _encode_map(items: dict[Any, Any]) -> bytes:
    content = b"".join([encode(part) for pair in items.items() for part in pair])
    return _encode_compound(_MAP, 2 * len(items), content)


def _encode_array(array: Array) -> bytes:
    content = b"".join([_bare(array.constructor, item) for item in array.items])
    return (
        bytes((_ARRAY,))
        + _SIZE_AND_COUNT.pack(len(content) + 5, len(array.items))
        + bytes((array.constructor,))
        + content
    )


def _bare(constructor: int, item: Any) -> bytes:
    """Give an item of an array, which has no constructor of its own."""
    if constructor in _OF_CONSTRUCTOR:
        return _OF_CONSTRUCTOR[constructor][1].pack(item)
    if constructor == _UUID:
        return bytes(item.bytes)
    if constructor in _OPAQUE_WIDTHS:
        return bytes(item.content)
    if constructor | _NARROW in (_BINARY, _STRING, _SYMBOL):
        content = item if isinstance(item, bytes) else item.encode()
        return (_SIZE.pack(len(content)) if constructor & _NARROW else bytes((len(content),))) + content
    raise Malformed(f"Arrays of {constructor:#04x} are not spoken here.")


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: _NULL,
    bool: lambda value: _TRUE if value else _FALSE,
    **{kind: _encode_fixed(kind) for kind in _FIXED},
    ULong: _encode_ulong,
    UUID: lambda value: b"\x98" + value.bytes,
    bytes: lambda value: _encode_variable(_BINARY, value),
    str: lambda value: _encode_variable(_STRING, value.encode()),
    Symbol: lambda value: _encode_variable(_SYMBOL, value.encode()),
    Opaque: lambda value: bytes((value.constructor,)) + value.content,
    Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
    Array: _encode_array,
    list: _encode_list,
    dict: _encode_map,
}


def decode(data: bytes, start: int = 0) -> tuple[Any, int]:
    """Give the value that begins there, and where it ends."""
    try:
        return _decode(data, start, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed("A value is cut short or is no text.") from error


def end_of(data: bytes, start: int) -> int:
    """Give where the value ends that begins there; its width stands in the upper half of its constructor."""
    try:
        constructor = data[start]
        if constructor == 0:
            return end_of(data, end_of(data, start + 1))
        family = constructor >> 4
        if family < 0xA:
            return start + 1 + (0 if family == 4 else 1 << (family - 5))
        if constructor & _NARROW:
            return start + 5 + int(_SIZE.unpack_from(data, start + 1)[0])
        return start + 2 + data[start + 1]
    except (IndexError, struct.error) as error:
        raise Malformed("A value is cut short.") from error


def _decode(data: bytes, start: int, depth: int) -> tuple[Any, int]:
    constructor = data[start]
    if constructor == 0:
        if depth > _MOST_NESTED:
            raise Malformed("Values are nested too deeply.")
        descriptor, start = _decode(data, start + 1, depth + 1)
        value, start = _decode(data, start, depth + 1)
        return Described(descriptor, value), start
    return _decode_bare(constructor, data, start + 1, depth)


def _decode_bare(constructor: int, data: bytes, start: int, depth: int) -> tuple[Any, int]:
    if constructor in _OF_CONSTRUCTOR:
        kind, form = _OF_CONSTRUCTOR[constructor]
        return kind(form.unpack_from(data, start)[0]), start + form.size
    if constructor in _CONSTANT:
        return _CONSTANT[constructor], start
    if constructor >= 0xC0:
        return _decode_compound(constructor, data, start, depth + 1)
    if constructor >= 0xA0:
        return _decode_variable(constructor, data, start)
    return _decode_rare(constructor, data, start)


def _decode_rare(constructor: int, data: bytes, start: int) -> tuple[Any, int]:
    if constructor == 0x45:
        return [], start
    if constructor == 0x56:
        return data[start] == 1, start + 1
    width = 16 if constructor == _UUID else _OPAQUE_WIDTHS.get(constructor, 0)
    content = bytes(data[start : start + width])
    if not width or len(content) < width:
        raise Malformed(f"There is no value {constructor:#04x} here.")
    return UUID(bytes=content) if constructor == _UUID else Opaque(constructor, content), start + width


def _decode_variable(constructor: int, data: bytes, start: int) -> tuple[Any, int]:
    if constructor & _NARROW:
        size, start = _SIZE.unpack_from(data, start)[0], start + 4
    else:
        size, start = data[start], start + 1
    end = start + size
    if end > len(data):
        raise Malformed("A value is cut short.")
    content = bytes(data[start:end])
    kind = constructor | _NARROW
    if kind == _BINARY:
        return content, end
    if kind == _STRING:
        return content.decode(), end
    if kind == _SYMBOL:
        return Symbol(content.decode()), end
    raise Malformed(f"There is no type {constructor:#04x}.")


def _decode_compound(constructor: int, data: bytes, start: int, depth: int) -> tuple[Any, int]:
    if constructor & _NARROW:
        size, count = _SIZE_AND_COUNT.unpack_from(data, start)
        end, start = start + 4 + size, start + 8
    else:
        size, count = data[start], data[start + 1]
        end, start = start + 1 + size, start + 2
    if depth > _MOST_NESTED or count > _MOST_ITEMS or end > len(data):
        raise Malformed("A list, map or array is too deep, too long or cut short.")
    kind = constructor | _NARROW
    if kind == _ARRAY:
        return _decode_array(data, start, count, depth), end
    items = []
    for _ in range(count):
        item, start = _decode(data, start, depth)
        items.append(item)
    if kind == _LIST:
        return items, end
    if kind == _MAP and count % 2 == 0:
        return _as_map(items), end
    raise Malformed(f"There is no type {constructor:#04x}, or a key without a value.")


def _as_map(items: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError as error:
        raise Malformed("A list or map is no key.") from error


def _decode_array(data: bytes, start: int, count: int, depth: int) -> Array:
    constructor, start = data[start], start + 1
    if constructor == 0:
        raise Malformed("Arrays of described values are not spoken here.")
    items = []
    for _ in range(count):
        item, start = _decode_bare(constructor, data, start, depth)
        items.append(item)
    return Array(constructor, items)
