"""What an installation says of its storage: whose containers are whose, where they are, what may be read besides."""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import BaseModel, ConfigDict, SecretStr

from graticule.core.errors import ConfigurationError
from graticule.core.sources import admits

if TYPE_CHECKING:  # a child process has none, and need not import it
    from graticule.config import Settings

AZURE_SCOPE: Final = "https://storage.azure.com/.default"  # of the tokens for it
OUTPUTS: Final = "outputs"  # the engine's container: outputs that are too large for a row
HOST: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_ALLOWED_HOST: Final = re.compile(rf"{HOST}(?::[0-9]{{1,5}})?")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")


class StorageOptions(BaseModel):
    """The names of our containers, and the hosts and folders that sources may lie on; no secret is among them."""

    model_config = ConfigDict(frozen=True)

    silver: str = "silver"
    external: str = "external"
    hosts: frozenset[str] = frozenset()
    roots: tuple[Path, ...] = ()
    azure_account: str | None = None
    sources: tuple[str, ...] | None = None  # where the files of a task's partner may lie; None: anywhere

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Read the settings, or raise what is wrong with them."""
        return cls(
            silver=settings.silver_container,
            external=settings.external_container,
            hosts=_hosts(settings.storage_allow_hosts),
            roots=_roots(settings.storage_allow_roots),
            azure_account=settings.azure_storage_account_name,
        )

    def is_ours(self, container: str) -> bool:
        """Tell whether we write to a container; all others are the partners'."""
        # Some file systems take `Silver` and `silver` for one.
        return container.casefold() in {name.casefold() for name in (self.silver, self.external, OUTPUTS)}

    def admits(self, path: str) -> bool:
        """Whether `container/blob/path` may be reached: it is ours, or among the sources of the task's partner."""
        if self.sources is None or path.partition("/")[0] in {self.silver, self.external, OUTPUTS}:
            return True
        return admits(self.sources, path)


class AzureOptions(BaseModel):
    """Which account a container is in, and where accounts are."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    account: str | None = None  # of the containers that `accounts` does not name
    accounts: Mapping[str, str] = {}
    endpoint: str = "https://{account}.blob.core.windows.net"
    key: SecretStr | None = None  # instead of an identity

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Read the settings, or raise what is wrong with them."""
        named = settings.azure_storage_account_name
        accounts = settings.azure_storage_accounts
        _check_accounts([*([named] if named else []), *accounts.values()])
        endpoint = settings.azure_storage_endpoint.rstrip("/")
        if not endpoint.startswith("https://"):
            raise ConfigurationError(
                "GRATICULE_AZURE_STORAGE_ENDPOINT does not begin with https://.",
                hint="Whoever sees what is sent there could use its tokens and signatures.",
            )
        return cls(account=named, accounts=accounts, endpoint=endpoint, key=_checked_key(settings.azure_storage_key))

    def told(self) -> dict[str, Any]:
        """Give all of it as JSON, the key too: for a child process, by the socket that only the two of us hold."""
        key = None if self.key is None else self.key.get_secret_value()
        return {**self.model_dump(mode="json"), "key": key}

    def account_of(self, container: str) -> str:
        """Tell in which account a container is."""
        account = self.accounts.get(container, self.account)
        if account is None:
            raise ConfigurationError(
                f"No storage account is known for the container {container!r}.",
                hint="Set GRATICULE_AZURE_STORAGE_ACCOUNT_NAME, or name it in GRATICULE_AZURE_STORAGE_ACCOUNTS.",
            )
        return account

    def address_of(self, account: str) -> str:
        """Tell where an account is reached."""
        return self.endpoint.replace("{account}", account)


def _hosts(text: str) -> frozenset[str]:
    entries = frozenset(entry.strip().lower().removesuffix(":443") for entry in text.split(",") if entry.strip())
    if unknown := sorted(entry for entry in entries if not _ALLOWED_HOST.fullmatch(entry)):
        raise ConfigurationError(
            f"GRATICULE_STORAGE_ALLOW_HOSTS has {unknown[0]!r}, which is not a host.",
            hint="Write hosts, each with its port when that is not 443: data.example.org, tiles.internal:8443.",
        )
    return entries


def _roots(text: str) -> tuple[Path, ...]:
    roots = tuple(Path(entry.strip()) for entry in text.split(os.pathsep) if entry.strip())
    if unknown := [root for root in roots if not root.is_absolute() or root == Path(root.anchor)]:
        raise ConfigurationError(
            f"GRATICULE_STORAGE_ALLOW_ROOTS has {str(unknown[0])!r}, which cannot be an allowed folder.",
            hint="Write absolute paths of folders, separated like the entries of PATH.",
        )
    return roots


def _check_accounts(names: list[str]) -> None:
    if not names:
        raise ConfigurationError(
            "The storage is Azure's, and no storage account is named.",
            hint="Set GRATICULE_AZURE_STORAGE_ACCOUNT_NAME.",
        )
    if unknown := [name for name in names if not _ACCOUNT.fullmatch(name)]:
        raise ConfigurationError(
            f"{unknown[0]!r} is not a storage account.", hint="It has 3 to 24 small letters and digits."
        )


def _checked_key(key: SecretStr | None) -> SecretStr | None:
    try:
        base64.b64decode("" if key is None else key.get_secret_value(), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError(
            "GRATICULE_AZURE_STORAGE_KEY is not a key of a storage account.", hint="Copy it as Azure shows it: Base64."
        ) from None
    return key
