"""Folders for temporary files that go with the process that made them, also when that was killed.

A folder is locked by its process for as long as it is in use. So whoever can lock one knows that nobody uses it, in
whichever container its process ran.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "graticule-temporary-"
_locks: Final[dict[Path, int]] = {}


def new_folder() -> Path:
    """Make a folder of this process."""
    while True:  # until it is locked before another process takes it for a lost one
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            _locks[folder] = lock
            return folder
        os.close(lock)


def remove_folder(folder: Path) -> None:
    """Remove a folder of this process with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)


def remove_lost_folders() -> None:
    """Remove what processes left behind that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it is in use, gone, or not ours
            _remove_if_lost(folder)


def _remove_if_lost(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
