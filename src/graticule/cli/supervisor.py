"""A child process that is started again when it dies."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graticule.embedded.parent_death import end_with_parent

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0
PROVEN_AFTER_SECONDS = 30.0  # a child that ran so long has earned a quick restart
GRACE_SECONDS = 15.0


def next_pause(pause: float, ran_seconds: float) -> float:
    """Give the pause before the next start: doubled each time, short at first and after a good run."""
    if pause == 0 or ran_seconds >= PROVEN_AFTER_SECONDS:
        return FIRST_PAUSE_SECONDS
    return min(pause * 2, LONGEST_PAUSE_SECONDS)


@dataclass
class Child:
    """One of our own processes under supervision; it ends with us, however we end."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)  # it carries passwords
    log: Path
    announce: Callable[[str], None]
    grace_seconds: float = GRACE_SECONDS
    process: asyncio.subprocess.Process | None = None

    async def supervise(self) -> None:
        """Start the process, and start it again whenever it ends, until cancelled; then stop it."""
        pause = 0.0
        try:
            while True:
                began = time.monotonic()
                ended = await self._run()
                pause = next_pause(pause, time.monotonic() - began)
                self.announce(f"The {self.name} {ended}; it is started again. Its log: {self.log}")
                await asyncio.sleep(pause)
        finally:
            await self._stop()

    async def _run(self) -> str:
        """Run the process once and tell how that ended."""
        try:
            await self._start()
        except OSError as error:
            return f"could not be started: {error.strerror}"
        return f"ended with {_told(await self._running().wait())}"

    async def _start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "graticule", *self.arguments),  # -P: nothing is imported from this folder
                env=dict(self.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for us: we stop our children in order
                preexec_fn=end_with_parent(signal.SIGTERM),
            )

    def _running(self) -> asyncio.subprocess.Process:
        if self.process is None:
            raise RuntimeError(f"The {self.name} was not started.")
        return self.process

    async def _stop(self) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), self.grace_seconds)
        except TimeoutError:
            self.announce(f"The {self.name} did not stop within {self.grace_seconds:.0f} s and is killed.")
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


def _told(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def start_log(folder: Path, name: str) -> Path:
    """Begin a log file anew, keeping the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    if log.exists():
        log.replace(folder / f"{name}.log.1")
    return log
