"""Messages that ask for a job, and how an orchestrator takes and ends them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from graticule.core.ids import OwnerId
from graticule.core.models import JobMessage
from graticule.core.states import MessageStatus
from graticule.repositories import statements
from graticule.repositories.base import Parameters, Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries


@dataclass(frozen=True, slots=True)
class ReturnedMessage:
    """A message that is nobody's any more: queued again, or dead."""

    queue: str
    status: MessageStatus


class MessageRepository(Repository[JobMessage]):
    """Reads and writes job messages."""

    model = JobMessage
    subject: ClassVar = "job message"
    queries: ClassVar = load_queries("messages.sql")

    async def send(self, message: JobMessage) -> bool:
        """Put a message into its queue and tell who listens; False when one of this id was sent before."""
        (row,) = await self._rows("send_message", statements.parameters(message))
        return bool(row["is_new"])

    async def claim(
        self,
        owner_id: OwnerId,
        queue: str,
        limit: int,
        lease_seconds: float,
        *,
        waited_seconds: float = 0,
        workflows: Collection[str] = (),
        unknown_seconds: float = 0,
    ) -> list[JobMessage]:
        """Lease the most urgent messages of a queue that nobody has, among those that have waited so long.

        One that was left because its workflow was unknown is passed over for `unknown_seconds`, unless its workflow
        is one of `workflows`.
        """
        given = {
            "owner_id": owner_id,
            "queue": queue,
            "limit": limit,
            "lease_seconds": lease_seconds,
            "waited_seconds": waited_seconds,
            "workflows": list(workflows),
            "unknown_seconds": unknown_seconds,
        }
        claimed = await self._all("claim_messages", given)
        return sorted(claimed, key=lambda message: (-message.priority, message.available_at, message.message_id))

    async def claim_dead(
        self, owner_id: OwnerId, queue: str, limit: int, lease_seconds: float, *, workflows: Collection[str]
    ) -> list[JobMessage]:
        """Lease messages that died because their workflow was unknown, and is not any more."""
        given = {"owner_id": owner_id, "queue": queue, "limit": limit, "lease_seconds": lease_seconds}
        return await self._all("claim_dead_messages", {**given, "workflows": list(workflows)})

    async def leave(self, owner_id: OwnerId, message_ids: Collection[str]) -> int:
        """Leave messages to those who may know their workflows; return how many were held."""
        (row,) = await self._rows("leave_messages", {"owner_id": owner_id, "message_ids": list(message_ids)})
        return int(row["messages"])

    async def count_waiting(self, queue: str, bound: int) -> int:
        """Tell how many messages of a queue could be claimed, counted up to a bound."""
        (row,) = await self._rows("count_waiting_messages", {"queue": queue, "bound": bound})
        return int(row["messages"])

    async def complete(self, claimed: JobMessage) -> bool:
        """End a message that was acted on; False when its lease was lost."""
        return await self._execute("complete_message", _lease(claimed)) == 1

    async def abandon(self, claimed: JobMessage, reason: str, *, delay_seconds: float = 0, counts: bool = True) -> bool:
        """Give a message back; one that was delivered too often dies. A delivery that does not count was never made."""
        given = {**_lease(claimed), "reason": reason, "delay_seconds": delay_seconds, "counts": counts}
        return bool(await self._rows("abandon_message", given))

    async def abandon_all(self, owner_id: OwnerId, *, counts: bool = True) -> list[ReturnedMessage]:
        """Give back all that an instance was given and works on no more."""
        return _returned(await self._rows("abandon_messages_of", {"owner_id": owner_id, "counts": counts}))

    async def dead_letter(self, claimed: JobMessage, reason: str) -> bool:
        """Set a message aside that can never become a job; False when its lease was lost."""
        return await self._execute("dead_letter_message", {**_lease(claimed), "reason": reason}) == 1

    async def reap_expired(
        self, now: datetime | None = None, limit: int = 1000, *, owners: Sequence[OwnerId] = ()
    ) -> list[ReturnedMessage]:
        """Give the messages of silent orchestrators, and of those named, back, or set them aside.

        Without `now`, the database's clock decides.
        """
        given = {"now": now, "limit": limit, "owners": list(owners)}
        return _returned(await self._rows("reap_expired_messages", given))

    async def dead(
        self, queue: str | None = None, limit: int = 100, *, before: tuple[datetime, str] | None = None
    ) -> list[JobMessage]:
        """Give the messages that could not become a job, newest first, after the one that `before` names."""
        created_at, message_id = before or (None, None)
        given = {"queue": queue, "before_created_at": created_at, "before_message_id": message_id, "limit": limit}
        return await self._all("dead_messages", given)

    async def requeue(self, message_id: str) -> bool:
        """Try a dead message again; False when there is none of this id."""
        (row,) = await self._rows("requeue_dead_message", {"message_id": message_id})
        return bool(row["is_requeued"])

    async def discard(self, message_id: str) -> bool:
        """Take a dead message off the list; False when there is none of this id."""
        return await self._execute("discard_dead_message", {"message_id": message_id}) == 1

    async def _rows(self, query: str, given: Parameters) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(self.queries[query], given)).fetchall()


def _returned(rows: Sequence[Mapping[str, Any]]) -> list[ReturnedMessage]:
    return [ReturnedMessage(row["queue"], MessageStatus(row["status"])) for row in rows]


def _lease(claimed: JobMessage) -> dict[str, Any]:
    return {
        "message_id": claimed.message_id,
        "delivery_count": claimed.delivery_count,
        "owner_id": claimed.leased_by,
    }
