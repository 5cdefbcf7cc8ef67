"""Messages that ask for a job, as the broker carries them."""

from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import orjson
from azure.servicebus import ServiceBusReceivedMessage

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.core.models import JobMessage
from graticule.messaging.servicebus.documents import body_of

LONGEST_ID: Final = 64
_PRIORITIES: Final = range(11)


def job_message(received: ServiceBusReceivedMessage, queue: str, now: datetime) -> JobMessage:
    """Give the row of a message; whether a job can be made of it is for the one who takes the row to say."""
    body = _body(received)
    return JobMessage(
        message_id=_id(received, body),
        queue=queue,
        body=body,
        priority=body["priority"] if body.get("priority") in _PRIORITIES else 0,
        available_at=now,
        created_at=now,
    )


def _body(received: ServiceBusReceivedMessage) -> dict[str, Any]:
    """Give what a message says, if that can be stored."""
    try:
        body = json_codec.decode(body_of(received))
        written = json_codec.encode(body)
    except orjson.JSONDecodeError:
        raise InvalidInput("The message is not JSON.") from None
    except orjson.JSONEncodeError:
        raise InvalidInput("The message is nested too deeply.") from None
    if not isinstance(body, dict):
        raise InvalidInput("The message is not a JSON object.")
    if b"\\u0000" in written.replace(rb"\\", b""):  # a backslash that is text is written as two
        raise InvalidInput("The message has a NUL character, which cannot be stored.")
    return body


def _id(received: ServiceBusReceivedMessage, body: dict[str, Any]) -> str:
    """Give the message's id, or else the one that it carries; two messages of one id ask for one job."""
    given = received.message_id or body.get("message_id") or f"{received.sequence_number}@{received.enqueued_time_utc}"
    text = str(given)
    return text if len(text) <= LONGEST_ID and "\0" not in text else sha256(text.encode()).hexdigest()
