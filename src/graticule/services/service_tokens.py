"""The gateway's word for its caller: a token that it signs, and that the orchestrator believes for a minute."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import jwt
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from graticule.core.errors import ConfigurationError, Unauthenticated
from graticule.core.ids import ClientId, PlatformId
from graticule.core.models.fields import Name, PlatformKey, Short
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller

HEADER: Final = "X-Service-Token"
ISSUER: Final = "graticule-gateway"
AUDIENCE: Final = "graticule-orchestrator"
ALGORITHM: Final = "HS256"
LIFE: Final = timedelta(seconds=60)
LEEWAY: Final = timedelta(seconds=10)  # the clocks of two machines
SHORTEST_KEY_BYTES: Final = 32

# The gateway when it speaks for itself, as of the clients that it has seen.
GATEWAY: Final = Caller("gateway", frozenset())


class _Claims(BaseModel):
    """What a token says of the caller."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: Name = Field(min_length=1)
    roles: frozenset[ClientRole]
    platform_id: PlatformKey | None
    client_id: Short | None


class ServiceTokens:
    """Signs and reads service tokens with the key that the gateway and the orchestrator share."""

    def __init__(self, key: SecretStr) -> None:
        if len(key.get_secret_value().encode()) < SHORTEST_KEY_BYTES:
            raise ConfigurationError(
                f"GRATICULE_SERVICE_KEY is too short: a key needs at least {SHORTEST_KEY_BYTES} bytes.",
                hint="Make one with `openssl rand -base64 48`, the same for the gateway and the orchestrator.",
            )
        self._key = key

    @classmethod
    def of(cls, key: SecretStr | None) -> "ServiceTokens | None":
        """Give None when no key is set."""
        return None if key is None else cls(key)

    def sign(self, caller: Caller) -> str:
        """Give a token that speaks for a caller, for a minute."""
        now = datetime.now(UTC)
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + LIFE,
            "name": caller.name,
            "roles": sorted(caller.roles),
            "platform_id": caller.platform_id,
            "client_id": caller.client_id,
        }
        return jwt.encode(claims, self._key.get_secret_value(), algorithm=ALGORITHM)

    def read(self, token: str) -> Caller:
        """Give the caller for whom a token speaks, or raise `Unauthenticated`."""
        try:
            claims = _Claims.model_validate(self._verified(token))
        except (jwt.InvalidTokenError, ValidationError) as error:
            raise Unauthenticated(
                "The service token is not valid.",
                hint="The gateway and the orchestrator need the same GRATICULE_SERVICE_KEY, and clocks that agree.",
                detail=type(error).__name__,
            ) from None
        return Caller(
            claims.name,
            claims.roles,
            None if claims.platform_id is None else PlatformId(claims.platform_id),
            None if claims.client_id is None else ClientId(claims.client_id),
        )

    def _verified(self, token: str) -> dict[str, Any]:
        return jwt.decode(
            token,
            self._key.get_secret_value(),
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            audience=AUDIENCE,
            leeway=LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud"]},
        )
