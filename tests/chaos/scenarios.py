"""What each guard keeps away, played out step by step: with the guard the history is sound, without it is not."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.breaking import Guard
from tests.chaos.client import Client
from tests.chaos.driver import Verdict
from tests.chaos.history import read_history
from tests.chaos.installation import QUICK, Crew, Place, Post, ask, settled
from tests.chaos.member import Action, Fault
from tests.chaos.rules import report, violations
from tests.chaos.workflows import many_workflow, one_workflow

from graticule.core.fault_points import Commit, Moment

QUICKER: Final = {
    **QUICK,
    "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": "0.4",
    "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": "0.3",
    "GRATICULE_ORPHAN_THRESHOLD_SECONDS": "1.5",
    "GRATICULE_WORKER_LEASE_SECONDS": "1",
    "GRATICULE_WORKER_RENEW_SECONDS": "0.3",
}
# A process that is paused within a transaction keeps its locks until the server ends its session after a minute.
PATIENCE_SECONDS: Final = 75.0
BEATS: Final = "SELECT max(heartbeat_at) > now() - interval '0.3 s' FROM dagapp.dag_orchestrators WHERE process_id = %s"
Scene = Callable[[Crew, Client, str | None], Awaitable[None]]


async def play(guard: Guard, place: Place, folder: Path, *, is_broken: bool) -> Verdict:
    """Play the scene of a guard on an empty database, and check the history."""
    workflows = [one_workflow(), many_workflow()]
    crew = Crew(folder, place, QUICKER)
    crew.write(workflows)
    client = Client(crew, workflows, Random(0))
    async with client.open():
        try:
            await SCENES[guard](crew, client, guard if is_broken else None)
            is_settled = await settled(place, PATIENCE_SECONDS)
        finally:
            crew.dismiss()
    history = await read_history(place.url(), crew.ledger, client.submitted)
    found = violations(history)
    problems = [] if is_settled else ["not everything has ended"]
    return Verdict(history, found, problems, report(history, found))


async def _epoch(crew: Crew, client: Client, broken: str | None) -> None:
    """An orchestrator is paused between the decision of a step and its writing; when it goes on, the job is another's.

    The other is paused at the same place, so that it has the job and has written nothing yet.
    """
    at_step = Fault(Commit.STEP, Moment.BEFORE, Action.PAUSE, at=2)  # the first is the job's submission
    (first,) = crew.hire(orchestrators=1, fault=at_step, broken=broken)
    crew.hire(workers=1, broken=broken)
    await client.submit(one_workflow(), {})
    await _until_paused(first)
    (second,) = crew.hire(orchestrators=1, fault=Fault(Commit.STEP, Moment.BEFORE, Action.PAUSE), broken=broken)
    await _until_paused(second)
    first.fill().send(signal.SIGCONT)
    await _until_it_beats(crew, first)  # it had time to write
    second.fill().send(signal.SIGCONT)


async def _lease(crew: Crew, client: Client, broken: str | None) -> None:
    """A worker is paused with a result in its hands, beyond its lease; when it goes on, another has the task."""
    at_finish = Fault(Commit.FINISH, Moment.BEFORE, Action.PAUSE)
    crew.hire(orchestrators=1, broken=broken)
    (first,) = crew.hire(workers=1, fault=at_finish, broken=broken)
    await client.submit(one_workflow(), {"seconds": 1.0})
    await _until_paused(first)
    crew.hire(workers=1, broken=broken)
    await _until(lambda: any(entry.delivery_count == 2 for entry in crew.ledger.read()), "a second delivery")
    first.fill().send(signal.SIGCONT)


async def _acknowledge(crew: Crew, client: Client, broken: str | None) -> None:
    """An orchestrator is killed right before the commit that makes a job of a message."""
    before = Fault(Commit.MAKE_JOBS, Moment.BEFORE, Action.KILL)
    crew.hire(workers=1, broken=broken)
    (first,) = crew.hire(orchestrators=1, fault=before, broken=broken)
    await client.send(one_workflow())
    await _until(lambda: not first.fill().running, "the end of the first")
    crew.hire(orchestrators=1, broken=broken)


SCENES: Mapping[Guard, Scene] = {Guard.EPOCH: _epoch, Guard.LEASE: _lease, Guard.ACKNOWLEDGE: _acknowledge}


async def _until_paused(post: Post) -> None:
    await _until(lambda: _state(post.fill().pid) == "T", f"{post.name} at its fault point")


async def _until_it_beats(crew: Crew, post: Post) -> None:
    """Wait for a heartbeat after the pause, and a while more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (await ask(crew.place.url(), BEATS, post.fill().pid))[0][0]:
        assert time.monotonic() < deadline, f"{post.name} does not beat"
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)


async def _until(question: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not question():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        await asyncio.sleep(0.02)


def _state(pid: int) -> str:
    """Give the letter with which the kernel names the state of a process; T is for stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
