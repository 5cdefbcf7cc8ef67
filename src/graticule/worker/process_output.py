"""What handlers print in their child processes: into the log, whatever bytes it is, and not without end."""

import asyncio
from typing import Final

from graticule.logs import get_logger

MAX_LINE: Final = 1000  # characters
MAX_BYTES_PER_TASK: Final = 64 * 1024

_log = get_logger(__name__)


class OutputLog:
    """Logs the lines of one child process."""

    def __init__(self) -> None:
        self._task_id: str | None = None
        self._rest = b""
        self._logged = 0

    def begin(self, task_id: str) -> None:
        """Count anew: another task prints now."""
        self._task_id = task_id
        self._logged = 0

    async def drain(self, output: asyncio.StreamReader) -> None:
        """Read to the end: a pipe that nobody reads would stop the process that writes."""
        while data := await output.read(65536):
            self.take(data)
        self._line(self._rest)

    def take(self, data: bytes) -> None:
        """Log the lines that are complete, or long enough."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > MAX_LINE * 4:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        if not line or self._logged >= MAX_BYTES_PER_TASK:
            return
        self._logged += len(line)
        text = line[: MAX_LINE * 4].decode("utf-8", "replace")[:MAX_LINE]
        _log.info("a handler printed", task_id=self._task_id, text=text)
        if self._logged >= MAX_BYTES_PER_TASK:
            _log.warning("a handler prints too much: the rest is dropped", task_id=self._task_id)
