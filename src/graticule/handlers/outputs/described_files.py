"""The files of an output as they were recorded: sizes and hashes in its item, and the tiles that its mosaic names."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graticule.core import json_codec
from graticule.storage.protocol import Storage

_SHA256_CODE: Final = "1220"  # a multihash begins with the function, and the number of bytes


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A file, with what is known of its contents."""

    path: str
    size: int | None = None
    sha256: str | None = None


def files_of_item(item: Mapping[str, Any], prefix: str) -> dict[str, DescribedFile]:
    """Return the files below a prefix that an item describes, by their paths; its other assets are services."""
    assets = [asset for asset in item.get("assets", {}).values() if str(asset.get("href")).startswith(prefix)]
    return {asset["href"]: _describe(asset) for asset in assets}


def _describe(asset: Mapping[str, Any]) -> DescribedFile:
    size, checksum = asset.get("file:size"), str(asset.get("file:checksum", ""))
    is_sha256 = checksum.startswith(_SHA256_CODE) and len(checksum) == len(_SHA256_CODE) + 64
    return DescribedFile(
        asset["href"],
        size if isinstance(size, int) else None,
        checksum.removeprefix(_SHA256_CODE) if is_sha256 else None,
    )


def tiles_of_mosaic(text: bytes) -> set[str] | None:
    """Return the paths of all tiles that a mosaic names; None when it is none."""
    try:
        return {str(path) for paths in json_codec.decode(text)["tiles"].values() for path in paths}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def hash_of_tiles(hashes: Iterable[str]) -> str:
    """Return one hash of the contents of all tiles, whatever their order."""
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


async def hash_file(storage: Storage, path: str, on_read: Callable[[int], None] = lambda _: None) -> str:
    """Return the SHA-256 of a file; `on_read` is called with the bytes read since the last call."""
    digest = hashlib.sha256()
    async for piece in storage.stream(path):
        await asyncio.to_thread(digest.update, piece)
        on_read(len(piece))
    return digest.hexdigest()
