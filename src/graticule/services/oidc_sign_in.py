"""Signing in at an OpenID issuer: the authorization code flow with PKCE, whose secrets never come to a script.

What belongs together between the way there and the way back is sealed in a cookie. It is not hidden from the browser:
whoever has that cookie is the one who signs in.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote, unquote

import httpx
from pydantic import BaseModel, SecretStr

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, PermissionDenied, Unauthenticated, Unavailable
from graticule.core.permissions import Caller
from graticule.services import issuer_documents
from graticule.services.issuer_documents import FAILURES, Remembered, TrustedIssuer, WrongStatus, error_word
from graticule.services.oidc import OpenIdTokens
from graticule.services.seals import Seal

PURPOSE: Final = "console:sign-in"
LIFE: Final = timedelta(minutes=10)
LONGEST_CODE: Final = 8192
HOME: Final = "/"

# A page of ours: no other host, in whatever way browsers let one be written.
_PAGE: Final = re.compile(r"/(?!/)[!-\[\]-~]{0,511}")
# What an issuer says that cannot sign anybody in just now (RFC 6749, section 4.1.2.1).
_AWAY: Final = frozenset({"server_error", "temporarily_unavailable"})


class Failure(StrEnum):
    """Why somebody could not sign in."""

    REFUSED = "refused"  # by the issuer, or by us because something is not as it was when it began
    EXPIRED = "expired"  # it took too long, or began in another browser
    NO_ROLE = "no_role"  # the issuer knows the person, and gives it no role of ours
    UNAVAILABLE = "unavailable"  # the issuer does not answer


class SignInFailed(Exception):
    """Nobody was signed in; the reason is for the person, the detail for the log."""

    def __init__(self, reason: Failure, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class _Begun(BaseModel):
    """What has to be the same on the way back."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    to: str


