"""Server-sent events on the wire, and when an answer without end ends."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from graticule.http.sse import Batches, ServerSentEvent, event_stream_response


def test_an_event_has_its_id_type_and_data_in_the_form_of_the_standard() -> None:
    assert ServerSentEvent(id="7", event="job_created", data='{"a": 1}').encode() == (
        b'id: 7\nevent: job_created\ndata: {"a": 1}\n\n'
    )


@pytest.mark.parametrize(
    ("data", "wire"),
    [
        ("a\nb\r\nc\rd", "data: a\ndata: b\ndata: c\ndata: d\n\n"),
        ("", "data: \n\n"),
        ("one \u2028 line \x85 only \x0b", "data: one \u2028 line \x85 only \x0b\n\n"),
    ],
)
def test_data_is_cut_into_lines_where_a_client_would_and_nowhere_else(data: str, wire: str) -> None:
    assert ServerSentEvent(data=data).encode() == wire.encode()


class Source:
    """Gives batches when told to, and notes that it was closed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[list[str] | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def batches(self) -> Batches:
        try:
            while (given := await self.queue.get()) is not None:
                if isinstance(given, Exception):
                    raise given
                yield [ServerSentEvent(data=each) for each in given]
        finally:
            self.closed.set()


def chunks(source: Source, stopping: asyncio.Event, keep_alive_seconds: float = 60) -> AsyncGenerator[bytes, None]:
    response = event_stream_response(source.batches(), stopping, keep_alive_seconds=keep_alive_seconds)
    assert response.media_type == "text/event-stream"
    body = response.body_iterator
    assert isinstance(body, AsyncGenerator)
    return body


async def beginning(body: AsyncGenerator[bytes, None]) -> None:
    assert await anext(body) == b"retry: 1000\n\n"


async def rest(body: AsyncGenerator[bytes, None]) -> Sequence[bytes]:
    async with asyncio.timeout(10):
        return [chunk async for chunk in body]


async def test_a_batch_goes_out_at_once_and_in_one_piece() -> None:
    source = Source()
    body = chunks(source, asyncio.Event())
    await beginning(body)
    await source.queue.put([])
    await source.queue.put(["a", "b"])
    assert await anext(body) == b"data: a\n\ndata: b\n\n"
    await source.queue.put(None)
    assert await rest(body) == []
    assert source.closed.is_set()


async def test_silence_is_filled_with_comments_and_no_event_is_lost_to_them() -> None:
    source = Source()
    body = chunks(source, asyncio.Event(), keep_alive_seconds=0.01)
    await beginning(body)
    assert [await anext(body) for _ in range(3)] == [b": keep-alive\n\n"] * 3
    await source.queue.put(["a"])
    await source.queue.put(None)
    assert [chunk for chunk in await rest(body) if not chunk.startswith(b":")] == [b"data: a\n\n"]


async def test_the_answer_ends_when_the_server_begins_to_stop() -> None:
    source, stopping = Source(), asyncio.Event()
    body = chunks(source, stopping)
    await beginning(body)
    await source.queue.put(["a"])
    assert await anext(body)
    waiting = asyncio.create_task(rest(body))
    await asyncio.sleep(0)
    stopping.set()
    assert await waiting == []
    assert source.closed.is_set()


async def test_the_source_is_closed_when_the_client_goes() -> None:
    source = Source()
    body = chunks(source, asyncio.Event())
    await beginning(body)
    await source.queue.put(["a"])
    assert await anext(body)
    waiting = asyncio.ensure_future(anext(body))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert source.closed.is_set()


async def test_the_source_is_closed_when_the_client_goes_before_the_first_event() -> None:
    source = Source()
    body = chunks(source, asyncio.Event())
    await beginning(body)
    await body.aclose()
    await source.queue.put(["a"])
    assert source.queue.qsize() == 1


async def test_an_error_of_the_source_cuts_the_answer() -> None:
    source = Source()
    body = chunks(source, asyncio.Event())
    await beginning(body)
    await source.queue.put(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await anext(body)
    assert source.closed.is_set()
