"""The keys with which an OpenID issuer signs, fetched when they are needed and remembered."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, Unauthenticated, Unavailable
from graticule.logs import get_logger

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
LIFE_SECONDS: Final = 3600.0
AGAIN_SECONDS: Final = 30.0  # at most so often are keys fetched for the sake of one that is not known
RETRY_SECONDS: Final = 5.0  # after an attempt that failed, when there are no keys yet
TIMEOUT_SECONDS: Final = 5.0
MOST_BYTES: Final = 256 * 1024
MOST_KEYS: Final = 100

_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Key:
    """A public key, and what it is for."""

    key_id: str | None
    algorithm: str | None  # the only one, if the issuer says so
    public: jwt.PyJWK

    def suits(self, algorithm: str) -> bool:
        """Tell whether this kind of signature is made with such a key."""
        if self.algorithm is not None:
            return self.algorithm == algorithm
        return self.public.key_type == _TYPES[algorithm[:2]]


class IssuerKeys:
    """Public keys of one issuer. They outlive its outages: what was fetched counts until something newer comes."""

    def __init__(
        self,
        issuer: str,
        jwks_url: str | None = None,
        *,
        plain_http: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`plain_http` lets keys come over a connection that anyone on the way could change."""
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._plain_http = plain_http
        self._clock = clock
        self._keys: list[_Key] = []
        self._fetched_at: float | None = None
        self._failed_at: float | None = None
        self._fetching = asyncio.Lock()

    @classmethod
    def of(cls, settings: Settings, clock: Callable[[], float] = time.monotonic) -> "IssuerKeys":
        """Give the keys of the issuer of the settings; its address must be one whose answers can be trusted."""
        issuer = settings.oidc_issuer or ""
        given = settings.oidc_jwks_url
        url = None if given is None else str(given.get_secret_value())
        for name, address in (("GRATICULE_OIDC_ISSUER", issuer), ("GRATICULE_OIDC_JWKS_URL", url)):
            if address is not None and not _is_safe(address, plain_http=settings.development):
                raise ConfigurationError(
                    f"{name} is not an https address.",
                    hint="Keys that come by plain http can be exchanged on the way; that is for development only.",
                )
        return cls(issuer, url, plain_http=settings.development, clock=clock)

    async def find(self, key_id: object, algorithm: str) -> Any:
        """Give the key of this id, for this kind of signature.

        `Unauthenticated` when the issuer has no such key, `Unavailable` when it could not be asked.
        """
        await self._refresh(LIFE_SECONDS)
        found = self._known(key_id, algorithm)
        if found is None:
            await self._refresh(AGAIN_SECONDS)
            found = self._known(key_id, algorithm)
        if found is not None:
            return found
        if self._failed_at is not None:
            raise Unavailable("The keys of the token's issuer cannot be fetched now.")
        raise Unauthenticated("The token was not signed with a key of its issuer.", hint="Get a new one.")

    def _known(self, key_id: object, algorithm: str) -> Any:
        """Look among the keys that we have; a token may leave the id out when there is only one."""
        is_only_one = key_id is None and len(self._keys) == 1
        fitting = (key for key in self._keys if (key.key_id == key_id or is_only_one) and key.suits(algorithm))
        return next((key.public.key for key in fitting), None)

    async def _refresh(self, life: float) -> None:
        """Fetch the keys if they are older than this. All who need them wait for one answer."""
        if not self._is_due(life):
            return
        async with self._fetching:
            if self._is_due(life):
                await self._try_to_fetch()

    def _is_due(self, life: float) -> bool:
        now = self._clock()
        rest = AGAIN_SECONDS if self._keys else RETRY_SECONDS
        if self._failed_at is not None and now < self._failed_at + rest:
            return False
        return self._fetched_at is None or now >= self._fetched_at + life

    async def _try_to_fetch(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                self._keys = await self._fetched()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            _log.warning("the issuer's keys could not be fetched", issuer=self._issuer, reason=type(error).__name__)
            self._failed_at = self._clock()
        else:
            self._failed_at = None
            self._fetched_at = self._clock()

    async def _fetched(self) -> list[_Key]:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
            url = self._jwks_url or await self._discovered(client)
            document = await _get_json(client, url)
        keys = document.get("keys")
        if not isinstance(keys, list) or len(keys) > MOST_KEYS:
            raise ValueError("no list of keys")
        found = list(_usable(keys))
        if not found:
            raise ValueError("no usable key")
        return found

    async def _discovered(self, client: httpx.AsyncClient) -> str:
        document = await _get_json(client, self._issuer.rstrip("/") + DISCOVERY_PATH)
        url = document.get("jwks_uri")
        if document.get("issuer") != self._issuer:
            raise ValueError("a document of another issuer")
        if not isinstance(url, str) or not _is_safe(url, plain_http=self._plain_http):
            raise ValueError("no https address of keys")
        return url


async def _get_json(client: httpx.AsyncClient, url: str) -> Mapping[str, Any]:
    """Get a small JSON object; nothing that is larger is read to its end."""
    body = bytearray()
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise ValueError(f"status {answer.status_code}")
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError("too large")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("not an object")  # noqa: TRY004 - of all that can be wrong with a document, one error tells
    return document


def _usable(keys: list[Any]) -> Iterator[_Key]:
    """Give the keys that check signatures; an issuer may have others, too."""
    for key in keys:
        if not isinstance(key, dict) or key.get("kty") not in _TYPES.values() or key.get("use") not in {None, "sig"}:
            continue
        with contextlib.suppress(jwt.PyJWTError):
            yield _Key(key.get("kid"), key.get("alg"), jwt.PyJWK(key))


def _is_safe(address: str, *, plain_http: bool) -> bool:
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return True
    return parts.scheme == "http" and bool(parts.hostname) and (plain_http or _is_loopback(parts.hostname or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
