"""Who may call the orchestrator's API."""

import secrets
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader
from pydantic import SecretStr

from graticule.core.errors import PermissionDenied, Unauthenticated

_KEY_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The admin key.")


def require_admin(request: Request, key: Annotated[str | None, Security(_KEY_HEADER)]) -> None:
    """Let only the holder of the admin key pass."""
    expected: SecretStr | None = request.app.state.admin_key
    if expected is None:
        raise PermissionDenied(
            "This server has no admin key, so nobody can be an admin.",
            hint="Set GRATICULE_ADMIN_KEY and start it again.",
        )
    if key is None:
        raise Unauthenticated("This needs the admin key.", hint="Send it in the header X-API-Key.")
    if not secrets.compare_digest(key.encode(), expected.get_secret_value().encode()):
        raise Unauthenticated("The admin key is not the right one.")


AdminOnly = Depends(require_admin)
