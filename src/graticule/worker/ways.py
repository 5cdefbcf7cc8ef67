"""The ways between a worker and the others: what brings its tasks, and where its reports go.

A worker that reaches the database needs nothing else. Results may go by HTTP all the same, and tasks may come by a
broker. One that has both of these needs no database at all.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx

from graticule.config import HttpAddress, Settings, Transport
from graticule.core.channels import CANCELLED, queue_channel
from graticule.core.errors import ConfigurationError
from graticule.core.ids import WorkerId
from graticule.core.models import Worker
from graticule.core.table import DatabaseRole
from graticule.http.probes import Check, CheckResult
from graticule.messaging.ledger import DatabaseLedger, TaskLedger
from graticule.messaging.metrics import QueueMetrics
from graticule.messaging.postgres import PostgresTaskQueue, without_waiting_for_disk
from graticule.messaging.protocol import TaskQueue
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener
from graticule.worker.callbacks.catalogue import HttpCatalogue
from graticule.worker.callbacks.client import CallbackClient
from graticule.worker.callbacks.ledger import HttpLedger
from graticule.worker.callbacks.reports import HttpCheckpoints, HttpSink
from graticule.worker.checkpoints import CheckpointStore, DatabaseCheckpoints
from graticule.worker.executor import CatalogueOf
from graticule.worker.notices import Notices
from graticule.worker.presence import DatabasePresence, HttpPresence, Presence
from graticule.worker.reports import DatabaseSink, ReportSink

if TYPE_CHECKING:
    from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue

LEASE_CONNECTIONS: Final = 2
CHECK_SECONDS: Final = 5.0
ASK_SECONDS: Final = 1.5  # who is not told that a job was cancelled asks so often


@dataclass(frozen=True, slots=True)
class Ways:
    """What a worker gets its tasks from, and tells of them to."""

    queue: TaskQueue
    notices: Sequence[Notices]
    sink: ReportSink
    checkpoints: CheckpointStore
    presence: Presence
    renew_seconds: float
    database: Database | None = None  # for handlers that load tables
    catalogue: CatalogueOf | None = None  # None: the database's


def ways_of(
    settings: Settings, row: Worker, database: Database | None, url: str | None, metrics: QueueMetrics
) -> AbstractAsyncContextManager[Ways]:
    """Give the ways of a worker; without a database, they go by the broker and by HTTP alone."""
    if database is None or url is None:
        return _without_database(settings, row, metrics)
    return _with_database(settings, row, database, url, metrics)


@asynccontextmanager
async def _with_database(
    settings: Settings, row: Worker, database: Database, url: str, metrics: QueueMetrics
) -> AsyncIterator[Ways]:
    worker_id = row.worker_id
    async with AsyncExitStack() as stack:
        leases = await stack.enter_async_context(_lease_database(settings, url))
        listening = partial(Listener, url, DatabaseRole.WORKER, name="graticule-worker-listener")
        queue: TaskQueue
        notices: Sequence[Notices]
        if settings.transport is Transport.POSTGRES:
            queue = PostgresTaskQueue(database, leases, worker_id, settings.worker_lease_seconds)
            notices = [listening([CANCELLED, *map(queue_channel, row.queues)])]
        else:
            ledger = DatabaseLedger(database, leases, worker_id, settings.worker_lease_seconds)
            brokered = await stack.enter_async_context(_brokered(settings, ledger, row.queues, metrics))
            queue, notices = brokered, [listening([CANCELLED]), brokered]
        sink: ReportSink = DatabaseSink(database, worker_id)
        checkpoints: CheckpointStore = DatabaseCheckpoints(database, worker_id)
        if settings.dag_callback_url is not None:
            client = await stack.enter_async_context(_client(settings, settings.dag_callback_url, worker_id))
            sink, checkpoints = HttpSink(client), HttpCheckpoints(client)
        yield Ways(
            queue=queue,
            notices=notices,
            sink=sink,
            checkpoints=checkpoints,
            presence=DatabasePresence(database, row, settings.heartbeat_interval_seconds),
            renew_seconds=settings.worker_renew_seconds,
            database=database,
        )


@asynccontextmanager
async def _without_database(settings: Settings, row: Worker, metrics: QueueMetrics) -> AsyncIterator[Ways]:
    async with (
        _client(settings, _callback_address(settings), row.worker_id) as client,
        _brokered(settings, HttpLedger(client), row.queues, metrics) as queue,
    ):
        yield Ways(
            queue=queue,
            notices=[queue],
            sink=HttpSink(client),
            checkpoints=HttpCheckpoints(client),
            presence=HttpPresence(client, row, settings.heartbeat_interval_seconds),
            renew_seconds=min(settings.worker_renew_seconds, ASK_SECONDS),
            catalogue=partial(HttpCatalogue, client),
        )


def orchestrator_check(settings: Settings) -> Check:
    """Give the check of a worker without a database: it is ready when an orchestrator answers."""

    async def check() -> CheckResult:
        async with httpx.AsyncClient(timeout=CHECK_SECONDS) as client:
            try:
                answer = await client.get(f"{str(_callback_address(settings).get_secret_value()).rstrip('/')}/livez")
            except httpx.TransportError as error:
                return CheckResult(ok=False, reason=f"The orchestrator cannot be reached: {type(error).__name__}.")
        return CheckResult(ok=answer.is_success, reason=None if answer.is_success else f"status {answer.status_code}")

    return check


def _callback_address(settings: Settings) -> HttpAddress:
    if settings.dag_callback_url is None:
        raise ConfigurationError(
            "A worker without a database has to know an orchestrator.",
            hint="Set GRATICULE_DAG_CALLBACK_URL, or GRATICULE_DATABASE_URL.",
        )
    return settings.dag_callback_url


def needs_no_database(settings: Settings) -> bool:
    """Tell whether a worker is meant to have no database: none is named, and all else is."""
    return (
        settings.transport is Transport.SERVICEBUS
        and settings.dag_callback_url is not None
        and settings.external_database is None
    )


def _lease_database(settings: Settings, url: str) -> Database:
    return Database(
        without_waiting_for_disk(url),
        DatabaseRole.WORKER,
        pool_size=LEASE_CONNECTIONS,
        timeout_seconds=settings.database_timeout_seconds,
        name="graticule-worker-leases",
    )


@asynccontextmanager
async def _brokered(
    settings: Settings, ledger: TaskLedger, queues: Sequence[str], metrics: QueueMetrics
) -> "AsyncIterator[ServiceBusTaskQueue]":
    # Its packages are not always installed.
    from graticule.messaging.servicebus.namespace import Namespace  # noqa: PLC0415
    from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue  # noqa: PLC0415

    async with Namespace(settings, metrics) as namespace, ServiceBusTaskQueue(namespace, ledger, queues) as queue:
        yield queue


@asynccontextmanager
async def _client(settings: Settings, address: HttpAddress, worker_id: WorkerId) -> AsyncIterator[CallbackClient]:
    token = None if settings.worker_token is None else settings.worker_token.get_secret_value()
    client = CallbackClient(str(address.get_secret_value()), token, worker_id)
    try:
        yield client
    finally:
        await client.close()
