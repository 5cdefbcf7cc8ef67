"""One instance among many: its row, its heartbeat, and what it takes over from those that are gone.

An instance proves that it lives by a session-level advisory lock, which becomes free the moment its session
ends, and by a heartbeat in its row: one write per instance, however many jobs it owns.
"""

import os
import secrets
import socket
from datetime import UTC, datetime
from typing import Final

from graticule import __version__
from graticule.core.ids import JobId, OwnerId
from graticule.core.models import Orchestrator
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.processes import OrchestratorRepository

_log = get_logger(__name__)
TAKEN_AT_ONCE: Final = 500


def new_owner_id() -> OwnerId:
    """Name a new instance: every start of a process is another one."""
    return OwnerId(f"{socket.gethostname()[:64]}-{os.getpid()}-{secrets.token_hex(4)}")


class Membership:
    """The life of one instance among the others."""

    def __init__(self, database: Database, owner_id: OwnerId, *, orphan_threshold_seconds: float) -> None:
        self.owner_id = owner_id
        self.lock_key = secrets.randbits(63)
        self._database = database
        self._threshold = orphan_threshold_seconds

    async def join(self) -> None:
        """Make the row; the lock is held by then."""
        now = datetime.now(UTC)
        row = Orchestrator(
            owner_id=self.owner_id,
            hostname=socket.gethostname()[:255],
            process_id=os.getpid(),
            program_version=__version__,
            lock_key=self.lock_key,
            started_at=now,
            heartbeat_at=now,
        )
        async with self._database.connection() as connection:
            repository = OrchestratorRepository(connection)
            if not await repository.rejoin(self.owner_id):
                await repository.insert(row)

    async def beat(self) -> None:
        """Write the heartbeat."""
        async with self._database.connection() as connection:
            repository = OrchestratorRepository(connection)
            if not await repository.beat(self.owner_id):
                _log.warning("this instance was taken for dead; its jobs are with the others", owner_id=self.owner_id)
                await repository.rejoin(self.owner_id)

    async def take_orphans(self) -> list[JobId]:
        """Take a share of the jobs that nobody decides for any more."""
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            ownership = OwnershipRepository(connection)
            dead = await ownership.dead_owners(self.owner_id, self._threshold)
            taken = await ownership.take_orphans(self.owner_id, dead, now, TAKEN_AT_ONCE)
            taken += await ownership.take_late(self.owner_id, now, TAKEN_AT_ONCE)
            if dead:
                await ownership.close_dead(dead, now)
        if taken:
            _log.info("jobs were taken over", count=len(taken), dead=dead)
        return taken

    async def leave(self) -> None:
        """Hand all jobs over and close the row."""
        async with self._database.transaction() as connection:
            given = await OwnershipRepository(connection).hand_over(self.owner_id, datetime.now(UTC))
        _log.info("jobs were handed over", count=given)
