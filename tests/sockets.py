"""Sockets that a library leaves open when its connection is cut: closed with the test in which that happened."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_sockets_closed() -> Iterator[None]:
    """Let a library of others leave sockets to the garbage, and collect that at the end.

    Otherwise the warning would come at any later time, and fail a test that has nothing to do with it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        yield
        gc.collect()
