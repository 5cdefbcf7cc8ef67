"""What a browser keeps for us: sealed, so that it can be read there and not be changed."""

import hmac
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import jwt
from pydantic import BaseModel, SecretStr, ValidationError

ALGORITHM: Final = "HS256"
LONGEST: Final = 4096  # no browser keeps more in a cookie

M = TypeVar("M", bound=BaseModel)


class Seal:
    """Seals for one purpose, with a key that is derived from the service key for that purpose alone."""

    def __init__(self, service_key: SecretStr, purpose: str, life: timedelta) -> None:
        self._key = hmac.digest(service_key.get_secret_value().encode(), purpose.encode(), "sha256")
        self.life = life

    def close(self, content: BaseModel) -> str:
        """Seal something, for as long as the seal lives; nothing makes it live longer."""
        claims = {"exp": datetime.now(UTC) + self.life, "content": content.model_dump(mode="json")}
        return jwt.encode(claims, self._key, algorithm=ALGORITHM)

    def open(self, sealed: str, model: type[M]) -> M | None:
        """Give what was sealed; None when that was not done here and for this purpose, or is too long ago."""
        if len(sealed) > LONGEST:
            return None
        try:
            claims = jwt.decode(sealed, self._key, algorithms=[ALGORITHM], options={"require": ["exp"]})
            return model.model_validate(claims.get("content"))
        except (jwt.InvalidTokenError, ValidationError, UnicodeError):
            return None

    def mark(self, secret: str) -> str:
        """Give what knows a secret again, and tells nothing of it to those who have not the seal's key."""
        return hmac.digest(self._key, secret.encode(), "sha256").hex()
