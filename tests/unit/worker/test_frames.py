"""Frames between a worker and its child processes."""

import asyncio
import socket

import pytest

from graticule.worker.frames import BrokenFrame, encoded, read_frame, receive_frame


async def read(data: bytes) -> object:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_frame(reader)


async def test_a_frame_comes_back() -> None:
    header = {"kind": "run", "a": [1, "ä"]}
    assert await read(encoded(header, b"\x00\xff")) == (header, b"\x00\xff")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(encoded(header, b"body"))
        assert receive_frame(theirs) == (header, b"body")
        ours.close()
        with pytest.raises(EOFError):
            receive_frame(theirs)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x02\0\0\0\0{}",
        b"\0\0\0\x02\0\0\0\0[]",
        b"\0\0\0\x02\0\0\0\0xx",
        b"\0\0\0\0\xff\xff\xff\xff",
    ],
)
async def test_what_is_not_a_frame_is_refused(data: bytes) -> None:
    with pytest.raises((BrokenFrame, asyncio.IncompleteReadError)):
        await read(data)


async def test_an_end_in_the_middle_is_noticed() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        await read(encoded({"kind": "x"}, b"body")[:-1])
