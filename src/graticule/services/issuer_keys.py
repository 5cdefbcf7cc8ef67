"""The keys with which an OpenID issuer signs, fetched when they are needed and remembered."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import jwt

from graticule.config import Settings
from graticule.core.errors import Unauthenticated, Unavailable
from graticule.services.issuer_documents import AGAIN_SECONDS, Remembered, TrustedIssuer, asked_json

MOST_KEYS: Final = 100

_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


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
    """Public keys of one issuer, found by discovery unless their address is given."""

    def __init__(
        self, issuer: TrustedIssuer, jwks_url: str | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._keys: Remembered[list[_Key]] = Remembered("the issuer's keys", issuer, self._fetched, clock)

    @classmethod
    def of(cls, settings: Settings, clock: Callable[[], float] = time.monotonic) -> "IssuerKeys":
        """Give the keys of the issuer of the settings; its address must be one whose answers can be trusted."""
        issuer = TrustedIssuer.of(settings)
        given = settings.oidc_jwks_url
        url = None if given is None else str(given.get_secret_value())
        if url is not None:
            issuer.require_safe("GRATICULE_OIDC_JWKS_URL", url)
        return cls(issuer, url, clock=clock)

    async def find(self, key_id: object, algorithm: str) -> Any:
        """Give the key of this id, for this kind of signature.

        `Unauthenticated` when the issuer has no such key, `Unavailable` when it could not be asked.
        """
        await self._keys.refresh()
        found = self._known(key_id, algorithm)
        if found is None:
            await self._keys.refresh(AGAIN_SECONDS)  # it may be new
            found = self._known(key_id, algorithm)
        if found is not None:
            return found
        if self._keys.has_failed:
            raise Unavailable("The keys of the token's issuer cannot be fetched now.")
        raise Unauthenticated("The token was not signed with a key of its issuer.", hint="Get a new one.")

    def _known(self, key_id: object, algorithm: str) -> Any:
        """Look among the keys that we have; a token may leave the id out when there is only one."""
        keys = self._keys.value or []
        is_only_one = key_id is None and len(keys) == 1
        fitting = (key for key in keys if (key.key_id == key_id or is_only_one) and key.suits(algorithm))
        return next((key.public.key for key in fitting), None)

    async def _fetched(self, client: httpx.AsyncClient) -> list[_Key]:
        url = self._jwks_url or self._issuer.address_in(await self._issuer.discovered(client), "jwks_uri")
        keys = (await asked_json(client, "GET", url)).get("keys")
        if not isinstance(keys, list) or len(keys) > MOST_KEYS:
            raise ValueError("no list of keys")
        found = list(_usable(keys))
        if not found:
            raise ValueError("no usable key")
        return found


def _usable(keys: list[Any]) -> Iterator[_Key]:
    """Give the keys that check signatures; an issuer may have others, too."""
    for key in keys:
        if not isinstance(key, dict) or key.get("kty") not in _TYPES.values() or key.get("use") not in {None, "sig"}:
            continue
        with contextlib.suppress(jwt.PyJWTError):
            yield _Key(key.get("kid"), key.get("alg"), jwt.PyJWK(key))
