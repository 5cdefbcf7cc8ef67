"""The names under which GDAL opens blobs, where these hold a signature: one is used again while it holds for long.

What GDAL keeps of a file in memory, it keeps by the file's name. With a new signature for each request it would read
every header anew; with the same for ever it would not see that the content is another.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from graticule.storage.paths import CURL

KEPT_SECONDS: Final = 1800  # of the hour for which a signature holds: what is opened at the end of it must be read, too
MOST_KEPT: Final = 10_000


class SignedNames:
    """Gives names of blobs; those of files of this machine are looked up each time."""

    def __init__(self, readable: Callable[[str], str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._readable = readable
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def name(self, content: str, path: str) -> str:
        """Give the name of a blob; `content` is another when what it holds is another."""
        with self._lock:
            name, until = self._kept.get((path, content), ("", 0.0))
        if until > self._clock():
            return name
        name = self._readable(path)
        if name.startswith(CURL):
            self._keep((path, content), name)
        return name

    def _keep(self, key: tuple[str, str], name: str) -> None:
        with self._lock:
            self._kept[key] = (name, self._clock() + KEPT_SECONDS)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
