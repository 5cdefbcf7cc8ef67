"""The gateway's word for its caller: a token that it signs for one other process, which believes it for a minute."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Receiver:
    """A process that believes the gateway: each has a key of its own, so that none can speak to another."""

    audience: str
    name: str
    setting: str  # that holds the key


TO_ORCHESTRATOR: Final = Receiver("graticule-orchestrator", "the orchestrator", "GRATICULE_SERVICE_KEY")
TO_SERVICES: Final = Receiver("graticule-serve", "the services", "GRATICULE_SERVE_KEY")


class ServiceTokens:
    """Signs and reads service tokens with the key that the gateway shares with one other process."""

    def __init__(self, key: SecretStr, receiver: Receiver = TO_ORCHESTRATOR) -> None:
        if len(key.get_secret_value().encode()) < SHORTEST_KEY_BYTES:
            raise ConfigurationError(
                f"{receiver.setting} is too short: a key needs at least {SHORTEST_KEY_BYTES} bytes.",
                hint=f"Make one with `openssl rand -base64 48`, the same for the gateway and {receiver.name}.",
            )
        self._key = key
        self._receiver = receiver

    @classmethod
    def of(cls, key: SecretStr | None, receiver: Receiver = TO_ORCHESTRATOR) -> "ServiceTokens | None":
        """Give None when no key is set."""
        return None if key is None else cls(key, receiver)

    def sign(self, caller: Caller) -> str:
        """Give a token that speaks for a caller, for a minute."""
        now = datetime.now(UTC)
        claims = {
            "iss": ISSUER,
            "aud": self._receiver.audience,
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
                hint=f"The gateway and {self._receiver.name} need the same {self._receiver.setting},"
                " and clocks that agree.",
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
            audience=self._receiver.audience,
            leeway=LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud"]},
        )
