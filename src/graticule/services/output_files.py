"""Checks the files of one output: whether they are there, and have the size and the hash that were recorded."""

from collections.abc import Callable, Mapping
from typing import Final

from graticule.core.errors import NotFound
from graticule.handlers.outputs.described_files import DescribedFile, hash_file, hash_of_tiles, tiles_of_mosaic
from graticule.services.output_faults import FaultCode, Findings
from graticule.storage.protocol import BlobInfo, Storage

_MOSAICS: Final = "/mosaics/"
_TILES: Final = "/cogs/"


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

    async def check(self, file: DescribedFile) -> bool:
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
        wanted = tiles_of_mosaic(await self._storage.get(mosaic_path))
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
        elif hash_of_tiles(filter(None, digests)) != output_hash:
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

    async def _is_intact(self, file: DescribedFile, blob: BlobInfo) -> bool:
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
        return await hash_file(self._storage, path, self._on_read)

    def _add_missing(self, path: str) -> None:
        self._findings.add(FaultCode.FILE_MISSING, path, f"The file {path} is missing.")
