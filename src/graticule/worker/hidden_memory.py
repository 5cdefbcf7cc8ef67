"""What a worker knows and its child processes do not: its environment, and all that it holds in memory."""

import ctypes
import os
import sys
from typing import Final

from graticule.logs import get_logger

_PR_SET_DUMPABLE: Final = 4
_log = get_logger(__name__)


def hide_memory() -> None:
    """Have the kernel show environment and memory of this process to root alone.

    Child processes are of the same user: they are given no secret, and could otherwise read ours in `/proc`. The
    price is that no core is dumped. Only Linux can do this. A program that this process starts is as open as ever.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        _log.warning("the memory of the worker cannot be hidden", reason=os.strerror(ctypes.get_errno()))
