"""What the rest of the code sees of a storage: blobs under paths `container/blob/path`, wherever they are kept."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from graticule.storage.options import StorageOptions
from graticule.storage.paths import Source

Data = bytes | Iterable[bytes] | AsyncIterable[bytes]


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What is known of a blob without reading it."""

    path: str
    size: int
    etag: str  # another one when the content is another
    modified_at: datetime


class Storage(Protocol):
    """Keeps blobs. What is written is visible as a whole or not at all; a missing blob is `NotFound`."""

    @property
    def options(self) -> StorageOptions:
        """Tell whose containers are whose, and what may be read besides."""

    @property
    def silver(self) -> str:
        """Name the container of what we make."""

    def limited_to(self, sources: Sequence[str] | None) -> "Storage":
        """Return the same storage for a task that may reach these sources and our own containers; None: everything.

        All else is `NotFound`, whether or not it is there.
        """

    async def put(self, path: str, data: Data, *, only_new: bool = False, etag: str | None = None) -> None:
        """Write a blob, in place of one that is there; see `writing` for when it is refused."""

    async def get(self, path: str) -> bytes:
        """Read a blob as a whole."""

    async def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a part of a blob."""

    def stream(self, path: str, start: int = 0) -> AsyncIterator[bytes]:
        """Read a blob piece by piece, from a byte on."""

    def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Give the blobs below a prefix, in the order of their paths."""

    def folders(self, prefix: str) -> AsyncIterator[str]:
        """Give the names that stand directly below a prefix and lead further."""

    async def copy(self, source: str, target: str) -> None:
        """Copy a blob, in place of one that is there."""

    async def move(self, source: str, target: str) -> None:
        """Give a blob another path, in place of one that is there."""

    async def delete(self, path: str) -> None:
        """Remove a blob; one that is not there is no error."""

    async def delete_below(self, prefix: str) -> int:
        """Remove all blobs below a prefix, and tell how many there were."""

    async def delete_unfinished(self, before: datetime) -> int:
        """Remove what was begun before this time and never became a blob, and tell how much that was."""

    async def exists(self, path: str) -> bool:
        """Tell whether the blob is there."""

    async def stat(self, path: str) -> BlobInfo:
        """Tell what is known of a blob."""

    async def presigned_read(self, path: str, seconds: int = 3600) -> str:
        """Give an address under which the blob can be read for a while, without a login."""

    def source(self, name: str) -> Source:
        """Resolve a source in any of its forms: a blob (see `readable`), an address, or another file."""

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens the blob for range reads, for an hour or what `read_for` has said.

        It may hold a signature: never show it. To make that may take a request: never ask in the loop's own thread.
        """

    def read_for(self, seconds: int) -> None:
        """Let names that `readable` gives from now on hold for so long, and no less than an hour."""

    async def local(self, path: str) -> Path:
        """Give a file of this machine with what the blob holds; it is to be read.

        It stays until another dataset is asked for: whoever reads several at once opens each before the next.
        """

    def writing(
        self, path: str, *, only_new: bool = False, etag: str | None = None
    ) -> AbstractAsyncContextManager[Path]:
        """Give a local file to write to; it becomes the blob when the block ends well, and is gone otherwise.

        `only_new` and `etag` refuse with `Conflict` at that end when there is a blob, or none with this etag. Where an
        answer was lost on the way, the writer that is refused may be the one that has written.
        """
