"""Who this process is to Azure: the identity that it runs under, found as `DefaultAzureCredential` finds it.

Nothing of it is imported until it is needed: an installation without Azure has none of these packages.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from graticule.core.errors import ConfigurationError, Unavailable

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
    from azure.identity import DefaultAzureCredential


# By which a process finds its identity. Who is given none of them can be nobody.
IDENTITY_VARIABLES: Final = frozenset(
    {
        *("IDENTITY_ENDPOINT", "IDENTITY_HEADER", "IDENTITY_SERVER_THUMBPRINT", "IMDS_ENDPOINT"),
        *("MSI_ENDPOINT", "MSI_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_USERNAME", "AZURE_PASSWORD"),
        *("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH"),
        "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    }
)
DATABASE_SCOPE: Final = "https://ossrdbms-aad.database.windows.net/.default"
# An endpoint that hangs is given up within a minute; whoever needs the token tries again by himself.
PATIENCE: Final = {"connection_timeout": 3, "read_timeout": 10, "retry_total": 2}


# One thread for each scope asks for its tokens: connections that begin together need one, and the endpoint bears few
# requests. Who awaits takes none of the loop's own threads, which may all wait for the very connection.
_threads: Final[dict[tuple[str, ...], ThreadPoolExecutor]] = {}


def _thread(*scopes: str) -> ThreadPoolExecutor:
    return _threads.setdefault(scopes, ThreadPoolExecutor(1, thread_name_prefix="identity"))


@cache
def azure_credential(*, for_database: bool = False) -> "DefaultAzureCredential":
    """Return the credential of this process, which keeps its tokens and renews them in time.

    Of several managed identities the settings name the one that is meant; the database may have one of its own.
    """
    try:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - the extra is not always installed
    except ImportError:
        raise ConfigurationError(
            "An identity of Azure is asked for, and the packages for it are not installed.",
            hint="Install graticule[azure], or give a key or a password instead.",
        ) from None
    from graticule.config import Settings  # noqa: PLC0415 - a worker's child process has neither settings nor identity

    settings = Settings()
    client_id = settings.database_client_id if for_database else settings.identity_client_id
    return DefaultAzureCredential(**PATIENCE, **({"managed_identity_client_id": client_id} if client_id else {}))


def access_token(scope: str) -> "AccessToken":
    """Give a bearer token and its end; the first one of an hour takes a request."""
    return _thread(scope).submit(_ask, scope).result()


def token(scope: str) -> str:
    """Give a bearer token alone."""
    return access_token(scope).token


async def awaited_token(scope: str) -> str:
    """Give the same to one who awaits it."""
    return (await asyncio.wrap_future(_thread(scope).submit(_ask, scope))).token


def _ask(scope: str) -> "AccessToken":
    credential = azure_credential(for_database=True) if scope == DATABASE_SCOPE else azure_credential()
    from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415 - of the extra, too

    try:
        return credential.get_token(scope)
    except ClientAuthenticationError:  # its text tells of every way that was tried, and perhaps too much
        raise Unavailable(
            f"No token for {scope} could be had: no identity of this process was found or accepted."
        ) from None
    except AzureError:
        raise Unavailable(f"No token for {scope} could be had: the identity endpoint does not answer.") from None


class AsyncCredential:
    """The credential for clients that await; azure-identity's own asynchronous one would bring aiohttp along."""

    async def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        """Give a token."""
        asked = _thread(*scopes).submit(azure_credential().get_token, *scopes, **options)
        return await asyncio.wrap_future(asked)

    async def get_token_info(self, *scopes: str, options: "TokenRequestOptions | None" = None) -> "AccessTokenInfo":
        """Give a token, and when to renew it."""
        asked = _thread(*scopes).submit(azure_credential().get_token_info, *scopes, options=options)
        return await asyncio.wrap_future(asked)

    async def close(self) -> None:
        """Leave the credential open: the process has one for all."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.close()
