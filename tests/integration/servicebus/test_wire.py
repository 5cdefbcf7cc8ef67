"""A client that does not keep to AMQP loses its connection, and nobody else notices."""

import asyncio

import pytest
from tests.servicebus_emulator import Emulator
from tests.servicebus_emulator.frames import AMQP_HEADER, Performative, frame
from tests.servicebus_emulator.types import UInt

OPEN = frame(0, Performative.OPEN, ["client", "host", UInt(512)])
BEGIN = frame(0, Performative.BEGIN, [None, UInt(0), UInt(1), UInt(1)])


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        AMQP_HEADER + b"\xff\xff\xff\xff\x02\x00\x00\x00",
        AMQP_HEADER + b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\xff",
        AMQP_HEADER + OPEN + frame(3, Performative.FLOW, [None] * 4),
        AMQP_HEADER + OPEN + BEGIN + frame(0, Performative.ATTACH, ["link", UInt(0), True, None, None, "nowhere"]),
        AMQP_HEADER + OPEN + BEGIN + frame(0, Performative.DISPOSITION, [True, None, None, False, "done"]),
        AMQP_HEADER + OPEN + BEGIN + frame(0, Performative.TRANSFER, [[1], UInt(0)]),
    ],
)
async def test_what_is_no_amqp_ends_the_connection(said: bytes) -> None:
    async with Emulator() as emulator, asyncio.timeout(5):
        good_reader, good_writer = await asyncio.open_connection("127.0.0.1", emulator.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
        writer.write(said)
        assert b"amqp:decode-error" in await reader.read()
        good_writer.write(AMQP_HEADER)
        assert await good_reader.readexactly(8) == AMQP_HEADER
        for each in (writer, good_writer):
            each.close()