@dataclass(frozen=True, slots=True)
class WayThere:
    """Where a browser goes to sign in, and what it keeps meanwhile."""

    address: str
    kept: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who has signed in, and the page that was wanted."""

    caller: Caller
    to: str


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """As whom we are registered at the issuer."""

    client_id: str
    secret: SecretStr | None
    scopes: str

    def shown(self, *, secret_in_form: bool) -> tuple[dict[str, str], httpx.Auth | None]:
        """Give what shows that it is us: fields of a form, and a login; a public client has its id alone."""
        if self.secret is None:
            return {"client_id": self.client_id}, None
        secret = self.secret.get_secret_value()
        if secret_in_form:
            return {"client_id": self.client_id, "client_secret": secret}, None
        login = httpx.BasicAuth(quote(self.client_id, safe=""), quote(secret, safe=""))
        return {"client_id": self.client_id}, login


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """Where the issuer lets people sign in and gives out tokens, and whether it wants the secret in the form."""

    authorization: str
    token: str
    secret_in_form: bool


class OpenIdSignIn:
    """Leads people to the issuer, and finds out who comes back."""

    def __init__(
        self,
        client: OpenIdClient,
        issuer: TrustedIssuer,
        tokens: OpenIdTokens,
        seal: Seal,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._issuer = issuer
        self._tokens = tokens
        self._seal = seal
        self._endpoints: Remembered[_Endpoints] = Remembered("the issuer's endpoints", issuer, self._discovered, clock)

    @classmethod
    def of(cls, settings: Settings, tokens: OpenIdTokens | None) -> "OpenIdSignIn | None":
        """Give None when no client is registered, or there is no service key to seal with."""
        if settings.oidc_client_id is None:
            return None
        if tokens is None:
            raise ConfigurationError(
                "GRATICULE_OIDC_CLIENT_ID is set, and GRATICULE_OIDC_ISSUER is not.",
                hint="Say at which issuer people sign in.",
            )
        if settings.service_key is None:
            return None
        client = OpenIdClient(settings.oidc_client_id, settings.oidc_client_secret, settings.oidc_scopes)
        return cls(client, TrustedIssuer.of(settings), tokens, Seal(settings.service_key, PURPOSE, LIFE))

    @property
    def life(self) -> timedelta:
        """How long one may take to sign in."""
        return self._seal.life

    async def begin(self, redirect_uri: str, to: str) -> WayThere:
        """Give the way to the issuer, for someone who wants a page of ours; `SignInFailed` when it is away."""
        endpoints = await self._known_endpoints()
        begun = _Begun(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(32),
            redirect_uri=redirect_uri,
            to=page_of_ours(to),
        )
        asked = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": redirect_uri,
            "scope": self._client.scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": _challenge(begun.verifier),
            "code_challenge_method": "S256",
        }
        address = httpx.URL(endpoints.authorization).copy_merge_params(asked)
        return WayThere(str(address), self._seal.close(begun))

    async def finish(self, kept: str | None, *, state: str, code: str, error: str = "") -> SignedIn:
        """Give who comes back from the issuer, with a code or its `error`; or raise `SignInFailed`."""
        try:
            return await self._finished(self._begun(kept, state), code, error)
        except SignInFailed:
            raise
        except PermissionDenied as refusal:
            raise SignInFailed(Failure.NO_ROLE, refusal.message) from None
        except Unavailable as refusal:
            raise SignInFailed(Failure.UNAVAILABLE, refusal.message) from None
        except Unauthenticated as refusal:
            raise SignInFailed(Failure.REFUSED, f"{refusal.message} {refusal.detail or ''}") from None

    def _begun(self, kept: str | None, state: str) -> _Begun:
        begun = None if kept is None else self._seal.open(kept, _Begun)
        if begun is None:
            raise SignInFailed(Failure.EXPIRED, "nothing that was begun here")
        if not hmac.compare_digest(begun.state.encode(), state.encode(errors="replace")):
            raise SignInFailed(Failure.REFUSED, "another state than the one that was given along")
        return begun

    async def _finished(self, begun: _Begun, code: str, error: str) -> SignedIn:
        if error:
            reason = Failure.UNAVAILABLE if error in _AWAY else Failure.REFUSED
            raise SignInFailed(reason, f"the issuer says {error_word(error) or 'no word that is known'}")
        if not 0 < len(code) <= LONGEST_CODE:
            raise SignInFailed(Failure.REFUSED, "no code")
        answer = await self._exchanged(code, begun)
        return SignedIn(await self._caller(answer, begun.nonce), begun.to)

    async def _exchanged(self, code: str, begun: _Begun) -> Mapping[str, Any]:
        """Give the tokens for a code. The answer is in no error and no log."""
        endpoints = await self._known_endpoints()
        ours, login = self._client.shown(secret_in_form=endpoints.secret_in_form)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect_uri,
            "code_verifier": begun.verifier,
            **ours,
        }
        try:
            async with asyncio.timeout(issuer_documents.TIMEOUT_SECONDS), issuer_documents.client_of_issuer() as client:
                return await issuer_documents.asked_json(client, "POST", endpoints.token, data=form, auth=login)
        except FAILURES as error:
            raise _no_tokens(error) from None

    async def _caller(self, answer: Mapping[str, Any], nonce: str) -> Caller:
        """Read the token that is made out for us; an identity token in any case has to be of this very sign-in."""
        identity = answer.get("id_token")
        claims = None if identity is None else await self._identity(identity, nonce)
        if self._tokens.audience != self._client.client_id:
            return await self._tokens.read(_text(answer.get("access_token")))
        if claims is None:
            raise Unauthenticated("The issuer gave no identity token.", detail="is `openid` among the scopes?")
        return self._tokens.caller(claims)

    async def _identity(self, token: object, nonce: str) -> Mapping[str, Any]:
        claims = await self._tokens.claims(_text(token), self._client.client_id)
        if not hmac.compare_digest(str(claims.get("nonce")).encode(errors="replace"), nonce.encode()):
            raise Unauthenticated("The identity token is of another sign-in.")
        return claims

    async def _known_endpoints(self) -> _Endpoints:
        await self._endpoints.refresh()
        if self._endpoints.value is None:
            raise SignInFailed(Failure.UNAVAILABLE, "the issuer's endpoints are not known")
        return self._endpoints.value

    async def _discovered(self, client: httpx.AsyncClient) -> _Endpoints:
        document = await self._issuer.discovered(client)
        methods = document.get("token_endpoint_auth_methods_supported")
        return _Endpoints(
            self._issuer.address_in(document, "authorization_endpoint"),
            self._issuer.address_in(document, "token_endpoint"),
            secret_in_form=isinstance(methods, list) and "client_secret_post" in methods,
        )


def page_of_ours(to: str) -> str:
    """Give the page that is wanted after signing in, or the first one when it is not one of ours.

    Nothing of the API is, nor what only turns out to be of it when a browser or the server has read the path.
    """
    first, *others = unquote(re.split(r"[?#]", to, maxsplit=1)[0]).removeprefix("/").split("/")
    is_page = _PAGE.fullmatch(to) and first != "api" and not {".", ".."} & {first, *others}
    return to if is_page else HOME


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise Unauthenticated("The issuer's answer has no such token.")
    return token


def _no_tokens(error: Exception) -> SignInFailed:
    """Tell a code that the issuer does not take from an issuer that does not answer."""
    if isinstance(error, WrongStatus) and 400 <= error.status < 500 and error.status != 429:
        return SignInFailed(Failure.REFUSED, f"the issuer gave no tokens for the code: {error}")
    return SignInFailed(Failure.UNAVAILABLE, f"no answer from the token endpoint: {type(error).__name__}")
