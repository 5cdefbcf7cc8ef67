"""Processes of ours: started, waited for, looked at and stopped."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from graticule.embedded.parent_death import end_with_parent
from graticule.embedded.ports import free_port

FIRST_PORT = 18_000
READY_WITHIN_SECONDS = 60.0
STOPPED_WITHIN_SECONDS = 40.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """A running process of ours."""

    name: str
    pid: int
    log: Path

    def cpu_seconds(self) -> float:
        """Give the CPU time that it has used, its threads included."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def peak_memory_mb(self) -> float:
        """Give the most memory that it ever held at once."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024


@asynccontextmanager
async def running(name: str, environment: Mapping[str, str], logs: Path) -> AsyncIterator[Process]:
    """Run `graticule NAME` until the block is left; it is ready when the block is entered."""
    port, log = free_port(FIRST_PORT), logs / f"{name}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "graticule", name, "--port", str(port)),
            env={**_inherited(), **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGTERM),
        )
    try:
        await _until_ready(f"http://127.0.0.1:{port}/readyz", process, log)
        yield Process(name, process.pid, log)
    finally:
        await _stop(process)


async def _until_ready(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    began = time.monotonic()
    async with httpx.AsyncClient(timeout=5) as client:
        while process.returncode is None and time.monotonic() - began < READY_WITHIN_SECONDS:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(url)).is_success:
                    return
            await asyncio.sleep(0.1)
    raise RuntimeError(f"{url} did not become ready; the end of {log.name}: {_tail(log)}")


def _tail(log: Path) -> str:
    return " / ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-8:])


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOPPED_WITHIN_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _inherited() -> dict[str, str]:
    """Give the environment without anyone's settings: what is measured are the defaults."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("GRATICULE_")}
