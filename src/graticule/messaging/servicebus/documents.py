"""Tasks as documents: what a message of the broker says, and how it is read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Final

import orjson
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader, AmqpMessageProperties
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from graticule.core.errors import InvalidInput
from graticule.core.ids import TaskId
from graticule.core.models.fields import JobKey, Name, NodeKey, Short, TaskKey
from graticule.repositories.tasks import UnsentTask

LONGEST_MESSAGE_ID: Final = 128  # of the broker
LARGEST_BODY_BYTES: Final = 1024 * 1024  # that is read
_SOON: Final = timedelta(seconds=1)
_SCHEDULED: Final = "x-opt-scheduled-enqueue-time"


class TaskDocument(BaseModel):
    """A task as it travels; one that is too large for the broker travels without its parameters.

    A worker believes only the id, and does what the row says.
    """

    model_config = ConfigDict(frozen=True)

    task_id: TaskKey
    job_id: JobKey
    node_id: NodeKey
    handler: Name
    params: dict[str, JsonValue] | None = None
    queue: Short
    timeout_seconds: Annotated[int, Field(ge=1)] = 3600
    retry_count: Annotated[int, Field(ge=0)] = 0
    traceparent: Short | None = None

    @field_validator("task_id", "job_id", "node_id", "handler", "queue", "traceparent")
    @classmethod
    def _can_be_asked_for(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:  # the database knows no such text, and would refuse the question
            raise ValueError("a NUL character is in it")
        return value


_TRAVELS: Final = tuple(name for name in TaskDocument.model_fields if name != "params")


def outgoing(task: UnsentTask, now: datetime, seconds: int, *, with_params: bool = True) -> AmqpAnnotatedMessage:
    """Give the message of a task; one whose time has not come waits at the broker.

    It is made of AMQP's own parts: those of Service Bus say the same and take longer.
    """
    document: dict[str, Any] = {name: getattr(task, name) for name in _TRAVELS}
    document["params"] = task.params if with_params else None
    return AmqpAnnotatedMessage(
        data_body=orjson.dumps(document),
        header=AmqpMessageHeader(time_to_live=seconds * 1000),
        properties=AmqpMessageProperties(
            message_id=message_id(task.task_id),
            correlation_id=task.job_id,
            subject=task.handler,
            content_type="application/json",
        ),
        annotations={_SCHEDULED: task.available_at} if task.available_at > now + _SOON else None,
    )


def message_id(task_id: TaskId) -> str:
    """Give the id of a task's message: the task's own, unless that is longer than the broker allows."""
    return task_id if len(task_id) <= LONGEST_MESSAGE_ID else sha256(task_id.encode()).hexdigest()


def incoming(received: ServiceBusReceivedMessage) -> TaskDocument:
    """Read a message, or raise what is wrong with it."""
    try:
        return TaskDocument.model_validate(orjson.loads(body_of(received)))
    except orjson.JSONDecodeError:
        raise InvalidInput("The message is not JSON.") from None
    except ValidationError as error:
        raise InvalidInput(f"The message is not a task: {_faults(error)}.") from None


def body_of(received: ServiceBusReceivedMessage) -> bytes:
    """Give what a message carries; one that carries anything but bytes is refused."""
    try:
        body = b"".join(received.body)
    except (TypeError, ValueError):
        raise InvalidInput("The message does not carry bytes.") from None
    if len(body) > LARGEST_BODY_BYTES:
        raise InvalidInput(f"The message has more than {LARGEST_BODY_BYTES:,} bytes.")
    return body


def _faults(error: ValidationError) -> str:
    found: Sequence[Any] = error.errors(include_input=False, include_url=False)
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found[:5])
