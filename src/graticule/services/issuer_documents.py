"""What an OpenID issuer publishes: small documents, from addresses whose answers can be trusted, and remembered."""

import asyncio
import json
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import httpx

from graticule.config import Settings
from graticule.core.errors import ConfigurationError
from graticule.logs import get_logger

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
LIFE_SECONDS: Final = 3600.0
AGAIN_SECONDS: Final = 30.0  # at most so often is something fetched that is remembered already
RETRY_SECONDS: Final = 5.0  # after an attempt that failed, when nothing is remembered yet
TIMEOUT_SECONDS: Final = 5.0
MOST_BYTES: Final = 256 * 1024

# All that can go wrong with an answer, and whatever is wrong with a document is a ValueError.
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError)

_WORD: Final = re.compile(r"[a-z_]{1,64}")

_log = get_logger(__name__)

T = TypeVar("T")


class WrongStatus(ValueError):
    """The answer was no success; the word is the `error` of OAuth that came with it, if one did."""

    def __init__(self, status: int, word: str | None = None) -> None:
        super().__init__(f"status {status}" if word is None else f"status {status}, {word}")
        self.status = status


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """The issuer of the settings; `plain_http` lets its documents come by a way on which they could be changed."""

    url: str
    plain_http: bool = False

    @classmethod
    def of(cls, settings: Settings) -> "TrustedIssuer":
        """Give the issuer of the settings; its address must be one whose answers can be trusted."""
        issuer = cls(settings.oidc_issuer or "", plain_http=settings.development)
        issuer.require_safe("GRATICULE_OIDC_ISSUER", issuer.url)
        return issuer

    def require_safe(self, setting: str, address: str) -> None:
        """Refuse an address of the settings from which anything could come."""
        if not self.is_safe(address):
            raise ConfigurationError(
                f"{setting} is not an https address.",
                hint="Keys that come by plain http can be exchanged on the way; that is for development only.",
            )

    def is_safe(self, address: str) -> bool:
        """Tell whether what comes from there is what was sent."""
        parts = urlsplit(address)
        if not parts.hostname:
            return False
        is_http = parts.scheme == "http" and (self.plain_http or _is_loopback(parts.hostname))
        return parts.scheme == "https" or is_http

    async def discovered(self, client: httpx.AsyncClient) -> Mapping[str, Any]:
        """Give what the issuer tells of itself."""
        document = await asked_json(client, "GET", self.url.rstrip("/") + DISCOVERY_PATH)
        if document.get("issuer") != self.url:
            raise ValueError("a document of another issuer")
        return document

    def address_in(self, document: Mapping[str, Any], name: str) -> str:
        """Give an address of the issuer's document."""
        address = document.get(name)
        if not isinstance(address, str) or not self.is_safe(address):
            raise ValueError(f"no https address as {name}")
        return address


class Remembered(Generic[T]):
    """What was fetched of an issuer. It outlives outages: it counts until something newer comes."""

    def __init__(
        self,
        name: str,
        issuer: TrustedIssuer,
        fetch: Callable[[httpx.AsyncClient], Awaitable[T]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make what is called so in the log."""
        self.value: T | None = None
        self._name = name
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._fetched_at: float | None = None
        self._failed_at: float | None = None
        self._fetching = asyncio.Lock()

    @property
    def has_failed(self) -> bool:
        """Tell whether the last attempt has failed."""
        return self._failed_at is not None

    async def refresh(self, life: float = LIFE_SECONDS) -> None:
        """Fetch it if it is older than this. All who need it wait for one answer."""
        if not self._is_due(life):
            return
        async with self._fetching:
            if self._is_due(life):
                await self._try_to_fetch()

    def _is_due(self, life: float) -> bool:
        now = self._clock()
        rest = RETRY_SECONDS if self.value is None else AGAIN_SECONDS
        if self._failed_at is not None and now < self._failed_at + rest:
            return False
        return self._fetched_at is None or now >= self._fetched_at + life

    async def _try_to_fetch(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), client_of_issuer() as client:
                self.value = await self._fetch(client)
        except FAILURES as error:
            _log.warning(f"{self._name} could not be fetched", issuer=self._issuer.url, reason=type(error).__name__)
            self._failed_at = self._clock()
        else:
            self._failed_at = None
            self._fetched_at = self._clock()


def client_of_issuer() -> httpx.AsyncClient:
    """Make a client that goes nowhere else than it is told."""
    return httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False, verify=_trust())


@cache
def _trust() -> ssl.SSLContext:
    """Load the certificates that are trusted, once: to do so holds up everything else in the process."""
    return httpx.create_ssl_context()


async def asked_json(client: httpx.AsyncClient, method: str, url: str, **sent: Any) -> Mapping[str, Any]:
    """Ask for a small JSON object; nothing that is larger is read to its end."""
    async with client.stream(method, url, headers={"Accept": "application/json"}, **sent) as answer:
        if answer.status_code != 200:
            raise WrongStatus(answer.status_code, await _error_in(answer))
        return await _document(answer)


async def _document(answer: httpx.Response) -> Mapping[str, Any]:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError("too large")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("not an object")  # noqa: TRY004 - of all that can be wrong with a document, one error tells
    return document


async def _error_in(answer: httpx.Response) -> str | None:
    try:
        return error_word((await _document(answer)).get("error"))
    except (ValueError, RecursionError):
        return None


def error_word(given: object) -> str | None:
    """Give an `error` of OAuth as it may stand in a log: a word, or None for whatever else was sent as one."""
    return given if isinstance(given, str) and _WORD.fullmatch(given) else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
