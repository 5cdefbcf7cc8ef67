"""A whole run: jobs are asked for while the monkey torments, then there is calm, and the history is checked."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
from tests.chaos.client import Client
from tests.chaos.history import History, read_history
from tests.chaos.installation import ENDED, Crew, ask, crew_at_work, private_server, settled
from tests.chaos.monkey import Monkey
from tests.chaos.proxy import Proxy
from tests.chaos.rules import Violation, report, violations
from tests.chaos.workflows import POISON_ID, poison_workflow, random_workflows

from graticule.core.states import MessageStatus

ORCHESTRATORS: Final = 3
WORKERS: Final = 4
WORKFLOWS: Final = 40
SKEWS: Final = (-300.0, 0.0, 300.0, 45.0, -20.0, 3.0, -0.5)
CALM_SECONDS: Final = 120.0
PROGRESS_SECONDS: Final = 10.0
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How a run is to be."""

    seed: int
    seconds: float = 600.0
    jobs_per_second: float = 2.0
    minimum_kills: int = 200

    @property
    def command(self) -> str:
        """Give the command that draws the same again."""
        return (
            f"python -m tests.chaos --seed {self.seed} --seconds {self.seconds:g}"
            f" --jobs-per-second {self.jobs_per_second:g} --minimum-kills {self.minimum_kills}"
        )

    def rng(self, of: str) -> Random:
        """Give the chance of one part: what another part draws does not change it."""
        return Random(f"{self.seed} {of}")


@dataclass(frozen=True)
class Verdict:
    """What came of a run."""

    history: History
    violations: list[Violation]
    problems: list[str] = field(default_factory=list)  # what is not in the history
    told: str = ""

    @property
    def is_sound(self) -> bool:
        return not (self.violations or self.problems)


async def torment(plan: Plan, folder: Path, tell: Tell = print) -> Verdict:
    """Do a whole run in a folder."""
    workflows = [*random_workflows(plan.rng("workflows"), WORKFLOWS), poison_workflow()]
    async with private_server(folder) as server, Proxy(server.connect) as proxy:
        crew = Crew(folder, server, proxy=proxy)
        crew.write(workflows)
        client = Client(crew, workflows, plan.rng("client"))
        monkey = Monkey(crew, server, proxy, plan.rng("monkey"), folder / "logs" / "monkey.log")
        async with crew_at_work(crew), client.open():
            crew.hire(ORCHESTRATORS, WORKERS, skews=SKEWS)
            asking = client.go_on(plan.jobs_per_second), client.resume_failed()
            async with _beside(*asking, _progress(client, monkey, crew, tell)):
                await client.send(workflows[-1])
                await monkey.torment(plan.seconds, plan.minimum_kills)
            await monkey.rest()
            tell(f"calm after {client.asked} submissions, {monkey.kills} kills")
            began = time.monotonic()
            await client.answered(CALM_SECONDS)
            is_settled = await settled(server, CALM_SECONDS)
            tell(f"all was quiet after {time.monotonic() - began:.1f} s")
            deeds = _deeds(monkey, client, proxy, crew)
        history = await read_history(server.url(), crew.ledger, client.submitted)
    problems = [*crew.mishaps, *client.problems, *_of_poison(history)]
    if not is_settled:
        problems.append(f"not everything had ended after {CALM_SECONDS:g} s of calm")
    found = violations(history)
    return Verdict(history, found, problems, f"{deeds}\n{report(history, found)}")


@asynccontextmanager
async def _beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let works go on inside the block; one that fails fails it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _progress(client: Client, monkey: Monkey, crew: Crew, tell: Tell) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        ended: object = "?"
        with contextlib.suppress(psycopg.OperationalError):
            ended = (await ask(crew.place.url(), ENDED))[0][0]
        tell(
            f"{time.monotonic() - began:5.0f} s: {client.asked} submitted, {ended} ended, {monkey.kills} kills, "
            f"{sum(monkey.done.values())} deeds, {client.repeated} requests repeated"
        )


def _of_poison(history: History) -> list[str]:
    """The task that ends its workers is a dead letter in the end."""
    poisoned = {job.job_id for job in history.jobs if job.workflow_id == POISON_ID}
    statuses = [task.status for task in history.tasks if task.job_id in poisoned]
    return [] if statuses == [MessageStatus.DEAD] else [f"the poison task is not a dead letter: {statuses}"]


def _deeds(monkey: Monkey, client: Client, proxy: Proxy, crew: Crew) -> str:
    done = ", ".join(f"{count} x {deed}" for deed, count in sorted(monkey.done.items()))
    ended = sum(post.ended for post in crew.posts)
    resumes = sum(client.resumed.values())
    return (
        f"kills: {monkey.kills}; {done}\n"
        f"answers lost: {proxy.lost_answers}; processes that ended: {ended}; requests repeated: {client.repeated}; "
        f"cancels: {client.cancelled}; resumes: {resumes}"
    )
