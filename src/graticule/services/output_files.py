"""Checks the files of one output: whether they are there, and have the size and the hash that were recorded."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graticule.core import json_codec
from graticule.core.errors import NotFound
from graticule.services.output_faults import FaultCode, Findings
from graticule.storage.protocol import BlobInfo, Storage

_SHA256_CODE: Final = "1220"  # a multihash begins with the function, and the number of bytes
_MOSAICS: Final = "/mosaics/"
_TILES: Final = "/cogs/"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file as the catalog describes it."""

    path: str
    size: int | None = None
    sha256: str | None = None


def files_of_item(item: Mapping[str, Any], container: str) -> dict[str, ExpectedFile]:
    """Return the files in a container that an item describes, by their paths; its other assets are services."""
    assets = [each for each in item.get("assets", {}).values() if str(each.get("href")).startswith(f"{container}/")]
    return {each["href"]: _expected(each) for each in assets}


def _expected(asset: Mapping[str, Any]) -> ExpectedFile:
    size, checksum = asset.get("file:size"), str(asset.get("file:checksum", ""))
    is_sha256 = checksum.startswith(_SHA256_CODE) and len(checksum) == len(_SHA256_CODE) + 64
    return ExpectedFile(
        asset["href"],
        size if isinstance(size, int) else None,
        checksum.removeprefix(_SHA256_CODE) if is_sha256 else None,
    )


def prefix_of_tiles(mosaic_path: str) -> str | None:
    """Return the prefix below which all tiles of a mosaic lie; None when the mosaic is not where mosaics are."""
    before, folder, _ = mosaic_path.rpartition(_MOSAICS)
    return f"{before}{_TILES}" if folder else None


class OutputFiles:
    """The files of one output, looked at one after the other."""

    def __init__(self, storage: Storage, findings: Findings, *, is_quick: bool, on_read: Callable[[int], None]) -> None:
        """`on_read` hears how many bytes were read."""
        self._storage, self._findings = storage, findings
        self._is_quick, self._on_read = is_quick, on_read

    async def check(self, file: ExpectedFile) -> bool:
        """Check one file; False when something is wrong with it."""
        try:
            blob = await self._storage.stat(file.path)
            self._findings.see(blob)
            return await self._is_intact(file, blob)
        except NotFound:
            self._add_missing(file.path)
            return False

    async def check_tiles(self, mosaic_path: str, hashes: Mapping[str, str], output_hash: str | None) -> None:
        """Check all tiles of a mosaic that is intact itself: by their own hashes, or else by that of all together."""
        prefix = prefix_of_tiles(mosaic_path)
        wanted = _tiles_of(await self._storage.get(mosaic_path))
        if wanted is None or prefix is None or any(not path.startswith(prefix) for path in wanted):
            self._findings.add(
                FaultCode.FILE_CONTENT, mosaic_path, f"The file {mosaic_path} is no mosaic of tiles below {prefix}."
            )
            return
        count, digests = len(wanted), []
        async for blob in self._storage.list(prefix):
            if blob.path in wanted:
                wanted.discard(blob.path)
                self._findings.see(blob)
                digests.append(await self._check_tile(blob, hashes.get(blob.path)))
        for path in sorted(wanted):
            self._add_missing(path)
        if self._is_quick or wanted or len(hashes) >= count or None in digests:
            return
        if output_hash is None:
            self._findings.unhashed.append(f"{count:,} tiles of {mosaic_path}")
        elif _digest_of(digests) != output_hash:
            self._findings.add(
                FaultCode.FILE_CONTENT,
                mosaic_path,
                f"At least one of the {count:,} tiles below {prefix} has been changed: their common hash is another.",
            )

    async def _check_tile(self, blob: BlobInfo, sha256: str | None) -> str | None:
        """Return the hash of a tile; None when it was not read, or is not what the catalog says."""
        if self._is_quick:
            return None
        try:
            digest = await self._hash(blob.path)
        except NotFound:
            self._add_missing(blob.path)
            return None
        return digest if self._has_hash(blob.path, digest, sha256) else None

    async def _is_intact(self, file: ExpectedFile, blob: BlobInfo) -> bool:
        if file.size is not None and blob.size != file.size:
            message = f"The file {file.path} has {blob.size:,} bytes and should have {file.size:,}."
            self._findings.add(FaultCode.FILE_SIZE, file.path, message)
            return False
        if file.sha256 is None:
            self._findings.unhashed.append(file.path)
            return True
        return self._is_quick or self._has_hash(file.path, await self._hash(file.path), file.sha256)

    def _has_hash(self, path: str, digest: str, sha256: str | None) -> bool:
        if sha256 in {None, digest}:
            return True
        message = f"The file {path} has been changed: its SHA-256 is {digest} and should be {sha256}."
        self._findings.add(FaultCode.FILE_CONTENT, path, message)
        return False

    async def _hash(self, path: str) -> str:
        digest = hashlib.sha256()
        async for piece in self._storage.stream(path):
            digest.update(piece)
            self._on_read(len(piece))
        return digest.hexdigest()

    def _add_missing(self, path: str) -> None:
        self._findings.add(FaultCode.FILE_MISSING, path, f"The file {path} is missing.")


def _tiles_of(text: bytes) -> set[str] | None:
    """Return the paths of all tiles that a mosaic names; None when it is none."""
    try:
        return {str(path) for paths in json_codec.decode(text)["tiles"].values() for path in paths}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _digest_of(digests: list[str | None]) -> str:
    """Hash the hashes of tiles as `raster.create_mosaic` does."""
    return hashlib.sha256("".join(sorted(each for each in digests if each is not None)).encode()).hexdigest()
