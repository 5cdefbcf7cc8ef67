"""Outputs too large for a row: they are kept in the storage, and the row has a reference."""

from typing import Final

import orjson
from pydantic import JsonValue

from graticule.core.errors import InvalidInput
from graticule.repositories.steps import StoredOutput, document
from graticule.storage.local import LocalStorage

INLINE_BYTES: Final = 1024 * 1024
LARGEST_BYTES: Final = 64 * 1024 * 1024  # as much as a worker puts aside; a reference may lead elsewhere
INLINE_CHILD_BYTES: Final = 256 * 1024


class OutputStore:
    """Reads outputs wherever they are, and puts aside those that are too large."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage

    async def read(self, stored: StoredOutput) -> JsonValue:
        """Give an output, from its row or from the storage."""
        if stored.output_ref is None:
            found: JsonValue = stored.output
            return found
        if await self._storage.size(stored.output_ref) > LARGEST_BYTES:
            raise InvalidInput(f"The output {stored.output_ref!r} has more than {LARGEST_BYTES:,} bytes.")
        try:
            value: JsonValue = orjson.loads(await self._storage.get(stored.output_ref))
        except ValueError:
            raise InvalidInput(f"The output {stored.output_ref!r} is not JSON.") from None
        return value

    async def keep(self, value: JsonValue, path: str) -> tuple[JsonValue, str | None]:
        """Give what the row holds: the value itself, or the reference under which it is stored now."""
        if value is None or len(data := document(value).encode()) <= INLINE_BYTES:
            return value, None
        await self._storage.put(path, data)
        return None, path
