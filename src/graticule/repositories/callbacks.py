"""The outbox of callbacks."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from psycopg import sql
from psycopg.types.json import Jsonb

from graticule.core.ids import JobId
from graticule.core.models import Callback
from graticule.core.models.engine import EventType
from graticule.core.models.fields import JsonObject
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

_HOST: Final = r"^https?://(\[[^]]*\]|[^/?#:]*[^/?#:.])"  # of a URL in lower case; PostgreSQL and Python read it alike


def host_of(url: str) -> str:
    """Give the host that a URL names, without its port; empty when it names none."""
    found = re.match(_HOST, url.lower())
    return found[1] if found else ""


class DeliveryState(StrEnum):
    """Where a callback stands."""

    WAITING = "waiting"  # for its next try, or for what comes of one
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a try; one that is neither delivered nor given up has a next time."""

    event_type: EventType
    data: JsonObject
    error: str | None = None
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None
    next_attempt_at: datetime | None = None


class ClaimedCallback(Callback):
    """A callback that one sender has taken, with the trace of its job."""

    traceparent: str | None = None


class CallbackRepository(Repository[Callback]):
    """Reads and writes callbacks that are to be sent."""

    model = Callback
    subject: ClassVar = "callback"
    queries: ClassVar = load_queries("callbacks.sql")

    async def claim(
        self, now: datetime, held_until: datetime, limit: int, busy: Collection[str] = ()
    ) -> list[ClaimedCallback]:
        """Take callbacks whose time has come, each by one sender only; whoever records nothing loses them then.

        None is taken that goes to one of the hosts that are `busy`.
        """
        parameters = {"now": now, "held_until": held_until, "limit": limit, "host": _HOST, "busy": list(busy)}
        with domain_errors("claim callbacks"):
            cursor = await self._connection.execute(self.queries["claim_callbacks"], parameters)
            return [statements.from_database(ClaimedCallback, row) for row in await cursor.fetchall()]

    async def next_due(self, busy: Collection[str] = ()) -> datetime | None:
        """Tell when the next try is due, or the next claim runs out, of those that go to no `busy` host."""
        parameters = {"host": _HOST, "busy": list(busy)}
        row = await self._fetch_one(sql.SQL(self.queries["next_callback"]), parameters, "read the next callback")
        return row["due"] if row else None

    async def record(self, claimed: Callback, came: Recorded, now: datetime) -> bool:
        """Write what came of a try, and its event; False when the claim was lost."""
        parameters = {
            "callback_id": claimed.callback_id,
            "attempt": claimed.attempt_count,
            "held_until": claimed.next_attempt_at,
            "event_type": came.event_type,
            "data": Jsonb(came.data),
            "error": came.error,
            "delivered_at": came.delivered_at,
            "given_up_at": came.given_up_at,
            "next_attempt_at": came.next_attempt_at,
            "now": now,
        }
        return await self._execute("record_callback", parameters) == 1

    async def redeliver(self, callback_id: int, actor: str, data: JsonObject, now: datetime) -> bool:
        """Make a callback due at once, as if it had never been tried; False when there is none."""
        parameters = {"callback_id": callback_id, "actor": actor, "data": Jsonb(data), "now": now}
        return await self._execute("redeliver_callback", parameters) == 1

    async def page(
        self, *, state: DeliveryState | None, job_id: JobId | None, before: int | None, limit: int
    ) -> list[Callback]:
        """Give callbacks, newest first, older than the one that `before` names."""
        parameters = {"state": state, "job_id": job_id, "before": before, "limit": limit}
        return await self._all("list_callbacks", parameters)
