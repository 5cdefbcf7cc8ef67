"""Who calls a route, and whether it may: the dependencies of all routes that are not for everyone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, cast

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.config import Settings
from graticule.core.errors import PermissionDenied, Unauthenticated
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import ALLOWED, Caller, Deed
from graticule.http.limits import BodyLimit
from graticule.http.rate_limits import RateLimits
from graticule.http.sessions import SESSION_COOKIE, SESSION_PATH, ensure_from_console, kept_cookie
from graticule.repositories.database import Database
from graticule.services.access import ADMIN, AccessService
from graticule.services.service_tokens import HEADER, ServiceTokens
from graticule.services.sessions import Sessions

# All that may have a body; none of these is for everyone, but to sign in.
CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MOST_BYTES_OF_STRANGERS: Final = 4096

_API_KEY: Final = APIKeyHeader(
    name="X-API-Key", scheme_name="ApiKeyHeader", auto_error=False, description="The key of a client, or the admin key."
)
_OPEN_ID_TOKEN: Final = HTTPBearer(
    scheme_name="OpenIdToken", bearerFormat="JWT", auto_error=False, description="A token of the configured issuer."
)

_KNOWN: Final = "graticule.caller"  # of a request, once it was asked for, with what shows it

ApiKey = Annotated[str | None, Security(_API_KEY)]
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_OPEN_ID_TOKEN)]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a request shows of its caller; a session counts only beside nothing else."""

    api_key: str | None = None
    bearer: str | None = None
    service_token: str | None = None
    session: str | None = None


def install_access(
    app: FastAPI,
    database: Database,
    settings: Settings,
    *,
    service_tokens: ServiceTokens | None = None,
    sessions: bool = False,
) -> AccessService:
    """Let the routes of an application know their callers; service tokens and sessions count only where given."""
    access = AccessService(database, settings, service_tokens=service_tokens)
    app.state.access = access
    app.state.service_tokens = service_tokens
    app.state.sessions = Sessions.of(settings, access) if sessions else None
    app.state.rate_limits = RateLimits(settings.rate_limit_per_minute)
    sign_in_path = SESSION_PATH if sessions else None
    app.user_middleware.append(
        Middleware(CallerBeforeBody, sign_in_path=sign_in_path)  # the innermost: the others see its answers
    )
    return access


