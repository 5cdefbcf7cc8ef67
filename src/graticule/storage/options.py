"""What an installation says of its storage: whose containers are whose, and what may be read besides."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, ConfigDict

from graticule.core.errors import ConfigurationError

if TYPE_CHECKING:  # a child process has none, and need not import it
    from graticule.config import Settings

OUTPUTS: Final = "outputs"  # the engine's container: outputs that are too large for a row
HOST: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_ALLOWED_HOST: Final = re.compile(rf"{HOST}(?::[0-9]{{1,5}})?")


class StorageOptions(BaseModel):
    """The names of our containers, and the hosts and folders that sources may lie on; no secret is among them."""

    model_config = ConfigDict(frozen=True)

    silver: str = "silver"
    external: str = "external"
    hosts: frozenset[str] = frozenset()
    roots: tuple[Path, ...] = ()
    azure_account: str | None = None

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
