"""Children that end when we end, however we end: also after a `kill -9`, which no handler sees."""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import partial

_PR_SET_PDEATHSIG = 1


def end_with_parent(signal_number: int) -> Callable[[], None] | None:
    """A `preexec_fn` that has the kernel send the child this signal when its parent ends.

    Only Linux can do this (elsewhere: None). The kernel watches the thread that starts the child, so the
    start must happen in a thread that lives as long as the process: the main one.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # loaded here: the child must do next to nothing between fork and exec
    return partial(_arrange, prctl, os.getpid(), signal_number)


def end_with(parent: int, signal_number: int) -> None:
    """Have the kernel send this process the signal when its parent ends, for a child that sees to it itself."""
    if sys.platform == "linux":
        _arrange(ctypes.CDLL(None).prctl, parent, signal_number)


def _arrange(prctl: Callable[..., int], parent: int, signal_number: int) -> None:
    prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the kernel knew of our wish
        os._exit(1)
