"""The worker's identity as a child process has it: tokens for the storage, and for nothing else.

The child works on partners' bytes and is not trusted. With the worker's own identity it could log in to the database.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from graticule.core import json_codec
from graticule.core.errors import Unavailable

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

EARLY_SECONDS: Final = 300  # before its end, a token is replaced
Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]]


class LentCredential:
    """Asks the worker for tokens, and keeps the last one."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: AccessToken | None = None

    def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        """Give a token for the storage, whatever is asked for."""
        if self._kept is None or self._kept.expires_on < time.time() + EARLY_SECONDS:
            self._kept = self._asked()
        return self._kept

    def _asked(self) -> "AccessToken":
        from azure.core.credentials import AccessToken  # noqa: PLC0415 - only where the storage is Azure's

        header, body = self._ask({"kind": "token"})
        if header.get("error"):
            raise Unavailable(header["error"])
        return AccessToken(**json_codec.decode(body))
