"""A session of a connection: its links, and the deliveries that a client has not settled."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tests.servicebus_emulator.faults import Faults
from tests.servicebus_emulator.frames import (
    SOURCE,
    TARGET,
    Frame,
    Outcome,
    Performative,
    described,
    error,
    frame,
    padded,
)
from tests.servicebus_emulator.links import MAX_MESSAGE, Intake, Link, Outgoing, Outlet, Requests, settle
from tests.servicebus_emulator.namespace import Namespace
from tests.servicebus_emulator.nodes import management_node, token_node
from tests.servicebus_emulator.queue import Queue
from tests.servicebus_emulator.refusal import Refusal, not_found
from tests.servicebus_emulator.tokens import Grants, covers, path_of
from tests.servicebus_emulator.types import Described, Malformed, UByte, UInt, ULong, UShort

TOKENS_NODE: Final = "$cbs"
_MANAGEMENT: Final = "/$management"
_SETTLED: Final = 1  # the sender-settle-mode of one who receives messages for good
_WINDOW: Final = UInt(2**31 - 1)
_SOURCE_FIELDS: Final = 11
_TARGET_FIELDS: Final = 7
_TRANSFER_OVERHEAD: Final = 64  # more than a frame needs besides its piece of the message


@dataclass(frozen=True)
class Wire:
    """What a session needs of its connection."""

    write: Callable[[bytes], None]
    namespace: Namespace
    faults: Faults
    grants: Grants
    when_granted: Callable[[], None]
    max_frame: int


class Session:
    """One session; its channel has the same number in both directions."""

    def __init__(self, wire: Wire, channel: int) -> None:
        self.links: dict[int, Link] = {}
        self.unsettled: dict[int, tuple[Queue, UUID]] = {}
        self._wire = wire
        self._channel = channel
        self._next_delivery = 0
        self._frames_in = 0
        self._frames_out = 0
        self.send(Performative.BEGIN, [UShort(channel), UInt(0), _WINDOW, _WINDOW, UInt(2**32 - 1), None, None, None])

    def heed(self, arrived: Frame) -> None:
        """Do what a frame says."""
        do = self._DOING.get(arrived.performative)
        if do is not None:
            do(self, arrived)

    def close(self) -> None:
        """Let go of all links."""
        for link in self.links.values():
            link.close()
        self.links.clear()

    def detach(self, path: str) -> None:
        """Detach the links of an entity that is gone."""
        for link in list(self.links.values()):
            if covers(path, link.path):
                self._drop(link, not_found(path))

    def check_grants(self) -> None:
        """Detach the links for which no token is valid any more."""
        for link in list(self.links.values()):
            if link.path == TOKENS_NODE:
                continue
            try:
                self._wire.grants.check(link.path)
            except Refusal as refusal:
                self._drop(link, refusal)

    def send(self, performative: int, fields: list[Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self._wire.write(frame(self._channel, performative, fields, payload))

    def send_flow(self, handle: int, delivery_count: int, credit: int) -> None:
        """Tell how far a link has come and how many messages it may carry."""
        link = [UInt(handle), UInt(delivery_count), UInt(credit), None, False, False, None]
        self.send(Performative.FLOW, [UInt(self._frames_in), _WINDOW, UInt(self._frames_out), _WINDOW, *link])

    def send_disposition(self, delivery: int, outcome: Described, *, is_receiver: bool) -> None:
        """Tell what became of a delivery."""
        self.send(Performative.DISPOSITION, [is_receiver, UInt(delivery), UInt(delivery), True, outcome, False])

    def send_transfer(self, handle: int, tag: bytes, payload: bytes, *, settled: bool) -> int:
        """Send a message in as many frames as it needs; give the id of its delivery."""
        delivery = self._next_delivery
        self._next_delivery += 1
        size = self._wire.max_frame - _TRANSFER_OVERHEAD
        for start in range(0, max(1, len(payload)), size):
            begins = [UInt(delivery), tag, UInt(0)] if start == 0 else [None, None, None]
            rest = [settled, start + size < len(payload), None, None, False, False, False]
            self.send(Performative.TRANSFER, [UInt(handle), *begins, *rest], payload[start : start + size])
            self._frames_out += 1
        return delivery

    def _attach(self, arrived: Frame) -> None:
        name, handle, receives, sender_mode, receiver_mode, source, target, *_ = arrived.fields
        source, target = _terminus(source, _SOURCE_FIELDS), _terminus(target, _TARGET_FIELDS)
        path = path_of(str((source if receives else target)[0]))
        answer = [name, UInt(handle), not receives, UByte(sender_mode or 0), UByte(receiver_mode or 0)]
        try:
            link = self._link(int(handle), path, receives=bool(receives), locks=sender_mode != _SETTLED)
        except Refusal as refusal:  # a link that leads nowhere, and is gone at once
            self._send_attach(answer, None, None)
            Link(self, int(handle), path).detach(refusal)
            return
        self._send_attach(answer, described(SOURCE, source), described(TARGET, target))
        self.links[int(handle)] = link
        link.attached()

    def _send_attach(self, fields: list[Any], source: Described | None, target: Described | None) -> None:
        rest: list[Any] = [None, False, UInt(0), ULong(MAX_MESSAGE), None, None, {}]
        self.send(Performative.ATTACH, [*fields, source, target, *rest])

    def _link(self, handle: int, path: str, *, receives: bool, locks: bool) -> Link:
        if path == TOKENS_NODE:
            if receives:
                return Outgoing(self, handle, path)
            return Requests(self, handle, path, token_node(self._wire.grants, self._wire.when_granted))
        self._wire.grants.check(path)
        self._wire.faults.refuse_when_busy()
        queue = self._wire.namespace.find(path.removesuffix(_MANAGEMENT))
        if not path.endswith(_MANAGEMENT):
            return (
                Outlet(self, handle, path, queue, locks=locks)
                if receives
                else Intake(self, handle, path, queue, self._wire.faults)
            )
        if receives:
            return Outgoing(self, handle, path)
        return Requests(self, handle, path, management_node(queue, self._wire.faults))

    def _flow(self, arrived: Frame) -> None:
        link = self.links.get(arrived.fields[4])
        if link is not None:
            link.flow(arrived.fields)

    def _transfer(self, arrived: Frame) -> None:
        self._frames_in += 1
        link = self.links.get(arrived.fields[0])
        if link is None:
            return
        try:
            link.transfer(arrived)
        except Refusal as refusal:
            self._drop(link, refusal)

    def _disposition(self, arrived: Frame) -> None:
        is_receiver, first, last, settled, state, *_ = arrived.fields
        if not is_receiver:
            return
        if state is not None and not (isinstance(state, Described) and isinstance(state.value, list)):
            raise Malformed("A disposition tells no outcome.")
        for delivery in self._deliveries(first, first if last is None else last):
            outcome = self._settle(delivery, state)
            if not settled:
                self.send_disposition(delivery, outcome, is_receiver=False)

    def _deliveries(self, first: int, last: int) -> Iterable[int]:
        if first == last:
            return (first,) if first in self.unsettled else ()
        return [delivery for delivery in self.unsettled if first <= delivery <= last]

    def _settle(self, delivery: int, state: Described | None) -> Described:
        queue, token = self.unsettled[delivery]
        try:
            self._wire.faults.refuse_when_busy()
            del self.unsettled[delivery]
            return settle(queue, token, state)
        except Refusal as refusal:
            return described(Outcome.REJECTED, [error(refusal.condition, refusal.text)])

    def _detach(self, arrived: Frame) -> None:
        link = self.links.pop(arrived.fields[0], None)
        if link is not None:
            link.close()
            link.detach()

    def _drop(self, link: Link, refusal: Refusal) -> None:
        del self.links[link.handle]
        link.close()
        link.detach(refusal)

    _DOING: Final[dict[int, Callable[["Session", Frame], None]]] = {
        Performative.ATTACH: _attach,
        Performative.FLOW: _flow,
        Performative.TRANSFER: _transfer,
        Performative.DISPOSITION: _disposition,
        Performative.DETACH: _detach,
    }


def _terminus(given: Any, count: int) -> list[Any]:
    """Give the fields of a source or target."""
    if given is not None and not (isinstance(given, Described) and isinstance(given.value, list)):
        raise Malformed("A link begins or ends nowhere.")
    return padded(given.value if given is not None else [], count)
