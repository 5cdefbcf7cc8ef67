"""The storage accounts of Azure behind our containers: where each is, how it is reached, and how reads are signed.

With a key, accounts are reached with it; without one, with the identity of this process. A signature that lets others
read (a SAS) is made for one blob and a short time: with the account's key, or with a key that Azure delegates to the
identity for some hours. That one is kept until it ends too soon for what is to be signed.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from azure.core.credentials import AzureNamedKeyCredential
from obstore.store import AzureStore

from graticule.core.errors import InvalidInput
from graticule.identity import access_token, azure_credential
from graticule.storage.options import AZURE_SCOPE, AzureOptions
from graticule.storage.paths import LONGEST_NAME_BYTES, blob_parts

if TYPE_CHECKING:  # heavy, and not needed by all processes
    from azure.core.credentials import AccessToken, TokenCredential
    from azure.storage.blob import BlobClient, BlobServiceClient, UserDelegationKey

CONNECT_SECONDS: Final = 10
STALLED_SECONDS: Final = 60  # a server that sends nothing for so long is given up
RETRY_SECONDS: Final = 60
KEY_SECONDS: Final = 4 * 3600
LONGEST_KEY: Final = timedelta(days=7)  # as Azure has it
SKEW: Final = timedelta(minutes=15)  # by which our clock may be ahead of Azure's
_CONTAINER: Final = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|\$root|\$web")


@dataclass(frozen=True, slots=True)
class Blob:
    """Where a blob is in Azure."""

    account: str
    container: str
    name: str


class AzureAccounts:
    """Gives the clients of containers and blobs, each made once, and signs reads."""

    def __init__(
        self,
        options: AzureOptions,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        lent: "TokenCredential | None" = None,
    ) -> None:
        """`lent` gives tokens of another process's identity, in place of this one's own."""
        self._options = options
        self._lent = lent
        self._clock = clock
        self._stores: dict[str, AzureStore] = {}
        self._services: dict[str, BlobServiceClient] = {}
        self._delegated: dict[str, UserDelegationKey] = {}
        self._signing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def blob(self, path: str) -> Blob:
        """Find a blob by its path; a name that Azure cannot have is refused."""
        container, *names = blob_parts(path)
        if not all(map(_fits_azure, names)):
            raise InvalidInput(f"A blob of Azure cannot be called {path!r}.", hint="No part ends with a dot.")
        return Blob(self.account_of(container), container, "/".join(names))

    def store(self, container: str) -> AzureStore:
        """Give the container's client for data."""
        if container not in self._stores:
            self._stores[container] = self._new_store(self.account_of(container), container)
        return self._stores[container]

    def service(self, account: str) -> "BlobServiceClient":
        """Give the account's client for what is not data: containers, lists of blocks, copies. It blocks."""
        from azure.storage.blob import BlobServiceClient, ExponentialRetry  # noqa: PLC0415 - see above

        if account not in self._services:
            self._services[account] = BlobServiceClient(
                self._options.address_of(account),
                credential=self._credential(account),
                connection_timeout=CONNECT_SECONDS,
                read_timeout=STALLED_SECONDS,
                retry_policy=ExponentialRetry(
                    initial_backoff=1, increment_base=2, retry_total=4, random_jitter_range=1
                ),
            )
        return self._services[account]

    def client(self, blob: Blob) -> "BlobClient":
        """Give the blob's client for what is not data. It blocks."""
        return self.service(blob.account).get_blob_client(blob.container, blob.name)

    def signed(self, blob: Blob, seconds: int) -> str:
        """Give an address under which the blob can be read for so long, and nothing else. It may take a request."""
        from azure.storage.blob import BlobSasPermissions, generate_blob_sas  # noqa: PLC0415 - see above

        until = self._clock() + timedelta(seconds=seconds)
        signature = generate_blob_sas(
            blob.account,
            blob.container,
            blob.name,
            permission=BlobSasPermissions(read=True),
            expiry=until,
            protocol="https",
            **self._signing_key(blob.account, until),
        )
        address = self._options.address_of(blob.account)
        return f"{address}/{quote(blob.container)}/{quote(blob.name)}?{signature}"

    def account_of(self, container: str) -> str:
        """Tell in which account a container is; a name that Azure cannot have is refused."""
        if not _CONTAINER.fullmatch(container):
            raise InvalidInput(
                f"A container of Azure cannot be called {container!r}.",
                hint="It has 3 to 63 small letters, digits and single dashes.",
            )
        return self._options.account_of(container)

    def _signing_key(self, account: str, until: datetime) -> dict[str, Any]:
        if self._options.key is not None:
            return {"account_key": self._options.key.get_secret_value()}
        with self._signing[account]:
            kept = self._delegated.get(account)
            if kept is None or datetime.fromisoformat(str(kept.signed_expiry)) < until:
                kept = self._delegated[account] = self._delegated_key(account, until)
            return {"user_delegation_key": kept}

    def _delegated_key(self, account: str, until: datetime) -> "UserDelegationKey":
        self._token()  # who has no identity is told at once; the client would try again for long
        now = self._clock()
        ends = max(until, now + timedelta(seconds=KEY_SECONDS)) + timedelta(seconds=1)  # it is cut to seconds
        begins = max(now - SKEW, ends - LONGEST_KEY)
        return self.service(account).get_user_delegation_key(begins, ends)

    def _new_store(self, account: str, container: str) -> AzureStore:
        key = self._options.key
        return AzureStore(
            container,
            account_name=account,
            endpoint=self._options.address_of(account),
            client_options={
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "read_timeout": timedelta(seconds=STALLED_SECONDS),
                "timeout": timedelta(hours=4),  # of a whole stream
            },
            retry_config={"retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **({"credential_provider": self._bearer_token} if key is None else {"account_key": key.get_secret_value()}),
        )

    def _credential(self, account: str) -> Any:
        key = self._options.key
        if key is not None:
            return AzureNamedKeyCredential(account, key.get_secret_value())
        return self._lent or azure_credential()

    def _token(self) -> "AccessToken":
        return access_token(AZURE_SCOPE) if self._lent is None else self._lent.get_token(AZURE_SCOPE)

    def _bearer_token(self) -> dict[str, Any]:
        found = self._token()
        return {"token": found.token, "expires_at": datetime.fromtimestamp(found.expires_on, UTC)}


def _fits_azure(name: str) -> bool:
    return not name.endswith(".") and len(name.encode()) < LONGEST_NAME_BYTES
