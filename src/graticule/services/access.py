"""Who calls: an API key, a token of an OpenID issuer, or the gateway's word for its caller."""

import asyncio
import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from graticule.config import Settings
from graticule.core.errors import Unauthenticated
from graticule.core.ids import ClientId, PlatformId
from graticule.core.models import ApiClient
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.repositories.clients import ClientRepository
from graticule.repositories.database import Database
from graticule.services.oidc import OpenIdTokens
from graticule.services.service_tokens import ServiceTokens

KEY_PREFIX: Final = "gtc_"
CACHE_SECONDS: Final = 5.0
MOST_CACHED: Final = 1000

# Whoever holds the key of the settings. It needs no row, so that it also opens a database without a schema.
ADMIN: Final = Caller("admin", frozenset({ClientRole.ADMIN}))
# Whoever holds the worker token of the settings.
WORKER: Final = Caller("worker", frozenset({ClientRole.WORKER}))

_KEY: Final = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{43}}")


def new_key() -> SecretStr:
    """Make a key that nobody can guess."""
    return SecretStr(KEY_PREFIX + secrets.token_urlsafe(32))


def key_hash(key: str) -> str:
    """Give what is stored of a key. It is random and long, so a fast hash is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


def matches(given: str, expected: SecretStr | None) -> bool:
    """Compare in a time that tells nothing; a secret that is empty or not set opens nothing."""
    secret = expected.get_secret_value() if expected is not None else ""
    return bool(secret) and secrets.compare_digest(given.encode(), secret.encode())


class AccessService:
    """Finds out who calls, by the one credential that a request carries."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        service_tokens: ServiceTokens | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Accept API keys, and bearer tokens if an issuer is set; service tokens only if they are given."""
        self._admin_key = settings.admin_key
        self._worker_token = settings.worker_token
        self.tokens = OpenIdTokens.of(settings)
        self._service_tokens = service_tokens
        self._keys = _KnownKeys(database, clock)
        self._used: set[ClientId] = set()

    async def authenticate(
        self, *, api_key: str | None = None, bearer: str | None = None, service_token: str | None = None
    ) -> Caller:
        """Give the caller, or raise `Unauthenticated`; `PermissionDenied` when a sound token gives it no role.

        The worker token may stand beside another credential, which then counts: an operator's machine has both.
        """
        if self.is_worker_token(bearer):
            if api_key is None and service_token is None:
                return WORKER
            bearer = None
        if sum(each is not None for each in (api_key, bearer, service_token)) > 1:
            raise Unauthenticated("The request carries more than one credential.", hint="Send one of them.")
        if service_token is not None:
            return self._by_service_token(service_token)
        if bearer is not None:
            return await self._by_token(bearer)
        if api_key is not None:
            return await self._by_key(api_key)
        raise Unauthenticated(
            "This needs a credential.",
            hint="Send an API key in the header X-API-Key, or a token as `Authorization: Bearer <token>`.",
        )

    async def by_key_hash(self, hashed: str) -> Caller:
        """Give the client whose key has this hash, as it is now, or raise `Unauthenticated`."""
        client = await self._keys.find(hashed)
        if client is None:
            raise _wrong_key()
        self._used.add(client.client_id)
        platform_id = None if client.platform_id is None else PlatformId(client.platform_id)
        return Caller(client.client_id, frozenset(client.roles), platform_id, client.client_id)

    def is_worker_token(self, bearer: str | None) -> bool:
        """Tell whether this is the token of the workers."""
        return bearer is not None and matches(bearer, self._worker_token)

    def take_used(self) -> set[ClientId]:
        """Give the clients that have called since the last time that this was asked."""
        used, self._used = self._used, set()
        return used

    def forget(self, client_id: ClientId) -> None:
        """Look a client up anew, because it was changed."""
        self._keys.forget(client_id)

    def _by_service_token(self, token: str) -> Caller:
        if self._service_tokens is None:
            raise Unauthenticated("This server takes no service tokens.", hint="Send an API key.")
        return self._service_tokens.read(token)

    async def _by_token(self, token: str) -> Caller:
        if self.tokens is None:
            raise Unauthenticated(
                "The bearer token is not the right one.",
                hint="This server trusts no issuer of tokens; workers need its GRATICULE_WORKER_TOKEN.",
            )
        return await self.tokens.read(token)

    async def _by_key(self, key: str) -> Caller:
        if matches(key, self._admin_key):
            return ADMIN
        if not _KEY.fullmatch(key):
            raise _wrong_key()
        return await self.by_key_hash(key_hash(key))


def _wrong_key() -> Unauthenticated:
    return Unauthenticated("The API key is not the right one.", hint="It may have been replaced or disabled.")


@dataclass(frozen=True, slots=True)
class _Known:
    client: ApiClient
    until: float


class _KnownKeys:
    """Clients by the hashes of their keys, each remembered for some seconds; what is not found is not remembered."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._searches: dict[str, asyncio.Task[ApiClient | None]] = {}

    async def find(self, hashed: str) -> ApiClient | None:
        """Give the active client of a key; a burst of requests with the same one costs one query."""
        known = self._known.get(hashed)
        if known is not None and self._clock() < known.until:
            return known.client
        search = self._searches.get(hashed)
        if search is None:
            search = self._searches[hashed] = asyncio.create_task(self._search(hashed))
            search.add_done_callback(lambda _: self._searches.pop(hashed, None))
        return await asyncio.shield(search)  # one caller that goes away does not end the search of the others

    def forget(self, client_id: ClientId) -> None:
        for hashed in [hashed for hashed, known in self._known.items() if known.client.client_id == client_id]:
            del self._known[hashed]

    async def _search(self, hashed: str) -> ApiClient | None:
        asked = self._clock()
        async with self._database.connection() as connection:
            client = await ClientRepository(connection).find_by_key_hash(hashed)
        self._known.pop(hashed, None)
        if client is not None:
            self._known[hashed] = _Known(client, asked + CACHE_SECONDS)
            if len(self._known) > MOST_CACHED:
                self._known.popitem(last=False)
        return client
