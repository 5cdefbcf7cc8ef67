"""Reading a zip archive that a partner sent, for vectors and rasters alike.

What an archive says of itself need not be true: sizes are counted while they grow, and no entry keeps its name.
"""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from graticule.handlers.answers import go_on
from graticule.handlers.blob_stream import blob_stream
from graticule.handlers.context import ProcessContext
from graticule.storage.blocking import BlockingStorage

MAX_ENTRIES: Final = 1000
MAX_BYTES: Final = 16 * 1024**3
MAX_RATIO: Final = 200  # times the archive's own size; a Shapefile that is mostly blanks comes near 100
FREE_BYTES: Final = 256 * 1024**2  # that a small archive may always become
MAX_DIRECTORY_BYTES: Final = 4 * 1024**2
PIECE_BYTES: Final = 1024**2
ARCHIVE_SUFFIXES: Final = ("zip", "gz", "tgz", "tar", "bz2", "xz", "zst", "7z", "rar", "kmz", "sozip")
CORRUPT, UNSAFE, NESTED, BOMB = "corrupt", "unsafe_archive", "nested_archive", "decompression_bomb"
_ENDINGS: Final = tuple(f".{suffix}" for suffix in ARCHIVE_SUFFIXES)
_JUNK: Final = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_MAGIC: Final = re.compile(
    rb"PK\x03\x04|\x1f\x8b|BZh|\xfd7zXZ\x00|7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|.{257}ustar", re.DOTALL
)
_READ: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others grow without a limit at each step
_LOCAL_HEADER_BYTES: Final = 30  # before the name of a file
_ENCRYPTED: Final = 0x1


class ArchiveError(Exception):
    """An archive that is damaged or means harm; `code` is that of the finding."""

    def __init__(self, code: str, what: str, where: str = "file") -> None:
        super().__init__(what)
        self.code, self.what, self.where = code, what, where


class _Directory(io.BufferedReader):
    """A stream from which nobody reads very much at once, as who believes in a huge table of contents would."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ArchiveError(BOMB, "The archive announces too many files.")
        return super().read(size)


@contextmanager
def open_archive(storage: BlockingStorage, path: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive all of whose entries are harmless by what it says of them; `ArchiveError` otherwise."""
    with closing(_Directory(blob_stream(storage, path).detach())) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check(archive)
                yield archive
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
            raise ArchiveError(CORRUPT, "The archive cannot be read.") from error
        except NotImplementedError:
            raise ArchiveError(UNSAFE, "The archive is compressed or encrypted in an unusual way.") from None


def list_files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files of an archive, without folders and what operating systems leave in it."""
    return [each for each in archive.infolist() if not each.is_dir() and not _JUNK.search(each.filename)]


def read_head(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, length: int) -> bytes:
    """Read the first bytes of a file; one that is an archive itself is refused."""
    with archive.open(entry) as stream:
        head = stream.read(length)
    if _MAGIC.match(head):
        raise ArchiveError(NESTED, "The archive contains another archive.", f"file {entry.filename}")
    return head


def read_pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Read a file piece by piece."""
    with archive.open(entry) as stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece


class Growth:
    """Counts what comes out of an archive, and ends it when that is too much."""

    def __init__(self, ctx: ProcessContext, packed_bytes: int, announced: int) -> None:
        self._ctx = ctx
        self._max = min(MAX_BYTES, max(FREE_BYTES, MAX_RATIO * packed_bytes))
        self._announced = announced
        self._done = 0
        self.count(0)

    def count(self, length: int) -> None:
        """Add so many bytes."""
        go_on(self._ctx)
        self._done += length
        if max(self._done, self._announced) > self._max:
            raise ArchiveError(BOMB, f"The archive becomes more than {self._max // 1024**2} MiB.")
        self._ctx.progress(self._done, message="unpacking")  # a small part of the work, whose total is not known


def _check(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise ArchiveError(BOMB, f"The archive has {len(entries)} files; at most {MAX_ENTRIES} fit.")
    if len({entry.filename.casefold() for entry in entries}) < len(entries):
        raise ArchiveError(UNSAFE, "Two files of the archive have the same name.")
    _check_places(entries, archive.start_dir)
    for entry in entries:
        _check_entry(entry)


def _check_places(entries: list[zipfile.ZipInfo], end: int) -> None:
    """Reject an archive whose files share their bytes: it can become any size."""
    placed = sorted(entries, key=lambda entry: entry.header_offset)
    begins = [*(entry.header_offset for entry in placed[1:]), end]
    for entry, following in zip(placed, begins, strict=False):
        if entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size > following:
            raise ArchiveError(BOMB, "Files in the archive overlap.")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename
    where = f"file {name}"
    parts = name.replace("\\", "/").split("/")
    if "\\" in name or "\0" in name or name.startswith("/") or ".." in parts or _DRIVE.match(name):
        raise ArchiveError(UNSAFE, "The name of a file leads out of the archive.", where)
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise ArchiveError(UNSAFE, "A file of the archive is a link.", where)
    if entry.flag_bits & _ENCRYPTED:
        raise ArchiveError(UNSAFE, "A file of the archive has a password.", where)
    if not entry.is_dir() and entry.compress_type not in _READ:
        raise ArchiveError(UNSAFE, "A file of the archive is compressed in an unusual way.", where)
    if not _JUNK.search(name) and name.casefold().endswith(_ENDINGS):
        raise ArchiveError(NESTED, "The archive contains another archive.", where)
