"""Where the storage of an installation is: the one place that knows which kinds there are."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from graticule.core.errors import ConfigurationError
from graticule.storage.local import LocalStorage
from graticule.storage.options import AzureOptions, StorageOptions
from graticule.storage.protocol import Storage
from graticule.storage.signing import ReadSigner

if TYPE_CHECKING:  # a child process has none, and need not import it
    from azure.core.credentials import TokenCredential

    from graticule.config import Settings


class StoragePlace(BaseModel):
    """A folder of this machine, or accounts of Azure."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    root: Path
    azure: AzureOptions | None = None
    options: StorageOptions = StorageOptions()

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Read the settings, or raise what is wrong with them."""
        azure = AzureOptions.of(settings) if settings.storage == "azure" else None
        return cls(root=settings.storage_folder, azure=azure, options=StorageOptions.of(settings))

    def told(self) -> dict[str, Any]:
        """Give it as JSON for a child process, with what it needs to open it."""
        azure = None if self.azure is None else self.azure.told()
        return {**self.model_dump(mode="json"), "azure": azure}

    @property
    def needs_identity(self) -> bool:
        """Tell whether it is reached with an identity of Azure."""
        return self.azure is not None and self.azure.key is None

    def opened(self, signer: ReadSigner | None = None, lent: "TokenCredential | None" = None) -> Storage:
        """Give the storage; only a gateway's can sign addresses of files.

        `lent` gives tokens of another process's identity, in place of this one's own.
        """
        if self.azure is None:
            return LocalStorage(self.root, self.options, signer)
        try:
            from graticule.storage.azure import AzureStorage  # noqa: PLC0415 - the extra is not always installed
        except ImportError:
            raise ConfigurationError(
                "The storage is Azure's, and the packages for it are not installed.",
                hint="Install graticule[azure], or set GRATICULE_STORAGE=local to keep files in folders.",
            ) from None
        return AzureStorage(self.azure, self.options, lent)


def storage_of(settings: "Settings") -> Storage:
    """Give the storage of an installation."""
    return StoragePlace.of(settings).opened(ReadSigner.of(settings))
