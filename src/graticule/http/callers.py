"""Who calls a route, and whether it may: the dependencies of all routes that are not for everyone."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Final

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.config import Settings
from graticule.core.errors import PermissionDenied, Unauthenticated
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import ALLOWED, Caller, Deed
from graticule.http.rate_limits import RateLimits
from graticule.repositories.database import Database
from graticule.services.access import ADMIN, AccessService
from graticule.services.service_tokens import HEADER, ServiceTokens

# All that may have a body; none of these is for everyone.
CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

_API_KEY: Final = APIKeyHeader(
    name="X-API-Key", scheme_name="ApiKeyHeader", auto_error=False, description="The key of a client, or the admin key."
)
_OPEN_ID_TOKEN: Final = HTTPBearer(
    scheme_name="OpenIdToken", bearerFormat="JWT", auto_error=False, description="A token of the configured issuer."
)

ApiKey = Annotated[str | None, Security(_API_KEY)]
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_OPEN_ID_TOKEN)]


def install_access(
    app: FastAPI, database: Database, settings: Settings, *, service_tokens: ServiceTokens | None = None
) -> AccessService:
    """Let the routes of an application know their callers; service tokens count only where they are given."""
    access = AccessService(database, settings, service_tokens=service_tokens)
    app.state.access = access
    app.state.service_tokens = service_tokens
    app.state.rate_limits = RateLimits(settings.rate_limit_per_minute)
    app.user_middleware.append(Middleware(CallerBeforeBody))  # the innermost: the others see its answers
    return access


class CallerBeforeBody:
    """Middleware that lets nobody send a body who is not known: a route asks who calls only when it has read it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its caller is known, or raise why not."""
        if scope["type"] == "http" and scope["method"] in CHANGING:
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
    given = await _OPEN_ID_TOKEN(request)
    bearer = given.credentials if given else None
    return await _caller(request, await _API_KEY(request), bearer, request.headers.get(HEADER))


async def authenticated(request: Request, api_key: ApiKey, bearer: Bearer) -> Caller:
    """Give the caller of a request, and count it; once for each request, however many ask."""
    limits: RateLimits = request.app.state.rate_limits
    service_token = request.headers.get(HEADER)
    caller = await _caller(request, api_key, bearer.credentials if bearer else None, service_token)
    if service_token is None and _is_limited(caller):
        await limits.count(caller)
    return caller


async def _caller(request: Request, api_key: str | None, bearer: str | None, service_token: str | None) -> Caller:
    """Give the caller. A right credential always counts, also from an address where too many were wrong."""
    access: AccessService = request.app.state.access
    limits: RateLimits = request.app.state.rate_limits
    address = request.client.host if request.client else ""
    try:
        return await access.authenticate(api_key=api_key, bearer=bearer, service_token=service_token)
    except Unauthenticated:
        if api_key is not None or bearer is not None:
            await limits.count_failure(address)
        elif service_token is None or request.app.state.service_tokens is None:
            await limits.count_nameless(address)
        # A gateway whose key is not the right one has to be told that, for however many callers it speaks.
        raise


def _is_limited(caller: Caller) -> bool:
    """Workers are ours and report as they work; the admin key must open the door when others crowd it."""
    return caller is not ADMIN and caller.roles != {ClientRole.WORKER}


Authenticated = Annotated[Caller, Depends(authenticated)]


@lru_cache
def allowed(deed: Deed) -> Callable[[Caller], Awaitable[Caller]]:
    """Give a dependency that lets only those pass who may do this."""

    async def caller_who_may(caller: Authenticated) -> Caller:
        if not caller.may(deed):
            raise PermissionDenied(
                f"This needs the role {' or '.join(sorted(ALLOWED[deed]))}.",
                hint=f"{caller.name} has {', '.join(sorted(caller.roles)) or 'none'}; an admin gives roles to clients.",
            )
        return caller

    return caller_who_may


CallerWhoSubmits = Annotated[Caller, Depends(allowed(Deed.SUBMIT))]
CallerWhoReads = Annotated[Caller, Depends(allowed(Deed.READ))]
CallerWhoInspects = Annotated[Caller, Depends(allowed(Deed.INSPECT))]
CallerWhoReviews = Annotated[Caller, Depends(allowed(Deed.REVIEW))]
CallerWhoRemoves = Annotated[Caller, Depends(allowed(Deed.REMOVE))]
CallerWhoOperates = Annotated[Caller, Depends(allowed(Deed.OPERATE))]
CallerWhoAdministers = Annotated[Caller, Depends(allowed(Deed.ADMINISTER))]
