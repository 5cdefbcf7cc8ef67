"""Answers as whole values: collected from an application, kept in memory, and told apart by their tags."""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Scope, Send

MOST_COLLECTED: Final = 2 * 1024 * 1024  # of a larger answer, no more than this is held at a time
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of an application."""

    status: int
    headers: Headers
    body: bytes

    async def send(self, send: Send, more: Headers, *, without_body: bool = False) -> None:
        """Send it with these headers besides its own, which they take the place of."""
        taken = {name for name, _ in more}
        own = [header for header in self.headers if header[0] not in taken]
        await send({"type": "http.response.start", "status": self.status, "headers": [*own, *more]})
        await send({"type": "http.response.body", "body": b"" if without_body else self.body})


class Collector:
    """Takes the messages of an application: an answer that is not too large is kept, a larger one passed on."""

    def __init__(self, send: Send, more: Headers, *, without_body: bool = False) -> None:
        self._send = send
        self._more = more
        self._without_body = without_body
        self._start: Message = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._is_whole = False
        self.is_passing = False  # the answer has begun

    @property
    def answer(self) -> Answer | None:
        """The answer, once it is whole; None when it was passed on, or never came."""
        if not self._is_whole or self.is_passing:
            return None
        return Answer(self._start["status"], list(self._start["headers"]), b"".join(self._parts))

    async def __call__(self, message: Message) -> None:
        """Take a message as `send` would."""
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            await self._take(message.get("body", b""), more=message.get("more_body", False))

    async def _take(self, part: bytes, *, more: bool) -> None:
        if not self.is_passing:
            self._parts.append(part)
            self._size += len(part)
            self._is_whole = not more
            if self._size <= MOST_COLLECTED or self._is_whole:
                return
            part = await self._begin_passing()
        await self._send({"type": "http.response.body", "body": self._shown(part), "more_body": more})

    async def _begin_passing(self) -> bytes:
        self.is_passing = True
        more = self._more if self._start["status"] < 300 else []
        await self._send({**self._start, "headers": [*self._start["headers"], *more]})
        collected, self._parts = b"".join(self._parts), []
        return collected

    def _shown(self, part: bytes) -> bytes:
        return b"" if self._without_body else part


class AnswerCache:
    """Answers by their tags, as many as fit into so many bytes; the one that was used longest ago goes first.

    Each is about a subject, and those about one subject can be forgotten together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._subjects: dict[str, Hashable] = {}
        self._tags: dict[Hashable, set[str]] = {}  # by subject
        self.size = 0

    def get(self, tag: str) -> Answer | None:
        """Give an answer that is there."""
        found = self._answers.get(tag)
        if found is not None:
            self._answers.move_to_end(tag)
        return found

    def put(self, tag: str, answer: Answer, subject: Hashable) -> None:
        """Keep an answer, unless it would take more than its share."""
        if len(answer.body) > self._most_bytes // 16 or tag in self._answers:
            return
        self._answers[tag] = answer
        self._subjects[tag] = subject
        self._tags.setdefault(subject, set()).add(tag)
        self.size += _cost(answer)
        while self.size > self._most_bytes:
            self._remove(next(iter(self._answers)))

    def forget(self, subject: Hashable) -> None:
        """Remove all answers about a subject."""
        for tag in list(self._tags.get(subject, ())):
            self._remove(tag)

    def _remove(self, tag: str) -> None:
        self.size -= _cost(self._answers.pop(tag))
        subject = self._subjects.pop(tag)
        self._tags[subject].remove(tag)
        if not self._tags[subject]:
            del self._tags[subject]


def _cost(answer: Answer) -> int:
    return len(answer.body) + 1024  # its headers, its tag, and what Python keeps of it


def tag_of(*parts: object) -> str:
    """Give the tag of all that an answer is made from. It is weak: compressed or not, the answer is the same."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(repr(part).encode(errors="surrogatepass"))
        digest.update(b"\x00")
    return f'W/"{digest.hexdigest()}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Tell whether the caller has the answer with this tag already."""
    if if_none_match is None:
        return False
    wanted = tag.removeprefix("W/")  # `*` is no tag: whether there is any answer is not known before it is made
    return any(each.strip().removeprefix("W/") == wanted for each in if_none_match.split(","))


async def send_not_modified(send: Send, headers: Headers) -> None:
    """Answer that what the caller has is what it would be given."""
    await send({"type": "http.response.start", "status": 304, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def headers_of_all(cache_control: str) -> Headers:
    """Give the headers that all answers have: how they may be kept, and by what they are told apart."""
    return [(b"cache-control", cache_control.encode()), (b"vary", b"Accept, Accept-Encoding")]


def header_of(scope: Scope, name: bytes) -> str | None:
    """Give a header of a request."""
    return next((value.decode("latin-1") for found, value in scope["headers"] if found == name), None)
