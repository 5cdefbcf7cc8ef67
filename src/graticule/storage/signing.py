"""Addresses under which a blob can be read for a while: whoever has one may read that blob, and no other."""

import hmac
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, urlencode

from pydantic import SecretStr

from graticule.core.errors import ConfigurationError, InvalidInput
from graticule.storage.options import OUTPUTS
from graticule.storage.paths import blob_parts

if TYPE_CHECKING:  # a child process has none, and need not import it
    from graticule.config import Settings

PREFIX: Final = "/storage"
LONGEST_SECONDS: Final = 7 * 24 * 3600


class ReadSigner:
    """Signs addresses of the gateway, and knows them again; its key is derived from the service key."""

    def __init__(
        self, service_key: SecretStr, public_url: str | None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._key = hmac.digest(service_key.get_secret_value().encode(), b"storage:read", "sha256")
        self._public_url = public_url
        self._clock = clock

    @classmethod
    def of(cls, settings: "Settings") -> Self | None:
        """Give None when no service key is set."""
        address = settings.public_url
        public_url = None if address is None else str(address.get_secret_value()).rstrip("/")
        return None if settings.service_key is None else cls(settings.service_key, public_url)

    def address(self, path: str, seconds: int) -> str:
        """Give an address of a blob that holds for so long."""
        if self._public_url is None:
            raise ConfigurationError(
                "No address of a blob can be given: the gateway's own is not known.",
                hint="Set GRATICULE_PUBLIC_URL to the gateway's address.",
            )
        check_address(path, seconds)
        expires = str(int(self._clock()) + seconds)
        query = urlencode({"expires": expires, "signature": self._signature(path, expires)})
        return f"{self._public_url}{PREFIX}/{quote(path)}?{query}"

    def admits(self, path: str, expires: str, signature: str) -> bool:
        """Tell whether this address was signed here, and still holds."""
        is_ours = hmac.compare_digest(self._signature(path, expires).encode(), signature.encode(errors="replace"))
        return is_ours and int(expires) > self._clock() and _may_be_read(path)

    def _signature(self, path: str, expires: str) -> str:
        return hmac.digest(self._key, f"{expires}\n{path}".encode(errors="replace"), "sha256").hex()


def check_address(path: str, seconds: int) -> None:
    """Refuse an address that nobody may have."""
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InvalidInput(f"An address can hold for 1 to {LONGEST_SECONDS:,} seconds.")
    if not _may_be_read(path):
        raise InvalidInput("Outputs of jobs have no addresses.", hint="Ask for the job: its outputs stand there.")


def _may_be_read(path: str) -> bool:
    return blob_parts(path)[0].casefold() != OUTPUTS
