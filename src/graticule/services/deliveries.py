"""Callbacks on their way: who sends which, what comes of a try, when the next one is due, and what operators see.

A callback is delivered at least once: whoever ends between sending it and writing that down has it sent again, with the
same id, when the claim has run out.
"""

import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, Field

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, Conflict, NotFound
from graticule.core.fault_points import Commit
from graticule.core.ids import JobId, PlatformId
from graticule.core.models import Callback
from graticule.core.models.engine import EventType
from graticule.core.models.fields import JsonObject
from graticule.core.trace_context import TRACEPARENT, continued, current_traceparent, parse_traceparent
from graticule.logs import bound, get_logger
from graticule.repositories.callbacks import CallbackRepository, ClaimedCallback, DeliveryState, Recorded
from graticule.repositories.database import Database
from graticule.repositories.platforms import PlatformRepository
from graticule.services.callback_targets import parse_allowance
from graticule.services.engine_metrics import Attempt, EngineMetrics
from graticule.services.safe_http import RequestFailed, SafeHttp
from graticule.services.webhooks import OPERATORS, body_of, message_id, recipient_of, signed_headers, signing_secret
from graticule.telemetry import Kind, Span, span

_log = get_logger(__name__)

CLAIM_SECONDS: Final = 60.0  # longer than any try
PAUSES: Final = tuple(
    timedelta(**each)
    for each in (
        {"seconds": 5},
        {"minutes": 5},
        {"minutes": 30},
        *({"hours": hours} for hours in (2, 5, 10, 14, 20, 24)),
    )
)
SPREAD: Final = 0.1  # so that what failed together is not tried again together
LONGEST_ASKED: Final = timedelta(hours=24)
SHORTEST_SECRET_BYTES: Final = 32
_ASKS_FOR_TIME: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_UNSIGNED: Final = "this installation has no GRATICULE_WEBHOOK_SECRET to sign with"


class Delivery(BaseModel):
    """A callback as operators see it."""

    callback_id: int = Field(examples=[12])
    state: DeliveryState
    job_id: JobId
    url: str = Field(
        description="Where it goes, without the query, which may hold a key.", examples=["https://example.org/hook"]
    )
    webhook_id: str = Field(description="The same in all tries.", examples=["msg_12_1767225600"])
    recipient: str = Field(description="Whose secret signs it: a platform's, or `@operators`.", examples=["ddh"])
    payload: JsonObject = Field(examples=[{"request_id": "6f1c…", "status": "completed"}])
    attempt_count: int = Field(description="Tries since it was made, or since it was last sent anew.")
    next_attempt_at: datetime | None = Field(description="When it is tried again; null when it is not.")
    last_error: str | None
    delivered_at: datetime | None
    given_up_at: datetime | None
    created_at: datetime


