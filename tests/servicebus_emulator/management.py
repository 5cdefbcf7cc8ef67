"""The node `$management` of a queue: what a client asks for besides sending and receiving."""

from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from tests.servicebus_emulator.message import Message
from tests.servicebus_emulator.queue import Queue
from tests.servicebus_emulator.refusal import NOT_IMPLEMENTED, Refusal
from tests.servicebus_emulator.types import LONGS, TIMESTAMPS, Array, Malformed

Body = dict[str, Any]
_DELETES: Final = 0  # the receiver-settle-mode that asks for a message for good
_MOST_PEEKED: Final = 1000


def manage(queue: Queue, operation: str, body: Body) -> tuple[int, Body]:
    """Do what a client asks for; give the status and the body of the answer."""
    do = _OPERATIONS.get(operation)
    if do is None:
        raise Refusal(501, NOT_IMPLEMENTED, f"The operation {operation} is not supported.")
    try:
        return do(queue, body)
    except (KeyError, TypeError, AttributeError) as error:
        raise Malformed("A request of management lacks something.") from error


def _renew(queue: Queue, body: Body) -> tuple[int, Body]:
    ends = [queue.renew(token) for token in _tokens(body)]
    return 200, {"expirations": Array(TIMESTAMPS, ends)}


def _schedule(queue: Queue, body: Body) -> tuple[int, Body]:
    sequences = [queue.put(Message.parse(each["message"])) for each in body["messages"]]
    return 200, {"sequence-numbers": Array(LONGS, sequences)}


def _cancel(queue: Queue, body: Body) -> tuple[int, Body]:
    queue.cancel_scheduled(_items(body["sequence-numbers"]))
    return 200, {}


def _peek(queue: Queue, body: Body) -> tuple[int, Body]:
    count = min(body.get("message-count", 1), _MOST_PEEKED)
    messages = [{"message": entry.encode()} for entry in queue.peek(body.get("from-sequence-number", 0), count)]
    return (200, {"messages": messages}) if messages else (204, {})


def _receive_deferred(queue: Queue, body: Body) -> tuple[int, Body]:
    locks = body.get("receiver-settle-mode") != _DELETES
    entries = queue.take_deferred(_items(body["sequence-numbers"]), locks=locks)
    tokens = [{"lock-token": entry.token} if locks else {} for entry in entries]
    return 200, {
        "messages": [{"message": entry.encode(), **token} for entry, token in zip(entries, tokens, strict=True)]
    }


def _settle(queue: Queue, body: Body) -> tuple[int, Body]:
    settle = _DISPOSITIONS[body["disposition-status"]]
    for token in _tokens(body):
        settle(queue, token, body)
    return 200, {}


def _dead_letter(queue: Queue, token: UUID, body: Body) -> None:
    queue.dead_letter(token, body.get("deadletter-reason"), body.get("deadletter-description"))


def _tokens(body: Body) -> list[UUID]:
    tokens = _items(body["lock-tokens"])
    return [token if isinstance(token, UUID) else UUID(str(token)) for token in tokens]


def _items(values: Array | Iterable[Any]) -> list[Any]:
    return list(values.items if isinstance(values, Array) else values)


_DISPOSITIONS: Final[dict[str, Callable[[Queue, UUID, Body], None]]] = {
    "completed": lambda queue, token, _: queue.complete(token),
    "abandoned": lambda queue, token, _: queue.abandon(token),
    "defered": lambda queue, token, _: queue.defer(token),  # spelt like this on the wire
    "suspended": _dead_letter,
}
_OPERATIONS: Final[dict[str, Callable[[Queue, Body], tuple[int, Body]]]] = {
    "com.microsoft:renew-lock": _renew,
    "com.microsoft:schedule-message": _schedule,
    "com.microsoft:cancel-scheduled-message": _cancel,
    "com.microsoft:peek-message": _peek,
    "com.microsoft:receive-by-sequence-number": _receive_deferred,
    "com.microsoft:update-disposition": _settle,
}
