"""What the broker answers when it does not do what it is asked for."""

from typing import Final

LOCK_LOST: Final = "com.microsoft:message-lock-lost"
MESSAGE_NOT_FOUND: Final = "com.microsoft:message-not-found"
SERVER_BUSY: Final = "com.microsoft:server-busy"
UNAUTHORIZED: Final = "amqp:unauthorized-access"
NOT_FOUND: Final = "amqp:not-found"
NOT_ALLOWED: Final = "amqp:not-allowed"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
DECODE_ERROR: Final = "amqp:decode-error"
TOO_LARGE: Final = "amqp:link:message-size-exceeded"


class Refusal(Exception):
    """A request that is refused: with a condition of AMQP, and the status that a management answer carries."""

    def __init__(self, status: int, condition: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.condition = condition
        self.text = text


def lock_lost() -> Refusal:
    """Give the refusal for a lock that is not held any more."""
    return Refusal(
        410, LOCK_LOST, "The lock supplied is invalid. Either it expired, or the message was removed from the queue."
    )


def not_found(path: str) -> Refusal:
    """Give the refusal for an entity that does not exist."""
    return Refusal(404, NOT_FOUND, f"The messaging entity '{path}' could not be found.")


def message_not_found(sequence: int) -> Refusal:
    """Give the refusal for a sequence number that belongs to no such message."""
    return Refusal(404, MESSAGE_NOT_FOUND, f"There is no such message with the sequence number {sequence}.")


def server_busy() -> Refusal:
    """Give the refusal of a broker that has too much to do."""
    return Refusal(503, SERVER_BUSY, "The request was terminated because the namespace is being throttled.")
