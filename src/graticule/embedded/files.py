"""Small files that must be whole or absent, whatever happens to the process that writes them."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: str, *, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Write a file beside its place and rename it there, so that no reader ever sees half of it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        _fill(descriptor, content, mode, owner)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _fill(descriptor: int, content: str, mode: int, owner: tuple[int, int] | None) -> None:
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a rename is only safe once its folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
