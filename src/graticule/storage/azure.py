"""Containers of Azure Blob Storage.

Data go through obstore. What it cannot do (containers, lists of blocks, copies that Azure makes by itself, signatures)
is done by Azure's own client, in threads.
"""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import obstore
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from graticule.core.errors import NotFound, Unavailable
from graticule.storage import azure_blocks
from graticule.storage.azure_accounts import AzureAccounts, Blob
from graticule.storage.azure_conditions import AzureCondition, delete_as_it_was, quoted
from graticule.storage.azure_errors import ContainerMissing, told
from graticule.storage.azure_unfinished import delete_unfinished
from graticule.storage.local_copies import LocalCopies
from graticule.storage.options import OUTPUTS, AzureOptions, StorageOptions
from graticule.storage.paths import CURL, Source, check_admitted, is_name, partial_name, prefix_parts, resolve
from graticule.storage.pieces import PIECE_BYTES, check_range, pieces_of
from graticule.storage.protocol import BlobInfo, Data
from graticule.storage.signing import LONGEST_SECONDS, check_address
from graticule.storage.temporary_folders import new_folder, remove_folder

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from obstore import GetOptions, GetResult, ObjectMeta

READ_SECONDS: Final = 3600  # for which GDAL may at least read what it was given the name of
READ_MARGIN_SECONDS: Final = 900  # by which a signature outlives the task that it was made for
COPIED_AT_ONCE: Final = 256 * 1024 * 1024  # by one request, as Azure has it
DELETED_AT_ONCE: Final = 1000


