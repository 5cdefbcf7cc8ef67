"""What carries tasks to workers, and messages that ask for jobs to orchestrators: the database alone, or a broker."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson
import psycopg
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from psycopg.rows import dict_row
from tests.servicebus_emulator.process import EmulatorProcess, running_emulator
from tests.servicebus_emulator.queue import QueueOptions

from graticule.config import Transport
from graticule.core.models import JobMessage
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository

JOBS: Final = "orchestrator-jobs"
TASKS: Final = "functionapp-tasks"
OF_NO_WORKER: Final = "faults-queue"
QUEUES: Final = (JOBS, TASKS, OF_NO_WORKER)
# A process that is paused is still given messages: others get them soon, and no message has come too often by then.
OPTIONS: Final = QueueOptions(lock_seconds=0.5, max_deliveries=1000)
DROP_SECONDS: Final = 5


class Carrier(Protocol):
    """A transport, as an installation uses it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Give the settings of its users."""

    def send(self, bodies: Mapping[str, dict[str, Any]]) -> None:
        """Ask for jobs by message: the bodies, by the ids of their messages."""

    def is_empty(self) -> bool:
        """Tell whether no message that asks for a job is anywhere but in the database."""

    def drop(self, task_ids: Iterable[str]) -> None:
        """Wait until these tasks are outside of the database, and lose them there; where they never are, do nothing."""

    def end_locks(self) -> None:
        """Let whatever someone holds outside of the database be another's."""


class DatabaseCarrier:
    """The database: a message is a row."""

    def __init__(self, url: Callable[[str], str]) -> None:
        self.settings = {"transport": Transport.POSTGRES}
        self._url = url

    def send(self, bodies: Mapping[str, dict[str, Any]]) -> None:
        """Add rows, and tell who listens."""

        async def send(connection: Connection) -> None:
            now = datetime.now(UTC)
            for message_id, body in bodies.items():
                message = JobMessage(message_id=message_id, queue=JOBS, body=body, available_at=now, created_at=now)
                await MessageRepository(connection).send(message)

        as_orchestrator(self._url, send)

    def is_empty(self) -> bool:
        """Say yes: there is nothing else."""
        return True

    def drop(self, task_ids: Iterable[str]) -> None:
        """Do nothing: the rows are all."""

    def end_locks(self) -> None:
        """Do nothing: the rows are all."""


class BrokerCarrier:
    """Service Bus, as an emulator in a process of its own."""

    def __init__(self, emulator: EmulatorProcess, client: ServiceBusClient) -> None:
        self.settings = {
            "transport": Transport.SERVICEBUS,
            "service_bus_connection_string": emulator.connection_string,
        }
        self._emulator = emulator
        self._client = client
        self._jobs = client.get_queue_sender(JOBS)

    def send(self, bodies: Mapping[str, dict[str, Any]]) -> None:
        """Send messages with Microsoft's client, as a partner does."""
        self._jobs.send_messages(
            [ServiceBusMessage(orjson.dumps(body), message_id=message_id) for message_id, body in bodies.items()]
        )

    def is_empty(self) -> bool:
        """Tell whether every message that asks for a job was ended."""
        jobs = self._emulator.queue(JOBS)
        return jobs.active + jobs.locked + jobs.scheduled == 0

    def drop(self, task_ids: Iterable[str]) -> None:
        """Take the messages of these tasks, and do nothing with them."""
        missing = {*task_ids}
        with self._client.get_queue_receiver(TASKS, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
            while missing:
                missing -= {
                    str(message.message_id) for message in receiver.receive_messages(1, max_wait_time=DROP_SECONDS)
                }

    def end_locks(self) -> None:
        """End all locks now, also those of healthy ones."""
        for queue in QUEUES:
            self._emulator.faults.expire_locks(queue)


@contextmanager
def carrier_of(transport: Transport, url: Callable[[str], str]) -> Iterator[Carrier]:
    """Give what carries messages by a transport; a broker ends with the block."""
    if transport is Transport.POSTGRES:
        yield DatabaseCarrier(url)
        return
    with (
        running_emulator(dict.fromkeys(QUEUES, OPTIONS)) as emulator,
        ServiceBusClient.from_connection_string(emulator.connection_string) as client,
    ):
        yield BrokerCarrier(emulator, client)


def as_orchestrator(url: Callable[[str], str], act: Callable[[Connection], Awaitable[object]]) -> None:
    """Do something with the rights of an orchestrator."""

    async def connected() -> None:
        address = url(DatabaseRole.ORCHESTRATOR)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True, row_factory=dict_row) as connection:
            await act(connection)

    asyncio.run(connected())
