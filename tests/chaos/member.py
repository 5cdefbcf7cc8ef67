"""A real orchestrator or worker in a process of its own, with what a test adds to it.

The command is the one that a user types. Before it runs, the process gets handlers that write a ledger, and if the test
wants it a wrong clock, a fault at a named place, or a guard that is broken.
"""

import importlib
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import psycopg
import time_machine
from tests.chaos.breaking import break_guard
from tests.forks import FORKS, become_a_fork, write_to

from graticule.cli.main import main
from graticule.core.fault_points import Commit, Moment, Watcher, watch

ROOT = Path(__file__).parents[2]


class Action(StrEnum):
    """What happens at a fault point."""

    KILL = "kill"
    PAUSE = "pause"  # SIGSTOP: until someone sends SIGCONT
    LOSE_ANSWER = "lose_answer"  # the connection seems to break


@dataclass(frozen=True)
class Fault:
    """Something that happens when a place is reached for the n-th time."""

    commit: Commit
    moment: Moment
    action: Action = Action.KILL
    at: int = 1


@dataclass(frozen=True)
class Orders:
    """What a member is to be."""

    command: tuple[str, ...]  # of `graticule`
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    clock_ahead_seconds: float = 0.0
    fault: Fault | None = None
    further_faults: tuple[Fault, ...] = ()
    handlers: tuple[str, ...] = ()  # the modules that register them
    broken: str | None = None  # the name of a guard; see `breaking.py`


class Member:
    """A process that runs."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self._process = FORKS.Process(target=_run, args=(orders,), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    @property
    def exit_code(self) -> int | None:
        """Give the code, or the negative number of the signal that ended it; None while it runs."""
        return self._process.exitcode

    @property
    def output(self) -> str:
        return self.orders.log.read_text() if self.orders.log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = 30) -> int:
        """Wait for its end, and give the exit code."""
        self._process.join(seconds)
        code = self.exit_code
        assert code is not None, f"still runs after {seconds:g} s: {self.orders.command}"
        return code


def _run(orders: Orders) -> None:
    """Become the member."""
    become_a_fork()
    write_to(orders.log, 1, 2)
    os.environ.update(orders.environment, PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    os.chdir(orders.log.parent)
    sys.path.append(str(ROOT))  # a worker's child processes look for handlers where the worker does
    if orders.clock_ahead_seconds:
        time_machine.travel(datetime.now(UTC) + timedelta(seconds=orders.clock_ahead_seconds), tick=True).start()
    for module in orders.handlers:
        importlib.import_module(module)
    for fault in (orders.fault, *orders.further_faults):
        if fault is not None:
            watch(_watcher(fault))
    if orders.broken is not None:
        break_guard(orders.broken)
    sys.argv = ["graticule", *orders.command]
    main()


def _watcher(fault: Fault) -> Watcher:
    reached = 0

    def watcher(commit: Commit, moment: Moment) -> None:
        nonlocal reached
        if (commit, moment) != (fault.commit, fault.moment):
            return
        reached += 1
        if reached != fault.at:
            return
        os.write(2, f"fault {moment} {commit}\n".encode())
        if fault.action is Action.LOSE_ANSWER:
            raise psycopg.OperationalError("the answer was lost")
        os.kill(os.getpid(), signal.SIGKILL if fault.action is Action.KILL else signal.SIGSTOP)

    return watcher
