"""Files below one folder of this machine: a container is a folder, a blob a file."""

import asyncio
import contextlib
import copy
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Self, TypeVar
from uuid import uuid4

from graticule.core.errors import ConfigurationError, InvalidInput, NotFound, Unavailable
from graticule.storage.conditions import Condition
from graticule.storage.options import StorageOptions
from graticule.storage.paths import (
    Source,
    below,
    blob_parts,
    check_admitted,
    is_name,
    is_partial,
    missing_blob,
    partial_name,
    prefix_parts,
    resolve,
)
from graticule.storage.pieces import PIECE_BYTES, check_range, pieces_of
from graticule.storage.protocol import BlobInfo, Data
from graticule.storage.signing import ReadSigner

NAMES_AT_ONCE: Final = 1000
_NEVER_A_FILE: Final = frozenset({errno.ELOOP, errno.ENAMETOOLONG})  # no later attempt finds one there
_MOST_TRIES: Final = 100  # to write into a folder that others tidy away meanwhile

T = TypeVar("T")


class LocalStorage:
    """Keeps blobs below `root`; what is written is visible as a whole or not at all."""

    def __init__(self, root: Path, options: StorageOptions | None = None, signer: ReadSigner | None = None) -> None:
        self.options = options or StorageOptions()
        self._root = root
        self._signer = signer

    @property
    def silver(self) -> str:
        """Name the container of what we make."""
        return self.options.silver

    def limited_to(self, sources: Sequence[str] | None) -> Self:
        """Return the same storage for a task that may reach these sources and our own containers; None: everything."""
        limited = copy.copy(self)
        admitted = None if sources is None else tuple(sources)
        limited.options = self.options.model_copy(update={"sources": admitted})
        return limited

    async def put(self, path: str, data: Data, *, only_new: bool = False, etag: str | None = None) -> None:
        """Write a blob, in place of one that is there; see `writing` for when it is refused."""
        if isinstance(data, bytes):
            file = self._file(path)
            with _told(path):
                await asyncio.to_thread(_put, file, data, Condition(path, only_new, etag))
            return
        async with self.writing(path, only_new=only_new, etag=etag) as partial:
            # A cancelled task closes the file only when its last piece is written: a buffered file has a lock.
            with partial.open("wb") as stream:
                async for piece in pieces_of(data):
                    with _told(path):
                        await asyncio.to_thread(stream.write, piece)

    async def get(self, path: str) -> bytes:
        """Read a blob as a whole."""
        return await self.read(path)

    async def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a part of a blob."""
        check_range(start, length)
        file = self._file(path)
        with _told(path):
            return await asyncio.to_thread(_read, file, start, length)

    async def stream(self, path: str, start: int = 0) -> AsyncIterator[bytes]:
        """Read a blob piece by piece, from a byte on."""
        check_range(start)
        file = self._file(path)
        with _told(path):
            opened = await asyncio.to_thread(_opened, file, start)
        with opened:
            while piece := await self._next(opened, path):
                yield piece

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Give the blobs below a prefix, in the order of their paths."""
        parts = prefix_parts(prefix)
        found = _blobs_below(self._below(parts, is_folder=True), "/".join(parts))
        while page := await asyncio.to_thread(_page, found):
            for blob in page:
                yield blob

    async def folders(self, prefix: str) -> AsyncIterator[str]:
        """Give the names that stand directly below a prefix and lead further."""
        parent = self._below(prefix_parts(prefix), is_folder=True)
        for name in await asyncio.to_thread(_folders_in, parent):
            yield name

    async def copy(self, source: str, target: str) -> None:
        """Copy a blob, in place of one that is there."""
        original, copied = self._file(source), self._file(target)
        with _told(source):
            await asyncio.to_thread(_copy, original, copied)

    async def move(self, source: str, target: str) -> None:
        """Give a blob another path, in place of one that is there."""
        original, moved = self._file(source), self._file(target)
        with _told(source):
            await asyncio.to_thread(_move, original, moved)
        await asyncio.to_thread(self._tidy, source)

    async def delete(self, path: str) -> None:
        """Remove a blob; one that is not there is no error."""
        file = self._file(path)
        with _told(path):
            await asyncio.to_thread(self._delete, file, path)

    async def delete_below(self, prefix: str) -> int:
        """Remove all blobs below a prefix, and tell how many there were."""
        folder = self._file(prefix.removesuffix("/"))  # a container is never removed as a whole
        with _told(prefix):
            return await asyncio.to_thread(self._delete_below, folder, prefix)

    async def delete_unfinished(self, before: datetime) -> int:
        """Remove what was begun before this time and never became a blob, and tell how much that was."""
        return await asyncio.to_thread(_delete_partials, self._root, before.timestamp())

    async def exists(self, path: str) -> bool:
        """Tell whether the blob is there."""
        try:
            file = self._file(path)
        except NotFound:
            return False
        return await asyncio.to_thread(file.is_file)

    async def stat(self, path: str) -> BlobInfo:
        """Tell what is known of a blob."""
        file = self._file(path)
        with _told(path):
            return _info(path, await asyncio.to_thread(_status, file))

    async def presigned_read(self, path: str, seconds: int = 3600) -> str:
        """Give an address under which the blob can be read for a while, without a login."""
        if self._signer is None:
            raise ConfigurationError(
                "No address of a blob can be given: this process has no key to sign it with.",
                hint="Set GRATICULE_SERVICE_KEY, the same as the gateway's; workers have none.",
            )
        return self._signer.address(path, seconds)

    def admits(self, path: str, expires: str, signature: str) -> bool:
        """Tell whether an address was signed for this blob, and still holds."""
        return self._signer is not None and self._signer.admits(path, expires, signature)

    def source(self, name: str) -> Source:
        """Resolve a source in any of its forms: a blob, an address, or a file outside of the storage."""
        found = resolve(name, self.options, lambda path: Source(path, self.readable(path), path))
        root = os.path.realpath(self._root)
        if found.blob is None and Path(found.opened).is_relative_to(root):  # the long way round to one of its blobs
            return replace(found, blob=Path(found.opened).relative_to(root).as_posix())
        return found

    def readable(self, path: str) -> str:
        """Give the name under which GDAL opens the blob for range reads."""
        return str(self._file(path))

    def read_for(self, seconds: int) -> None:
        """Do nothing: a file can be read for ever."""

    async def local(self, path: str) -> Path:
        """Give a file of this machine with what the blob holds; it is to be read."""
        await self.stat(path)
        return self._file(path)

    @asynccontextmanager
    async def writing(self, path: str, *, only_new: bool = False, etag: str | None = None) -> AsyncIterator[Path]:
        """Give a local file to write to; it becomes the blob when the block ends well, and is gone otherwise.

        `only_new` and `etag` refuse with `Conflict` at that end when there is a blob, or none with this etag.
        """
        file = self._file(path)
        with _told(path):
            partial = await asyncio.to_thread(_new_partial, file)
        try:
            yield partial
            with _told(path):
                await asyncio.to_thread(_finish, partial, file, Condition(path, only_new, etag))
        finally:
            partial.unlink(missing_ok=True)

    def _file(self, path: str) -> Path:
        return self._below(blob_parts(path))

    def _below(self, parts: tuple[str, ...], *, is_folder: bool = False) -> Path:
        """Find a file or folder; a link counts as what it leads to."""
        if self.options.sources is None:
            return below(self._root, parts)
        end = "/" if is_folder else ""
        check_admitted(f"{'/'.join(parts)}{end}", self.options)
        try:
            file = below(self._root, parts)
        except InvalidInput as error:  # a link out of its container tells a partner nothing of what is outside
            raise missing_blob("/".join(parts)) from error
        inside = file.relative_to(os.path.realpath(self._root)).as_posix()
        if not self.options.admits(f"{inside}{end}"):
            raise missing_blob("/".join(parts))
        return file

    async def _next(self, opened: BinaryIO, path: str) -> bytes:
        with _told(path):
            return await asyncio.to_thread(opened.read, PIECE_BYTES)

    def _tidy(self, path: str) -> None:
        """Remove the folders that a blob has left empty, up to its container."""
        parts = blob_parts(path)
        with contextlib.suppress(OSError):  # one that is not empty
            for length in range(len(parts) - 1, 1, -1):
                self._root.joinpath(*parts[:length]).rmdir()

    def _delete(self, file: Path, path: str) -> None:
        if file.is_file():
            with contextlib.suppress(FileNotFoundError), _held(file.parent):  # another one removes the same
                file.unlink()
            self._tidy(path)

    def _delete_below(self, folder: Path, prefix: str) -> int:
        if not folder.is_dir():
            return 0
        count = sum(1 for _ in _blobs_below(folder, ""))
        _remove_tree(folder)
        self._tidy(prefix.removesuffix("/"))
        return count


