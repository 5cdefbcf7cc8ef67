"""Files below one folder of this machine."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from graticule.core.errors import InvalidInput, NotFound, Unavailable


class LocalStorage:
    """Keeps files below `root`; what is written is visible as a whole or not at all."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, path: str, data: bytes) -> None:
        """Write a file, in place of one that is there."""
        with _told(path):
            await asyncio.to_thread(self._put, self._resolved(path), data)

    async def get(self, path: str) -> bytes:
        """Read a file as a whole."""
        with _told(path):
            return await asyncio.to_thread(self._resolved(path).read_bytes)

    async def size(self, path: str) -> int:
        """Tell how many bytes a file has."""
        with _told(path):
            return (await asyncio.to_thread(self._resolved(path).stat)).st_size

    async def exists(self, path: str) -> bool:
        """Tell whether the file is there."""
        return await asyncio.to_thread(self._resolved(path).is_file)

    async def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        await asyncio.to_thread(self._resolved(path).unlink, missing_ok=True)

    def _resolved(self, path: str) -> Path:
        """Give the file of a path, which may not lead out of the root."""
        root = self._root.resolve()
        found = root if "\0" in path else (root / path).resolve()
        if found == root or not found.is_relative_to(root):
            raise InvalidInput(f"The path {path!r} does not lead into the storage.")
        return found

    @staticmethod
    def _put(file: Path, data: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{uuid4().hex}.partial")
        try:
            with partial.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn the system's errors into the domain's: what is not there is not there, all else may pass."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFound(f"There is no file {path!r} in the storage.") from None
    except OSError as error:
        raise Unavailable(f"The storage cannot serve {path!r} now: {error.strerror}.") from error
