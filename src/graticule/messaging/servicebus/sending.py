"""Tasks that go to the broker, in batches of the size that it takes."""

from collections.abc import Sequence
from datetime import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
from azure.servicebus.exceptions import MessageSizeExceededError

from graticule.core.errors import GraticuleError
from graticule.messaging.servicebus.documents import outgoing
from graticule.messaging.servicebus.namespace import Namespace, told
from graticule.repositories.tasks import UnsentTask


class TaskSender:
    """Sends tasks, and has returned when the broker has them all."""

    def __init__(self, namespace: Namespace, message_seconds: int) -> None:
        self._namespace = namespace
        self._seconds = message_seconds

    async def send(self, queue: str, tasks: Sequence[UnsentTask], now: datetime) -> None:
        """Put tasks into a queue: all of them, unless an error is raised; then some may be there."""
        try:
            await self._send(queue, tasks, now)
        except GraticuleError:
            await self._namespace.forget_sender(queue)
            raise

    async def _send(self, queue: str, tasks: Sequence[UnsentTask], now: datetime) -> None:
        with told("take messages", queue):
            sender = self._namespace.sender(queue)
            batch = await sender.create_message_batch()
            for task in tasks:
                message = outgoing(task, now, self._seconds)
                if not _fits(batch, message):
                    if len(batch):
                        await sender.send_messages(batch)
                    batch = await sender.create_message_batch()
                    if not _fits(batch, message):  # without its parameters, which the ledger has too
                        batch.add_message(outgoing(task, now, self._seconds, with_params=False))
            await sender.send_messages(batch)


def _fits(batch: ServiceBusMessageBatch, message: ServiceBusMessage) -> bool:
    """Add a message, if there is room for it."""
    try:
        batch.add_message(message)
    except MessageSizeExceededError:
        return False
    return True
