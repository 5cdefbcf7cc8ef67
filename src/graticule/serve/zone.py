"""The one container that a service may read."""

from typing import Self

from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.core.errors import NotFound
from graticule.storage.place import storage_of
from graticule.storage.protocol import BlobInfo, Storage


class Zone:
    """A storage of which nothing but one container can be reached, whatever a row or a mosaic may name."""

    def __init__(self, storage: Storage, container: str) -> None:
        self._storage = storage
        self._container = container

    @classmethod
    def of(cls, settings: Settings, audience: Audience) -> Self:
        """Give the zone of an audience: the public reads the copies that were made for it."""
        is_internal = audience is Audience.INTERNAL
        return cls(storage_of(settings), settings.silver_container if is_internal else settings.external_container)

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens a blob. It may hold a signature: never show it."""
        return self._storage.readable(self._own(path))

    async def get(self, path: str) -> bytes:
        """Read a blob as a whole."""
        return await self._storage.get(self._own(path))

    async def stat(self, path: str) -> BlobInfo:
        """Tell what is known of a blob."""
        return await self._storage.stat(self._own(path))

    def _own(self, path: str) -> str:
        if path.partition("/")[0] != self._container:
            raise NotFound("The data are not where this service may read.")
        return path
