"""Who may call the orchestrator's API."""

import secrets
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr

from graticule.core.errors import PermissionDenied, Unauthenticated

_KEY_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The admin key.")
_WORKER_TOKEN = HTTPBearer(auto_error=False, scheme_name="WorkerToken", description="The token of the workers.")


def require_admin(request: Request, key: Annotated[str | None, Security(_KEY_HEADER)]) -> str:
    """Let only the holder of the admin key pass, and give the name under which its deeds are recorded."""
    expected: SecretStr | None = request.app.state.admin_key
    if expected is None:
        raise PermissionDenied(
            "This server has no admin key, so nobody can be an admin.",
            hint="Set GRATICULE_ADMIN_KEY and start it again.",
        )
    if key is None:
        raise Unauthenticated("This needs the admin key.", hint="Send it in the header X-API-Key.")
    if not _matches(key, expected):
        raise Unauthenticated("The admin key is not the right one.")
    return "admin"


def require_operator(admin: Annotated[str, Depends(require_admin)]) -> str:
    """Let operators pass, and give the name under which their deeds are recorded; an admin is one."""
    return admin


def require_worker(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(_WORKER_TOKEN)]
) -> None:
    """Let only workers pass."""
    expected: SecretStr | None = request.app.state.worker_token
    if expected is None:
        raise PermissionDenied(
            "This server has no worker token, so no worker can report to it.",
            hint="Set GRATICULE_WORKER_TOKEN for it and for the workers, and start it again.",
        )
    if given is None:
        raise Unauthenticated("This needs the worker token.", hint="Send it as `Authorization: Bearer <token>`.")
    if not _matches(given.credentials, expected):
        raise Unauthenticated("The worker token is not the right one.")


def _matches(given: str, expected: SecretStr) -> bool:
    """Compare in a time that tells nothing; an empty secret opens nothing."""
    secret = expected.get_secret_value()
    return bool(secret) and secrets.compare_digest(given.encode(), secret.encode())


AdminOnly = Depends(require_admin)
OperatorOnly = Depends(require_operator)
WorkerOnly = Depends(require_worker)

Operator = Annotated[str, Depends(require_operator)]
