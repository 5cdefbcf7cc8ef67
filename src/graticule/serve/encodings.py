"""How answers are compressed: as their callers accept it, once, and in a thread when they are large."""

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import cramjam
from starlette.types import Scope
from starlette_cramjam.compression import Compression
from starlette_cramjam.middleware import get_compression_backend

from graticule.serve.answers import Answer, header_of

PREFERRED: Final = [Compression.br, Compression.gzip]
COMPRESSORS: Final[Mapping[str, Callable[..., Any]]] = {
    "br": cramjam.brotli.compress,
    "gzip": cramjam.gzip.compress,
}
LEVEL: Final = 4  # of both; higher ones take far more time than they save
SMALLEST: Final = 500  # bytes: below, it is not worth the while
SMALL: Final = 32 * 1024  # bytes that are compressed in less time than a thread takes to begin
COMPRESSIBLE: Final = (
    "text/",
    "application/json",
    "application/geo+json",
    "application/vnd.",
    "application/schema+json",
)


def offered_encoding(scope: Scope) -> str:
    """Name the encoding in which a request is answered, if that helps; "" when it accepts none of ours."""
    return _chosen(header_of(scope, b"accept-encoding") or "")


@lru_cache(maxsize=256)
def _chosen(accepted: str) -> str:
    chosen = get_compression_backend(accepted, PREFERRED)
    return "" if chosen is None else str(chosen.name)


async def compressed(answer: Answer, encoding: str) -> Answer:
    """Give an answer in an encoding; what would not become smaller, such as an image, stays as it is."""
    headers = dict(answer.headers)
    is_text = headers.get(b"content-type", b"").decode("latin-1").startswith(COMPRESSIBLE)
    if not encoding or not is_text or len(answer.body) < SMALLEST or b"content-encoding" in headers:
        return answer
    if len(answer.body) <= SMALL:
        body = _compressed(answer.body, encoding)
    else:
        body = await asyncio.to_thread(_compressed, answer.body, encoding)
    told = {b"content-encoding": encoding.encode(), b"content-length": str(len(body)).encode()}
    kept = [header for header in answer.headers if header[0] not in told]
    return Answer(answer.status, [*kept, *told.items()], body)


def _compressed(body: bytes, encoding: str) -> bytes:
    return bytes(COMPRESSORS[encoding](body, level=LEVEL))
