"""The links of a session: on some the client sends, on others it receives."""

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from tests.servicebus_emulator.faults import Faults
from tests.servicebus_emulator.frames import Frame, Outcome, Performative, described, error
from tests.servicebus_emulator.message import Request, messages_of
from tests.servicebus_emulator.nodes import Answer
from tests.servicebus_emulator.queue import DESCRIPTION, REASON, Entry, Queue
from tests.servicebus_emulator.refusal import DECODE_ERROR, TOO_LARGE, Refusal
from tests.servicebus_emulator.types import Described, Malformed, UInt

if TYPE_CHECKING:
    from tests.servicebus_emulator.session import Session

MAX_MESSAGE: Final = 1024 * 1024
_CREDIT: Final = 1000  # what a client may send before it is told that it may send more
_ACCEPTED: Final = described(Outcome.ACCEPTED, [])


class Link:
    """A link, by the handle that the client has given to it."""

    def __init__(self, session: "Session", handle: int, path: str) -> None:
        self.session = session
        self.handle = handle
        self.path = path
        self.delivery_count = 0
        self.credit = 0

    def attached(self) -> None:
        """Begin, now that the client knows of the link."""

    def flow(self, fields: list[Any]) -> None:
        """Heed what the client says about the flow of messages."""

    def transfer(self, frame: Frame) -> None:
        """Take a piece of a message; a link on which the client receives gets none."""

    def close(self) -> None:
        """Be gone."""

    def detach(self, refusal: Refusal | None = None) -> None:
        """Tell the client that the link is gone."""
        cause = error(refusal.condition, refusal.text) if refusal else None
        self.session.send(Performative.DETACH, [UInt(self.handle), True, cause])

    def _tell_flow(self) -> None:
        self.session.send_flow(self.handle, self.delivery_count, self.credit)


class Outgoing(Link):
    """A link on which the client receives."""

    def flow(self, fields: list[Any]) -> None:
        """Heed how many messages the client would take."""
        _, _, _, _, _, delivery_count, credit, _, drain, *_ = fields
        self.credit = (delivery_count or 0) + (credit or 0) - self.delivery_count
        self._use_credit()
        if drain:
            self.delivery_count += max(0, self.credit)
            self.credit = 0
            self._tell_flow()

    def send(self, payload: bytes, tag: bytes, *, settled: bool) -> int:
        """Send a message; give the id of its delivery."""
        self.credit -= 1
        self.delivery_count += 1
        return self.session.send_transfer(self.handle, tag, payload, settled=settled)

    def _use_credit(self) -> None:
        """Send what can be sent now; an answer is sent when there is one."""


class Outlet(Outgoing):
    """A link on which the client receives messages of a queue: one of the queue's consumers."""

    def __init__(self, session: "Session", handle: int, path: str, queue: Queue, *, locks: bool) -> None:
        super().__init__(session, handle, path)
        self.locks = locks
        self._queue = queue

    def deliver(self, entry: Entry) -> None:
        """Send a message; the token of its lock is the tag of its delivery."""
        if entry.token is None:
            self.send(entry.encode(), uuid4().bytes_le, settled=True)
            return
        delivery = self.send(entry.encode(), entry.token.bytes_le, settled=False)
        self.session.unsettled[delivery] = (self._queue, entry.token)

    def close(self) -> None:
        """Take no more messages; those that were sent stay locked."""
        self._queue.leave(self)

    def _use_credit(self) -> None:
        self._queue.feed(self)


class Incoming(Link):
    """A link on which the client sends."""

    def __init__(self, session: "Session", handle: int, path: str) -> None:
        super().__init__(session, handle, path)
        self._pieces: list[bytes] = []
        self._size = 0
        self._delivery: int = 0
        self._format: int = 0

    def attached(self) -> None:
        """Let the client send."""
        self.credit = _CREDIT
        self._tell_flow()

    def transfer(self, frame: Frame) -> None:
        """Take a piece of a message, and heed the message when it is whole."""
        _, delivery, _, message_format, settled, more, *_ = frame.fields
        if not self._pieces:
            self._delivery, self._format = delivery or 0, message_format or 0
        self._pieces.append(frame.payload)
        self._size += len(frame.payload)
        if self._size > MAX_MESSAGE:
            raise Refusal(400, TOO_LARGE, f"A message has at most {MAX_MESSAGE} bytes.")
        if more:
            return
        outcome = self._heed(b"".join(self._pieces))
        self._pieces, self._size = [], 0
        if not settled:
            self.session.send_disposition(self._delivery, outcome, is_receiver=True)
        self._count_one()

    def _heed(self, payload: bytes) -> Described:
        try:
            self.accept(payload, self._format)
        except Refusal as refusal:
            return described(Outcome.REJECTED, [error(refusal.condition, refusal.text)])
        except Malformed as malformed:
            return described(Outcome.REJECTED, [error(DECODE_ERROR, str(malformed))])
        return _ACCEPTED

    def _count_one(self) -> None:
        self.delivery_count += 1
        self.credit -= 1
        if self.credit < _CREDIT // 2:
            self.attached()

    def accept(self, payload: bytes, message_format: int) -> None:
        """Do with a message what it was sent for."""
        raise NotImplementedError


class Intake(Incoming):
    """A link on which the client sends messages to a queue."""

    def __init__(self, session: "Session", handle: int, path: str, queue: Queue, faults: Faults) -> None:
        super().__init__(session, handle, path)
        self._queue = queue
        self._faults = faults

    def accept(self, payload: bytes, message_format: int) -> None:
        """Put a message into the queue, or all those of a batch."""
        self._faults.refuse_when_busy()
        for message in messages_of(payload, message_format):
            self._queue.put(message)


class Requests(Incoming):
    """A link on which the client sends requests; answers go to the link for which it has given the same address."""

    def __init__(self, session: "Session", handle: int, path: str, answer: Answer) -> None:
        super().__init__(session, handle, path)
        self._answer = answer

    def accept(self, payload: bytes, message_format: int) -> None:
        """Answer a request."""
        answer = self._answer(Request.parse(payload))
        for link in self.session.links.values():
            if isinstance(link, Outgoing) and link.path == self.path:
                link.send(answer, uuid4().bytes_le, settled=True)
                return


def settle(queue: Queue, token: UUID, state: Described | None) -> Described:
    """Do with a delivered message what the client says; give the outcome that confirms it."""
    outcome = int(state.descriptor) if state is not None else Outcome.ACCEPTED
    fields = list(state.value) if state is not None else []
    if outcome == Outcome.ACCEPTED:
        queue.complete(token)
    elif outcome == Outcome.REJECTED:
        info = _info_of(fields)
        queue.dead_letter(token, info.get(REASON), info.get(DESCRIPTION))
        fields = [None]  # an error in the answer would mean that it was not done
    elif outcome == Outcome.MODIFIED and len(fields) > 1 and fields[1]:
        queue.defer(token)  # "undeliverable here"
    elif outcome == Outcome.MODIFIED:
        queue.abandon(token)
    else:
        queue.release(token)
    return described(outcome, fields)


def _info_of(fields: list[Any]) -> dict[str, Any]:
    cause = fields[0] if fields else None
    told = cause.value if isinstance(cause, Described) else []
    return told[2] if len(told) > 2 and isinstance(told[2], dict) else {}