class AzureStorage:
    """Keeps blobs in Azure; what is written is visible as a whole or not at all."""

    def __init__(
        self, azure: AzureOptions, options: StorageOptions | None = None, lent: "TokenCredential | None" = None
    ) -> None:
        """`lent` gives tokens of another process's identity, in place of this one's own."""
        self.options = options or StorageOptions()
        self._accounts = AzureAccounts(azure, lent=lent)
        self._read_seconds = READ_SECONDS

    @property
    def silver(self) -> str:
        """Name the container of what we make."""
        return self.options.silver

    def limited_to(self, sources: Sequence[str] | None) -> Self:
        """Return the same storage for a task that may reach these sources and our own containers; None: everything."""
        _ = self._copies  # both keep them in one folder
        limited = copy.copy(self)
        admitted = None if sources is None else tuple(sources)
        limited.options = self.options.model_copy(update={"sources": admitted})
        return limited

    async def put(self, path: str, data: Data, *, only_new: bool = False, etag: str | None = None) -> None:
        """Write a blob, in place of one that is there; see `writing` for when it is refused."""
        if isinstance(data, bytes):
            blob = self._blob(path)
            await self._written(path, lambda: self._put(blob, data, AzureCondition(path, only_new, etag)))
            return
        async with self.writing(path, only_new=only_new, etag=etag) as file:
            with file.open("wb") as stream:
                async for piece in pieces_of(data):
                    with _on_disk(path):
                        await asyncio.to_thread(stream.write, piece)

    async def get(self, path: str) -> bytes:
        """Read a blob as a whole."""
        return await self.read(path)

    async def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a part of a blob."""
        check_range(start, length)
        found = None if length == 0 else await self._opened(path, start, length)
        if found is None:
            await self.stat(path)  # there is nothing in such a part, if there is a blob
            return b""
        with told(path):
            return bytes(await found.bytes_async())

    async def stream(self, path: str, start: int = 0) -> AsyncIterator[bytes]:
        """Read a blob piece by piece, from a byte on."""
        check_range(start)
        found = await self._opened(path, start)
        if found is None:
            return
        pieces = aiter(found.stream(min_chunk_size=PIECE_BYTES))
        while piece := await self._next(pieces, path):
            yield piece

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Give the blobs below a prefix, in the order of their paths."""
        container, *names = self._prefix(prefix)
        pages = aiter(obstore.list(self._accounts.store(container), "/".join(names) or None))
        while page := await self._next_page(pages, prefix):
            for found in page:
                if all(map(is_name, found["path"].split("/"))):
                    yield _info(container, found)

    async def folders(self, prefix: str) -> AsyncIterator[str]:
        """Give the names that stand directly below a prefix and lead further."""
        container, *names = self._prefix(prefix)
        try:
            with told(prefix):
                found = await obstore.list_with_delimiter_async(
                    self._accounts.store(container), "/".join(names) or None
                )
        except ContainerMissing:
            return
        for path in sorted(found["common_prefixes"]):
            if is_name(name := path.rstrip("/").rpartition("/")[2]):
                yield name

    async def copy(self, source: str, target: str) -> None:
        """Copy a blob, in place of one that is there."""
        await self._copied(source, target)

    async def move(self, source: str, target: str) -> None:
        """Give a blob another path, in place of one that is there."""
        if source == target:
            await self.stat(source)
            return
        copied = await self._copied(source, target)
        client = self._accounts.client(self._blob(source))
        # What was written there meanwhile was not copied, and is not removed.
        with told(source), contextlib.suppress(ResourceNotFoundError):
            await asyncio.to_thread(delete_as_it_was, client, copied.etag)

    async def delete(self, path: str) -> None:
        """Remove a blob; one that is not there is no error."""
        blob = self._blob(path)
        with contextlib.suppress(NotFound), told(path):
            await obstore.delete_async(self._accounts.store(blob.container), blob.name)

    async def delete_below(self, prefix: str) -> int:
        """Remove all blobs below a prefix, and tell how many there were."""
        blob = self._blob(prefix.removesuffix("/"))  # a container is never removed as a whole
        store, count = self._accounts.store(blob.container), 0
        async for page in _pages(self.list(prefix)):
            with contextlib.suppress(NotFound), told(prefix):  # another one removes the same
                await obstore.delete_async(store, [found.path.partition("/")[2] for found in page])
            count += len(page)
        return count

    async def delete_unfinished(self, before: datetime) -> int:
        """Remove what was begun before this time and never became a blob, and tell how much that was."""
        ours = dict.fromkeys((self.options.silver, self.options.external, OUTPUTS))
        return sum([await asyncio.to_thread(self._delete_unfinished, container, before) for container in ours])

    async def exists(self, path: str) -> bool:
        """Tell whether the blob is there."""
        try:
            await self.stat(path)
        except NotFound:
            return False
        return True

    async def stat(self, path: str) -> BlobInfo:
        """Tell what is known of a blob."""
        blob = self._blob(path)
        with told(path):
            return _info(blob.container, await obstore.head_async(self._accounts.store(blob.container), blob.name))

    async def presigned_read(self, path: str, seconds: int = READ_SECONDS) -> str:
        """Give an address under which the blob can be read for a while, without a login."""
        check_address(path, seconds)
        return await asyncio.to_thread(self._signed, path, seconds)

    def source(self, name: str) -> Source:
        """Resolve a source in any of its forms: a blob, an address, or a file outside of the storage."""
        return resolve(name, self.options, lambda path: Source(path, self.readable(path), path))

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens the blob for range reads. It holds a signature."""
        return f"{CURL}{self._signed(path, self._read_seconds)}"

    def read_for(self, seconds: int) -> None:
        """Let names that `readable` gives from now on hold for so long, and no less than an hour."""
        self._read_seconds = min(max(READ_SECONDS, seconds + READ_MARGIN_SECONDS), LONGEST_SECONDS)

    @cached_property
    def _copies(self) -> LocalCopies:
        return LocalCopies()

    async def local(self, path: str) -> Path:
        """Give a file of this machine with what the blob holds; it is to be read. See the protocol for how long."""
        known = await self.stat(path)
        with _on_disk(path):
            file = self._copies.place(known)
            if not self._copies.has(known):
                await self._copy_here(path, file)
                self._copies.keep(known)
        return file

    @asynccontextmanager
    async def writing(self, path: str, *, only_new: bool = False, etag: str | None = None) -> AsyncIterator[Path]:
        """Give a local file to write to; it becomes the blob when the block ends well, and is gone otherwise.

        `only_new` and `etag` refuse with `Conflict` at that end when there is a blob, or none with this etag.
        """
        blob = self._blob(path)
        with _on_disk(path):
            folder = await asyncio.to_thread(new_folder)
        try:
            file = folder / partial_name("blob", blob.name)
            with _on_disk(path):
                await asyncio.to_thread(file.touch)
            yield file
            await self._written(path, lambda: self._upload(blob, file, AzureCondition(path, only_new, etag)))
        finally:
            await asyncio.shield(asyncio.to_thread(remove_folder, folder))

    def _blob(self, path: str) -> Blob:
        blob = self._accounts.blob(path)
        check_admitted(path, self.options)
        return blob

    def _prefix(self, prefix: str) -> tuple[str, ...]:
        parts = prefix_parts(prefix)
        check_admitted(f"{'/'.join(parts)}/", self.options)
        return parts

    async def _copy_here(self, path: str, file: Path) -> None:
        with file.open("wb") as copy:
            async for piece in self.stream(path):
                await asyncio.to_thread(copy.write, piece)

    async def _put(self, blob: Blob, data: bytes | Path, condition: AzureCondition) -> None:
        store = self._accounts.store(blob.container)
        with condition.refusing():
            await obstore.put_async(store, blob.name, data, use_multipart=False, mode=condition.mode)

    async def _upload(self, blob: Blob, file: Path, condition: AzureCondition) -> None:
        size = (await asyncio.to_thread(file.stat)).st_size
        if size <= azure_blocks.BLOCK_BYTES:
            await self._put(blob, file, condition)
        else:
            with condition.refusing():
                await azure_blocks.upload(self._accounts.client(blob), file, size, condition=condition.options)

    async def _written(self, path: str, write: Callable[[], Awaitable[None]]) -> None:
        """Write; a container that is not there is made, as a folder would be."""
        try:
            with told(path):
                await write()
        except ContainerMissing:
            blob = self._blob(path)
            with told(path):
                await asyncio.to_thread(self._make_container, blob)
                await write()

    def _make_container(self, blob: Blob) -> None:
        with contextlib.suppress(ResourceExistsError):  # another one was faster
            self._accounts.service(blob.account).create_container(blob.container)

    def _signed(self, path: str, seconds: int) -> str:
        blob = self._blob(path)
        with told(path):
            return self._accounts.signed(blob, seconds)

    async def _opened(self, path: str, start: int, length: int | None = None) -> "GetResult | None":
        """Begin to read; None when the blob ends before."""
        blob, options = self._blob(path), _range(start, length)
        try:
            with told(path):
                return await obstore.get_async(self._accounts.store(blob.container), blob.name, options=options)
        except Unavailable:  # Azure refuses a part in which there is nothing
            if start >= (await self.stat(path)).size:
                return None
            raise

    async def _next(self, pieces: AsyncIterator[Any], path: str) -> bytes:
        try:
            with told(path):
                return bytes(await anext(pieces))
        except StopAsyncIteration:
            return b""

    async def _next_page(self, pages: AsyncIterator[Any], prefix: str) -> "Sequence[ObjectMeta]":
        try:
            with told(prefix):
                found: Sequence[ObjectMeta] = await anext(pages)
        except (StopAsyncIteration, ContainerMissing):
            return ()
        return found

    async def _copied(self, source: str, target: str) -> BlobInfo:
        """Let Azure copy a blob as it is now, and tell what that was; where it may not, we do it."""
        known = await self.stat(source)
        made = self._blob(target)
        try:
            await self._written(target, lambda: self._copy_there(source, known, made))
        except Unavailable:
            if made.account == self._blob(source).account:
                raise
            await self.put(target, self.stream(source))  # two accounts that do not reach each other
        return known

    async def _copy_there(self, source: str, known: BlobInfo, made: Blob) -> None:
        address, client = await asyncio.to_thread(self._signed, source, self._read_seconds), self._accounts.client(made)
        if known.size <= COPIED_AT_ONCE:
            await asyncio.to_thread(
                client.start_copy_from_url,
                address,
                requires_sync=True,
                source_etag=quoted(known.etag),
                source_match_condition=MatchConditions.IfNotModified,
            )
            return

        async def check_source() -> None:
            if (await self.stat(source)).etag != known.etag:
                raise Unavailable(f"{source!r} was changed while it was copied.")

        await azure_blocks.copy(address, known.size, client, check_source)

    def _delete_unfinished(self, container: str, before: datetime) -> int:
        account = self._accounts.account_of(container)
        try:
            with told(container):
                return delete_unfinished(self._accounts.service(account).get_container_client(container), before)
        except ContainerMissing:
            return 0


def _info(container: str, found: "ObjectMeta") -> BlobInfo:
    etag = (found["e_tag"] or "").strip('"')
    return BlobInfo(f"{container}/{found['path']}", found["size"], etag, found["last_modified"])


def _range(start: int, length: int | None) -> "GetOptions | None":
    if length is not None:
        return {"range": (start, start + length)}
    return {"range": {"offset": start}} if start else None


@contextmanager
def _on_disk(path: str) -> Iterator[None]:
    """Tell what is wrong with this machine's disk, which may pass, as the domain does."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path!r} cannot be kept on this machine now: {error.strerror}.") from error


async def _pages(found: AsyncIterator[BlobInfo]) -> AsyncIterator[list[BlobInfo]]:
    """Give as many at once as are removed with few requests."""
    page: list[BlobInfo] = []
    async for blob in found:
        page.append(blob)
        if len(page) == DELETED_AT_ONCE:
            yield page
            page = []
    if page:
        yield page
