"""How answers are compressed: as their callers accept it, once, and in a thread when they are large."""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import cramjam
from starlette.types import Scope

from graticule.serve.answers import Answer, header_of

IDENTITY: Final = "identity"
COMPRESSORS: Final[Mapping[str, Callable[..., Any]]] = {
    "br": cramjam.brotli.compress,
    "gzip": cramjam.gzip.compress,
}
LEVEL: Final = 4  # of both; higher ones take far more time than they save
SMALLEST: Final = 500  # bytes: below, it is not worth the while
SMALL: Final = 32 * 1024  # bytes that are compressed in less time than a thread takes to begin
_WEIGHT: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")
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
    """Choose the encoding with the highest weight; of equal ones the smallest result, and identity last.

    `*` is answered with gzip: programs that send it, such as stac-api-validator, decode gzip, but seldom Brotli.
    """
    weights = parse_accept_encoding(accepted)
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    candidates = {"br": weights.get("br", 0.0), "gzip": gzip, "": weights.get(IDENTITY, 0.0)}
    best = max(candidates, key=lambda name: candidates[name])  # the first of those with equal weights
    return best if candidates[best] > 0 else ""


def parse_accept_encoding(header: str) -> dict[str, float]:
    """Return the weight of each encoding that the header names (RFC 9110, 12.5.3); a weight that is no number is 0."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name:
            weights[name] = _parse_weight(parameters)
    return weights


def _parse_weight(parameters: list[str]) -> float:
    text = next((value.strip() for key, _, value in (each.partition("=") for each in parameters) if key == "q"), "1")
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


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