class CallerBeforeBody:
    """Middleware that lets nobody send a body who is not known: a route asks who calls only when it has read it.

    To sign in one need not be known, but has to be the console, and to be brief.
    """

    def __init__(self, app: ASGIApp, *, sign_in_path: str | None = None) -> None:
        self.app = app
        self._brief = BodyLimit(app, max_bytes=MOST_BYTES_OF_STRANGERS)
        self._sign_in_path = sign_in_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its caller is known, or raise why not."""
        if scope["type"] != "http" or scope["method"] not in CHANGING:
            await self.app(scope, receive, send)
        elif scope["path"] == self._sign_in_path:
            ensure_from_console(Request(scope))
            await self._brief(scope, receive, send)
        else:
            await _ensure_known(Request(scope))
            await self.app(scope, receive, send)


async def _ensure_known(request: Request) -> None:
    """Raise what the route would raise; what the caller may do, and how often, is left to the route."""
    access: AccessService = request.app.state.access
    given = await _OPEN_ID_TOKEN(request)
    if not access.is_worker_token(given.credentials if given else None):  # for callbacks it counts, whatever beside it
        await known_caller(request)


async def known_caller(request: Request) -> Caller:
    """Give the caller of a request, however often it calls; `Unauthenticated` when nobody is known by what it shows."""
    shown = await _shown_by(request)
    caller = await _caller(request, shown)
    request.scope[_KNOWN] = shown, caller
    return caller


async def caller_if_known(request: Request) -> Caller | None:
    """Give the caller of a request, or None: only a wrong key or token is counted, and may be one too many."""
    shown = await _shown_by(request)
    try:
        return await _identified(request, shown)
    except PermissionDenied:
        return None
    except Unauthenticated:
        if shown.api_key is not None or shown.bearer is not None:
            await count_failure(request)
        return None


async def shows_session(request: Request) -> bool:
    """Tell whether it is by a session that a request shows who calls."""
    return (await _shown_by(request)).session is not None


async def uncounted(request: Request, api_key: ApiKey, bearer: Bearer) -> Caller:
    """Give the caller of a request, however often it calls: for what is made of hundreds of requests, as a map is."""
    return await _caller(request, _shown(request, api_key, bearer))


async def authenticated(request: Request, api_key: ApiKey, bearer: Bearer) -> Caller:
    """Give the caller of a request, and count it; once for each request, however many ask."""
    return await _counted(request, _shown(request, api_key, bearer))


async def caller_of_key(request: Request, api_key: str) -> Caller:
    """Give the caller whose key stands elsewhere than in the header, and count the request."""
    return await _counted(request, _Shown(api_key=api_key))


async def _counted(request: Request, shown: _Shown) -> Caller:
    caller = await _caller(request, shown)
    if shown.service_token is None and _is_limited(caller):
        await _limits(request).count(caller)
    return caller


async def _caller(request: Request, shown: _Shown) -> Caller:
    """Give the caller. A right credential always counts, also from an address where too many were wrong."""
    known = request.scope.get(_KNOWN)
    if known is not None and known[0] == shown:
        return cast("Caller", known[1])
    try:
        return await _identified(request, shown)
    except Unauthenticated:
        if shown.api_key is not None or shown.bearer is not None:
            await count_failure(request)
        elif shown.service_token is None or request.app.state.service_tokens is None:
            await _count_nameless(request)
        # A gateway whose key is not the right one has to be told that, for however many callers it speaks.
        raise


async def _identified(request: Request, shown: _Shown) -> Caller:
    if shown.session is not None:
        if request.method in CHANGING:
            ensure_from_console(request)
        sessions: Sessions = request.app.state.sessions
        return await sessions.caller(shown.session)
    access: AccessService = request.app.state.access
    return await access.authenticate(api_key=shown.api_key, bearer=shown.bearer, service_token=shown.service_token)


async def _shown_by(request: Request) -> _Shown:
    return _shown(request, await _API_KEY(request), await _OPEN_ID_TOKEN(request))


def _shown(request: Request, api_key: str | None, bearer: HTTPAuthorizationCredentials | None) -> _Shown:
    service_token = request.headers.get(HEADER)
    token = bearer.credentials if bearer else None
    has_sessions = getattr(request.app.state, "sessions", None) is not None
    is_alone = api_key is None and token is None and service_token is None
    session = kept_cookie(request, SESSION_COOKIE) if has_sessions and is_alone else None
    return _Shown(api_key, token, service_token, session)


async def count_failure(request: Request) -> None:
    """Count a wrong credential against the address of a request, or raise `TooManyRequests`."""
    await _limits(request).count_failure(_address(request))


async def _count_nameless(request: Request) -> None:
    """Count a request without a credential against its address, or raise `TooManyRequests`."""
    await _limits(request).count_nameless(_address(request))


def _limits(request: Request) -> RateLimits:
    return cast("RateLimits", request.app.state.rate_limits)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _is_limited(caller: Caller) -> bool:
    """Workers are ours and report as they work; the admin key must open the door when others crowd it."""
    return caller is not ADMIN and caller.roles != {ClientRole.WORKER}


Uncounted = Annotated[Caller, Depends(uncounted)]
Authenticated = Annotated[Caller, Depends(authenticated)]


@lru_cache
def allowed(deed: Deed) -> Callable[[Caller], Awaitable[Caller]]:
    """Give a dependency that lets only those pass who may do this."""

    async def caller_who_may(caller: Authenticated) -> Caller:
        return ensure_allowed(caller, deed)

    return caller_who_may


def ensure_allowed(caller: Caller, deed: Deed) -> Caller:
    """Give the caller back, or raise `PermissionDenied` when none of its roles allows this."""
    if not caller.may(deed):
        raise PermissionDenied(
            f"This needs the role {' or '.join(sorted(ALLOWED[deed]))}.",
            hint=f"{caller.name} has {', '.join(sorted(caller.roles)) or 'none'}; an admin gives roles to clients.",
        )
    return caller


CallerWhoSubmits = Annotated[Caller, Depends(allowed(Deed.SUBMIT))]
CallerWhoReads = Annotated[Caller, Depends(allowed(Deed.READ))]
CallerWhoInspects = Annotated[Caller, Depends(allowed(Deed.INSPECT))]
CallerWhoReviews = Annotated[Caller, Depends(allowed(Deed.REVIEW))]
CallerWhoRemoves = Annotated[Caller, Depends(allowed(Deed.REMOVE))]
CallerWhoOperates = Annotated[Caller, Depends(allowed(Deed.OPERATE))]
CallerWhoAdministers = Annotated[Caller, Depends(allowed(Deed.ADMINISTER))]
