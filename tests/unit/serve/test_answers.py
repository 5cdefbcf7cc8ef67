"""Answers as values: collected, kept within bounds, and not sent twice to who has them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from graticule.serve.answers import (
    MOST_COLLECTED,
    Answer,
    AnswerCache,
    Collector,
    is_known,
    tag_of,
)
from graticule.serve.revalidation import Revalidated

START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
MORE = [(b"etag", b'"t"')]


class Sent:
    """What was sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages)

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])


def scope(method: str = "GET", **headers: str) -> Scope:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": "/", "headers": sent}


async def test_a_small_answer_is_given_as_a_whole_and_nothing_is_sent() -> None:
    sent = Sent()
    collector = Collector(sent, MORE)
    await collector(START)
    await collector({"type": "http.response.body", "body": b"ab", "more_body": True})
    await collector({"type": "http.response.body", "body": b"cd"})
    assert collector.answer == Answer(200, [(b"content-type", b"text/plain")], b"abcd")
    assert sent.messages == []


async def test_a_large_answer_is_passed_on_as_it_comes() -> None:
    sent = Sent()
    collector = Collector(sent, MORE)
    await collector(START)
    for part, more in ((b"a" * MOST_COLLECTED, True), (b"b", True), (b"c", False)):
        await collector({"type": "http.response.body", "body": part, "more_body": more})
    assert collector.answer is None
    assert sent.body == b"a" * MOST_COLLECTED + b"bc"
    assert sent.headers[b"etag"] == b'"t"'
    assert [each.get("more_body") for each in sent.messages[1:]] == [True, False]


async def test_what_never_ends_is_no_answer() -> None:
    collector = Collector(Sent(), MORE)
    assert collector.answer is None
    await collector(START)
    await collector({"type": "http.response.body", "body": b"half", "more_body": True})
    assert collector.answer is None


async def test_headers_that_are_added_take_the_place_of_the_own() -> None:
    sent = Sent()
    await Answer(200, [(b"vary", b"Origin"), (b"a", b"1")], b"x").send(sent, [(b"vary", b"Accept")])
    assert sent.headers == {b"a": b"1", b"vary": b"Accept"}


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40_000)), max_size=60))
def test_a_cache_never_holds_more_than_it_may(puts: list[tuple[int, int]]) -> None:
    cache = AnswerCache(500_000)
    for name, size in puts:
        cache.put(str(name), Answer(200, [], b"x" * size), name % 3)
        assert cache.size <= 500_000
        kept = cache.get(str(name))
        assert kept is None or len(kept.body) <= 500_000 // 16
    assert cache.size == sum(len(answer.body) + 1024 for answer in cache._answers.values())
    for subject in range(3):
        cache.forget(subject)
    assert (cache.size, cache._answers, cache._subjects, cache._tags) == (0, {}, {}, {})


def test_answers_about_one_subject_are_forgotten_together() -> None:
    cache = AnswerCache(500_000)
    for tag, subject in (("a", 1), ("b", 1), ("c", 2)):
        cache.put(tag, Answer(200, [], b"x"), subject)
    cache.forget(1)
    cache.forget(3)
    assert [cache.get(tag) is not None for tag in "abc"] == [False, False, True]
    cache.put("a", Answer(200, [], b"y"), 1)
    assert cache.get("a") == Answer(200, [], b"y")


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = AnswerCache(16 * 2048)
    for name in range(14):
        cache.put(str(name), Answer(200, [], b"x" * 1024), "subject")
    cache.get("0")
    for name in range(14, 20):
        cache.put(str(name), Answer(200, [], b"x" * 1024), "subject")
    assert cache.get("0") is not None
    assert cache.get("1") is None


def test_a_cache_of_no_size_keeps_nothing() -> None:
    cache = AnswerCache(0)
    cache.put("a", Answer(200, [], b""), "subject")
    assert cache.get("a") is None


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (None, False),
        ("", False),
        ('W/"a"', True),
        ('"a"', True),
        ('"b", W/"a"', True),
        ('"b"', False),
        ("a", False),
        ("*", False),
    ],
)
def test_a_tag_is_known_when_it_is_among_those_that_are_shown(header: str | None, known: bool) -> None:
    assert is_known('W/"a"', header) is known


def test_tags_tell_their_parts_apart() -> None:
    assert tag_of("ab", "c") != tag_of("a", "bc")
    assert tag_of("1") != tag_of(1)
    assert tag_of("a\udcff") == tag_of("a\udcff")


def app(status: int = 200, body: bytes = b"content") -> Any:
    async def answer(scope: Scope, _: Receive, send: Send) -> None:
        assert scope["method"] in {"GET", "POST"}
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return answer


async def receive() -> Message:
    return {"type": "http.request"}


async def ask(application: Any, **request: str) -> Sent:
    sent = Sent()
    await Revalidated(application, "no-cache")(scope(**request), receive, sent)
    return sent


async def test_who_has_the_content_is_not_sent_it_again() -> None:
    first = await ask(app())
    tag = first.headers[b"etag"].decode()
    again = await ask(app(), if_none_match=tag)
    assert (again.messages[0]["status"], again.body) == (304, b"")
    assert again.headers[b"etag"].decode() == tag
    changed = await ask(app(body=b"other"), if_none_match=tag)
    assert (changed.messages[0]["status"], changed.body) == (200, b"other")


async def test_a_head_has_the_headers_and_no_body() -> None:
    head = await ask(app(), method="HEAD")
    assert (head.messages[0]["status"], head.body) == (200, b"")
    assert b"etag" in head.headers


async def test_an_error_has_no_tag_and_a_post_is_left_alone() -> None:
    assert b"etag" not in (await ask(app(404))).headers
    assert b"etag" not in (await ask(app(), method="POST")).headers
