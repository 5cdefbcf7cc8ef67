"""Sessions of the console: sealed cookies that tell by what someone has signed in.

Nothing is kept here of a session. One that was begun by a key holds for as long as that key does, with the roles that
its client has at the time of each request; one that was begun by a token of the issuer has the roles of that token.
"""

import hmac
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, SecretStr

from graticule.config import Settings
from graticule.core.errors import Unauthenticated
from graticule.core.ids import PlatformId
from graticule.core.models.fields import Name, PlatformKey, Sha256
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services.access import ADMIN, AccessService, key_hash, matches
from graticule.services.seals import Seal

PURPOSE: Final = "console:session"


class _ByKey(BaseModel):
    """Begun by the key of a client."""

    by: Literal["key"] = "key"
    key_hash: Sha256


class _ByAdminKey(BaseModel):
    """Begun by the key of the settings: a person may have chosen it, so its plain hash is not given away."""

    by: Literal["admin_key"] = "admin_key"
    mark: Sha256


class _ByIssuer(BaseModel):
    """Begun by a token of the issuer."""

    by: Literal["issuer"] = "issuer"
    issuer: str
    name: Name = Field(min_length=1)
    roles: frozenset[ClientRole]
    platform_id: PlatformKey | None


class _Session(BaseModel):
    """What the cookie holds."""

    begun: Annotated[_ByKey | _ByAdminKey | _ByIssuer, Field(discriminator="by")]


class Sessions:
    """Begins sessions, and gives the callers of those that hold."""

    def __init__(self, seal: Seal, access: AccessService, *, admin_key: SecretStr | None, issuer: str | None) -> None:
        self._seal = seal
        self._access = access
        self._admin_key = admin_key
        self._issuer = issuer

    @classmethod
    def of(cls, settings: Settings, access: AccessService) -> "Sessions | None":
        """Give None when there is no service key to seal with."""
        if settings.service_key is None:
            return None
        seal = Seal(settings.service_key, PURPOSE, timedelta(minutes=settings.session_minutes))
        return cls(seal, access, admin_key=settings.admin_key, issuer=settings.oidc_issuer)

    @property
    def life(self) -> timedelta:
        """How long a session lasts, whatever is done in it."""
        return self._seal.life

    def begun_by_key(self, key: str) -> str:
        """Begin the session of someone whose key was found good."""
        if matches(key, self._admin_key):
            return self._sealed(_ByAdminKey(mark=self._seal.mark(key)))
        return self._sealed(_ByKey(key_hash=key_hash(key)))

    def begun_by_issuer(self, caller: Caller) -> str:
        """Begin the session of someone whose token was found good."""
        return self._sealed(
            _ByIssuer(issuer=self._issuer or "", name=caller.name, roles=caller.roles, platform_id=caller.platform_id)
        )

    async def caller(self, sealed: str) -> Caller:
        """Give whose session this is, or raise `Unauthenticated` when it does not hold, or not any more."""
        session = self._seal.open(sealed, _Session)
        match None if session is None else session.begun:
            case _ByKey() as begun:
                return await self._access.by_key_hash(begun.key_hash)
            case _ByAdminKey() as begun if self._is_admin(begun.mark):
                return ADMIN
            case _ByIssuer() as begun if begun.issuer == self._issuer:
                platform_id = None if begun.platform_id is None else PlatformId(begun.platform_id)
                return Caller(begun.name, begun.roles, platform_id)
        raise Unauthenticated("The session has ended.", hint="Sign in again.")

    def _sealed(self, begun: _ByKey | _ByAdminKey | _ByIssuer) -> str:
        return self._seal.close(_Session(begun=begun))

    def _is_admin(self, mark: str) -> bool:
        secret = self._admin_key.get_secret_value() if self._admin_key is not None else ""
        return bool(secret) and hmac.compare_digest(mark, self._seal.mark(secret))
