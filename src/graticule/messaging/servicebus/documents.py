"""Tasks as documents: what a message of the broker says, and how it is read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from azure.servicebus import ServiceBusReceivedMessage
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.core.ids import TaskId
from graticule.core.models.fields import TaskKey
from graticule.messaging.servicebus.encoding import encoded
from graticule.repositories.tasks import UnsentTask

LONGEST_MESSAGE_ID: Final = 128  # of the broker
LARGEST_BODY_BYTES: Final = 1024 * 1024  # that is read
_SOON: Final = timedelta(seconds=1)


# Of a task; with its parameters, unless these are too large for the broker.
_TRAVELS: Final = (
    *("task_id", "job_id", "node_id", "handler", "queue"),
    *("timeout_seconds", "retry_count", "traceparent"),
)


class TaskHint(BaseModel):
    """What a worker believes of a message: that this task waits. What is to be done says the row."""

    model_config = ConfigDict(frozen=True)

    task_id: TaskKey

    @field_validator("task_id")
    @classmethod
    def _can_be_asked_for(cls, value: TaskId) -> TaskId:
        if "\0" in value:  # the database knows no such text, and would refuse the question
            raise ValueError("a NUL character is in it")
        return value


def outgoing(task: UnsentTask, now: datetime, seconds: int, *, with_params: bool = True) -> bytes:
    """Give the message of a task; one whose time has not come waits at the broker."""
    document: dict[str, Any] = {name: getattr(task, name) for name in _TRAVELS}
    document["params"] = task.params if with_params else None
    return encoded(
        json_codec.encode(document),
        message_id=message_id(task.task_id),
        correlation_id=task.job_id,
        subject=task.handler,
        seconds_to_live=seconds,
        not_before=task.available_at if task.available_at > now + _SOON else None,
    )


def message_id(task_id: TaskId) -> str:
    """Give the id of a task's message: the task's own, unless that is longer than the broker allows."""
    return task_id if len(task_id) <= LONGEST_MESSAGE_ID else sha256(task_id.encode()).hexdigest()


def named_task(received: ServiceBusReceivedMessage) -> TaskId:
    """Give the task of which a message tells, or raise what is wrong with it."""
    try:
        return TaskHint.model_validate_json(body_of(received)).task_id
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
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}" for item in found[:5])
