"""Who may do what: tokens are signatures with a shared key, or bearer tokens of an identity that others check."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote_plus, urlsplit

from tests.servicebus_emulator.refusal import UNAUTHORIZED, Refusal

# Given a token and the audience that it is for, gives when it ends (seconds since 1970); a ValueError refuses it.
CheckJwt = Callable[[str, str], float]

AUDIENCES: Final = ("https://servicebus.azure.net", "https://servicebus.azure.net/")
_SIGNATURE: Final = "SharedAccessSignature "


class Tokens:
    """Checks tokens."""

    def __init__(self, keys: Mapping[str, str], check_jwt: CheckJwt | None) -> None:
        self._keys = keys
        self._check_jwt = check_jwt

    def check(self, token: str, audience: str) -> float:
        """Give when a sound token ends, in seconds since 1970; refuse any other one."""
        check = self._check_signature if token.startswith(_SIGNATURE) else self._check_bearer
        try:
            end = check(token, audience)
        except (ValueError, KeyError) as error:
            raise Refusal(401, UNAUTHORIZED, f"InvalidSignature: {error}") from None
        if end <= time.time():
            raise Refusal(401, UNAUTHORIZED, "ExpiredToken: The token is expired.")
        return end

    def _check_signature(self, token: str, audience: str) -> float:
        raw = dict(part.split("=", 1) for part in token.removeprefix(_SIGNATURE).split("&"))
        plain = {name: unquote_plus(value) for name, value in raw.items()}
        key = self._keys.get(plain["skn"])
        signed = f"{raw['sr']}\n{plain['se']}".encode()
        if key is None or not hmac.compare_digest(_signature(key, signed), plain["sig"]):
            raise ValueError("The token has an invalid signature.")
        if not covers(path_of(plain["sr"]), path_of(audience)):
            raise ValueError("The token is for another resource.")
        return float(plain["se"])

    def _check_bearer(self, token: str, audience: str) -> float:
        if self._check_jwt is None:
            raise ValueError("Tokens of an identity are not accepted here.")
        return self._check_jwt(token, audience)


class Grants:
    """What one connection has shown tokens for."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._ends: dict[str, float] = {}

    def add(self, token: str, audience: str) -> None:
        """Grant what a token is for."""
        self._ends[path_of(audience)] = self._tokens.check(token, audience)

    def check(self, path: str) -> None:
        """Refuse what no token was shown for that is still valid."""
        if not any(covers(granted, path) and end > time.time() for granted, end in self._ends.items()):
            raise Refusal(401, UNAUTHORIZED, f"Unauthorized access. A valid token for '{path}' is required.")

    def next_end(self) -> float | None:
        """Give when the next token ends, in seconds since 1970."""
        return min((end for end in self._ends.values() if end > time.time()), default=None)


def check_claims(token: str, audience: str) -> float:
    """Accept a bearer token by what it claims; whose signature it bears is left to those who test that."""
    del audience  # the node that it is shown to; the token itself is for the whole of Service Bus
    claims = _claims(token)
    if claims.get("aud") not in AUDIENCES:
        raise ValueError("The token is not for Service Bus.")
    return float(claims["exp"])


def path_of(address: str) -> str:
    """Give the path of an entity, whether it is told alone or in a whole address."""
    return (urlsplit(address).path if "://" in address else address).strip("/").lower()


def covers(granted: str, path: str) -> bool:
    """Tell whether what is granted for one path holds for another one: itself, or one below it."""
    return not granted or path == granted or path.startswith(granted + "/")


def _signature(key: str, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key.encode(), signed, hashlib.sha256).digest()).decode()


def _claims(token: str) -> dict[str, Any]:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError) as error:
        raise ValueError("This is no token.") from error
    if not isinstance(claims, dict):
        raise ValueError("This is no token.")  # noqa: TRY004 - of the caller's many reasons to refuse it
    return claims
