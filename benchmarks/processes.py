"""Processes of ours: started, waited for, looked at and stopped."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
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
# Fields of /proc/PID/status.
_PEAK, _NOW = "VmHWM:", "VmRSS:"
# Fields of /proc/PID/stat after the name.
_PARENT = 1
_USED, _USED_WITH_ENDED = slice(11, 13), slice(11, 15)  # the second with the children that have ended


@dataclass(frozen=True)
class Process:
    """A running process of ours."""

    name: str
    pid: int
    log: Path
    url: str

    def cpu_seconds(self) -> float:
        """Give the CPU time that it has used, its threads included."""
        return sum(map(int, _stat(self.pid)[_USED])) / _TICKS_PER_SECOND

    def peak_memory_mb(self) -> float:
        """Give the most memory that it ever held at once."""
        return _memory_mb(self.pid, _PEAK)

    def peak_memory_with_children_mb(self) -> float:
        """Give the same with the peaks of the processes that it has started and that still run."""
        return self.peak_memory_mb() + sum(_memory_mb(pid, _PEAK) for pid in _children(self.pid))

    def memory_mb(self) -> float:
        """Give the memory that it holds now."""
        return _memory_mb(self.pid, _NOW)


def _memory_mb(pid: int, field: str) -> float:
    """Give a figure of the memory of a process; of one that has just ended, 0."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith(field)]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def descendants_cpu_seconds() -> float:
    """Give the CPU time of all that this process has started, and what these have started, also of what has ended."""
    pids, used = [os.getpid()], 0.0
    for pid in pids:  # which grows meanwhile
        children = _children(pid)
        pids += children
        for child in children:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                used += sum(map(int, _stat(child)[_USED_WITH_ENDED])) / _TICKS_PER_SECOND
    return used


def _children(parent: int) -> list[int]:
    """Give the processes that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(_stat(int(folder.name))[_PARENT]) == parent:
                found.append(int(folder.name))
    return found


def _stat(pid: int) -> list[str]:
    """Give the fields of /proc/PID/stat after the name."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


@asynccontextmanager
async def running(
    name: str, environment: Mapping[str, str], logs: Path, options: Sequence[str] = ()
) -> AsyncIterator[Process]:
    """Run `graticule NAME` until the block is left; it is ready when the block is entered."""
    arguments = ("-m", "graticule", name, *options)
    async with running_module(name, arguments, environment, logs, ready="/readyz") as process:
        yield process


@asynccontextmanager
async def running_module(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], logs: Path, *, ready: str
) -> AsyncIterator[Process]:
    """Run Python with these arguments and a port until the block is left; it is ready when it answers at `ready`."""
    port, log = free_port(FIRST_PORT), logs / f"{name}.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", *arguments, "--port", str(port)),
            env={**_inherited(), **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGTERM),
        )
    try:
        await _until_ready(f"{url}{ready}", process, log)
        yield Process(name, process.pid, log, url)
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
