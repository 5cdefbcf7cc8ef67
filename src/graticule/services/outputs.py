"""Outputs too large for a row: they are kept in the storage, and the row has a reference."""

import asyncio
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.repositories.steps import StoredOutput, document
from graticule.storage.protocol import Storage

INLINE_BYTES: Final = 1024 * 1024
LARGEST_BYTES: Final = 64 * 1024 * 1024  # as much as a worker puts aside; a reference may lead elsewhere
INLINE_CHILD_BYTES: Final = 256 * 1024
MUCH_BYTES: Final = 1024 * 1024  # of JSON: what takes milliseconds to go through is not done in the loop


def _parsed(texts: Mapping[str, str]) -> dict[str, JsonValue]:
    return {name: json_codec.decode(text) for name, text in texts.items()}


async def parsed(texts: Mapping[str, str]) -> dict[str, JsonValue]:
    """Parse outputs that rows hold; many are parsed beside the loop."""
    if sum(map(len, texts.values())) > MUCH_BYTES:
        return await asyncio.to_thread(_parsed, texts)
    return _parsed(texts)


class OutputStore:
    """Reads outputs wherever they are, and puts aside those that are too large."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def read(self, stored: StoredOutput) -> JsonValue:
        """Give an output, from its row or from the storage."""
        if stored.output_ref is None:
            found: JsonValue = stored.output
            return found
        if await self.size(stored.output_ref) > LARGEST_BYTES:
            raise InvalidInput(f"The output {stored.output_ref!r} has more than {LARGEST_BYTES:,} bytes.")
        try:
            value: JsonValue = json_codec.decode(await self._storage.get(stored.output_ref))
        except ValueError:
            raise InvalidInput(f"The output {stored.output_ref!r} is not JSON.") from None
        return value

    async def size(self, output_ref: str) -> int:
        """Tell how many bytes a stored output has."""
        return (await self._storage.stat(output_ref)).size

    async def keep(self, value: JsonValue, path: str) -> tuple[JsonValue, str | None]:
        """Give what the row holds: the value itself, or the reference under which it is stored now."""
        if value is None or len(data := document(value).encode()) <= INLINE_BYTES:
            return value, None
        await self._storage.put(path, data)
        return None, path
