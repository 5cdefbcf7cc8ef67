"""Callbacks of a test: an outbox with an ended job, and senders that may reach loopback."""

from datetime import timedelta
from typing import Any

from pydantic import AnyHttpUrl, SecretStr
from standardwebhooks.webhooks import Webhook
from tests.integration.api.stored import add_job
from tests.integration.services.receiver import Received

from graticule.config import HttpAddress, Settings
from graticule.core.ids import JobId
from graticule.core.models import Callback, Event
from graticule.core.states import JobStatus
from graticule.repositories.callbacks import CallbackRepository
from graticule.repositories.database import Database
from graticule.repositories.events import EventRepository
from graticule.services.callback_targets import parse_allowance
from graticule.services.deliveries import CallbackSender
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.safe_http import SafeHttp
from graticule.services.webhooks import signing_secret

MASTER = "a-master-secret-of-some-length-at-least"
REQUEST = "8e5d0b3c-0000-4000-8000-000000000001"
PARTNERS = {"request_id": REQUEST, "status": "completed", "platform_id": "ddh"}
SETTINGS = Settings(
    webhook_secret=SecretStr(MASTER),
    callback_allow="127.0.0.1",
    public_url=HttpAddress(AnyHttpUrl("https://partners.example")),
)
JOB = JobId("job")


class Outbox:
    """The callbacks of one job."""

    def __init__(self, pool: Database) -> None:
        self.pool = pool

    async def fill(self, *urls: str, **changes: Any) -> list[Callback]:
        """Add callbacks that are due, of a job that has ended."""
        now = self.pool.now()
        values = {"job_id": JOB, "payload": PARTNERS, "next_attempt_at": now, "created_at": now, **changes}
        async with self.pool.connection() as connection:
            if await (await connection.execute("SELECT FROM dagapp.dag_jobs")).fetchone() is None:
                await add_job(connection, JOB, status=JobStatus.COMPLETED)
            added = [await CallbackRepository(connection).insert(Callback(**values, url=url)) for url in urls]
            await connection.execute("NOTIFY graticule_callbacks")
        return added

    def sender(self, *, seconds: float = 5, metrics: EngineMetrics | None = None, **settings: Any) -> CallbackSender:
        given = SETTINGS.model_copy(update=settings)
        http = SafeHttp(parse_allowance(given.callback_allow), seconds=seconds)
        return CallbackSender(self.pool, given, http, metrics)

    async def row(self, callback_id: int | None) -> Callback:
        async with self.pool.connection() as connection:
            return await CallbackRepository(connection).get(callback_id=callback_id)

    async def rows(self) -> list[Callback]:
        async with self.pool.connection() as connection:
            return await CallbackRepository(connection).page(state=None, job_id=None, before=None, limit=1000)

    async def events(self) -> list[Event]:
        async with self.pool.connection() as connection:
            return await EventRepository(connection).of_job(JOB)

    async def let_pass(self, seconds: float) -> None:
        """Set all that is to come so many seconds nearer."""
        async with self.pool.connection() as connection:
            await connection.execute(
                "UPDATE dagapp.dag_callbacks SET next_attempt_at = next_attempt_at - %s", [timedelta(seconds=seconds)]
            )


def verified(received: Received, recipient: str = "ddh") -> Any:
    """Give the body of a request whose signature is right."""
    return Webhook(signing_secret(MASTER, recipient)).verify(received.body, received.headers)
