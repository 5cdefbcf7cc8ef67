"""What is encoded is decoded again, by the emulator and by Microsoft's client; anything else is refused."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from azure.servicebus._pyamqp._decode import decode_payload
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.servicebus_emulator.message import Message, messages_of
from tests.servicebus_emulator.types import (
    LONGS,
    SYMBOLS,
    TIMESTAMPS,
    Array,
    Byte,
    Described,
    Int,
    Malformed,
    Opaque,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    decode,
    encode,
    end_of,
)


def _whole(kind: type[int], bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    lowest = -(2 ** (bits - 1)) if signed else 0
    return st.integers(lowest, lowest + 2**bits - 1).map(kind)


LONG = st.integers(-(2**63), 2**63 - 1)
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    LONG,
    st.floats(allow_nan=False),
    st.text(max_size=300),
    st.binary(max_size=300),
    st.uuids(),
    st.text(max_size=20).map(Symbol),
    _whole(UByte, 8, signed=False),
    _whole(UShort, 16, signed=False),
    _whole(UInt, 32, signed=False),
    _whole(ULong, 64, signed=False),
    _whole(Byte, 8, signed=True),
    _whole(Short, 16, signed=True),
    _whole(Int, 32, signed=True),
    LONG.map(Timestamp),
    st.binary(min_size=16, max_size=16).map(lambda content: Opaque(0x94, content)),
    st.lists(LONG, max_size=5).map(lambda items: Array(LONGS, items)),
    st.lists(LONG.map(Timestamp), max_size=5).map(lambda items: Array(TIMESTAMPS, items)),
    st.lists(st.text(max_size=9).map(Symbol), max_size=5).map(lambda items: Array(SYMBOLS, items)),
    st.lists(st.uuids(), max_size=5).map(lambda items: Array(0x98, items)),
)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.text(max_size=9), inner, max_size=6),
        st.builds(Described, st.integers(0, 300).map(ULong), inner),
    ),
    max_leaves=12,
)


def _types(value: Any) -> Any:
    if isinstance(value, list):
        return [_types(item) for item in value]
    if isinstance(value, dict):
        return {key: _types(item) for key, item in value.items()}
    return type(value)


@settings(max_examples=examples(60))
@given(VALUES)
def test_a_value_is_decoded_as_it_was_encoded(value: Any) -> None:
    data = encode(value)
    assert decode(data) == (value, len(data))
    assert _types(decode(data)[0]) == _types(value)
    assert end_of(data, 0) == len(data)


@settings(max_examples=examples(60))
@given(VALUES, st.data())
def test_a_value_that_is_cut_short_is_refused(value: Any, data: st.DataObject) -> None:
    encoded = encode(value)
    with pytest.raises(Malformed):
        decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@settings(max_examples=examples(60))
@given(st.binary(max_size=64))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with suppress(Malformed):
        decode(data)


def test_depth_and_length_have_limits() -> None:
    with pytest.raises(Malformed, match="deep"):
        decode(b"\xc0\x02\x01" * 100 + b"\x40")
    with pytest.raises(Malformed, match="deep"):
        decode(b"\x00" * 100)
    with pytest.raises(Malformed, match="long"):
        decode(b"\xd0\x00\x00\x00\x04\xff\xff\xff\xff")


@settings(max_examples=30)
@given(st.dictionaries(st.text(min_size=1, max_size=9), st.one_of(LONG, st.text(max_size=9)), max_size=4), st.binary())
def test_a_message_is_told_as_the_client_reads_it(properties: dict[str, Any], body: bytes) -> None:
    parts = (
        Described(ULong(0x73), ["an id", None, None, "a subject"]),
        Described(ULong(0x74), properties),
        Described(ULong(0x75), body),
    )
    message = Message.parse(b"".join(encode(part) for part in parts))
    assert (message.id, message.body) == ("an id", body)
    dead = message.with_application_properties({"DeadLetterReason": "why"})
    read: Any = decode_payload(memoryview(dead.encode(3, {Symbol("x-opt-sequence-number"): 7})))
    assert read.header.delivery_count == 3
    assert read.properties.subject == b"a subject"
    assert b"".join(read.data) == body
    assert read.message_annotations == {b"x-opt-sequence-number": 7}
    told = {name.decode(): value for name, value in read.application_properties.items()}
    assert told == {name: _as_bytes(value) for name, value in {**properties, "DeadLetterReason": "why"}.items()}


def test_a_batch_holds_messages() -> None:
    inner = [encode(Described(ULong(0x73), [name])) + encode(Described(ULong(0x75), b"x")) for name in ("1", "2")]
    batch = b"".join(encode(Described(ULong(0x75), raw)) for raw in inner)
    assert [message.id for message in messages_of(batch, 0x80013700)] == ["1", "2"]


def test_a_message_without_an_id_gets_one() -> None:
    first, second = (Message.parse(encode(Described(ULong(0x75), b"x"))) for _ in range(2))
    assert UUID(first.id).hex == first.id
    assert first.id != second.id


def test_what_is_no_message_is_refused() -> None:
    for raw in (b"\x40", b"\x00\x53\x73\x40", encode(Described(ULong(0x70), {})), b"\x00\x53\x75\xb0\xff\xff\xff\xff"):
        with pytest.raises(Malformed):
            Message.parse(raw)


def _as_bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
