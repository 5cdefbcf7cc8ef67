"""The folders in which child processes keep their temporary files: they go with the process, or with its worker."""

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

_NAMED: Final = re.compile(r"graticule-(\d+)-child-\w+")  # after the process of the worker
_in_use: Final[set[Path]] = set()


def new_child_folder() -> Path:
    """Make a folder for a child process of this one."""
    folder = Path(tempfile.mkdtemp(prefix=f"graticule-{os.getpid()}-child-"))
    _in_use.add(folder)
    return folder


def remove_child_folder(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _in_use.discard(folder)


def remove_lost_folders() -> None:
    """Remove what workers left behind that were killed."""
    for folder in Path(tempfile.gettempdir()).iterdir():
        found = _NAMED.fullmatch(folder.name)
        if found and _is_lost(folder, int(found[1])):
            remove_child_folder(folder)


def _is_lost(folder: Path, worker: int) -> bool:
    """Tell whether nobody uses a folder; in a container that was started anew, its worker had our own number."""
    return folder not in _in_use if worker == os.getpid() else not Path(f"/proc/{worker}").exists()