def _check(condition: Condition, file: Path) -> None:
    """Refuse what a condition forbids; whoever asks holds the folder."""
    if condition.only_new and file.exists():
        raise condition.taken()
    if condition.etag is not None and condition.etag != _etag_at(file):
        raise condition.changed()


def _etag_at(file: Path) -> str | None:
    try:
        return etag_of(_status(file))
    except FileNotFoundError:
        return None


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn the system's errors into the domain's: what is not there is not there, all else may pass."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise missing_blob(path) from None
    except OSError as error:
        if error.errno in _NEVER_A_FILE:
            raise missing_blob(path) from None
        raise Unavailable(f"The storage cannot serve {path!r} now: {error.strerror}.") from error


def _status(file: Path) -> os.stat_result:
    """Look at a file; what is none (a folder, a pipe that would never end) is not there."""
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError
    return found


def etag_of(found: os.stat_result) -> str:
    """Give what is another one when the content is another: whoever writes may set mtime back, but never ctime."""
    return "-".join(f"{part:x}" for part in (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


def _info(path: str, found: os.stat_result) -> BlobInfo:
    return BlobInfo(path, found.st_size, etag_of(found), datetime.fromtimestamp(found.st_mtime, UTC))


def _opened(file: Path, start: int) -> BinaryIO:
    _status(file)
    opened = file.open("rb")
    opened.seek(start)
    return opened


def _read(file: Path, start: int, length: int | None) -> bytes:
    with _opened(file, start) as opened:
        return opened.read() if length is None else opened.read(length)


def _new_partial(file: Path) -> Path:
    """Make an empty file beside the one that is to be; while it is there, nobody removes the folder."""
    partial = file.with_name(partial_name(uuid4().hex, file.name))
    for _ in range(_MOST_TRIES):
        try:
            partial.parent.mkdir(parents=True, exist_ok=True)
            partial.touch(exist_ok=False)
        except FileNotFoundError:
            continue
        except FileExistsError:  # a folder that was there, and gone when Python looked whether it is one
            if partial.parent.is_file():
                raise
        else:
            return partial
    raise OSError(errno.EBUSY, "its folder is removed again and again")


def _finish(partial: Path, file: Path, condition: Condition | None = None) -> None:
    """Let a file that is written take its place, once it is on the disk."""
    with partial.open("rb") as written:
        os.fsync(written.fileno())
    with _held(file.parent):
        if condition is not None:
            _check(condition, file)
        partial.replace(file)
    _sync_folder(file.parent)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let nobody else put a file into a folder or take one out: between a look at one and its change."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _sync_folder(folder: Path) -> None:
    """Let the names in a folder be on the disk, too: a name that is there only in memory is lost in a power cut."""
    with contextlib.suppress(FileNotFoundError):  # its last file was removed meanwhile
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def _replacing(file: Path, condition: Condition | None = None) -> Iterator[Path]:
    partial = _new_partial(file)
    try:
        yield partial
        _finish(partial, file, condition)
    finally:
        partial.unlink(missing_ok=True)


def _put(file: Path, data: bytes, condition: Condition) -> None:
    with _replacing(file, condition) as partial:
        partial.write_bytes(data)


def _copy(source: Path, target: Path) -> None:
    _status(source)
    with _replacing(target) as partial:
        shutil.copyfile(source, partial)


def _move(source: Path, target: Path) -> None:
    _status(source)
    partial = _new_partial(target)  # holds the folder
    try:
        with _held(target.parent):
            source.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)  # containers on two disks
        source.unlink()
    finally:
        partial.unlink(missing_ok=True)


def _remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, also while others write to it or remove it."""
    for _ in range(_MOST_TRIES):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.exists():
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return
    raise OSError(errno.EBUSY, "others write to it again and again")


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Give what lies in a folder; links and names that no path can have are passed over."""
    try:
        with os.scandir(folder) as found:
            yield from (entry for entry in found if is_name(entry.name) and not entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return


def _blobs_below(folder: Path, prefix: str) -> Iterator[BlobInfo]:
    """Give the blobs in the order of their paths, in which a folder stands where its name and a slash would."""
    entries = {entry.name + "/" * entry.is_dir(): entry for entry in _entries(folder)}
    for name, entry in sorted(entries.items()):
        if entry.is_dir():
            yield from _blobs_below(folder / entry.name, f"{prefix}/{entry.name}")
        else:
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                yield _info(f"{prefix}/{name}", _status(Path(entry.path)))


def _page(found: Iterator[T]) -> list[T]:
    return list(islice(found, NAMES_AT_ONCE))


def _folders_in(parent: Path) -> list[str]:
    return sorted(entry.name for entry in _entries(parent) if entry.is_dir())


def _delete_partials(root: Path, before: float) -> int:
    count = 0
    for folder, _, names in os.walk(root):
        for partial in (Path(folder, name) for name in names if is_partial(name)):
            with contextlib.suppress(FileNotFoundError):
                if partial.lstat().st_mtime < before:
                    partial.unlink()
                    count += 1
    return count
