"""One instance among many: its row, its heartbeat, and what it takes over from those that are gone.

An instance proves that it lives by a session-level advisory lock, which becomes free the moment its session
ends, and by a heartbeat in its row: one write per instance, however many jobs it owns.
"""

import math
import os
import secrets
import socket
import time
from functools import partial
from typing import Final

from graticule import __version__
from graticule.config import Settings
from graticule.core.fault_points import Commit
from graticule.core.ids import JobId, OwnerId
from graticule.core.models import Orchestrator
from graticule.logs import get_logger
from graticule.orchestrator.metrics import OrchestratorMetrics
from graticule.repositories.database import Database, after_commit
from graticule.repositories.messages import MessageRepository
from graticule.repositories.ownership import Load, OwnershipRepository
from graticule.repositories.processes import OrchestratorRepository

_log = get_logger(__name__)
TAKEN_AT_ONCE: Final = 500
CERTAIN_SECONDS: Final = 1.5  # for an instance that lost its session to have a new one
PATIENCE_SECONDS: Final = 5.0  # for others to take their share of what has no owner
MOST_UNEVEN: Final = 5  # jobs, or a quarter of a share, that an instance may have more than its share


def new_owner_id() -> OwnerId:
    """Name a new instance: every start of a process is another one."""
    return OwnerId(f"{socket.gethostname()[:64]}-{os.getpid()}-{secrets.token_hex(4)}")


class Membership:
    """The life of one instance among the others."""

    def __init__(
        self, database: Database, owner_id: OwnerId, settings: Settings, metrics: OrchestratorMetrics | None = None
    ) -> None:
        self._metrics = metrics or OrchestratorMetrics()
        self.owner_id = owner_id
        self.lock_key = secrets.randbits(63)
        self._database = database
        self._threshold = settings.orphan_threshold_seconds
        self._scan_seconds = settings.orphan_scan_interval_seconds
        self._certain_seconds = min(CERTAIN_SECONDS, self._scan_seconds)
        self._suspected: dict[OwnerId, float] = {}  # since when those without a session have been seen so
        self._left_at: float | None = None  # when jobs were first left for the others
        self._keeps_until = -math.inf  # nobody took what was left: there is no use in giving away

    async def join(self) -> None:
        """Make the row; the lock is held by then."""
        now = self._database.now()
        row = Orchestrator(
            owner_id=self.owner_id,
            hostname=socket.gethostname()[:255],
            process_id=os.getpid(),
            program_version=__version__,
            lock_key=self.lock_key,
            started_at=now,
            heartbeat_at=now,
        )
        async with self._database.committing(Commit.JOIN) as connection:
            repository = OrchestratorRepository(connection)
            if not await repository.rejoin(self.owner_id):
                await repository.insert(row)
        self._metrics.beat()

    async def beat(self) -> None:
        """Write the heartbeat."""
        async with self._database.committing(Commit.BEAT) as connection:
            repository = OrchestratorRepository(connection)
            if not await repository.beat(self.owner_id):
                _log.warning("this instance was taken for dead; its jobs are with the others", owner_id=self.owner_id)
                await repository.rejoin(self.owner_id)
        self._metrics.beat()

    async def take_orphans(self, *, is_told: bool = False) -> list[JobId]:
        """Take a share of the jobs that nobody decides for any more, or give away what is too much.

        `is_told` by another instance, which is certain who is gone.
        """
        now = self._database.now()
        async with self._database.transaction(Commit.TAKE_OVER) as connection:
            ownership = OwnershipRepository(connection)
            dead = self._dead(await ownership.dead_owners(self.owner_id, self._threshold), is_told=is_told)
            load = await ownership.load(self.owner_id, self._threshold, dead)
            limit = self._room(load)
            orphans = await ownership.take_orphans(self.owner_id, dead, now, limit)
            taken = [*orphans, *await ownership.take_late(self.owner_id, now, TAKEN_AT_ONCE)]
            given = await ownership.give_away(self.owner_id, surplus, now) if (surplus := self._surplus(load)) else 0
            if dead:
                returned = await MessageRepository(connection).reap_expired(owners=dead)
                await ownership.close_dead(dead, now)
                after_commit(connection, partial(self._metrics.messages_returned, returned))
        from_dead = sum(orphans.values())
        self._metrics.taken_over(from_dead=from_dead, handed_over=len(orphans) - from_dead)
        if taken or given:
            _log.info("jobs changed hands", taken=len(taken), given=given, dead=dead)
        return taken

    @property
    def next_look_seconds(self) -> float:
        """Tell when to look for orphans again: soon, if an instance seems to be gone, or if some were left."""
        if self._suspected:
            return self._certain_seconds
        return self._scan_seconds if self._left_at is None else min(self._scan_seconds, PATIENCE_SECONDS)

    def _dead(self, found: dict[OwnerId, bool], *, is_told: bool) -> list[OwnerId]:
        """Give those that are gone for certain, and remember the others."""
        now = time.monotonic()
        self._suspected = {
            owner: self._suspected.get(owner, now) for owner, is_certain in found.items() if not is_certain
        }
        waited = {owner for owner, since in self._suspected.items() if now - since >= self._certain_seconds}
        return [owner for owner, is_certain in found.items() if is_certain or is_told or owner in waited]

    def _room(self, load: Load) -> int:
        """Tell how many jobs to take: a fair share; all, once they were left to others that do not take them."""
        room = load.room()
        if not load.has_orphans or room > 0:
            self._left_at = None
            return int(min(max(room, 0), TAKEN_AT_ONCE))
        now = time.monotonic()
        self._left_at = self._left_at or now
        if now - self._left_at < PATIENCE_SECONDS:
            return 0
        self._keeps_until = now + self._threshold  # by then, whoever is silent does not count any more
        return TAKEN_AT_ONCE

    def _surplus(self, load: Load) -> int:
        """Tell how many jobs to give away: none while it is about even, for a change of hands is not free."""
        surplus = -load.room()
        is_uneven = surplus > max(MOST_UNEVEN, (load.own - surplus) // 4)
        return int(surplus) if is_uneven and not load.has_orphans and time.monotonic() > self._keeps_until else 0

    async def leave(self) -> None:
        """Hand all jobs over, give messages back that did not become jobs yet, and close the row."""
        async with self._database.transaction(Commit.HAND_OVER) as connection:
            await MessageRepository(connection).abandon_all(self.owner_id, counts=False)
            given = await OwnershipRepository(connection).hand_over(self.owner_id, self._database.now())
        _log.info("jobs were handed over", count=given)
