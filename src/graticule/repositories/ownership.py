"""Who decides for which job: cancel, take over, hand over, and what an owner has to look at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from graticule.core.ids import JobId, OwnerId
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("ownership.sql")


@dataclass(frozen=True, slots=True)
class Load:
    """The active jobs of an instance and of all, how many instances share them, and whether some have no owner."""

    own: int
    total: int  # not counted where there is one instance
    instances: int
    has_orphans: bool

    def room(self, more: int = 0) -> float:
        """Tell how many jobs are missing from the instance's fair share, with so many that come; negative: too many."""
        return math.inf if self.instances == 1 else -(-(self.total + more) // self.instances) - self.own


class OwnershipRepository:
    """Moves jobs between owners, and finds what an owner has to look at."""

    queries = QUERIES

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def request_cancel(self, job_id: JobId, actor: str | None, now: datetime) -> bool:
        """Note that a job is to end, and tell its owner; False when it has ended already."""
        return bool(await self._all("request_cancel", {"job_id": job_id, "actor": actor, "now": now}))

    async def take_ended(
        self,
        job_id: JobId,
        owner_id: OwnerId,
        now: datetime,
        *,
        or_cancelled: bool = False,
        definition: tuple[str, str] | None = None,
    ) -> bool:
        """Take a failed job over in order to resume it, and with another definition (hash, version) if one is given.

        False when it is not failed.
        """
        workflow_hash, workflow_version = definition or (None, None)
        given = {"job_id": job_id, "owner_id": owner_id, "now": now, "or_cancelled": or_cancelled}
        given |= {"workflow_hash": workflow_hash, "workflow_version": workflow_version}
        return await self._moved("take_ended", given) == 1

    async def remove_nodes(self, job_id: JobId) -> int:
        """Remove the nodes of a job that starts over, and return the highest retry count that it has had."""
        (row,) = await self._all("remove_nodes", {"job_id": job_id})
        return int(row["last"])

    async def take_orphans(
        self, owner_id: OwnerId, dead: Sequence[OwnerId], now: datetime, limit: int
    ) -> dict[JobId, bool]:
        """Take active jobs that nobody decides for any more; if some of their owners are dead, the others are told.

        With each, whether its owner is dead; the others were handed over.
        """
        given = {"owner_id": owner_id, "dead": list(dead), "now": now, "limit": limit}
        return {JobId(row["job_id"]): row["is_of_dead"] for row in await self._all("take_orphans", given)}

    async def take_late(self, owner_id: OwnerId, now: datetime, limit: int) -> list[JobId]:
        """Take ended jobs of closed instances for which results came late."""
        given = {"owner_id": owner_id, "now": now, "limit": limit}
        return [JobId(row["job_id"]) for row in await self._all("take_late", given)]

    async def dead_owners(self, owner_id: OwnerId, threshold_seconds: float) -> dict[OwnerId, bool]:
        """Give the instances that are gone without having said so, and those that left jobs behind.

        With each, whether that is certain: one that has only lost its session may be back in a moment.
        """
        given = {"owner_id": owner_id, "threshold": threshold_seconds}
        rows = [*await self._all("dead_owners", given), *await self._all("absent_owners", given)]
        return {OwnerId(row["owner_id"]): row["is_silent"] for row in rows if row["owner_id"] != owner_id}

    async def close_dead(self, dead: Sequence[OwnerId], now: datetime) -> None:
        """Close the rows of dead instances that have no active job left."""
        await self._moved("close_dead", {"dead": list(dead), "now": now})

    async def hand_over(self, owner_id: OwnerId, now: datetime) -> int:
        """Give up all jobs of an instance that stops, close its row, and tell the others."""
        (row,) = await self._all("hand_over", {"owner_id": owner_id, "now": now})
        return int(row["given"])

    async def waiting_jobs(self, owner_id: OwnerId) -> list[JobId]:
        """Give the owner's jobs for which a notification may have been missed."""
        return [JobId(row["job_id"]) for row in await self._all("waiting_jobs", {"owner_id": owner_id})]

    async def due_nodes(
        self, owner_id: OwnerId, horizon: datetime, limit: int = 10_000
    ) -> list[tuple[datetime, JobId, str]]:
        """Give the owner's retries whose backoff ends before the horizon."""
        rows = await self._all("due_nodes", {"owner_id": owner_id, "horizon": horizon, "limit": limit})
        return [(row["ready_at"], JobId(row["job_id"]), row["node_id"]) for row in rows]

    async def expired_nodes(self, owner_id: OwnerId, now: datetime, limit: int = 1000) -> list[tuple[JobId, str, bool]]:
        """Give the owner's nodes whose deadline is over, and whether a worker holds their task."""
        rows = await self._all("expired_nodes", {"owner_id": owner_id, "now": now, "limit": limit})
        return [(JobId(row["job_id"]), row["node_id"], bool(row["taken"])) for row in rows]

    async def load(self, owner_id: OwnerId, threshold_seconds: float, dead: Sequence[OwnerId] = ()) -> Load:
        """Tell how much the owner has, and among how many the jobs can be shared, without those that are dead."""
        (row,) = await self._all("load", {"owner_id": owner_id, "threshold": threshold_seconds, "dead": list(dead)})
        return Load(**row)

    async def count_active(self, owner_id: OwnerId) -> int:
        """Tell how many active jobs the owner has."""
        (row,) = await self._all("count_active", {"owner_id": owner_id})
        return int(row["active"])

    async def give_away(self, owner_id: OwnerId, count: int, now: datetime) -> int:
        """Give up so many jobs, and tell the others."""
        (row,) = await self._all("give_away", {"owner_id": owner_id, "limit": count, "now": now})
        return int(row["given"])

    async def _all(self, query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(QUERIES[query], given)).fetchall()

    async def _moved(self, query: str, given: dict[str, Any]) -> int:
        with domain_errors(query.replace("_", " ")):
            return (await self._connection.execute(QUERIES[query], given)).rowcount
