"""A source as bytes: how large it is, what it begins with, whether it is still the same."""

import io
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import httpx

from graticule.core.errors import InvalidInput, NotFound, Unavailable
from graticule.handlers.blob_stream import RangeReader
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import etag_of
from graticule.storage.paths import CURL, Source

_SECONDS: Final = 30.0
_PIECE_BYTES: Final = 64 * 1024
_BUFFER_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class State:
    """What a source is at a moment; another `mark` is another content."""

    size: int
    mark: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source, wherever it is. One that is not there is `NotFound`, one that cannot be reached `Unavailable`."""

    state: Callable[[], State]
    read: Callable[[int, int], bytes]  # from a byte on, so many of them


def open_stream(file: SourceFile) -> BinaryIO:
    """Open a source as a file of Python's, which reads it by ranges."""
    return io.BufferedReader(RangeReader(file.read, file.state().size), _BUFFER_BYTES)


def source_file(storage: BlockingStorage, source: Source) -> SourceFile:
    """Give the bytes of a source."""
    return file_of(source.opened, source.shown) if source.blob is None else _of_blob(storage, source.blob)


def file_of(opened: str, shown: str = "The source") -> SourceFile:
    """Give the bytes of what GDAL opens under a name."""
    if opened.startswith(CURL):
        return _of_address(opened.removeprefix(CURL), shown)
    if opened.startswith("/vsi"):
        raise InvalidInput("The source cannot be looked at.", hint="Write container/path, or an https:// address.")
    return _of_path(Path(opened), shown)


def _of_blob(storage: BlockingStorage, path: str) -> SourceFile:
    def state() -> State:
        found = storage.stat(path)
        return State(found.size, found.etag)

    return SourceFile(state, lambda start, length: storage.read(path, start, length))


def _of_path(path: Path, shown: str) -> SourceFile:
    def state() -> State:
        found = _file(path, shown).stat()
        return State(found.st_size, etag_of(found))

    def read(start: int, length: int) -> bytes:
        with _file(path, shown).open("rb") as file:
            file.seek(start)
            return file.read(length)

    return SourceFile(state, read)


def _file(path: Path, shown: str) -> Path:
    """Give a path that leads to a file: a folder is none, nor is a pipe, which would never end."""
    if not path.is_file():
        raise NotFound(f"{shown}: there is no such file.")
    return path


@dataclass(frozen=True, slots=True)
class _Range:
    """What a server sent of a file."""

    content: bytes = b""
    size: int = 0  # of the whole file
    mark: str = ""


def _of_address(address: str, shown: str) -> SourceFile:
    def state() -> State:
        answer = _range(address, shown, 0, 1)
        return State(answer.size, answer.mark)

    return SourceFile(state, lambda start, length: _range(address, shown, start, length).content)


def _range(address: str, shown: str, start: int, length: int) -> _Range:
    """Ask for a range; a redirect is not followed, for it may lead to a host that is not allowed."""
    wanted = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
    try:
        with httpx.stream(
            "GET",
            address,
            headers=wanted,
            timeout=_SECONDS,
            follow_redirects=False,
            verify=ssl.create_default_context(),
            trust_env=False,
        ) as answer:
            return _range_of(answer, shown, length)
    except httpx.HTTPError:
        raise Unavailable(f"{shown} could not be reached.") from None


def _range_of(answer: httpx.Response, shown: str, length: int) -> _Range:
    if answer.status_code in {404, 410}:
        raise NotFound(f"There is nothing at {shown}.")
    if answer.status_code == 416:
        return _Range()  # no bytes there: it is empty, or shorter
    if answer.status_code != 206:
        raise Unavailable(f"{shown} does not answer with a range of bytes, but with status {answer.status_code}.")
    total = answer.headers.get("content-range", "").rpartition("/")[2]
    size = int(total) if total.isdecimal() else 0
    mark = answer.headers.get("etag") or answer.headers.get("last-modified") or str(size)
    return _Range(_first_bytes(answer, length), size, mark)


def _first_bytes(answer: httpx.Response, length: int) -> bytes:
    """Read no more than was asked for, whatever is sent, and as it is sent: unpacked it could be of any size."""
    content = bytearray()
    for piece in answer.iter_raw(_PIECE_BYTES):
        content += piece
        if len(content) >= length:
            break
    return bytes(content[:length])
