"""Who calls a route, and whether it may: the dependencies of all routes that are not for everyone."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Final

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from graticule.config import Settings
from graticule.core.errors import PermissionDenied, Unauthenticated
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import ALLOWED, Caller, Deed
from graticule.http.rate_limits import RateLimits
from graticule.repositories.database import Database
from graticule.services.access import ADMIN, AccessService
from graticule.services.service_tokens import HEADER, ServiceTokens

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
    return access


async def authenticated(request: Request, api_key: ApiKey, bearer: Bearer) -> Caller:
    """Give the caller of a request, and count it; once for each request, however many ask."""
    limits: RateLimits = request.app.state.rate_limits
    service_token = request.headers.get(HEADER)
    caller = await _caller(request, limits, api_key, bearer.credentials if bearer else None, service_token)
    if service_token is None and _is_limited(caller):
        await limits.count(caller)
    return caller


async def _caller(
    request: Request, limits: RateLimits, api_key: str | None, bearer: str | None, service_token: str | None
) -> Caller:
    access: AccessService = request.app.state.access
    address = request.client.host if request.client else ""
    # The gateway's address stands for all callers of the gateway: it is never shut out.
    is_guess = service_token is None and (api_key is not None or bearer is not None)
    if is_guess:
        await limits.check_address(address)
    try:
        return await access.authenticate(api_key=api_key, bearer=bearer, service_token=service_token)
    except Unauthenticated:
        if is_guess:
            await limits.count_failure(address)
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