class WebhookSecret(BaseModel):
    """What a recipient verifies callbacks with."""

    recipient: str = Field(examples=["ddh"])
    secret: str = Field(description="To be kept as a password is.", examples=["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a try: a status, or why there is none."""

    status: int | None = None
    retry_after: str | None = None
    error: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Tell whether the receiver has it."""
        return self.status is not None and 200 <= self.status < 300


class CallbackSender:
    """Takes callbacks that are due, sends them, and writes down what came of it."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        http: SafeHttp | None = None,
        metrics: EngineMetrics | None = None,
    ) -> None:
        self._metrics = metrics or EngineMetrics()
        self._database = database
        self._secret = _secret_of(settings)
        self._public_url = str(settings.public_url or "")
        self._http = http or SafeHttp(parse_allowance(settings.callback_allow))

    async def claim(self, limit: int, busy: Collection[str] = ()) -> list[ClaimedCallback]:
        """Take callbacks whose time has come, for hosts that are not busy. Nothing is locked while they are sent."""
        now = self._database.now()
        held_until = now + timedelta(seconds=CLAIM_SECONDS)
        async with self._database.committing(Commit.CLAIM_CALLBACKS) as connection:
            return await CallbackRepository(connection).claim(now, held_until, limit, busy)

    async def seconds_to_next(self, busy: Collection[str] = ()) -> float | None:
        """Tell how long it is to the next try that is due for a host that is not busy; None when nothing waits."""
        async with self._database.connection() as connection:
            due = await CallbackRepository(connection).next_due(busy)
        return None if due is None else (due - self._database.now()).total_seconds()

    async def attempt(self, callback: ClaimedCallback) -> None:
        """Send a callback that was claimed, and write down what came of it."""
        with bound(job_id=callback.job_id), continued(parse_traceparent(callback.traceparent)):
            await self._attempt(callback)

    async def _attempt(self, callback: ClaimedCallback) -> None:
        began = time.monotonic()
        with span("callback", Kind.CLIENT, job_id=callback.job_id, attempt=callback.attempt_count) as sending:
            outcome = await self._send(callback)
            _record(sending, outcome)
        seconds, now = time.monotonic() - began, self._database.now()
        came = recorded(callback, outcome, now)
        async with self._database.committing(Commit.RECORD_CALLBACK) as connection:
            is_ours = await CallbackRepository(connection).record(callback, came, now)
        if is_ours:
            self._metrics.called_back(_came_to(came), seconds)
        else:
            _log.warning("a callback was taken over while it was sent", callback_id=callback.callback_id)

    async def _send(self, callback: Callback) -> Outcome:
        if self._secret is None:
            return Outcome(error=_UNSIGNED)
        body = body_of(callback, self._public_url)
        secret = signing_secret(self._secret, recipient_of(callback))
        headers = signed_headers(secret, message_id(callback), self._database.now(), body)
        if (traceparent := current_traceparent()) is not None:
            headers[TRACEPARENT] = traceparent
        try:
            answer = await self._http.post(callback.url, headers, body)
        except RequestFailed as error:
            return Outcome(error=str(error))
        except Exception:  # it counts as a try, or it would be repeated for ever
            _log.exception("a callback could not be sent", callback_id=callback.callback_id)
            return Outcome(error="an error that nobody foresaw; the orchestrator's log tells more")
        return Outcome(answer.status, answer.retry_after)


class DeliveryService:
    """What operators do with callbacks, and what receivers need to verify them."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._secret = _secret_of(settings)

    async def page(
        self,
        *,
        state: DeliveryState | None = None,
        job_id: JobId | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Delivery]:
        """Give callbacks, newest first, older than the one that `before` names."""
        async with self._database.connection() as connection:
            found = await CallbackRepository(connection).page(state=state, job_id=job_id, before=before, limit=limit)
        return [_shown(callback) for callback in found]

    async def get(self, callback_id: int) -> Delivery:
        """Give a callback."""
        async with self._database.connection() as connection:
            return _shown(await CallbackRepository(connection).get(callback_id=callback_id))

    async def redeliver(self, callback_id: int, actor: str) -> Delivery:
        """Send a callback anew, also one that was delivered: it is due at once, and its tries are counted from one."""
        data: JsonObject = {"command": "callback.redeliver", "callback_id": callback_id}
        async with self._database.transaction(Commit.REDELIVER) as connection:
            callbacks = CallbackRepository(connection)
            if not await callbacks.redeliver(callback_id, actor, data, self._database.now()):
                raise NotFound(f"There is no callback {callback_id}.", hint="GET /api/v1/deliveries lists them.")
            return _shown(await callbacks.get(callback_id=callback_id))

    async def secret_of(self, platform_id: PlatformId) -> WebhookSecret:
        """Give the secret that signs what is sent to a platform."""
        async with self._database.connection() as connection:
            platform = await PlatformRepository(connection).get(platform_id=platform_id)
        return self._secret_for(platform.platform_id)

    def operators_secret(self) -> WebhookSecret:
        """Give the secret that signs what is sent for operators' jobs."""
        return self._secret_for(OPERATORS)

    def _secret_for(self, recipient: str) -> WebhookSecret:
        if self._secret is None:
            raise Conflict(
                "This installation signs no callbacks.", hint="Set GRATICULE_WEBHOOK_SECRET, and start it again."
            )
        return WebhookSecret(recipient=recipient, secret=signing_secret(self._secret, recipient))


def recorded(callback: Callback, outcome: Outcome, now: datetime) -> Recorded:
    """Decide what follows from a try."""
    data: JsonObject = {"callback_id": callback.callback_id, "attempt": callback.attempt_count}
    if outcome.status is not None:
        data["status"] = outcome.status
    if outcome.is_delivered:
        return Recorded(EventType.CALLBACK_SENT, data, delivered_at=now)
    error = outcome.error or _told_status(outcome.status)
    pause = pause_after(callback.attempt_count, outcome, now)
    due = None if pause is None else now + pause
    data |= {"error": error, "next_attempt_at": None if due is None else due.isoformat()}
    return Recorded(
        EventType.CALLBACK_FAILED, data, error, given_up_at=now if due is None else None, next_attempt_at=due
    )


def pause_after(attempt: int, outcome: Outcome, now: datetime) -> timedelta | None:
    """Give how long to wait after a try that failed; None when there is to be no other."""
    if outcome.status == HTTPStatus.GONE or attempt > len(PAUSES):
        return None
    pause = PAUSES[attempt - 1] * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - no secret
    asked = _asked(outcome.retry_after, now) if outcome.status in _ASKS_FOR_TIME else timedelta()
    return max(pause, min(asked, LONGEST_ASKED))


def _asked(retry_after: str | None, now: datetime) -> timedelta:
    """Read a Retry-After: seconds, or a date. What cannot be read asks for nothing."""
    if retry_after is None:
        return timedelta()
    if retry_after.isascii() and retry_after.isdigit():
        return timedelta(seconds=int(retry_after[:9]))
    try:
        date = parsedate_to_datetime(retry_after)
        return date.replace(tzinfo=date.tzinfo or UTC) - now
    except (ValueError, TypeError, OverflowError):  # a zone of a billion hours is a number to the parser
        return timedelta()


def _told_status(status: int | None) -> str:
    if status is not None and 300 <= status < 400:
        return f"status {status}: redirects are not followed"
    return f"status {status}"


def _secret_of(settings: Settings) -> str | None:
    given = settings.webhook_secret.get_secret_value() if settings.webhook_secret else ""
    if given and len(given.encode()) < SHORTEST_SECRET_BYTES:  # whoever guesses it can sign for every recipient
        raise ConfigurationError(
            f"GRATICULE_WEBHOOK_SECRET is too short: a secret needs at least {SHORTEST_SECRET_BYTES} bytes.",
            hint="Make one with `openssl rand -base64 48`, the same for all orchestrators.",
        )
    return given or None


def _shown(callback: Callback) -> Delivery:
    state = _state(callback)
    values: Mapping[str, object] = callback.model_dump(exclude={"url", "next_attempt_at"})
    return Delivery.model_validate(
        {
            **values,
            "state": state,
            "url": callback.url.partition("?")[0],
            "webhook_id": message_id(callback),
            "recipient": recipient_of(callback),
            "next_attempt_at": callback.next_attempt_at if state is DeliveryState.WAITING else None,
        }
    )


def _record(sending: Span, outcome: Outcome) -> None:
    sending.set({"http.request.method": "POST", "http.response.status_code": outcome.status})
    if not outcome.is_delivered:
        sending.fail(outcome.error or _told_status(outcome.status))


def _came_to(came: Recorded) -> Attempt:
    if came.delivered_at is not None:
        return Attempt.DELIVERED
    return Attempt.FAILED if came.given_up_at is None else Attempt.GIVEN_UP


def _state(callback: Callback) -> DeliveryState:
    if callback.delivered_at is not None:
        return DeliveryState.DELIVERED
    return DeliveryState.WAITING if callback.given_up_at is None else DeliveryState.GIVEN_UP
