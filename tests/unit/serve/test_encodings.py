"""Answers are compressed as their callers accept it, unless they are small, or compressed already."""

import gzip

import cramjam
import pytest

from graticule.serve.answers import Answer
from graticule.serve.encodings import SMALL, SMALLEST, compressed, offered_encoding

TEXT = b'{"type": "FeatureCollection"}' * 100


def answer(body: bytes = TEXT, kind: bytes = b"application/geo+json", *more: tuple[bytes, bytes]) -> Answer:
    return Answer(200, [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *more], body)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", ""),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("GZip ; Q=0.5", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("gzip;q=1.0, br;q=0.9", "gzip"),
        ("gzip;q=0.5, br;q=0.9", "br"),
        ("identity", ""),
        ("identity;q=1, gzip;q=0.5", ""),
        ("identity;q=0.5, gzip;q=0.1, *;q=0", ""),
        ("identity;q=0.1, gzip;q=0.5", "gzip"),
        ("gzip, identity", "gzip"),
        ("deflate, zstd", ""),
        # Every client knows gzip; Brotli only those that name it.
        ("*", "gzip"),
        ("*;q=0.5", "gzip"),
        ("deflate, *", "gzip"),
        ("br, *", "br"),
        ("br;q=0, *", "gzip"),
        ("gzip;q=0, *", ""),
        ("*;q=0", ""),
        ("*;q=0, gzip", "gzip"),
        # Nonsense is no wish.
        ("gzip;q=abc", ""),
        ("gzip;q=1e9", ""),
        ("br;q=nan, gzip", "gzip"),
        (",;,=;q=1,", ""),
    ],
)
def test_the_encoding_is_one_that_is_accepted(accepted: str, encoding: str) -> None:
    assert offered_encoding({"headers": [(b"accept-encoding", accepted.encode())]}) == encoding
    assert offered_encoding({"headers": []}) == ""


@pytest.mark.parametrize("size", [SMALLEST, SMALL, SMALL + 1, 10 * SMALL])
async def test_what_is_decoded_is_what_was_answered(size: int) -> None:
    body = (TEXT * (size // len(TEXT) + 1))[:size]
    for encoding, decode in (("gzip", gzip.decompress), ("br", lambda got: bytes(cramjam.brotli.decompress(got)))):
        shown = await compressed(answer(body), encoding)
        headers = dict(shown.headers)
        assert decode(shown.body) == body
        assert len(shown.body) < len(body)
        assert headers[b"content-encoding"] == encoding.encode()
        assert headers[b"content-length"] == str(len(shown.body)).encode()


@pytest.mark.parametrize(
    "given",
    [
        answer(b"x" * (SMALLEST - 1)),
        answer(TEXT, b"image/png"),
        answer(TEXT, b"application/json", (b"content-encoding", b"gzip")),
    ],
)
async def test_what_would_not_become_smaller_stays_as_it_is(given: Answer) -> None:
    assert await compressed(given, "br") is given
    assert await compressed(answer(), "") == answer()
