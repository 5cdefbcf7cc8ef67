"""Keeps the files of an installation from the other users of the machine."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_OTHERS: Final = 0o077
_STRANGERS: Final = 0o007  # all who are not of the group


def make_private(root: Path) -> None:
    """Make a folder that only its owner can enter; close one that is there already."""
    with suppress(OSError):  # it is there, or cannot be made: whoever writes to it says why
        root.mkdir(mode=0o700)
    close_to_others(root)


def close_to_others(root: Path) -> None:
    """Let nobody but its owner into a folder, whatever the modes of what is in it.

    A folder with the setgid bit is shared with its group on purpose, as a volume of Kubernetes with an `fsGroup` is:
    it stays open to that. So does one that belongs to someone else, whose choice it is.
    """
    with suppress(OSError):  # it is not there yet, or cannot be written
        found = root.stat()
        excess = found.st_mode & _excluded(found.st_mode)
        if excess and found.st_uid == os.geteuid():
            root.chmod(stat.S_IMODE(found.st_mode) & ~excess)


def write_privately(root: Path) -> None:
    """Let all that this process writes from now on be for those only who may enter a folder."""
    try:
        os.umask(_excluded(root.stat().st_mode))
    except OSError:
        os.umask(_OTHERS)


def _excluded(mode: int) -> int:
    return _STRANGERS if mode & stat.S_ISGID else _OTHERS
