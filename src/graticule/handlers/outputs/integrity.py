"""Whether the files of a revision are still those that its job made: asked before access opens, and before a copy.

What was made is written down in the item: the size and SHA-256 of the files that it describes, and one hash of the
paths, sizes and etags of all. A file has another etag when it is written again, but also after a restore or a move to
another storage: then the contents decide, where their hashes are known.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graticule.handlers.outputs.described_files import (
    DescribedFile,
    files_of_item,
    hash_file,
    hash_of_tiles,
    tiles_of_mosaic,
)
from graticule.handlers.outputs.staging import COGS, MOSAICS, SCHEMES
from graticule.storage.protocol import BlobInfo, Storage

FILES_ETAG: Final = "graticule:files_etag"
TILES_HASH: Final = "graticule:tiles_hash"


@dataclass(frozen=True, slots=True)
class RevisionFiles:
    """The files of a revision, and what is known of them."""

    prefix: str  # with the container, and a slash at the end
    blob_path: str | None  # the one that stands for all
    item: Mapping[str, Any] | None

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties of the item."""
        return self.item["properties"] if self.item else {}

    @property
    def described(self) -> dict[str, DescribedFile]:
        """The files of which the item says something, by their paths."""
        return files_of_item(self.item, self.prefix) if self.item else {}

    @property
    def checksums(self) -> dict[str, str]:
        """The SHA-256 of those files of which the item states one, by their paths."""
        return {path: file.sha256 for path, file in self.described.items() if file.sha256 is not None}

    @property
    def sizes(self) -> dict[str, int | None]:
        """The files that have to be there, with their sizes where they are known."""
        sizes: dict[str, int | None] = {} if self.blob_path is None else {self.blob_path: None}
        return sizes | {path: file.size for path, file in self.described.items()}


def hash_etags(blobs: Iterable[BlobInfo]) -> str:
    """Return what is another one when one of these files is written again, or when there is another file."""
    lines = sorted(f"{blob.path} {blob.size} {blob.etag}\n" for blob in blobs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


async def find_fault(storage: Storage, files: RevisionFiles, *, max_bytes_hashed: int) -> str | None:
    """Return why these are not the files that were made, or None.

    Files of up to `max_bytes_hashed` are read in any case, larger ones only when they may have been written again.
    """
    if files.blob_path is not None and not files.blob_path.startswith(files.prefix):
        return f"the file {files.blob_path!r} does not lie below {files.prefix!r}"
    blobs = {blob.path: blob async for blob in storage.list(files.prefix)}
    for path, size in files.sizes.items():
        if path not in blobs:
            return f"the file {path!r} is missing"
        if size not in {None, blobs[path].size}:
            return f"the file {path!r} has {blobs[path].size:,} bytes and should have {size:,}"
    recorded = files.properties.get(FILES_ETAG)
    may_differ = recorded is not None and recorded != hash_etags(blobs.values())
    for path, checksum in files.checksums.items():
        is_read = may_differ or blobs[path].size <= max_bytes_hashed
        if is_read and await hash_file(storage, path) != checksum:
            return f"the file {path!r} was changed"
    if recorded is None:
        return await _find_missing_tile(storage, files, blobs)
    return await _find_unknown_file(storage, files, blobs) if may_differ else None


async def _find_missing_tile(storage: Storage, files: RevisionFiles, blobs: Mapping[str, BlobInfo]) -> str | None:
    """Look for the tiles that a mosaic names; releases before this one wrote down nothing else of them."""
    path = files.blob_path
    if path is None or not path.startswith(f"{files.prefix}{MOSAICS}/"):
        return None
    tiles = tiles_of_mosaic(await storage.get(path))
    if tiles is None:
        return f"the file {path!r} is no mosaic"
    return next((f"the tile {tile!r} of the mosaic is missing" for tile in sorted(tiles) if tile not in blobs), None)


async def _find_unknown_file(storage: Storage, files: RevisionFiles, blobs: Mapping[str, BlobInfo]) -> str | None:
    """Look for files whose contents nothing vouches for. Earlier releases recorded no checksum of the tile grid."""
    known, schemes = files.checksums.keys(), f"{files.prefix}{SCHEMES}/"
    has_scheme = any(path.startswith(schemes) for path in known)
    unknown = sorted(path for path in blobs if path not in known and (has_scheme or not path.startswith(schemes)))
    tiles_hash = files.properties.get(TILES_HASH)
    if tiles_hash is not None and all(path.startswith(f"{files.prefix}{COGS}/") for path in unknown):
        is_same = hash_of_tiles([await hash_file(storage, path) for path in unknown]) == tiles_hash
        return None if is_same else f"at least one of the {len(unknown):,} tiles was changed, added or removed"
    return f"the file {unknown[0]!r} was written again, and its SHA-256 is not known" if unknown else None
