"""Server-sent events, without the reading and the waiting: what has arrived, and where a lost stream goes on."""

import codecs
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import httpx

from graticule.client.call import Call
from graticule.client.problems import problem_of, read_answer, unreachable

T = TypeVar("T")

PATIENCE_SECONDS: Final = 30.0  # how long a server may be away
PAUSE_SECONDS: Final = 0.5
SILENCE_SECONDS: Final = 60.0  # a stream that is alive says so more often
END: Final = "end"


@dataclass(slots=True)
class Message:
    """One server-sent event."""

    event: str = "message"
    id: str | None = None
    data: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Learn from a line of it."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self.event = value
            case "id":
                self.id = value
            case "data":
                self.data.append(value)


class MessageReader:
    """Puts messages together from pieces of any length.

    Lines end as the standard says, and not as `str.splitlines` does: U+2028 may stand in a JSON string.
    """

    def __init__(self) -> None:
        text = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(text, translate=True)
        self._rest = ""
        self._message = Message()

    def take(self, piece: bytes) -> Iterator[Message]:
        """Give the messages that are whole with this piece."""
        *lines, self._rest = (self._rest + self._decoder.decode(piece)).split("\n")
        for line in lines:
            if line:
                self._message.take(line)
                continue
            whole, self._message = self._message, Message()
            if whole.data:
                yield whole


class Following(Generic[T]):
    """A stream that is followed to its end, over any number of connections."""

    def __init__(self, call: Call[T], address: str, after: int = 0) -> None:
        self._call = call
        self._address = address
        self._last = str(after)
        self._alone_since = time.monotonic()
        self._reader = MessageReader()
        self.ended = False

    @property
    def headers(self) -> dict[str, str]:
        """What the next connection asks with: it goes on after the last event that arrived."""
        return {**self._call.headers, "Last-Event-ID": self._last}

    def opened(self, response: httpx.Response) -> bool:
        """Tell whether events will come; a refusal that will not pass is raised. Its body has been read then."""
        self._reader = MessageReader()
        if response.is_success:
            return True
        problem = problem_of(response, self._address)
        if response.status_code < 500:
            raise problem
        self._lost(problem)
        return False

    def take(self, piece: bytes) -> Iterator[T]:
        """Give the events that are whole with this piece."""
        for message in self._reader.take(piece):
            self._alone_since = time.monotonic()
            if message.event == END:
                self.ended = True
                return
            self._last = message.id or self._last
            told = httpx.Response(200, content="\n".join(message.data).encode())
            yield read_answer(self._call, told, self._address)

    def broken(self, error: httpx.TransportError) -> None:
        """Bear the loss of a connection for a while."""
        self._lost(unreachable(self._address, error))

    def _lost(self, error: Exception) -> None:
        if time.monotonic() - self._alone_since > PATIENCE_SECONDS:
            raise error
