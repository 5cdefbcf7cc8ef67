"""Tasks that go to the broker, in batches of the size that it takes."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from azure.servicebus import ServiceBusMessageBatch
from azure.servicebus.aio import ServiceBusSender
from azure.servicebus.exceptions import MessageSizeExceededError

from graticule.core.errors import GraticuleError
from graticule.messaging.servicebus.documents import outgoing
from graticule.messaging.servicebus.namespace import Namespace, told
from graticule.repositories.tasks import UnsentTask

LARGEST_BATCH: Final = 250  # tasks: workers begin with the first while the next are sent
FRAME_BYTES: Final = 8  # around each message of a batch, at most
_BODIES: Final = 5  # where a batch has its messages


class TaskSender:
    """Sends tasks, batch by batch."""

    def __init__(self, namespace: Namespace, message_seconds: int) -> None:
        self._namespace = namespace
        self._seconds = message_seconds

    async def send(self, queue: str, tasks: Sequence[UnsentTask], now: datetime) -> AsyncIterator[list[UnsentTask]]:
        """Put tasks into a queue, and give each batch when the broker has it; after an error, others may be there."""
        try:
            with told("take messages", queue):
                async for batch, sent in self._batches(self._namespace.sender(queue), tasks, now):
                    await self._namespace.sender(queue).send_messages(batch)
                    self._namespace.metrics.sent(queue, len(sent))
                    yield sent
        except GraticuleError:
            self._namespace.metrics.broker_failed(queue)
            await self._namespace.forget_sender(queue)
            raise

    async def _batches(
        self, sender: ServiceBusSender, tasks: Sequence[UnsentTask], now: datetime
    ) -> AsyncIterator[tuple[ServiceBusMessageBatch, list[UnsentTask]]]:
        batch, held = await sender.create_message_batch(), list[UnsentTask]()
        for task in tasks:
            message = outgoing(task, now, self._seconds)
            if len(held) == LARGEST_BATCH or not _added(batch, message):
                if held:
                    yield batch, held
                batch, held = await sender.create_message_batch(), []
                bare = outgoing(task, now, self._seconds, with_params=False)  # the row has its parameters
                if not _added(batch, message) and not _added(batch, bare):
                    raise MessageSizeExceededError(message=f"The task {task.task_id} has no room in an empty batch.")
            held.append(task)
        yield batch, held


def _added(batch: ServiceBusMessageBatch, message: bytes) -> bool:
    """Add a message that is encoded already, if there is room for it; the client has no name of its own for it."""
    size = batch.size_in_bytes + len(message) + FRAME_BYTES
    if size > batch.max_size_in_bytes:
        return False
    bodies: list[bytes] = batch._message[_BODIES]  # noqa: SLF001
    bodies.append(message)
    batch._size = size  # noqa: SLF001
    batch._count += 1  # noqa: SLF001
    return True
