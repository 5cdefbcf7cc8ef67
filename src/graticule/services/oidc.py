"""Tokens of one OpenID issuer: whose they are, and which of our roles they carry."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, PermissionDenied, Unauthenticated
from graticule.core.ids import PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services.actor_names import name_from_issuer
from graticule.services.issuer_keys import IssuerKeys

# Only signatures that are made with one key and checked with another: whoever can check cannot sign.
ALGORITHMS: Final = frozenset(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)) | {
    "EdDSA"
}
LEEWAY_SECONDS: Final = 60
LONGEST_TOKEN: Final = 16 * 1024

_PLATFORM: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """Where a token says who it is."""

    role: str
    platform: str
    name: str


class OpenIdTokens:
    """Reads the tokens of one issuer that are made out for us."""

    def __init__(self, issuer: str, audience: str, algorithms: list[str], claims: ClaimNames, keys: IssuerKeys) -> None:
        self._issuer = issuer
        self.audience = audience
        self._algorithms = algorithms
        self._claims = claims
        self._keys = keys

    @classmethod
    def of(cls, settings: Settings, clock: Callable[[], float] = time.monotonic) -> "OpenIdTokens | None":
        """Give the reader that the settings describe, or None when they name no issuer."""
        if settings.oidc_issuer is None:
            return None
        if not settings.oidc_audience:
            raise ConfigurationError(
                "GRATICULE_OIDC_ISSUER is set, and GRATICULE_OIDC_AUDIENCE is not.",
                hint="Say for whom tokens must be made out: without it, a token for any other program would count.",
            )
        return cls(
            settings.oidc_issuer,
            settings.oidc_audience,
            pinned_algorithms(settings.oidc_algorithms),
            ClaimNames(settings.oidc_role_claim, settings.oidc_platform_claim, settings.oidc_name_claim),
            IssuerKeys.of(settings, clock),
        )

    async def read(self, token: str) -> Caller:
        """Give whose token this is.

        `Unauthenticated` when it is not sound, `PermissionDenied` when it carries no role of ours, `Unavailable` when
        the issuer's keys are not known and cannot be fetched.
        """
        return self.caller(await self.claims(token, self.audience))

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """Give whom claims tell of that were found sound; `PermissionDenied` when they name no role of ours."""
        roles = self._roles(claims)
        return Caller(self._name(claims), roles, self._platform(claims, roles))

    async def claims(self, token: str, audience: str) -> Mapping[str, Any]:
        """Give what a token says that the issuer has made out for this audience, and that is in force."""
        try:
            header = self._header(token)
            key = await self._keys.find(header.get("kid"), header["alg"])
            return jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                issuer=self._issuer,
                audience=audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.", hint="Get a new one from its issuer.") from None
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise _unsound(type(error).__name__) from None

    def _header(self, token: str) -> Mapping[str, Any]:
        """Read which key and which signature a token claims to have, which is checked before anything is believed."""
        if len(token) > LONGEST_TOKEN:
            raise _unsound("longer than any token")
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in self._algorithms:
            raise _unsound("an algorithm that is not accepted")
        return header

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[ClientRole]:
        given = _claim(claims, self._claims.role)
        named = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        known = {role.value for role in ClientRole}
        roles = frozenset(ClientRole(each) for each in named if isinstance(each, str) and each in known)
        if not roles:
            raise PermissionDenied(
                "The token carries none of our roles.",
                hint=f"Its issuer has to name one in the claim `{self._claims.role}`: {', '.join(sorted(known))}.",
            )
        return roles

    def _platform(self, claims: Mapping[str, Any], roles: frozenset[ClientRole]) -> PlatformId | None:
        """Give the partner for which a submitter speaks; others speak for none."""
        if ClientRole.SUBMITTER not in roles:
            return None
        given = _claim(claims, self._claims.platform)
        if not isinstance(given, str) or not _PLATFORM.fullmatch(given):
            raise PermissionDenied(
                "The token is a submitter's and does not say for which platform.",
                hint=f"Its issuer has to name the platform in the claim `{self._claims.platform}`.",
            )
        return PlatformId(given)

    def _name(self, claims: Mapping[str, Any]) -> str:
        given = _claim(claims, self._claims.name)
        if not isinstance(given, str):
            raise _unsound(f"no name in the claim {self._claims.name}")
        try:
            return name_from_issuer(given)
        except ValueError as error:
            raise _unsound(f"in the claim {self._claims.name}: {error}") from None


def pinned_algorithms(setting: str) -> list[str]:
    """Read the accepted algorithms; `ConfigurationError` for one that would let a token sign itself."""
    named = [name.strip() for name in setting.split(",") if name.strip()]
    refused = [name for name in named if name not in ALGORITHMS]
    if refused or not named:
        raise ConfigurationError(
            f"GRATICULE_OIDC_ALGORITHMS must not be {', '.join(refused) or 'empty'}.",
            hint=f"Choose from: {', '.join(sorted(ALGORITHMS))}.",
        )
    return named


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Give a claim by its name, or by a path such as `realm_access.roles`. Names may have dots, too."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _unsound(detail: str) -> Unauthenticated:
    return Unauthenticated(
        "The token is not valid here.",
        hint="It must be signed by the issuer that this server trusts, made out for it, and be in force.",
        detail=detail,
    )
