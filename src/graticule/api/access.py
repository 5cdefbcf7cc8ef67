"""Who may call the orchestrator's API."""

from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from graticule.core.errors import PermissionDenied, Unauthenticated
from graticule.core.permissions import Caller, Deed
from graticule.http.callers import ApiKey, CallerWhoOperates, allowed, authenticated
from graticule.services.access import AccessService
from graticule.services.service_tokens import GATEWAY, HEADER

_WORKER_TOKEN: Final = HTTPBearer(auto_error=False, scheme_name="WorkerToken", description="The token of the workers.")
_SERVICE_TOKEN: Final = APIKeyHeader(
    name=HEADER, scheme_name="ServiceToken", auto_error=False, description="What the gateway signs."
)


async def require_operator(caller: CallerWhoOperates) -> str:
    """Let operators pass, and give the name under which their deeds are recorded."""
    return caller.name


async def require_worker(
    request: Request, api_key: ApiKey, token: Annotated[HTTPAuthorizationCredentials | None, Security(_WORKER_TOKEN)]
) -> Caller:
    """Let only workers pass: those with the worker token, and clients of that role. Of both, the token counts."""
    caller = await authenticated(request, None if token else api_key, token)
    return await allowed(Deed.REPORT)(caller)


async def require_gateway(request: Request, token: Annotated[str | None, Security(_SERVICE_TOKEN)]) -> None:
    """Let only pass what the gateway has signed for itself, and not for one of its callers."""
    access: AccessService = request.app.state.access
    if token is None:
        raise Unauthenticated("Only the gateway may do this, with a service token.")
    if await access.authenticate(service_token=token) != GATEWAY:
        raise PermissionDenied("Only the gateway itself may do this, and none of its callers.")


AdminOnly = Depends(allowed(Deed.ADMINISTER))
OperatorOnly = Depends(require_operator)
WorkerOnly = Depends(require_worker)
GatewayOnly = Depends(require_gateway)

Operator = Annotated[str, Depends(require_operator)]
