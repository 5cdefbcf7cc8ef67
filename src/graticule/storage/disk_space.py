"""How much room there is on the disks that processes write to."""

import os
import tempfile
from pathlib import Path
from typing import Final

from graticule.config import Settings, StorageKind

MIB: Final = 2**20


def free_bytes(folder: Path) -> int:
    """Return how much may still be written below a folder, or below the nearest one above it that exists."""
    absolute = folder.expanduser().absolute()
    nearest = next(each for each in (absolute, *absolute.parents) if os.access(each, os.F_OK))
    found = os.statvfs(nearest)
    return found.f_bavail * found.f_frsize


def orchestrator_disks(settings: Settings) -> dict[str, Path]:
    """Return where an orchestrator writes: outputs that are too large for a row, and the embedded database."""
    home = settings.home.expanduser().absolute()
    return _storage_disk(settings) | ({"home": home} if home.is_dir() else {})


def worker_disks(settings: Settings) -> dict[str, Path]:
    """Return where a worker writes: its results, and what it computes with."""
    return _storage_disk(settings) | {"scratch": Path(tempfile.gettempdir())}


def _storage_disk(settings: Settings) -> dict[str, Path]:
    return {"storage": settings.storage_folder} if settings.storage is StorageKind.LOCAL else {}
