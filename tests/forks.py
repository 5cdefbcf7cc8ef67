"""Processes of ours without the second that Python needs to import them: forked from one that has imported it all."""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Final

from graticule.cli.main import main
from graticule.handlers.registry import BUILT_IN

FORKS: Final[ForkServerContext] = multiprocessing.get_context("forkserver")
# What takes long to import is imported once, by the process from which the others are forked: also what libraries
# import when they are first used.
FORKS.set_forkserver_preload(
    [
        *("graticule.api.app", "graticule.gateway.app", "graticule.worker.app", "graticule.client", *BUILT_IN),
        *("graticule.cli.connection", "graticule.cli.installation", "graticule.cli.watch", "graticule.http.server"),
        *("uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.on", "anyio._backends._asyncio"),
        *("fastapi.telemetry._runtime", "tests.chaos.member", "tests.prepared"),
        *("graticule.orchestrator.broker", "graticule.messaging.servicebus.tasks"),
    ]
)
_PR_SET_PDEATHSIG: Final = 1


def become_a_fork() -> None:
    """Say in a new process that it ends with the one from which it was forked, which ends with the test.

    What was imported before is no garbage: to look at it again and again would take longer than most tests.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    gc.freeze()


def hear_interrupts() -> None:
    """Be interrupted by SIGINT, as a program at a terminal is: one that was begun in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def write_to(file: Path, *streams: int) -> None:
    """Have this process write its streams into a file."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in streams:
        os.dup2(descriptor, stream)
    os.close(descriptor)


class ForkedCommand:
    """A command of `graticule` in a process of its own, which is held as one of `subprocess` is."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> None:
        self._process = FORKS.Process(target=_run, args=(arguments, folder, environment, out, err), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("graticule", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], out: Path, err: Path) -> None:
    os.setsid()
    become_a_fork()
    hear_interrupts()
    write_to(out, 1)
    write_to(err, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))  # as Python does when it starts
    sys.argv = ["graticule", *arguments]
    main()
