"""The monkey: kills, pauses and cuts what it likes, as its seed says, and writes down what it did."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.chaos.installation import Crew, Post, Server
from tests.chaos.proxy import Proxy


class Deed(StrEnum):
    """What it can do."""

    KILL_ORCHESTRATOR = "kill orchestrator"
    KILL_WORKER = "kill worker"
    PAUSE_ORCHESTRATOR = "pause orchestrator"
    PAUSE_WORKER = "pause worker"
    STOP_ORCHESTRATOR = "stop orchestrator"
    STOP_WORKER = "stop worker"
    STOP_SERVER_AT_ONCE = "stop server at once"
    KILL_SERVER = "kill server"
    KILL_BACKEND = "kill backend"
    RESTART_SERVER = "restart server"
    CUT = "cut"
    SLOW = "slow"
    LOSE_ANSWERS = "lose answers"
    STALL = "stall"


KILLS: Final = frozenset(
    {
        Deed.KILL_ORCHESTRATOR,
        Deed.KILL_WORKER,
        Deed.STOP_SERVER_AT_ONCE,
        Deed.KILL_SERVER,
        Deed.KILL_BACKEND,
    }
)
MORE_OFTEN: Final = {Deed.KILL_ORCHESTRATOR: 3, Deed.KILL_WORKER: 3, Deed.LOSE_ANSWERS: 1, Deed.PAUSE_ORCHESTRATOR: 1}
MARGIN: Final = 1.3  # more deeds than the wanted kills need: some take their time
SHORTEST, LONGEST = 0.3, 1.5  # seconds from one deed to the next, about


class Monkey:
    """Does one deed after the other; pauses and bad networks go on beside those that follow."""

    def __init__(self, crew: Crew, server: Server, proxy: Proxy, rng: Random, log: Path) -> None:
        self.done: Counter[Deed] = Counter()
        self._crew = crew
        self._server = server
        self._proxy = proxy
        self._rng = rng
        self._log = log
        self._began = time.monotonic()
        self._beside: set[asyncio.Task[None]] = set()
        self._deeds: dict[Deed, Callable[[], Awaitable[str]]] = {
            Deed.KILL_ORCHESTRATOR: lambda: self._send(self._crew.orchestrators, signal.SIGKILL),
            Deed.KILL_WORKER: lambda: self._send(self._crew.workers, signal.SIGKILL),
            Deed.PAUSE_ORCHESTRATOR: lambda: self._pause(self._crew.orchestrators),
            Deed.PAUSE_WORKER: lambda: self._pause(self._crew.workers),
            Deed.STOP_ORCHESTRATOR: lambda: self._send(self._crew.orchestrators, signal.SIGTERM),
            Deed.STOP_WORKER: lambda: self._send(self._crew.workers, signal.SIGTERM),
            Deed.STOP_SERVER_AT_ONCE: lambda: self._restart(signal.SIGQUIT),
            Deed.KILL_SERVER: lambda: self._restart(signal.SIGKILL),
            Deed.KILL_BACKEND: self._kill_backend,
            Deed.RESTART_SERVER: lambda: self._restart(signal.SIGINT),
            Deed.CUT: self._cut,
            Deed.SLOW: self._slow,
            Deed.LOSE_ANSWERS: self._lose_answers,
            Deed.STALL: self._stall,
        }

    @property
    def kills(self) -> int:
        """How many processes, or servers, were ended without warning."""
        return sum(self.done[deed] for deed in KILLS)

    async def torment(self, seconds: float, minimum_kills: int) -> None:
        """Go on for so long, and until there were as many kills; each deed comes at least once in a round."""
        self._began = time.monotonic()
        interval = self._interval(seconds, minimum_kills)
        deck: list[Deed] = []
        due = self._began
        while time.monotonic() - self._began < seconds or self.kills < minimum_kills:
            deck = deck or self._deck()
            await self._do(deck.pop())
            due += interval * self._rng.uniform(0.5, 1.5)
            await asyncio.sleep(max(0.05, due - time.monotonic()))

    async def rest(self) -> None:
        """Do nothing more, and undo what can be undone."""
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        self._proxy.behave()
        self._crew.heal()
        self._note("rests")

    def _interval(self, seconds: float, minimum_kills: int) -> float:
        often = Counter(Deed) + Counter(MORE_OFTEN)
        share = sum(often[deed] for deed in KILLS) / often.total()
        return min(LONGEST, max(SHORTEST, seconds * share / max(1.0, minimum_kills * MARGIN)))

    def _deck(self) -> list[Deed]:
        """Give a round of deeds, the last first: each once, and then some again."""
        first, again = [*Deed], [deed for deed, times in MORE_OFTEN.items() for _ in range(times)]
        self._rng.shuffle(first)
        self._rng.shuffle(again)
        return [*again, *first]

    async def _do(self, deed: Deed) -> None:
        detail = await self._deeds[deed]()
        self.done[deed] += 1
        self._note(f"{deed}: {detail}")

    def _note(self, what: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{time.monotonic() - self._began:9.3f} (monotonic {time.monotonic():.3f}) {what}\n")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # Members

    def _someone(self, posts: list[Post]) -> Post:
        """Choose among those who live; when nobody does, the next one."""
        alive = [post for post in posts if post.member is not None and post.member.running]
        return self._rng.choice(alive) if alive else self._successor(self._rng.choice(posts))

    def _successor(self, post: Post) -> Post:
        self._crew.look_after(post)
        return post

    async def _send(self, posts: list[Post], number: signal.Signals) -> str:
        post = self._someone(posts)
        member = post.fill()
        member.send(number)
        return f"{number.name} to {post.name} (pid {member.pid})"

    async def _pause(self, posts: list[Post]) -> str:
        post, seconds = self._someone(posts), self._rng.uniform(1, 8)
        member = post.fill()
        member.send(signal.SIGSTOP)

        async def go_on() -> None:
            await asyncio.sleep(seconds)
            if member.running:
                member.send(signal.SIGCONT)

        self._begin(go_on())
        return f"{post.name} (pid {member.pid}) for {seconds:.1f} s"

    # The server and the network

    async def _restart(self, number: signal.Signals) -> str:
        began = time.monotonic()
        await self._server.restart(number)
        return f"{number.name}, and back after {time.monotonic() - began:.1f} s"

    async def _kill_backend(self) -> str:
        backends = self._server.backends()
        if not backends:  # everyone was cut off a moment ago
            return await self._restart(signal.SIGKILL)
        chosen = self._rng.choice(backends)
        os.kill(chosen, signal.SIGKILL)
        return f"SIGKILL to pid {chosen}"

    async def _cut(self) -> str:
        share = self._rng.choice((0.3, 1.0))
        return f"{self._proxy.cut(share, self._rng)} connections"

    async def _slow(self) -> str:
        delay, seconds = self._rng.choice((0.02, 0.1, 0.3)), self._rng.uniform(1, 4)
        self._begin(self._proxy.slow(delay, seconds))
        return f"{delay:g} s later, for {seconds:.1f} s"

    async def _lose_answers(self) -> str:
        count = self._rng.randint(1, 8)
        self._proxy.lose_answers(count)
        return f"the next {count}"

    async def _stall(self) -> str:
        seconds = self._rng.uniform(0.5, 5)
        self._begin(self._proxy.stall(seconds))
        return f"for {seconds:.1f} s"
