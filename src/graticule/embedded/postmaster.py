"""The server process: started as our child, watched until it answers, and stopped in order."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Self

from graticule.core.errors import ConfigurationError, Unavailable
from graticule.embedded.binaries import Binaries
from graticule.embedded.parent_death import end_with_parent
from graticule.embedded.server import refusal
from graticule.embedded.server_user import ServerUser

_START_SECONDS = 60.0
_RECOVERY_SECONDS = 900.0  # it says that it is starting up: to end it would only make it begin anew
_FAST_STOP_SECONDS = 30.0
_IMMEDIATE_STOP_SECONDS = 10.0
_LONGEST_PAUSE = 0.5
_ROTATE_BYTES = 20_000_000


class ServerEnded(Exception):
    """The server process ended before it answered; `said` is what it logged since its start."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class Postmaster:
    """A running server process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, log_start: int) -> None:
        self._process = process
        self._log = log
        self._log_start = log_start

    @classmethod
    async def launch(cls, binaries: Binaries, user: ServerUser, data: Path, log: Path) -> Self:
        """Start a server on a data folder; its output goes to the end of the log file."""
        descriptor, start = _open_log(log)
        try:
            process = await user.spawn(
                binaries.program("postgres"),
                "-D",
                data,
                output=descriptor,
                before=end_with_parent(signal.SIGINT),
            )
        finally:
            os.close(descriptor)
        return cls(process, log, start)

    @property
    def pid(self) -> int:
        """The number of the server process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait until the process ends: its exit code."""
        return await self._process.wait()

    def said(self) -> str:
        """What the server logged since its start."""
        with self._log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    async def until_ready(self, url: str) -> None:
        """Wait until the server takes connections."""
        begun, pause = time.monotonic(), 0.02
        while (reason := await refusal(url)) is not None:
            if not self.running:
                raise ServerEnded(self.said())
            _check_password(reason)
            self._check_patience(time.monotonic() - begun, reason)
            await self._pause(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def stop(self) -> None:
        """Stop the server: without waiting for clients, and after a while without waiting for anything."""
        await self._signal_and_wait(signal.SIGINT, _FAST_STOP_SECONDS)
        await self._signal_and_wait(signal.SIGQUIT, _IMMEDIATE_STOP_SECONDS)
        await self._signal_and_wait(signal.SIGKILL, None)

    async def _signal_and_wait(self, number: signal.Signals, seconds: float | None) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            await self._pause(seconds)

    async def _pause(self, seconds: float | None) -> None:
        """Wait for some time, or shorter when the process ends."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), seconds)

    def _check_patience(self, waited: float, reason: str) -> None:
        starting = "starting up" in reason or "recovery" in reason
        if waited > (_RECOVERY_SECONDS if starting else _START_SECONDS):
            raise Unavailable(
                f"PostgreSQL did not take connections within {waited:.0f} seconds.",
                hint=f"Its log is {self._log}; the last lines: {last_lines(self.said())}",
                detail=reason,
            )


def last_lines(said: str, count: int = 8) -> str:
    """The end of a log, for a hint."""
    return " / ".join(line.strip() for line in said.strip().splitlines()[-count:]) or "(empty)"


def _check_password(reason: str) -> None:
    if "password authentication failed" in reason:
        raise ConfigurationError(
            "The embedded PostgreSQL refuses the passwords in credentials.json.",
            hint="The file does not belong to this cluster: put back the one that does.",
            detail=reason,
        )


def _open_log(log: Path) -> tuple[int, int]:
    """Open the log for appending, begun anew when it has grown large: the file, and where it ends now."""
    if log.exists() and log.stat().st_size > _ROTATE_BYTES:
        log.replace(log.with_suffix(".log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return descriptor, os.fstat(descriptor).st_size
